package oauthclient

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// A Token is the response of a token endpoint. It prints without its secrets. Do not change it.
type Token struct {
	AccessToken string `json:"access_token"`
	// Type is "Bearer" or "DPoP".
	Type         string `json:"token_type"`
	RefreshToken string `json:"refresh_token,omitempty"`
	// Expires is when the access token expires. Zero means unknown.
	Expires time.Time `json:"expires,omitzero"`
	// Requested are the requested scopes. Granted are the granted scopes, or the requested ones if
	// the server does not list them.
	Requested []string `json:"requested,omitempty"`
	Granted   []string `json:"granted,omitempty"`
	// Issuer is the authorization server that issued the token. Resource is the resource that the
	// token is for.
	Issuer   string `json:"issuer"`
	Resource string `json:"resource"`
	// Thumbprint identifies the key that a DPoP token is bound to. Empty for a bearer token.
	Thumbprint string `json:"thumbprint,omitempty"`
}

// String returns the type, issuer and resource, without secrets.
func (t Token) String() string {
	return fmt.Sprintf("%s token of %q for %q", t.Type, t.Issuer, t.Resource)
}

// GoString returns the same as String.
func (t Token) GoString() string { return t.String() }

// LogValue returns the same as String.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.String()) }

// early is how long before its expiry a token counts as expired, to allow for clock differences and
// network delays.
const early = 10 * time.Second

func (t *Token) expired(now time.Time) bool {
	return !t.Expires.IsZero() && !now.Add(early).Before(t.Expires)
}

// A Key names a record of a [Store]. Tokens and registrations are always looked up by issuer, so
// that one authorization server never receives what another one issued.
type Key struct {
	// Issuer is the authorization server. Empty for the record of a redirect URI, which names the
	// issuer that uses it.
	Issuer string
	// Resource is the resource of a token. Empty for a registration. If Issuer is empty, Resource
	// is the redirect URI.
	Resource string
}

// A Record is an entry of a [Store].
type Record struct {
	// Client is the client that requested the token or registered.
	Client *Credentials `json:"client,omitempty"`
	Token  *Token       `json:"token,omitempty"`
}

// A Store keeps registrations and tokens. Its methods must be safe for concurrent use. Records are
// secret: encrypt them, or let only the user read them.
type Store interface {
	// Load returns the record of key, or nil if there is none.
	Load(ctx context.Context, key Key) (*Record, error)
	// Save replaces the record of key.
	Save(ctx context.Context, key Key, r *Record) error
	// Delete removes the record of key. Deleting a missing record is not an error.
	Delete(ctx context.Context, key Key) error
}

// A Locker is a [Store] that several transports or programs can share. A transport locks the record
// of a token while it refreshes the token and saves the new one. An authorization server that sees
// a refresh token twice treats it as stolen and revokes the grant. That of [NewFileStore] is
// a Locker.
type Locker interface {
	// Lock waits for the lock of key and returns the function that releases it. Load, Save and
	// Delete do not wait for the lock.
	Lock(ctx context.Context, key Key) (unlock func(), err error)
}

// NewMemoryStore returns an empty store in memory.
func NewMemoryStore() Store { return &memoryStore{records: make(map[Key]Record)} }

type memoryStore struct {
	mu      sync.Mutex
	records map[Key]Record // guarded by mu
}

func (m *memoryStore) Load(_ context.Context, key Key) (*Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.records[key]
	if !ok {
		return nil, nil
	}
	return &r, nil
}

func (m *memoryStore) Save(_ context.Context, key Key, r *Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.records[key] = *r
	return nil
}

func (m *memoryStore) Delete(_ context.Context, key Key) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.records, key)
	return nil
}

// NewFileStore returns a store that keeps each record in a file in dir. It creates dir if it does
// not exist. Files have mode 0600; on Windows the access list of dir applies. A file that other
// users can read is rejected. Files are not encrypted. Each save replaces the file atomically.
//
// Programs can share a folder. The store is a [Locker]: it uses file locks, which end with the
// program that holds them, on Unix and Windows. On systems without file locks, Lock always succeeds
// at once.
func NewFileStore(dir string) (Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("oauthclient: %w", err)
	}
	return fileStore(dir), nil
}

type fileStore string

// file returns the name of a record's file. The name is a hash, because servers choose issuers.
func (s fileStore) file(key Key) string {
	sum := sha256.Sum256([]byte(key.Issuer + "\x00" + key.Resource))
	return filepath.Join(string(s), hex.EncodeToString(sum[:])+".json")
}

// Lock locks a separate file, which exists before the first record and while records are replaced.
func (s fileStore) Lock(ctx context.Context, key Key) (unlock func(), err error) {
	lock := flock.New(strings.TrimSuffix(s.file(key), ".json") + ".lock")
	switch _, err := lock.TryLockContext(ctx, lockWait); {
	case err == nil, errors.Is(err, errors.ErrUnsupported), errors.Is(err, syscall.ENOLCK): // the last two: no locks here
		return func() { _ = lock.Unlock() }, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	default:
		return nil, fmt.Errorf("oauthclient: %w", err)
	}
}

// lockWait is the delay between attempts to get a lock that another program holds.
const lockWait = 20 * time.Millisecond

// kept is the content of a file. It contains its key, which Load compares.
type kept struct {
	Key    Key    `json:"key"`
	Record Record `json:"record"`
}

func (s fileStore) Load(_ context.Context, key Key) (*Record, error) {
	name := s.file(key)
	info, err := os.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("oauthclient: %w", err)
	case !info.Mode().IsRegular() || runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("oauthclient: %s is %s; it must be a file that only the user may read, -rw-------",
			name, info.Mode())
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("oauthclient: %w", err)
	}
	var k kept
	if err := jsonx.Unmarshal(data, &k); err != nil || k.Key != key {
		return nil, fmt.Errorf("oauthclient: %s is not a record of %q; remove it", name, key.Issuer)
	}
	return &k.Record, nil
}

func (s fileStore) Save(_ context.Context, key Key, r *Record) error {
	data, err := jsonx.Marshal(kept{key, *r})
	if err != nil {
		return fmt.Errorf("oauthclient: %w", err)
	}
	f, err := os.CreateTemp(string(s), ".new-*") // with mode 0600
	if err != nil {
		return fmt.Errorf("oauthclient: %w", err)
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), s.file(key))
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("oauthclient: %w", err)
	}
	return nil
}

func (s fileStore) Delete(_ context.Context, key Key) error {
	if err := os.Remove(s.file(key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("oauthclient: %w", err)
	}
	return nil
}

// union returns the elements of a, followed by those of b that are not in a.
func union(a, b []string) []string {
	all := slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

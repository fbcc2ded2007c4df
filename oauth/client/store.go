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
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// A Token is what a token endpoint gave. It prints without its secrets, and must not be changed.
type Token struct {
	AccessToken string `json:"access_token"`
	// Type is "Bearer" or "DPoP".
	Type         string `json:"token_type"`
	RefreshToken string `json:"refresh_token,omitempty"`
	// Expires is when the access token ends; zero means not known.
	Expires time.Time `json:"expires,omitzero"`
	// Requested are the scopes that were asked for, Granted those that were given as far as the server said.
	Requested []string `json:"requested,omitempty"`
	Granted   []string `json:"granted,omitempty"`
	// Issuer gave the token, for Resource.
	Issuer   string `json:"issuer"`
	Resource string `json:"resource"`
}

// String says who gave the token, and for what.
func (t Token) String() string {
	return fmt.Sprintf("%s token of %q for %q", t.Type, t.Issuer, t.Resource)
}

// GoString is String.
func (t Token) GoString() string { return t.String() }

// LogValue is String.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.String()) }

// early is how long before its end a token is taken for ended: it has to travel, and clocks differ.
const early = 10 * time.Second

func (t *Token) expired(now time.Time) bool {
	return !t.Expires.IsZero() && !now.Add(early).Before(t.Expires)
}

// A Key names a record of a [Store]. Nothing is ever looked up without the issuer, so that what one authorization server
// gave is not shown to another.
type Key struct {
	Issuer string
	// Resource is empty for the record of the registration.
	Resource string
}

// A Record is what a [Store] keeps.
type Record struct {
	// Client is who asked for the token, or was registered.
	Client *Credentials `json:"client,omitempty"`
	Token  *Token       `json:"token,omitempty"`
}

// A Store keeps registrations and tokens. Its methods may be called concurrently. What it keeps is secret: an
// implementation encrypts it, or lets nobody but the user read it.
type Store interface {
	// Load returns the record of key, nil when there is none.
	Load(ctx context.Context, key Key) (*Record, error)
	// Save keeps a record in place of the one before.
	Save(ctx context.Context, key Key, r *Record) error
	// Delete forgets a record; it is no error when there is none.
	Delete(ctx context.Context, key Key) error
}

// NewMemoryStore returns a store that ends with the program.
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

// NewFileStore returns a store of a file for each record in a folder, which is made when it is not there. Only the user
// may read them (mode 0600; on Windows, what the folder's list says); a file that others may read is refused. They are not
// encrypted. A file is replaced in one step, so that a crash leaves the old one or the new one; several programs may
// share a folder, and the last who writes wins.
func NewFileStore(dir string) (Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("oauthclient: %w", err)
	}
	return fileStore(dir), nil
}

type fileStore string

// file names by a hash: an issuer is chosen by others.
func (s fileStore) file(key Key) string {
	sum := sha256.Sum256([]byte(key.Issuer + "\x00" + key.Resource))
	return filepath.Join(string(s), hex.EncodeToString(sum[:])+".json")
}

// A kept record says what it is of, to be compared when it is read.
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
		return nil, fmt.Errorf("oauthclient: %s is %s; it must be a file that only the user may read, -rw-------", name, info.Mode())
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("oauthclient: %w", err)
	}
	var k kept
	if err := jsonx.Unmarshal(data, &k); err != nil || k.Key != key {
		return nil, fmt.Errorf("oauthclient: %s is no record of %q; remove it", name, key.Issuer)
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
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
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

// union is a with what b has more.
func union(a, b []string) []string {
	all := slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

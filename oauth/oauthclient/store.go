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
	"time"

	"github.com/mcpkit/mcpkit-go/internal/filelock"
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
	// Issuer is empty for the record of a redirect URI, which says whom it serves.
	Issuer string
	// Resource is empty for the record of the registration, and the redirect URI where Issuer is empty.
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

// A Locker is a [Store] that several transports or programs share. A transport locks the record of a token while it
// refreshes the token and saves the new one: an authorization server takes a refresh token that is used twice for stolen,
// and ends the grant. The stores of this package are Lockers.
type Locker interface {
	// Lock waits until nobody else holds the lock of key, and returns what ends it. Load, Save and Delete do not wait for
	// the lock.
	Lock(ctx context.Context, key Key) (unlock func(), err error)
}

// NewMemoryStore returns a store that ends with the program. It is a [Locker].
func NewMemoryStore() Store {
	return &memoryStore{records: make(map[Key]Record), locks: make(map[Key]chan struct{})}
}

type memoryStore struct {
	mu      sync.Mutex
	records map[Key]Record        // guarded by mu
	locks   map[Key]chan struct{} // each has room for one who holds it; guarded by mu
}

func (m *memoryStore) Lock(ctx context.Context, key Key) (unlock func(), err error) {
	m.mu.Lock()
	lock := m.locks[key]
	if lock == nil {
		lock = make(chan struct{}, 1)
		m.locks[key] = lock
	}
	m.mu.Unlock()
	select {
	case lock <- struct{}{}:
		return func() { <-lock }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
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
// encrypted. A file is replaced in one step, so that a crash leaves the old one or the new one.
//
// Programs may share a folder: the store is a [Locker], by locks of files that end with the program that holds them, on
// Unix and Windows. File systems and other systems without such locks grant every lock.
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

// Lock locks a file beside that of the record, which is there before the first record is and when records are replaced.
func (s fileStore) Lock(ctx context.Context, key Key) (unlock func(), err error) {
	f, err := os.OpenFile(strings.TrimSuffix(s.file(key), ".json")+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("oauthclient: %w", err)
	}
	for wait := minLockWait; ; wait = min(2*wait, maxLockWait) {
		locked, err := filelock.TryLock(f)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("oauthclient: %w", err), f.Close())
		}
		if locked {
			return func() { _ = errors.Join(filelock.Unlock(f), f.Close()) }, nil
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), f.Close())
		case <-time.After(wait):
		}
	}
}

// How long to wait before a lock that another program holds is tried again.
const (
	minLockWait = 2 * time.Millisecond
	maxLockWait = 100 * time.Millisecond
)

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

package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
)

var schemes struct {
	mu   sync.Mutex
	open map[string]func(ctx context.Context, u *url.URL) (Engine, error) // guarded by mu
}

// packages are where the engines of this project are.
var packages = map[string]string{"redis": "redisfleet", "rediss": "redisfleet", "bolt": "boltfleet"}

// Register makes an engine available to [Open] for URLs with the scheme. Packages of engines call
// it in init. Errors of open do not contain the URL, which may have a password. Register panics if
// the scheme is registered already, is empty, or open is nil. It is safe for concurrent use, as is
// Open.
func Register[E Engine](scheme string, open func(ctx context.Context, u *url.URL) (E, error)) {
	schemes.mu.Lock()
	defer schemes.mu.Unlock()
	switch {
	case scheme == "" || open == nil:
		panic("fleet: Register needs a scheme and a function")
	case schemes.open[scheme] != nil:
		panic("fleet: the scheme " + scheme + " is registered already")
	case schemes.open == nil:
		schemes.open = map[string]func(context.Context, *url.URL) (Engine, error){}
	}
	schemes.open[scheme] = func(ctx context.Context, u *url.URL) (Engine, error) {
		e, err := open(ctx, u)
		if err != nil {
			return nil, err
		}
		return e, nil
	}
}

// Open returns the engine that a URL describes, such as "redis://localhost:6379/0". The program has
// to import the package of the engine:
//
//	import _ "github.com/mcpkit/mcpkit-go/fleet/redisfleet"
//
// The caller closes the engine. If no engine has the scheme of the URL, the error says what to import.
// Errors do not contain the URL, which may have a password.
func Open(ctx context.Context, address string) (Engine, error) {
	scheme, _, found := strings.Cut(address, ":")
	if !found {
		return nil, fmt.Errorf("fleet: the address of the engine has no scheme; write one like redis://localhost:6379")
	}
	scheme = strings.ToLower(scheme)
	schemes.mu.Lock()
	open := schemes.open[scheme]
	all := slices.Sorted(maps.Keys(schemes.open))
	schemes.mu.Unlock()
	switch {
	case open != nil:
		u, err := url.Parse(address)
		if bad, ok := errors.AsType[*url.Error](err); ok {
			return nil, fmt.Errorf("fleet: the URL of the engine: %w", bad.Err) // without the URL
		}
		return open(ctx, u)
	case packages[scheme] != "":
		return nil, fmt.Errorf("fleet: the program has no engine for %s: import _ \"github.com/mcpkit/mcpkit-go/fleet/%s\"", scheme, packages[scheme])
	case len(all) == 0:
		return nil, fmt.Errorf("fleet: the program has no engine for %.40q: import the package of one", scheme)
	}
	return nil, fmt.Errorf("fleet: the program has no engine for %.40q; it has those for %s", scheme, strings.Join(all, ", "))
}

package mcpkit

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/limits"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/annotation"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// A CachePolicy says which results of tools [CacheResults] keeps.
type CachePolicy struct {
	// TTL is how long a result is kept. Zero keeps nothing.
	TTL time.Duration
	// Shared shares results between all callers, authenticated or not. Otherwise each authenticated
	// caller has its own, and results for others are not kept, since they cannot be told apart.
	Shared bool
	// Entries is how many results are kept; the least recently used goes first. Zero means 1,000.
	Entries int
	// MaxBytes is the size of the largest result that is kept, with its arguments. Zero means 64 KiB.
	MaxBytes int
	// Vary returns what results depend on besides the tool, the text of its arguments and the caller
	// with its scopes. Nil: nothing.
	Vary func(*Call) string
}

// CacheResults returns middleware that keeps the results of tools with the hint readonly. It is the
// tag cache, and middleware.Cache. It keeps neither errors nor results that depend on answers of the
// client. The results of a tool end with its registration.
func CacheResults(p CachePolicy) Middleware {
	results := limits.NewMap[cacheKey, *protocol.CallToolResult](cmp.Or(p.Entries, 1000))
	return func(next Handler) Handler {
		return func(ctx context.Context, call *Call) (Result, error) {
			key, ok := p.key(call)
			if !ok {
				return next(ctx, call)
			}
			if r, ok := results.Get(key, time.Now()); ok {
				return ownContent(r), nil
			}
			result, err := next(ctx, call)
			r, ok := result.(*protocol.CallToolResult)
			if err != nil || !ok || r == nil || r.IsError || call.Asked() {
				return result, err
			}
			if n, _ := SizeOf(r); n+len(key.arguments) <= cmp.Or(p.MaxBytes, 64<<10) {
				results.Put(key, ownContent(r), time.Now().Add(p.TTL))
			}
			return r, nil
		}
	}
}

// ownContent returns a copy with its own list of contents and its own Meta: a caller that changes its
// result changes that of no other.
func ownContent(r *protocol.CallToolResult) *protocol.CallToolResult {
	own := *r
	own.Content, own.Meta = slices.Clone(r.Content), maps.Clone(r.Meta)
	return &own
}

// A cacheKey is what a result depends on.
type cacheKey struct {
	tool      *protocol.Tool // its registration, not its name
	principal string         // and scopes: "" if callers share results
	scopes    string
	arguments string
	vary      string
}

// key returns the key of the call's result. ok is false if the result is not to be kept.
func (p *CachePolicy) key(call *Call) (key cacheKey, ok bool) {
	t, caller := call.Tool(), call.Principal()
	readOnly := t != nil && t.Annotations != nil && t.Annotations.ReadOnlyHint != nil && *t.Annotations.ReadOnlyHint
	if p.TTL == 0 || !readOnly {
		return key, false
	}
	asks := call.Round() > 0 || call.req.Param("requestState") != nil || call.req.Param("inputResponses") != nil
	if asks || !p.Shared && caller == nil {
		return key, false
	}
	key = cacheKey{tool: t, arguments: string(call.Arguments()) + string(call.added())}
	if !p.Shared {
		key.principal, key.scopes = caller.Key(), strings.Join(slices.Sorted(slices.Values(caller.Scopes)), "\x00")
	}
	if p.Vary != nil {
		key.vary = p.Vary(call)
	}
	return key, true
}

// checkCache checks the tag cache of a tool.
func checkCache(a *annotation.Annotation) error {
	switch {
	case a.Cache == nil:
		return nil
	case !a.ReadOnly():
		return errors.New(`cache: a call that is not made could be a change that is not made; add hints:"readonly" if the tool only reads, or drop the tag`)
	case a.Cache.TTL == 0:
		return errors.New(`cache: it says no time; write for example cache:"60s"`)
	}
	return nil
}

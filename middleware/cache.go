package middleware

import (
	"fmt"
	"time"

	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// A CacheOption configures [Cache].
type CacheOption func(*mcpkit.CachePolicy)

// CacheEntries sets how many results the cache keeps. It drops the least recently used one first. 0
// means 1,000.
func CacheEntries(n int) CacheOption { return func(p *mcpkit.CachePolicy) { p.Entries = n } }

// CacheBytes sets the largest size of a cached result, its arguments included. Larger results are
// not cached. 0 means 64 KiB.
func CacheBytes(n int) CacheOption { return func(p *mcpkit.CachePolicy) { p.MaxBytes = n } }

// CacheVary adds to the key of a result what the function returns, for example a header.
func CacheVary(f func(*mcpkit.Call) string) CacheOption {
	return func(p *mcpkit.CachePolicy) { p.Vary = f }
}

// CacheShared shares results between all callers, authenticated or not. The tools must not depend
// on the caller.
func CacheShared() CacheOption { return func(p *mcpkit.CachePolicy) { p.Shared = true } }

// Cache keeps the results of tools with the hint readonly for ttl, for each authenticated caller; see
// [mcpkit.CacheResults]. A ttl of 0 caches nothing. Cache panics on negative values.
//
// The key of a result is the tool, the arguments, the principal and its scopes, so a caller never
// gets a result that was made for another caller or with other scopes.
func Cache(ttl time.Duration, opts ...CacheOption) mcpkit.Middleware {
	p := mcpkit.CachePolicy{TTL: ttl}
	for _, o := range opts {
		o(&p)
	}
	if ttl < 0 || p.Entries < 0 || p.MaxBytes < 0 {
		panic(fmt.Sprintf("middleware: Cache(%s) with %d entries of %d bytes: a value is negative", ttl, p.Entries, p.MaxBytes))
	}
	return mcpkit.CacheResults(p)
}

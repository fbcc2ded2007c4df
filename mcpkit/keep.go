package mcpkit

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/memo"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// A keepRule is the cache tag of a tool: how long the server keeps results, and whether callers
// share them. The zero value keeps nothing.
type keepRule struct {
	ttl    time.Duration
	shared bool
}

// keep returns the rule of a tool's annotation.
func (a *annotation) keep() (keepRule, error) {
	switch {
	case !a.hasCache:
		return keepRule{}, nil
	case a.hints.ReadOnlyHint == nil || !*a.hints.ReadOnlyHint:
		return keepRule{}, errors.New(`cache: a call that is not made could be a change that is not made; add hints:"readonly" if the tool only reads, or drop the tag`)
	case a.cacheTTL == 0:
		return keepRule{}, errors.New(`cache: it says no time; write for example cache:"60s"`)
	}
	return keepRule{a.cacheTTL, !a.cachePrivate}, nil
}

// A keptKey is what the result of one tool depends on. principal and scopes are "" if callers share
// results.
type keptKey struct {
	principal string
	scopes    string
	arguments string
}

func cloneKept(r Result) Result {
	own := *r.(*protocol.CallToolResult)
	own.Content = slices.Clone(own.Content)
	return &own
}

// shareable reports whether a result may be kept, and its size in bytes.
func (c *Call) shareable(r Result) (size int, ok bool) {
	t, ok := r.(*protocol.CallToolResult)
	if !ok || t.IsError || c.Asked() {
		return 0, false
	}
	return SizeOf(t)
}

// withKept returns kept results for equal arguments, as rule allows. Results that callers do not
// share are kept for authenticated callers only, since others cannot be told apart.
func withKept(rule keepRule, h Handler) Handler {
	if rule == (keepRule{}) {
		return h
	}
	kept := memo.New[keptKey](rule.ttl, 0, 0, cloneKept)
	return func(ctx context.Context, call *Call) (Result, error) {
		if call.Round() > 0 || call.req.Param("requestState") != nil || call.req.Param("inputResponses") != nil {
			return h(ctx, call) // in the middle of a call that asks questions
		}
		key := keptKey{arguments: memo.Arguments(call.Arguments())}
		if !rule.shared {
			p := call.Principal()
			if p == nil {
				return h(ctx, call)
			}
			key.principal, key.scopes = p.Key(), memo.Scopes(p.Scopes)
		}
		run := func() (Result, error) { return h(ctx, call) }
		return kept.Do(ctx, key, len(key.arguments), run, call.shareable)
	}
}

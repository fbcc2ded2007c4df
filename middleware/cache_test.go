package middleware_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/mcptest"
	"github.com/mcpkit/mcpkit-go/middleware"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// counter is a tool that returns how often it ran.
type counter struct {
	mu  sync.Mutex
	ran int
}

type counterInput struct {
	A string `json:"a,omitempty"`
	B int    `json:"b,omitempty"`
}

func (c *counter) tool(counterInput) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ran++
	return fmt.Sprintf("run %d", c.ran)
}

func TestCacheKeepsWhatOnlyReads(t *testing.T) {
	for _, test := range []struct {
		hints  string
		second string
	}{
		{"readonly", "run 1"},
		{"readonly,idempotent", "run 1"},
		{"idempotent", "run 2"}, // a call that is left out could be a change that is left out
		{"destructive", "run 2"},
		{"", "run 2"},
	} {
		t.Run(test.hints, func(t *testing.T) {
			c := &counter{}
			srv := newServer(t, mcpkit.NewTool("x", c.tool).Hints(test.hints))
			srv.Use(middleware.Cache(time.Hour))
			require.Equal(t, "run 1", modern(t, srv).toolText(as(t.Context(), "ann"), "x"))
			require.Equal(t, test.second, modern(t, srv).toolText(as(t.Context(), "ann"), "x"))
		})
	}
}

func cached(t *testing.T, opts ...middleware.CacheOption) (*mcpkit.Server, *counter) {
	c := &counter{}
	srv := newServer(t, mcpkit.NewTool("x", c.tool).Hints("readonly"))
	srv.Use(middleware.Cache(time.Minute, opts...))
	return srv, c
}

func TestCachedResultsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, _ := cached(t)
		p := modern(t, srv)
		require.Equal(t, "run 1", p.toolText(as(t.Context(), "ann"), "x"))
		time.Sleep(time.Minute - time.Nanosecond)
		require.Equal(t, "run 1", p.toolText(as(t.Context(), "ann"), "x"))
		time.Sleep(time.Nanosecond)
		require.Equal(t, "run 2", p.toolText(as(t.Context(), "ann"), "x"))
	})
}

func TestCachedResultsDependOn(t *testing.T) {
	type call struct {
		ctx     func(context.Context) context.Context
		session string // "" for modern
		args    string
	}
	who := func(subject string, scopes ...string) func(context.Context) context.Context {
		return func(ctx context.Context) context.Context { return as(ctx, subject, scopes...) }
	}
	nobody := func(ctx context.Context) context.Context { return ctx }
	for _, test := range []struct {
		name         string
		first, other call
		same         bool
	}{
		{"nothing", call{who("ann"), "", `{}`}, call{who("ann"), "", `{}`}, true},
		{"not on the version", call{who("ann"), "", `{}`}, call{who("ann"), "s", `{}`}, true},
		{"arguments", call{who("ann"), "", `{"a":"x"}`}, call{who("ann"), "", `{"a":"y"}`}, false},
		{"the principal", call{who("ann"), "", `{}`}, call{who("bob"), "", `{}`}, false},
		{"that there is one", call{who("ann"), "", `{}`}, call{nobody, "", `{}`}, false},
		{"scopes", call{who("ann", "a", "b"), "", `{}`}, call{who("ann", "a"), "", `{}`}, false},
		{"not on their order", call{who("ann", "a", "b"), "", `{}`}, call{who("ann", "b", "a"), "", `{}`}, true},
		{"not on the session of somebody", call{who("ann"), "s1", `{}`}, call{who("ann"), "s2", `{}`}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			srv, _ := cached(t)
			do := func(c call) string {
				p := modern(t, srv)
				if c.session != "" {
					p = legacy(t, srv, c.session)
				}
				return p.toolText(c.ctx(t.Context()), "x", c.args)
			}
			require.Equal(t, "run 1", do(test.first))
			want := "run 2"
			if test.same {
				want = "run 1"
			}
			require.Equal(t, want, do(test.other))
			require.Equal(t, "run 1", do(test.first))
		})
	}
}

func TestResultsOfUnauthenticatedCallersAreNotCached(t *testing.T) {
	t.Run("middleware", func(t *testing.T) {
		srv, _ := cached(t)
		require.Equal(t, "run 1", modern(t, srv).toolText(t.Context(), "x"))
		require.Equal(t, "run 2", modern(t, srv).toolText(t.Context(), "x"))
		require.Equal(t, "run 3", legacy(t, srv, "s").toolText(t.Context(), "x"))
		require.Equal(t, "run 4", legacy(t, srv, "s").toolText(t.Context(), "x"))
	})
	t.Run("tag", func(t *testing.T) {
		srv := mcpkit.MustNew(&Board{}, quiet)
		require.Equal(t, "run 1", modern(t, srv).toolText(t.Context(), "mine"))
		require.Equal(t, "run 2", modern(t, srv).toolText(t.Context(), "mine"))
		require.Equal(t, "run 3", legacy(t, srv, "s").toolText(t.Context(), "mine"))
		require.Equal(t, "run 4", legacy(t, srv, "s").toolText(t.Context(), "mine"))
	})
}

func TestCacheOptions(t *testing.T) {
	t.Run("shared", func(t *testing.T) {
		srv, _ := cached(t, middleware.CacheShared())
		require.Equal(t, "run 1", modern(t, srv).toolText(as(t.Context(), "ann"), "x"))
		require.Equal(t, "run 1", modern(t, srv).toolText(as(t.Context(), "bob"), "x"))
	})
	t.Run("vary", func(t *testing.T) {
		srv, _ := cached(t, middleware.CacheVary(func(call *mcpkit.Call) string { return string(call.Meta("tenant")) }))
		text := func(tenant string) string {
			return textOf(t, modern(t, srv).call(as(t.Context(), "ann"), "tools/call", `{"name":"x"}`, `"tenant":"`+tenant+`"`))
		}
		require.Equal(t, "run 1", text("a"))
		require.Equal(t, "run 2", text("b"))
		require.Equal(t, "run 1", text("a"))
	})
	t.Run("entries", func(t *testing.T) {
		srv, _ := cached(t, middleware.CacheEntries(2))
		p := modern(t, srv)
		require.Equal(t, "run 1", p.toolText(as(t.Context(), "ann"), "x", `{"b":1}`))
		require.Equal(t, "run 2", p.toolText(as(t.Context(), "ann"), "x", `{"b":2}`))
		require.Equal(t, "run 1", p.toolText(as(t.Context(), "ann"), "x", `{"b":1}`))
		require.Equal(t, "run 3", p.toolText(as(t.Context(), "ann"), "x", `{"b":3}`), "the second was not used for longest")
		require.Equal(t, "run 1", p.toolText(as(t.Context(), "ann"), "x", `{"b":1}`))
		require.Equal(t, "run 4", p.toolText(as(t.Context(), "ann"), "x", `{"b":2}`))
	})
	t.Run("bytes", func(t *testing.T) {
		srv, _ := cached(t, middleware.CacheBytes(len("run 1")-1))
		require.Equal(t, "run 1", modern(t, srv).toolText(as(t.Context(), "ann"), "x"))
		require.Equal(t, "run 2", modern(t, srv).toolText(as(t.Context(), "ann"), "x"))
	})
}

func TestCacheForgetsToolsThatAreRegisteredAnew(t *testing.T) {
	srv, c := cached(t)
	require.Equal(t, "run 1", modern(t, srv).toolText(as(t.Context(), "ann"), "x"))
	require.True(t, srv.RemoveTools("x"))
	require.NotNil(t, modern(t, srv).call(as(t.Context(), "ann"), "tools/call", `{"name":"x"}`).Error)
	require.NoError(t, srv.Add(mcpkit.NewTool("x", c.tool).Hints("readonly")))
	require.Equal(t, "run 2", modern(t, srv).toolText(as(t.Context(), "ann"), "x"))
}

func TestCacheKeepsNoFailures(t *testing.T) {
	runs := 0
	srv := newServer(t,
		mcpkit.NewTool("error", func() (string, error) { runs++; return "", errors.New("x") }).Hints("readonly"),
		mcpkit.NewTool("result", func() *protocol.CallToolResult { runs++; return &protocol.CallToolResult{IsError: true} }).Hints("readonly"),
		mcpkit.NewTool("panic", func() { runs++; panic("x") }).Hints("readonly"),
		mcpkit.NewTool("asks", func(ctx context.Context) (string, error) {
			runs++
			_, err := mcpkit.Confirm(ctx, "really?")
			return "", err
		}).Hints("readonly"),
	)
	srv.Use(middleware.Cache(time.Hour))
	for _, name := range []string{"error", "result", "panic", "asks"} {
		runs = 0
		for range 2 {
			modern(t, srv).call(as(t.Context(), "ann"), "tools/call", `{"name":"`+name+`"}`)
		}
		require.Equal(t, 2, runs, name)
	}
}

// A change that middleware makes to the result of one caller is not in the result of another.
func TestCachedResultsAreNotShared(t *testing.T) {
	srv := newServer(t, mcpkit.NewTool("x", func() *protocol.CallToolResult {
		return &protocol.CallToolResult{Content: []protocol.Content{mcpkit.Text("plain")}, Meta: protocol.Meta{"a/b": json.RawMessage("1")}}
	}).Hints("readonly"))
	srv.Use(middleware.GuardResult(func(_ context.Context, _ *mcpkit.Call, result mcpkit.Result) (mcpkit.Result, error) {
		if r, ok := result.(*protocol.CallToolResult); ok {
			r.Content = append(r.Content, &protocol.TextContent{Text: "more"})
			r.Content[0] = &protocol.TextContent{Text: "changed"}
			require.NotContains(t, r.Meta, "caller")
			r.Meta["caller"] = json.RawMessage(`"ann"`)
		}
		return result, nil
	}), middleware.Cache(time.Hour))
	first := said(t, modern(t, srv).call(as(t.Context(), "ann"), "tools/call", `{"name":"x"}`))
	for range 3 {
		require.Equal(t, first, said(t, modern(t, srv).call(as(t.Context(), "ann"), "tools/call", `{"name":"x"}`)))
	}
}

// Poll only reads, but its result depends on the user's answer.
type Poll struct {
	_ struct {
		Plain  mcpkit.Tool `hints:"readonly"`
		Tagged mcpkit.Tool `hints:"readonly" cache:"1h,public"`
	}
}

func (Poll) Plain(ctx context.Context) (bool, error)  { return mcpkit.Confirm(ctx, "Well?") }
func (Poll) Tagged(ctx context.Context) (bool, error) { return mcpkit.Confirm(ctx, "Well?") }

func TestCacheKeepsNoAnswersOfUsers(t *testing.T) {
	for _, revision := range []protocol.Version{protocol.V20250618, protocol.V20260728} {
		for _, tool := range []string{"plain", "tagged"} {
			s := mcptest.New(t, &Poll{}).Version(revision)
			s.Unwrap().Use(middleware.Cache(time.Hour, middleware.CacheShared()))
			s.Answer("Well?", true).Call(tool, nil).OK().Text("true")
			s.Answer("Well?", false).Call(tool, nil).OK().Text("false")
		}
	}
}

// Board only reads.
type Board struct {
	_ struct {
		Mine mcpkit.Tool `cache:"60s" hints:"readonly"`
		Ours mcpkit.Tool `cache:"public,1h" hints:"readonly" rate:"3/h"`
	}
	counter
}

func (b *Board) Mine(in counterInput) string { return b.tool(in) }
func (b *Board) Ours(in counterInput) string { return b.tool(in) }

func TestCacheTags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := mcpkit.MustNew(&Board{}, quiet)
		p := modern(t, srv)
		ann, bob := as(t.Context(), "ann"), as(t.Context(), "bob")
		for range 2 {
			require.Equal(t, "run 1", p.toolText(ann, "mine"))
			require.Equal(t, "run 2", p.toolText(bob, "mine"), "another caller")
			require.Equal(t, "run 3", p.toolText(as(t.Context(), "ann", "admin"), "mine"), "with other scopes")
			require.Equal(t, "run 4", p.toolText(ann, "mine", `{"a":"x"}`), "other arguments")
		}
		time.Sleep(time.Minute)
		require.Equal(t, "run 5", p.toolText(ann, "mine"))

		require.Equal(t, "run 6", p.toolText(ann, "ours"))
		require.Equal(t, "run 6", p.toolText(bob, "ours"), "everybody's")
		require.Equal(t, "run 6", p.toolText(ann, "ours"))
		require.Equal(t, "run 6", p.toolText(ann, "ours"))
		require.Equal(t, "too many calls; try again in 20m0s", p.toolText(ann, "ours"), "a result that is kept is a call all the same")

		require.NoError(t, srv.Add(mcpkit.NewTool("built", new(counter).tool).Hints("readonly").Cache("1s")))
		require.Equal(t, "run 1", p.toolText(ann, "built"))
		require.Equal(t, "run 1", p.toolText(ann, "built"))
	})
}

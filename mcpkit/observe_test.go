package mcpkit_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// each calls f before each call.
func each(f func(call *mcpkit.Call)) mcpkit.Middleware {
	return func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
			f(call)
			return next(ctx, call)
		}
	}
}

// owner answers questions about roots, unless there is an error to answer with.
type owner struct{ err error }

func (o *owner) Roots(context.Context) ([]protocol.Root, error) {
	return []protocol.Root{{URI: "file:///home"}}, o.err
}

func TestQuestionsAreSeenOnTheirWay(t *testing.T) {
	var seen []string
	watch := func(name, meta string) mcpkit.Middleware {
		return each(func(call *mcpkit.Call) {
			call.OnQuestion(func(_ context.Context, q *mcpkit.Question) func(error) {
				seen = append(seen, name+" begins "+q.Method)
				require.Empty(t, q.ID)
				if meta != "" {
					q.Meta[name] = []byte(meta)
				}
				return func(err error) {
					seen = append(seen, name+" ends")
					if err != nil {
						seen = append(seen, err.Error())
						return
					}
					require.NotEmpty(t, q.ID)
				}
			})
			call.OnQuestion(func(context.Context, *mcpkit.Question) func(error) { return nil })
		})
	}
	for _, test := range []struct {
		name string
		meta string
		err  error
		want []string
		fail string
	}{
		{"answered", `"x"`, nil, []string{"one begins roots/list", "two begins roots/list", "two ends", "one ends"}, ""},
		{"refused", ``, &jsonrpc.Error{Code: -32000, Message: "not these"},
			[]string{"one begins roots/list", "two begins roots/list", "two ends", "not these (code -32000)", "one ends", "not these (code -32000)"},
			"the client answered roots/list with an error: not these"},
		{"no JSON", `{`, nil, []string{"one begins roots/list", "two begins roots/list", "two ends", "mcpkit: OnQuestion: Meta: one: not valid JSON",
			"one ends", "mcpkit: OnQuestion: Meta: one: not valid JSON"}, "internal error"},
	} {
		t.Run(test.name, func(t *testing.T) {
			seen = nil
			srv := newServer(t, nil)
			// Questions of mounted servers belong to the call, too.
			inner := newServer(t, nil)
			require.NoError(t, inner.Add(mcpkit.NewTool("ask", func(ctx context.Context) (string, error) {
				roots, err := mcpkit.Roots(ctx)
				if err != nil {
					return "", err
				}
				return roots[0].URI, nil
			})))
			require.NoError(t, srv.Mount("in", inner))
			srv.Use(watch("one", test.meta))
			inner.Use(watch("two", ""))
			c, err := client.Dial(t.Context(), client.InMemory(srv), client.Version(protocol.V20251125), client.Handlers(&owner{test.err}))
			require.NoError(t, err)
			_, err = c.CallTool(t.Context(), "in_ask", nil)
			if test.fail == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, test.fail)
			}
			require.Equal(t, test.want, seen)
			require.NoError(t, c.Close())
		})
	}
}

func TestOnSessionEndRunsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := 0
		srv := newServer(t, nil)
		var told []bool
		srv.Use(func(next mcpkit.Handler) mcpkit.Handler {
			return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
				result, err := next(ctx, call)
				told = append(told, call.OnSessionEnd(func() { panic("oops") }), call.OnSessionEnd(func() { ended++ }))
				return result, err
			}
		})
		legacy, err := client.Dial(t.Context(), client.InMemory(srv), client.Version(protocol.V20251125))
		require.NoError(t, err)
		require.Equal(t, []bool{true, true}, told)
		require.Zero(t, ended)
		require.NoError(t, legacy.Close())
		synctest.Wait()
		require.Equal(t, 1, ended, "also though another panicked")

		told = nil
		modern, err := client.Dial(t.Context(), client.InMemory(srv), client.Version(protocol.V20260728))
		require.NoError(t, err)
		require.NoError(t, modern.Close())
		synctest.Wait()
		require.NotContains(t, told, true, "2026-07-28 has no sessions")
		require.Equal(t, 1, ended)
	})
}

func TestOnSessionEndIsFalseAfterTheEnd(t *testing.T) {
	srv := newServer(t, nil)
	var call *mcpkit.Call
	srv.Use(each(func(c *mcpkit.Call) { call = c }))
	p := legacy(t, srv, protocol.V20251125)
	p.result("ping", "{}")
	srv.SessionEnded(p.session)
	srv.SessionEnded(p.session)
	require.False(t, call.OnSessionEnd(func() { require.Fail(t, "nobody is to be told") }))
}

package middleware_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/middleware"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

type echoInput struct {
	Text string `json:"text"`
}

// wrap makes middleware of a function.
func wrap(f func(ctx context.Context, call *mcpkit.Call, next mcpkit.Handler) (mcpkit.Result, error)) mcpkit.Middleware {
	return func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) { return f(ctx, call, next) }
	}
}

// Each call gets one response, whatever the middleware does, and the next request is served as
// usual.
func TestWhateverMiddlewareDoesIsAnswered(t *testing.T) {
	const broken = "internal error (ref "
	boom := func(*mcpkit.Call) int { panic("oops") }
	returns := func(result mcpkit.Result) mcpkit.Middleware {
		return wrap(func(context.Context, *mcpkit.Call, mcpkit.Handler) (mcpkit.Result, error) { return result, nil })
	}
	for _, test := range []struct {
		name string
		mw   mcpkit.Middleware
		want string // in the answer
	}{
		{"panics before", wrap(func(context.Context, *mcpkit.Call, mcpkit.Handler) (mcpkit.Result, error) { panic("oops") }), broken},
		{"panics after", wrap(func(ctx context.Context, call *mcpkit.Call, next mcpkit.Handler) (mcpkit.Result, error) {
			_, _ = next(ctx, call)
			panic(errors.New("oops"))
		}), broken},
		{"panics with nil", wrap(func(context.Context, *mcpkit.Call, mcpkit.Handler) (mcpkit.Result, error) { panic(nil) }), broken},
		{"a condition panics", middleware.When(func(*mcpkit.Call) bool { panic("oops") }), broken},
		{"a key of a rate panics", middleware.RateLimit(1, 1, middleware.By(boom)), broken},
		{"a key of turns panics", middleware.Concurrency(1, middleware.By(boom)), broken},
		{"a guard panics", middleware.GuardArguments(func(context.Context, *mcpkit.Call, json.RawMessage) (json.RawMessage, error) { panic("oops") }), broken},
		{"a guard of arguments returns none", middleware.GuardArguments(func(context.Context, *mcpkit.Call, json.RawMessage) (json.RawMessage, error) { return nil, nil }), broken},
		{"a guard of arguments returns no JSON", middleware.GuardArguments(func(context.Context, *mcpkit.Call, json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(`{"text":`), nil
		}), broken},
		{"a guard of results returns none", middleware.GuardResult(func(context.Context, *mcpkit.Call, mcpkit.Result) (mcpkit.Result, error) { return nil, nil }), `"result":{`},
		{"calls next twice", wrap(func(ctx context.Context, call *mcpkit.Call, next mcpkit.Handler) (mcpkit.Result, error) {
			_, _ = next(ctx, call)
			return next(ctx, call)
		}), `"text":"hello"`},
		{"calls next many times at once", wrap(func(ctx context.Context, call *mcpkit.Call, next mcpkit.Handler) (mcpkit.Result, error) {
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() { _, _ = next(ctx, call) })
			}
			wg.Wait()
			return next(ctx, call)
		}), `"text":"hello"`},
		{"returns nothing", returns(nil), `"result":{`},
		{"returns a typed nil", returns((*protocol.CallToolResult)(nil)), `"id":1`},
		{"returns a result and an error", wrap(func(ctx context.Context, call *mcpkit.Call, next mcpkit.Handler) (mcpkit.Result, error) {
			result, _ := next(ctx, call)
			return result, mcpkit.Errorf("not this time")
		}), "not this time"},
		{"returns what does not encode", returns(make(chan int)), broken},
		{"returns no object", returns(5), broken},
		{"returns a result of its own that panics", returns(struct{ mcpkit.Result }{}), broken},
		{"returns JSON that is not valid", returns(json.RawMessage(`{"a":`)), broken},
		{"returns content that is not valid JSON", returns(&protocol.CallToolResult{StructuredContent: json.RawMessage(`{"a":`)}), broken},
		{"returns a list with a nil in it", returns(&protocol.CallToolResult{Content: []protocol.Content{nil}}), `"id":1`},
		{"returns _meta that is not valid JSON", returns(&protocol.CallToolResult{Meta: protocol.Meta{"x": json.RawMessage(`{`)}, Extra: protocol.Meta{"y": json.RawMessage(`]`)}}), `"id":1`},
		{"passes no call on", wrap(func(ctx context.Context, _ *mcpkit.Call, next mcpkit.Handler) (mcpkit.Result, error) {
			return next(ctx, nil)
		}), broken},
		{"passes a context of its own on", wrap(func(_ context.Context, call *mcpkit.Call, next mcpkit.Handler) (mcpkit.Result, error) {
			return next(context.Background(), call)
		}), `"id":1`},
		{"passes no context on", wrap(func(_ context.Context, call *mcpkit.Call, next mcpkit.Handler) (mcpkit.Result, error) {
			return next(nil, call) // careless middleware does this
		}), `"id":1`},
	} {
		t.Run(test.name, func(t *testing.T) {
			hostile := true
			srv := newServer(t, mcpkit.NewTool("echo", func(call *mcpkit.Call, in echoInput) string { _ = call.Method(); return in.Text }))
			srv.Use(middleware.When(func(call *mcpkit.Call) bool { return hostile && call.Method() == "tools/call" }, test.mw))
			for family, p := range families(t, srv) {
				hostile = true
				reply := said(t, p.call(t.Context(), "tools/call", `{"name":"echo","arguments":{"text":"hello"}}`))
				require.Contains(t, reply, test.want, family)
				require.True(t, json.Valid([]byte(reply)), "%s: %s", family, reply)
				hostile = false
				require.Equal(t, "hello", p.toolText(t.Context(), "echo", `{"text":"hello"}`), family)
			}
		})
	}
}

// Middleware must not change the bytes of arguments. If it does, it breaks this call and no other.
func TestArgumentsThatAreOverwrittenBreakTheirOwnCallAlone(t *testing.T) {
	for _, junk := range []string{`{`, `}`, `"`, `[`, `\`, `:`, `,`, `0`, "\x00", "\xff", ` `, `{"text":`, `"text`, `[[`, `{"":{`, `"\`} {
		srv := newServer(t, mcpkit.NewTool("echo", func(in echoInput) string { return in.Text }))
		overwrite := true
		srv.Use(wrap(func(ctx context.Context, call *mcpkit.Call, next mcpkit.Handler) (mcpkit.Result, error) {
			if overwrite && call.Method() == "tools/call" {
				for i := range call.Params() {
					call.Params()[i] = junk[i%len(junk)]
				}
			}
			return next(ctx, call)
		}), middleware.Logging(slog.New(slog.NewJSONHandler(io.Discard, nil)), middleware.LogArguments(0)), middleware.Cache(time.Hour, middleware.CacheShared()))
		for family, p := range families(t, srv) {
			overwrite = true
			reply := said(t, p.call(t.Context(), "tools/call", `{"name":"echo","arguments":{"text":"hello"}}`))
			require.Contains(t, reply, `"id":1`, "%q, %s", junk, family)
			require.True(t, json.Valid([]byte(reply)), "%q, %s: %s", junk, family, reply)
			overwrite = false
			require.Equal(t, "hello", p.toolText(t.Context(), "echo", `{"text":"hello"}`), "%q, %s", junk, family)
		}
	}
}

func TestMiddlewareThatIsNilIsRefusedAtOnce(t *testing.T) {
	srv := newServer(t, mcpkit.NewTool("x", ok))
	require.PanicsWithValue(t, "mcpkit: Use: a middleware is nil; leave it out", func() { srv.Use(middleware.Recover(nil), nil) })
	require.Equal(t, "ok", modern(t, srv).toolText(t.Context(), "x"), "and nothing was put on")
	require.PanicsWithValue(t, "mcpkit: Around: a middleware is nil; leave it out", func() { mcpkit.Around(nil) })
	require.PanicsWithValue(t, "middleware: When: middleware 1 of 1 is nil", func() { middleware.When(func(*mcpkit.Call) bool { return true }, nil) })
}

// lazy returns before the handler does, like a careless timeout. It reports when the handler has
// returned.
func lazy(late *sync.WaitGroup) mcpkit.Middleware {
	return wrap(func(ctx context.Context, call *mcpkit.Call, next mcpkit.Handler) (mcpkit.Result, error) {
		if call.Method() != "tools/call" {
			return next(ctx, call)
		}
		began := make(chan struct{})
		call.Set("began", began)
		late.Go(func() { _, _ = next(ctx, call) })
		<-began
		return nil, mcpkit.Errorf("I cannot wait")
	})
}

// A handler that continues after the response does no harm: its later notifications are dropped.
func TestAHandlerThatOutlivesItsCallDoesNoHarm(t *testing.T) {
	for _, v := range []protocol.Version{protocol.LatestLegacy, protocol.Latest} {
		var late sync.WaitGroup
		hold := make(chan struct{})
		srv := newServer(t, mcpkit.NewTool("slow", func(ctx context.Context, call *mcpkit.Call, in echoInput) (string, error) {
			close(call.Get("began").(chan struct{}))
			<-hold
			call.Progress(1, 2, "half")
			call.Logger().Warn("late")
			_, _ = mcpkit.Confirm(ctx, "Still there?")
			_ = call.SetArguments(json.RawMessage(`{"text":"x"}`))
			return fmt.Sprint(in.Text, call.Arguments(), call.Ref(), call.SessionID(), call.Header("X")), ctx.Err()
		}), mcpkit.NewTool("x", ok))
		srv.Use(middleware.Logging(slog.New(slog.NewJSONHandler(io.Discard, nil))), lazy(&late))
		h := streamable.NewHandler(srv, nil)
		s := httptest.NewServer(h)
		c, err := client.Dial(t.Context(), s.URL, client.Version(v), client.LogLevel(protocol.LevelDebug))
		require.NoError(t, err)
		for range 3 {
			_, err := c.CallTool(t.Context(), "slow", echoInput{"hello"}, client.OnProgress(func(*protocol.ProgressParams) {}))
			require.ErrorContains(t, err, "I cannot wait")
			hold <- struct{}{}
			late.Wait()
			_, err = c.Tool(t.Context(), "x", client.Fresh())
			require.NoError(t, err)
		}
		require.NoError(t, c.Close())
		h.Close()
		s.Close()
	}
}

package mcpkit_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// The caller gets the timeout error when the method has had 100 ms to return; what is provided to the
// method is cleaned up when it returns.
func TestOverdueMethodsAreLoggedOnceAndCleanedUpInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var cleaned atomic.Int32
		srv := newServer(t, nil, mcpkit.Logger(slog.New(slog.NewTextHandler(&log, nil))),
			mcpkit.Provide(func(context.Context) (*session, error) { return &session{}, nil }, func(*session) { cleaned.Add(1) }))
		require.NoError(t, srv.Add(mcpkit.NewTool("deaf", func(ctx context.Context, call *mcpkit.Call, _ *session) (string, error) {
			time.Sleep(2 * time.Second)
			require.IsType(t, &mcpkit.TimeoutError{}, context.Cause(ctx))
			require.ErrorIs(t, ctx.Err(), context.DeadlineExceeded)
			call.Progress(1, 1, "too late")
			return "", errors.New("fails in the end")
		}).Timeout(time.Second)))
		var seen error
		srv.Use(func(next mcpkit.Handler) mcpkit.Handler {
			return func(ctx context.Context, call *mcpkit.Call) (result mcpkit.Result, err error) {
				result, err = next(ctx, call)
				seen = err
				return result, err
			}
		})
		p, begun := legacy(t, srv, protocol.V20251125), time.Now()
		require.Contains(t, p.result("tools/call", `{"name":"deaf","_meta":{"progressToken":1}}`), "timed out after 1s")
		require.Equal(t, 1100*time.Millisecond, time.Since(begun))
		require.IsType(t, &mcpkit.TimeoutError{}, seen)
		require.Equal(t, 1, srv.Overdue())
		require.Zero(t, cleaned.Load())

		time.Sleep(time.Minute)
		require.Zero(t, srv.Overdue())
		require.Equal(t, int32(1), cleaned.Load())
		require.Equal(t, 1, strings.Count(log.String(), "\n"), log.String())
		require.Contains(t, log.String(), "a method did not return in time")
		require.Empty(t, p.take(), "no progress after the response")
	})
}

// A method that asks, ignores that the server has to ask the client first, and continues until its
// time is up. If it were called again with the answer, two of them would run.
func TestMethodsThatAskAndRunOverTheirTimeTimeOut(t *testing.T) {
	for _, late := range []time.Duration{0, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			srv := newServer(t, nil, mcpkit.Logger(slog.New(slog.DiscardHandler)))
			require.NoError(t, srv.Add(mcpkit.NewTool("ask", func(ctx context.Context) error {
				_, _ = mcpkit.Confirm(ctx, "Sure?")
				<-ctx.Done()
				time.Sleep(late)
				return ctx.Err()
			}).Timeout(time.Second)))
			require.Contains(t, modern(t, srv).result("tools/call", `{"name":"ask"}`), "timed out after 1s", late)
			time.Sleep(time.Hour)
		})
	}
}

// logFunc is a log handler.
type logFunc func()

func (f logFunc) Enabled(context.Context, slog.Level) bool  { return true }
func (f logFunc) Handle(context.Context, slog.Record) error { f(); return nil }
func (f logFunc) WithAttrs([]slog.Attr) slog.Handler        { return f }
func (f logFunc) WithGroup(string) slog.Handler             { return f }

// The method ends when the server has decided to send the timeout error and has not sent it yet.
func TestTheTimeoutErrorIsTheResponseIfTheMethodEndsAtTheSameTime(t *testing.T) {
	for name, end := range map[string]func() error{
		"a result": func() error { return nil },
		"an error": func() error { return errors.New("too late") },
		"a panic":  func() error { panic("too late") },
		"goexit":   func() error { runtime.Goexit(); return nil },
	} {
		synctest.Test(t, func(t *testing.T) {
			released := make(chan struct{})
			var logged atomic.Int32
			srv := newServer(t, nil, mcpkit.Logger(slog.New(logFunc(func() {
				if logged.Add(1) == 1 {
					close(released)
					time.Sleep(time.Minute)
				}
			}))))
			require.NoError(t, srv.Add(mcpkit.NewTool("deaf", func() error { <-released; return end() }).Timeout(time.Second)))
			require.Contains(t, modern(t, srv).result("tools/call", `{"name":"deaf"}`), "timed out after 1s", name)
			require.Zero(t, srv.Overdue())
		})
	}
}

func TestALogHandlerThatPanicsEndsTheCallOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := true
		srv := newServer(t, nil, mcpkit.Logger(slog.New(logFunc(func() {
			if full {
				full = false
				panic("disk full")
			}
		}))))
		require.NoError(t, srv.Add(mcpkit.NewTool("deaf", func() { time.Sleep(time.Minute) }).Timeout(time.Second)))
		require.Contains(t, modern(t, srv).result("tools/call", `{"name":"deaf"}`), "internal error")
		time.Sleep(time.Hour)
		require.Zero(t, srv.Overdue())
	})
}

// The limit of running methods is that of the server that was called, for the tools and methods of
// mounted servers, too.
func TestOverdueMethodsOfAMountedServerCountInTheOther(t *testing.T) {
	for name, method := range map[string]string{"tool": "tools/call", "method": "example.com/deaf"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				quiet := mcpkit.Logger(slog.New(slog.DiscardHandler))
				child, srv := newServer(t, nil, quiet, mcpkit.MaxRunning(1)), newServer(t, nil, quiet, mcpkit.MaxRunning(2))
				released := make(chan struct{})
				require.NoError(t, child.Add(mcpkit.NewTool("deaf", func() { <-released })))
				require.NoError(t, mcpkit.Handle(child, "example.com/deaf", func(context.Context, map[string]any) (struct{}, error) {
					<-released
					return struct{}{}, nil
				}))
				require.NoError(t, srv.Mount("", child))
				srv.Use(before(func(call *mcpkit.Call) { call.SetTimeout(time.Second) }))
				p := modern(t, srv)
				call := func() string { return p.raw(t.Context(), p.request(method, `{"name":"deaf"}`)) }
				for n := range 2 {
					require.Contains(t, call(), "timed out after 1s")
					synctest.Wait()
					require.Equal(t, n+1, srv.Overdue())
				}
				require.Contains(t, call(), "too many calls at a time (2); try again when others are done")
				close(released)
				synctest.Wait()
				require.Zero(t, srv.Overdue())
			})
		})
	}
}

// Prompts and resources that are built have the limits that tags give methods.
func TestBuiltPromptsAndResourcesHaveLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(t, nil)
		wait := func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() }
		require.NoError(t, srv.Add(
			mcpkit.NewPrompt("slow", wait).Timeout(time.Second).Rate("1/h").Tags("slow"),
			mcpkit.NewResource("slow://one", "slow", wait).Timeout(time.Second).Rate("1/h").Tags("slow")))
		var tags []string
		srv.Use(before(func(call *mcpkit.Call) { tags = append(tags, call.Tags()...) }))
		p := modern(t, srv)
		for method, params := range map[string]string{"prompts/get": `{"name":"slow"}`, "resources/read": `{"uri":"slow://one"}`} {
			require.ErrorContains(t, p.fails(method, params), "timed out after 1s")
			require.ErrorContains(t, p.fails(method, params), "too many calls")
		}
		require.Equal(t, []string{"slow", "slow", "slow", "slow"}, tags)
	})
}

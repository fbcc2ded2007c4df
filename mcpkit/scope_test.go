package mcpkit_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// families are a client of each family of versions.
func families(t *testing.T, srv *mcpkit.Server) map[string]*peer {
	return map[string]*peer{"legacy": legacy(t, srv, protocol.V20251125), "modern": modern(t, srv)}
}

func TestTimeoutEndsIteratorsAndReaders(t *testing.T) {
	slow := func() iter.Seq[int] {
		return func(yield func(int) bool) {
			for i := range 60 {
				if <-time.After(50 * time.Millisecond); !yield(i) {
					return
				}
			}
		}
	}
	for name, tool := range map[string]any{
		"iterator": slow,
		"reader":   func(ctx context.Context) io.Reader { return &slowReader{ctx: ctx} },
		"reader that ignores its context": func() io.Reader {
			return &slowReader{ctx: context.Background()}
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			srv := newServer(t, nil, mcpkit.Items(mcpkit.NewTool("slow", tool).Timeout(120*time.Millisecond)))
			for family, p := range families(t, srv) {
				start := time.Now()
				require.Contains(t, p.result("tools/call", `{"name":"slow"}`), "timed out after 120ms", "%s, %s", name, family)
				require.LessOrEqual(t, time.Since(start), 300*time.Millisecond, "%s, %s", name, family)
			}
			time.Sleep(time.Minute) // overdue methods return
			synctest.Wait()
		})
	}
}

// slowReader returns a byte every 50 ms, for three seconds.
type slowReader struct {
	ctx context.Context
	n   int
}

func (r *slowReader) Read(p []byte) (int, error) {
	if r.n++; r.n > 60 {
		return 0, io.EOF
	}
	select {
	case <-r.ctx.Done():
		return 0, r.ctx.Err()
	case <-time.After(50 * time.Millisecond):
	}
	p[0] = 'x'
	return 1, nil
}

func TestCancelledCallsAreOverdueToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(t, nil, mcpkit.MaxRunning(2), mcpkit.ToolTimeout(time.Second))
		require.NoError(t, srv.Add(mcpkit.NewTool("deaf", func(ctx context.Context) string {
			defer context.AfterFunc(ctx, func() {})() // it watches its context, and returns late
			time.Sleep(time.Hour)
			return ""
		})))
		p := modern(t, srv)
		var answered atomic.Int32
		for range 2 {
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				p.raw(ctx, p.request("tools/call", `{"name":"deaf"}`))
				answered.Add(1)
			}()
			synctest.Wait()
			cancel()
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, int32(2), answered.Load(), "the transport has its requests back")
		require.Equal(t, 2, srv.Overdue())
		require.Contains(t, p.result("tools/call", `{"name":"deaf"}`), "too many calls at a time (2); try again when others are done")
		time.Sleep(time.Hour)
	})
}

func TestToolIsRefusedWhileTooManyOfItsMethodsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(t, nil, mcpkit.MaxRunning(2), mcpkit.ToolTimeout(time.Second), mcpkit.Items(
			mcpkit.NewTool("deaf", func() string { time.Sleep(time.Hour); return "" }),
			mcpkit.NewTool("other", func() string { return "fine" })))
		p := modern(t, srv)
		for range 2 {
			go func() { require.Contains(t, p.result("tools/call", `{"name":"deaf"}`), "timed out after 1s") }()
		}
		synctest.Wait()
		start := time.Now()
		require.Contains(t, p.result("tools/call", `{"name":"deaf"}`), "too many calls at a time (2); try again when others are done")
		require.Zero(t, time.Since(start), "it is refused at once")
		time.Sleep(time.Minute)
		require.Contains(t, p.result("tools/call", `{"name":"deaf"}`), "too many calls at a time (2); try again when others are done", "overdue ones, too")
		require.Contains(t, p.result("tools/call", `{"name":"other"}`), "fine")
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Zero(t, srv.Overdue())
		require.Contains(t, p.result("tools/call", `{"name":"deaf"}`), "timed out after 1s", "it is called again")
		time.Sleep(time.Hour)
	})
}

func TestTimeOfACallPausesWhileAQuestionIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(t, nil, mcpkit.Items(
			mcpkit.NewTool("ask", func(ctx context.Context) (string, error) {
				time.Sleep(20 * time.Second)
				if _, err := mcpkit.Confirm(ctx, "Sure?"); err != nil {
					return "", err
				}
				time.Sleep(5 * time.Second)
				return "done", ctx.Err()
			}),
			mcpkit.NewTool("ask_long", func(ctx context.Context) (string, error) {
				if _, err := mcpkit.Confirm(ctx, "Sure?"); err != nil {
					return "", err
				}
				<-ctx.Done()
				return "", ctx.Err()
			})))
		p := legacy(t, srv, protocol.V20251125)
		p.answer = func(*jsonrpc.Request) *jsonrpc.Response {
			time.Sleep(5 * time.Minute)
			return &jsonrpc.Response{Result: []byte(`{"action":"accept","content":{"confirm":true}}`)}
		}
		require.Contains(t, p.result("tools/call", `{"name":"ask"}`), `"done"`)
		start := time.Now()
		require.Contains(t, p.result("tools/call", `{"name":"ask_long"}`), "timed out after 30s")
		require.Equal(t, 5*time.Minute+30*time.Second, time.Since(start), "the rest of its time is left")
	})
}

func TestQuestionsHaveALimitOfTheirOwn(t *testing.T) {
	for _, test := range []struct {
		name string
		opts []mcpkit.Option
		want time.Duration
	}{
		{"by default", nil, 10 * time.Minute},
		{"by option", []mcpkit.Option{mcpkit.QuestionTimeout(time.Minute)}, time.Minute},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := newServer(t, nil, test.opts...)
				require.NoError(t, srv.Add(mcpkit.NewTool("ask", func(ctx context.Context) (string, error) {
					_, err := mcpkit.Confirm(ctx, "Sure?")
					return "", err
				})))
				p := &silentPeer{peer: legacy(t, srv, protocol.V20251125)}
				start := time.Now()
				msg, bad := jsonrpc.Decode([]byte(p.request("tools/call", `{"name":"ask"}`)))
				require.Nil(t, bad)
				resp := srv.ServeRPC(t.Context(), msg.Request, p)
				require.Contains(t, string(resp.Result), "the question was not answered within "+test.want.String())
				require.Equal(t, test.want, time.Since(start))
			})
		})
	}
}

// A silentPeer has a user who never answers.
type silentPeer struct{ *peer }

func (*silentPeer) Call(ctx context.Context, _ *jsonrpc.Request) (*jsonrpc.Response, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// A session is what Provide gives; it is used after the method has returned.
type session struct {
	mu     sync.Mutex
	closed bool
}

func (s *session) next() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return "", errors.New("connection is closed already")
	}
	return "row", nil
}

func TestProvidedValuesLastAsLongAsIteratorsAndReaders(t *testing.T) {
	var cleaned atomic.Int32
	srv := newServer(t, nil, mcpkit.ExposeErrors(),
		mcpkit.Provide(func(context.Context) (*session, error) { return &session{}, nil }, func(s *session) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.closed = true
			cleaned.Add(1)
		}))
	reader := func(s *session) io.Reader {
		left := 100_000 // more than what is read before the response begins
		return readFunc(func(p []byte) (int, error) {
			if left == 0 {
				return 0, io.EOF
			}
			row, err := s.next()
			if err != nil {
				return 0, err
			}
			left--
			return copy(p, row), nil
		})
	}
	require.NoError(t, srv.Add(
		mcpkit.NewTool("rows", func(s *session) iter.Seq2[string, error] {
			return func(yield func(string, error) bool) {
				for range 3 {
					if !yield(s.next()) {
						return
					}
				}
			}
		}),
		mcpkit.NewTool("text", reader),
		mcpkit.NewResource("rows://all", "rows", reader)))
	for family, p := range families(t, srv) {
		cleaned.Store(0)
		require.Contains(t, p.result("tools/call", `{"name":"rows"}`), `row`, family)
		require.Equal(t, int32(1), cleaned.Load(), family)
		require.NotContains(t, p.result("tools/call", `{"name":"text"}`), "closed already", family)
		require.Equal(t, int32(2), cleaned.Load(), family)
		require.Contains(t, p.result("resources/read", `{"uri":"rows://all"}`), "rowrow", family)
		require.Equal(t, int32(3), cleaned.Load(), family)
	}
}

type readFunc func(p []byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

func TestContextOfACallBehavesAsOneOfPackageContext(t *testing.T) {
	type key struct{}
	for _, test := range []struct {
		name  string
		ends  func(cancel context.CancelCauseFunc)
		err   error
		cause string
	}{
		{"timeout", func(context.CancelCauseFunc) { <-time.After(2 * time.Second) }, context.DeadlineExceeded, "timed out after 1s"},
		{"request ends", func(cancel context.CancelCauseFunc) { cancel(errors.New("hung up")) }, context.Canceled, "hung up"},
	} {
		synctest.Test(t, func(t *testing.T) {
			srv := newServer(t, nil)
			request, cancel := context.WithCancelCause(context.WithValue(t.Context(), key{}, "value"))
			defer cancel(nil)
			var kept context.Context
			require.NoError(t, srv.Add(mcpkit.NewTool("look", func(ctx context.Context) {
				kept = ctx
				require.NoError(t, ctx.Err())
				require.Equal(t, "value", ctx.Value(key{}))
				deadline, ok := ctx.Deadline()
				require.True(t, ok)
				require.Equal(t, time.Now().Add(time.Second), deadline)
				child, stop := context.WithCancel(ctx)
				defer stop()
				ran := make(chan struct{})
				context.AfterFunc(ctx, func() { close(ran) })
				test.ends(cancel)
				synctest.Wait()
				require.EqualError(t, context.Cause(ctx), test.cause)
				require.Equal(t, test.err, ctx.Err())
				<-ctx.Done()
				<-child.Done()
				<-ran
				require.Error(t, child.Err())
				require.EqualError(t, context.Cause(child), test.cause)
			}).Timeout(time.Second)))
			p := modern(t, srv)
			p.rpc(request, p.request("tools/call", `{"name":"look"}`))
			time.Sleep(time.Minute) // until it has returned
			synctest.Wait()
			require.Equal(t, test.err, kept.Err(), test.name)
		})
	}
	t.Run("the call is over", func(t *testing.T) {
		srv := newServer(t, nil)
		var kept context.Context
		require.NoError(t, srv.Add(mcpkit.NewTool("keep", func(ctx context.Context) { kept = ctx })))
		modern(t, srv).result("tools/call", `{"name":"keep"}`)
		require.Equal(t, context.Canceled, kept.Err())
		require.Equal(t, context.Canceled, context.Cause(kept))
		<-kept.Done()
	})
}

// A roomyPeer is a peer of a transport that has so many bytes for a result.
type roomyPeer struct {
	*peer
	room int64
}

var errFull = jsonrpc.Errorf(jsonrpc.CodeInternalError, "busy")

func (p roomyPeer) Reserve(n int64) error {
	if n > p.room {
		return errFull
	}
	return nil
}

// A result needs memory for its value and its encoding. Once a tool has returned large ones, there
// must be as much before it is called.
func TestMethodsAreNotCalledWithoutMemoryForTheirResults(t *testing.T) {
	calls := 0
	srv := newServer(t, nil, mcpkit.Items(mcpkit.NewTool("big", func() string { calls++; return strings.Repeat("x", 1000) })))
	p := modern(t, srv)
	call := func(room int64) *jsonrpc.Error {
		msg, _ := jsonrpc.Decode([]byte(p.request("tools/call", `{"name":"big"}`)))
		return srv.ServeRPC(t.Context(), msg.Request, roomyPeer{p, room}).Error
	}
	require.Equal(t, errFull, call(1999))
	require.Equal(t, 1, calls)
	require.Equal(t, errFull, call(1999))
	require.Equal(t, 1, calls)
	require.Nil(t, call(2000))
	require.Equal(t, 2, calls)
}

// Many large results may be encoded at a time, so that no buffer grows for them.
func TestLargeStructuredResultsAreEncodedInLittleMemory(t *testing.T) {
	lines := slices.Repeat([]string{strings.Repeat("x", 1000)}, 1000)
	srv := newServer(t, nil)
	require.NoError(t, srv.Add(mcpkit.NewTool("data", func() map[string][]string { return map[string][]string{"lines": lines} })))
	p := modern(t, srv)
	msg, _ := jsonrpc.Decode([]byte(p.request("tools/call", `{"name":"data"}`)))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	resp := srv.ServeRPC(t.Context(), msg.Request, p)
	runtime.ReadMemStats(&after)
	require.Greater(t, len(resp.Result), 2_000_000)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(7_000_000), "4 MB, and 2 MB more with the race detector")
}

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

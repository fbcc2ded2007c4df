package mcpkit_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labstack/echo/v4"
	echomiddleware "github.com/labstack/echo/v4/middleware"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport/echomcp"
	"github.com/mcpkit/mcpkit-go/transport/sse"
	"github.com/mcpkit/mcpkit-go/transport/stdio"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
	"github.com/mcpkit/mcpkit-go/transport/websocket"
)

// deafServer has a tool that ignores its context until the test lets it go, and one that returns at
// once.
func deafServer(t *testing.T) (srv *mcpkit.Server, letGo func()) {
	released := make(chan struct{})
	srv = newServer(t, nil, mcpkit.Logger(slog.New(slog.DiscardHandler)))
	require.NoError(t, srv.Add(
		mcpkit.NewTool("deaf", func() string { <-released; return "too late" }).Timeout(50*time.Millisecond),
		mcpkit.NewTool("fine", func() string { return "fine" })))
	return srv, func() {
		close(released)
		require.Eventually(t, func() bool { return srv.Overdue() == 0 }, time.Minute, time.Millisecond)
	}
}

// The method is let go only after the caller has its whole response and that of a second request, on
// the same connection if it is still open, so the test hangs if either waits for the method.
func TestCallerIsAnsweredInTimeOverHTTP(t *testing.T) {
	mount := func(srv *mcpkit.Server, before ...echo.MiddlewareFunc) (http.Handler, func()) {
		e := echo.New()
		e.Use(before...)
		handler := echomcp.Mount(e, "/", srv)
		return e, handler.Close
	}
	plain := func(srv *mcpkit.Server) (http.Handler, func()) {
		handler := streamable.NewHandler(srv, nil)
		return handler, handler.Close
	}
	for _, test := range []struct {
		name    string
		http2   bool
		stays   bool // the connection outlives the response, also if that was early
		handler func(*mcpkit.Server) (http.Handler, func())
	}{
		{"HTTP/1.1", false, false, plain},
		{"HTTP/2", true, true, plain},
		{"HTTP/1.1 behind Gzip", false, false, func(srv *mcpkit.Server) (http.Handler, func()) { return mount(srv, echomiddleware.Gzip()) }},
		{"HTTP/2 behind Gzip", true, true, func(srv *mcpkit.Server) (http.Handler, func()) { return mount(srv, echomiddleware.Gzip()) }},
	} {
		for _, accept := range []string{"application/json, text/event-stream", "text/event-stream, application/json"} {
			t.Run(test.name+", "+accept, func(t *testing.T) {
				srv, letGo := deafServer(t)
				handler, stop := test.handler(srv)
				server := httptest.NewUnstartedServer(handler)
				server.EnableHTTP2 = test.http2
				if test.http2 {
					server.StartTLS()
				} else {
					server.Start()
				}
				defer server.Close()
				defer stop()
				call := func(tool string) (body string, reused bool) {
					ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { reused = info.Reused }})
					r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/",
						strings.NewReader(modern(t, srv).request("tools/call", fmt.Sprintf(`{"name":%q}`, tool))))
					require.NoError(t, err)
					r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {accept}, "Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {tool}}
					resp, err := server.Client().Do(r)
					require.NoError(t, err)
					defer resp.Body.Close()
					if test.http2 {
						require.Equal(t, 2, resp.ProtoMajor)
					}
					text, err := io.ReadAll(resp.Body)
					require.NoError(t, err)
					return string(text), reused
				}
				body, _ := call("deaf")
				require.Contains(t, body, "timed out after 50ms")
				require.Equal(t, 1, srv.Overdue())
				body, reused := call("fine")
				require.Contains(t, body, `"fine"`)
				if test.stays {
					require.True(t, reused, "it is the same connection")
				}
				require.Equal(t, 1, srv.Overdue(), "the method still runs")
				letGo()
			})
		}
	}
}

func TestCallerIsAnsweredInTimeOnConnections(t *testing.T) {
	for name, connect := range map[string]func(t *testing.T, srv *mcpkit.Server) (target any, stop func()){
		"stdio": func(t *testing.T, srv *mcpkit.Server) (any, func()) {
			stream, stop := onStdio(t, srv)
			return client.Stream(stream), stop
		},
		"WebSocket": func(t *testing.T, srv *mcpkit.Server) (any, func()) {
			handler := websocket.NewHandler(srv, nil)
			server := httptest.NewServer(handler)
			return "ws" + strings.TrimPrefix(server.URL, "http"), func() { handler.Close(); server.Close() }
		},
		"HTTP+SSE": func(t *testing.T, srv *mcpkit.Server) (any, func()) {
			handler := sse.NewHandler(srv, nil)
			server := httptest.NewServer(handler)
			return client.HTTPSSE(server.URL), func() { handler.Close(); server.Close() }
		},
	} {
		t.Run(name, func(t *testing.T) {
			srv, letGo := deafServer(t)
			target, stop := connect(t, srv)
			defer stop()
			c, err := client.Dial(t.Context(), target)
			require.NoError(t, err)
			_, err = c.CallTool(t.Context(), "deaf", nil)
			require.EqualError(t, err, `tool "deaf": timed out after 50ms`)
			result, err := c.CallTool(t.Context(), "fine", nil)
			require.NoError(t, err)
			require.Equal(t, []protocol.Content{mcpkit.Text("fine")}, result.Content)
			require.Equal(t, 1, srv.Overdue(), "the method still runs")
			letGo()
			require.NoError(t, c.Close())
		})
	}
}

// With middleware, the method has a goroutine of its own; without, it has that of the transport.
func TestOverdueMethodsAreLoggedOnceAndCleanedUpInTheEnd(t *testing.T) {
	var late chan time.Time // when middleware sees the timeout
	observe := func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
			result, err := next(ctx, call)
			require.ErrorIs(t, err, mcpkit.ErrTimeout)
			late <- time.Now()
			return result, err
		}
	}
	for name, test := range map[string]struct {
		options []mcpkit.Option
		use     func(srv *mcpkit.Server)
	}{
		"without middleware": {},
		"with middleware":    {use: func(srv *mcpkit.Server) { srv.Use(observe) }},
		"with an extension":  {options: []mcpkit.Option{mcpkit.Extend(mcpkit.Extension{ID: "com.example/late", Intercept: observe})}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				late = make(chan time.Time, 1)
				var log bytes.Buffer
				var cleaned atomic.Int32
				srv := newServer(t, nil, append(test.options, mcpkit.Logger(slog.New(slog.NewTextHandler(&log, nil))),
					mcpkit.Provide(func(context.Context) (*session, error) { return &session{}, nil }, func(*session) { cleaned.Add(1) }))...)
				require.NoError(t, srv.Add(mcpkit.NewTool("deaf", func(_ context.Context, call *mcpkit.Call, _ *session) (string, error) {
					time.Sleep(2 * time.Second)
					call.Progress(1, 1, "too late")
					return "", errors.New("fails in the end")
				}).Timeout(time.Second)))
				if test.use != nil {
					test.use(srv)
				}
				stream, stop := onStdio(t, srv)
				p := modern(t, srv)
				lines := bufio.NewScanner(stream)
				begun := time.Now()
				_, err := io.WriteString(stream, p.request("tools/call", `{"name":"deaf"}`)+"\n")
				require.NoError(t, err)
				require.True(t, lines.Scan())
				require.Contains(t, lines.Text(), "timed out after 1s")
				require.Equal(t, 1100*time.Millisecond, time.Since(begun), "it has 100 ms to return")
				synctest.Wait()
				require.Equal(t, 1, srv.Overdue())
				require.Zero(t, cleaned.Load())
				if test.use != nil || test.options != nil {
					require.Equal(t, 1100*time.Millisecond, (<-late).Sub(begun), "middleware sees the timeout in time")
				}

				time.Sleep(time.Minute)
				synctest.Wait()
				require.Zero(t, srv.Overdue())
				require.Equal(t, int32(1), cleaned.Load())
				require.Equal(t, 1, strings.Count(log.String(), "\n"), log.String())
				require.Contains(t, log.String(), "a method did not return in time")
				stop()
				require.False(t, lines.Scan(), lines.Text())
			})
		})
	}
}

// A method that asks, ignores that the server has to ask the client first, and continues until its
// time is up. If it were called again with the answer, two of them would run.
func TestMethodsThatAskAndRunOverTheirTimeTimeOut(t *testing.T) {
	for _, goroutine := range []string{"its own", "that of the transport"} {
		for name, returns := range map[string]bool{"returns in time": true, "returns late": false} {
			t.Run("on a goroutine that is "+goroutine+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := newServer(t, nil, mcpkit.Logger(slog.New(slog.DiscardHandler)))
					require.NoError(t, srv.Add(mcpkit.NewTool("ask", func(ctx context.Context) error {
						_, _ = mcpkit.Confirm(ctx, "Sure?")
						if <-ctx.Done(); !returns {
							time.Sleep(time.Minute)
						}
						return ctx.Err()
					}).Timeout(time.Second)))
					if goroutine == "its own" {
						srv.Use(func(next mcpkit.Handler) mcpkit.Handler { return next })
					}
					stream, stop := onStdio(t, srv)
					lines := bufio.NewScanner(stream)
					_, err := io.WriteString(stream, modern(t, srv).request("tools/call", `{"name":"ask"}`)+"\n")
					require.NoError(t, err)
					require.True(t, lines.Scan())
					response := lines.Text()
					time.Sleep(time.Hour)
					stop()
					require.Contains(t, response, "timed out after 1s")
					require.False(t, lines.Scan(), lines.Text())
				})
			})
		}
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
		t.Run(name, func(t *testing.T) {
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
				stream, stop := onStdio(t, srv)
				lines := bufio.NewScanner(stream)
				_, err := io.WriteString(stream, modern(t, srv).request("tools/call", `{"name":"deaf"}`)+"\n")
				require.NoError(t, err)
				require.True(t, lines.Scan())
				response := lines.Text()
				time.Sleep(time.Hour)
				stop()
				require.Contains(t, response, "timed out after 1s")
				require.False(t, lines.Scan(), lines.Text())
				require.Zero(t, srv.Overdue())
			})
		})
	}
}

func TestALogHandlerThatPanicsDoesNotEndTheProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(t, nil, mcpkit.Logger(slog.New(logFunc(func() { panic("disk full") }))))
		require.NoError(t, srv.Add(mcpkit.NewTool("deaf", func() { time.Sleep(time.Minute) }).Timeout(time.Second)))
		stream, stop := onStdio(t, srv)
		lines := bufio.NewScanner(stream)
		_, err := io.WriteString(stream, modern(t, srv).request("tools/call", `{"name":"deaf"}`)+"\n")
		require.NoError(t, err)
		require.True(t, lines.Scan())
		require.Contains(t, lines.Text(), "internal error")
		time.Sleep(time.Hour)
		require.Zero(t, srv.Overdue())
		stop()
	})
}

// onStdio serves srv on two pipes and returns the client's end. stop ends both.
func onStdio(t *testing.T, srv *mcpkit.Server) (stream pipe, stop func()) {
	in, clientOut := io.Pipe()
	clientIn, out := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- stdio.NewIO(in, out, nil).Serve(ctx, srv) }() // ends with ctx
	return pipe{clientIn, clientOut}, func() {
		cancel()
		require.NoError(t, <-done)
		require.NoError(t, out.Close())
	}
}

// pipe is the client's end of two pipes.
type pipe struct {
	*io.PipeReader
	*io.PipeWriter
}

func (p pipe) Close() error { return errors.Join(p.PipeReader.Close(), p.PipeWriter.Close()) }

// The limit of overdue methods is that of the server that was called, for the tools and methods of
// mounted servers, too.
func TestOverdueMethodsOfAMountedServerCountInTheOther(t *testing.T) {
	for name, method := range map[string]string{"tool": "tools/call", "method": "example.com/deaf"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				quiet := mcpkit.Logger(slog.New(slog.DiscardHandler))
				child, srv := newServer(t, nil, quiet, mcpkit.MaxOverdue(1)), newServer(t, nil, quiet, mcpkit.MaxOverdue(2))
				released := make(chan struct{})
				require.NoError(t, child.Add(mcpkit.NewTool("deaf", func() { <-released })))
				require.NoError(t, mcpkit.Handle(child, "example.com/deaf", func(context.Context, map[string]any) (struct{}, error) {
					<-released
					return struct{}{}, nil
				}))
				require.NoError(t, srv.Mount("", child))
				srv.Use(func(next mcpkit.Handler) mcpkit.Handler {
					return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
						call.SetTimeout(time.Second)
						return next(ctx, call)
					}
				})
				p := modern(t, srv)
				call := func() string { return p.raw(t.Context(), p.request(method, `{"name":"deaf"}`)) }
				for n := range 2 {
					require.Contains(t, call(), "timed out after 1s")
					synctest.Wait()
					require.Equal(t, n+1, srv.Overdue())
				}
				require.Contains(t, call(), "2 earlier calls of this are still running")
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
		srv.Use(func(next mcpkit.Handler) mcpkit.Handler {
			return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
				tags = append(tags, call.Tags()...)
				return next(ctx, call)
			}
		})
		p := modern(t, srv)
		for method, params := range map[string]string{"prompts/get": `{"name":"slow"}`, "resources/read": `{"uri":"slow://one"}`} {
			require.ErrorContains(t, p.fails(method, params), "timed out after 1s")
			require.ErrorContains(t, p.fails(method, params), "too many calls")
		}
		require.Equal(t, []string{"slow", "slow", "slow", "slow"}, tags)
	})
}

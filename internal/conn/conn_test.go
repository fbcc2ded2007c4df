package conn_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/conn"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

func TestMain(m *testing.M) { testkit.VerifyTestMain(m) }

// handler answers by method.
type handler struct {
	methods map[string]func(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response
	ended   atomic.Int32
}

func (h *handler) ServeRPC(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
	if f := h.methods[req.Method]; f != nil {
		return f(ctx, req, peer)
	}
	switch req.Method {
	case "initialize":
		peer.Session().SetVersion("2025-11-25")
	case "block", "subscriptions/listen":
		<-ctx.Done()
		return result(req, `"ended"`)
	}
	if req.IsNotification() {
		return nil
	}
	return result(req, `"`+req.Method+`"`)
}

func (h *handler) SessionEnded(*transport.Session) { h.ended.Add(1) }

func result(req *jsonrpc.Request, text string) *jsonrpc.Response {
	return &jsonrpc.Response{ID: req.ID, Result: json.RawMessage(text)}
}

// wire is a connection whose other end is the test.
type wire struct {
	in     chan []byte
	errs   chan error
	out    chan string // lines and parts of lines as written
	stuck  chan struct{}
	slow   time.Duration // of each write
	broken atomic.Pointer[error]
	once   sync.Once
	closed chan struct{}
}

func (w *wire) Read() ([]byte, error) {
	select {
	case data, ok := <-w.in:
		if !ok {
			return nil, io.EOF
		}
		return data, nil
	case err := <-w.errs:
		return nil, err
	case <-w.closed:
		return nil, io.ErrClosedPipe
	}
}

func (w *wire) Write(p []byte) (int, error) {
	if err := w.broken.Load(); err != nil {
		return 0, *err
	}
	if w.stuck != nil {
		select {
		case <-w.stuck:
		case <-w.closed:
			return 0, io.ErrClosedPipe
		}
	}
	time.Sleep(w.slow)
	w.out <- string(p)
	return len(p), nil
}

func (w *wire) CloseRead() error { w.once.Do(func() { close(w.closed) }); return nil }
func (w *wire) Close() error     { return w.CloseRead() }

// peer is the test's end.
type peer struct {
	t    *testing.T
	wire *wire
	link *conn.Conn
	stop context.CancelFunc
	over chan error
	rest []string
}

func serve(t *testing.T, h transport.Handler, opts *conn.Options) *peer {
	return serveOn(t, h, opts, &wire{})
}

func serveOn(t *testing.T, h transport.Handler, opts *conn.Options, w *wire) *peer {
	w.in, w.errs = make(chan []byte, 10_000), make(chan error, 1)
	w.out, w.closed = make(chan string, 10_000), make(chan struct{})
	if opts == nil {
		opts = &conn.Options{}
	}
	opts.Logger = slog.New(slog.DiscardHandler)
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	p := &peer{t: t, wire: w, link: conn.New(w, h, opts), stop: stop, over: make(chan error, 1)}
	go func() { p.over <- p.link.Serve(ctx) }()
	return p
}

// served runs a test with a peer of h in a synctest bubble, which hangs up in the end.
func served(t *testing.T, h transport.Handler, opts *conn.Options, test func(t *testing.T, p *peer)) {
	synctest.Test(t, func(t *testing.T) {
		p := serve(t, h, opts)
		test(t, p)
		p.hangUp()
	})
}

func (p *peer) send(messages ...string) {
	for _, m := range messages {
		p.wire.in <- []byte(m)
	}
}

// receive returns the next line.
func (p *peer) receive() string {
	p.t.Helper()
	for len(p.rest) == 0 {
		text := <-p.wire.out
		for !strings.HasSuffix(text, "\n") {
			text += <-p.wire.out
		}
		p.rest = strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	}
	line := p.rest[0]
	p.rest = p.rest[1:]
	return line
}

// silent requires that nothing more was sent when everything came to rest.
func (p *peer) silent() {
	p.t.Helper()
	synctest.Wait()
	require.Empty(p.t, p.rest)
	select {
	case text := <-p.wire.out:
		require.Empty(p.t, text)
	default:
	}
}

// hangUp ends the input and requires that Serve ends well and nothing more was sent.
func (p *peer) hangUp() {
	p.t.Helper()
	close(p.wire.in)
	require.NoError(p.t, <-p.over)
	p.silent()
	p.stop()
}

func request(id any, method string) string {
	raw, _ := json.Marshal(id)
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q}`, raw, method)
}

func answer(id any, text string) string {
	raw, _ := json.Marshal(id)
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, raw, text)
}

func failure(id any, code int, message string) string {
	raw, _ := json.Marshal(id)
	text, _ := json.Marshal(message)
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`, raw, code, text)
}

func cancelOf(id any) string {
	raw, _ := json.Marshal(id)
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`, raw)
}

func TestCancelledCallsAreNotAnswered(t *testing.T) {
	for _, id := range []any{702, "702", "a\nb"} {
		synctest.Test(t, func(t *testing.T) {
			h := &handler{methods: map[string]func(context.Context, *jsonrpc.Request, transport.Peer) *jsonrpc.Response{
				"talk": func(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
					<-ctx.Done()
					n, _ := jsonrpc.NewNotification("late", nil)
					require.NoError(t, peer.Notify(ctx, n))
					return result(req, `1`)
				},
			}}
			p := serve(t, h, nil)
			// The cancellation is there before the call is begun.
			p.send(request(id, "talk"), cancelOf(id), request("after", "ping"))
			require.Equal(t, answer("after", `"ping"`), p.receive())
			p.silent()
			// The ID is free again.
			p.send(request(id, "ping"))
			require.Equal(t, answer(id, `"ping"`), p.receive())
			p.hangUp()
		})
	}
}

// A client may send everything at once, as "cat messages | server" does, however long the handshake
// takes.
func TestMessagesWaitForTheHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []string
		h := &handler{methods: map[string]func(context.Context, *jsonrpc.Request, transport.Peer) *jsonrpc.Response{
			"initialize": func(_ context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
				time.Sleep(time.Minute)
				peer.Session().SetVersion("2025-03-26")
				order = append(order, req.Method)
				return result(req, `"agreed"`)
			},
			"notifications/initialized": func(_ context.Context, req *jsonrpc.Request, _ transport.Peer) *jsonrpc.Response {
				order = append(order, req.Method)
				return nil
			},
			"tools/list": func(_ context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
				return result(req, `"`+peer.Session().Version()+`"`)
			},
		}}
		p := serve(t, h, nil)
		p.send(request(1, "initialize"), request(3, "ping"), `{"jsonrpc":"2.0","method":"notifications/initialized"}`,
			request(2, "tools/list"), "["+request(4, "tools/list")+"]")
		require.Equal(t, answer(3, `"ping"`), p.receive())
		require.Equal(t, answer(1, `"agreed"`), p.receive())
		require.ElementsMatch(t, []string{answer(2, `"2025-03-26"`), "[" + answer(4, `"2025-03-26"`) + "]"}, []string{p.receive(), p.receive()})
		require.Equal(t, []string{"initialize", "notifications/initialized"}, order)
		p.hangUp()
	})
}

func TestTooManyCallsAreRefusedAndCanBeCancelled(t *testing.T) {
	served(t, &handler{}, &conn.Options{MaxInFlight: 2}, func(t *testing.T, p *peer) {
		p.send(request(1, "block"), request(2, "block"), request(3, "ping"))
		require.Equal(t, failure(3, -32603, "busy: 2 requests are in flight"), p.receive())
		p.send(cancelOf(1))
		p.silent()
		p.send(request(4, "ping"))
		require.Equal(t, answer(4, `"ping"`), p.receive())
		p.send(cancelOf(2))
	})
}

// Subscriptions end with the connection: they must not use up what there is for calls.
func TestSubscriptionsHaveTheirOwnLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serve(t, &handler{}, &conn.Options{MaxInFlight: 1})
		for i := range conn.MaxSubscriptions {
			p.send(request(1000+i, "subscriptions/listen"))
		}
		p.send(request(1, "ping"))
		require.Equal(t, answer(1, `"ping"`), p.receive())
		p.send(request(2, "subscriptions/listen"))
		require.Equal(t, failure(2, -32603, "busy: 128 subscriptions are open; end one, or ask for more in one"), p.receive())
		p.stop()
		require.NoError(t, <-p.over)
		for range conn.MaxSubscriptions {
			require.Contains(t, p.receive(), `"ended"`)
		}
	})
}

func TestTooManyBytesAreRefused(t *testing.T) {
	served(t, &handler{}, &conn.Options{MaxInFlightBytes: 60}, func(t *testing.T, p *peer) {
		large := `{"jsonrpc":"2.0","id":1,"method":"block","params":{"x":"` + strings.Repeat("x", 100) + `"}}`
		p.send(large, request(2, "ping"))
		require.Equal(t, failure(2, -32603, "busy: requests of 159 bytes are in flight"), p.receive())
		p.send(cancelOf(1))
		p.silent()
		p.send(request(3, "ping"))
		require.Equal(t, answer(3, `"ping"`), p.receive())
	})
}

func TestServerRequests(t *testing.T) {
	ask := func(ctx context.Context, peer transport.Peer) error {
		req, _ := jsonrpc.NewRequest(jsonrpc.ID{}, "roots/list", nil)
		_, err := peer.Call(ctx, req)
		return err
	}
	var failed error
	asking := map[string]func(context.Context, *jsonrpc.Request, transport.Peer) *jsonrpc.Response{
		"ask": func(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
			failed = ask(ctx, peer)
			return result(req, `"asked"`)
		},
		"ask for a second": func(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			failed = ask(ctx, peer)
			return result(req, `"asked"`)
		},
	}
	const question = `{"jsonrpc":"2.0","id":1,"method":"roots/list"}`
	begin := func(t *testing.T) *peer {
		p := serve(t, &handler{methods: asking}, nil)
		p.send(request(1, "initialize"))
		require.Equal(t, answer(1, `"initialize"`), p.receive())
		return p
	}

	t.Run("and told when the answer is no longer wanted", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := begin(t)
			p.send(request(1, "ask for a second"))
			require.Equal(t, question, p.receive())
			require.Equal(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"context deadline exceeded"}}`, p.receive())
			require.Equal(t, answer(1, `"asked"`), p.receive())
			require.ErrorIs(t, failed, context.DeadlineExceeded)
			p.send(answer(1, `"late"`))
			p.hangUp()
		})
	})
	t.Run("and told when it cancelled the call that asks", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := begin(t)
			p.send(request(5, "ask"))
			require.Equal(t, question, p.receive())
			p.send(cancelOf(5))
			require.Equal(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"cancelled by the peer"}}`, p.receive())
			p.hangUp()
			require.ErrorIs(t, failed, context.Canceled)
		})
	})
	t.Run("but not before the handshake", func(t *testing.T) {
		served(t, &handler{methods: asking}, nil, func(t *testing.T, p *peer) {
			p.send(request(1, "ask"))
			require.Equal(t, answer(1, `"asked"`), p.receive())
			require.ErrorIs(t, failed, transport.ErrNoServerRequests)
		})
	})
}

func TestBatches(t *testing.T) {
	for _, test := range []struct {
		name, version, batch string
		want                 string // "" when nothing is answered
	}{
		{name: "a modern request", version: "2025-03-26",
			batch: `[{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}]`,
			want:  `[` + failure(1, -32600, "a request of a modern version must not be in a batch") + `]`},
		{name: "stream", version: "2025-03-26", batch: `[` + request(1, "stream") + `]`, want: `[` + answer(1, `[1, 2]`) + `]`},
		{name: "no version", batch: `[` + request(1, "a") + `]`, want: failure(nil, -32600, "batches exist only in 2025-03-26; send each message by itself")},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &handler{methods: map[string]func(context.Context, *jsonrpc.Request, transport.Peer) *jsonrpc.Response{"stream": streamed("[1,\n2]", nil)}}
				p := serve(t, h, nil)
				if test.version != "" {
					p.link.Session().SetVersion(test.version)
				}
				p.send(test.batch)
				if test.want != "" {
					require.Equal(t, test.want, p.receive())
				}
				p.hangUp()
			})
		})
	}
	t.Run("run together, and each can be cancelled", func(t *testing.T) {
		served(t, &handler{}, nil, func(t *testing.T, p *peer) {
			p.link.Session().SetVersion("2025-03-26")
			p.send(`[`+request(1, "block")+`,`+request(2, "quick")+`,`+request(3, "block")+`]`, request(4, "ping"))
			require.Equal(t, answer(4, `"ping"`), p.receive())
			p.send(cancelOf(1), cancelOf(3))
			require.Equal(t, `[`+answer(2, `"quick"`)+`]`, p.receive())
			p.send(`[`+request(1, "block")+`]`, cancelOf(1))
		})
	})
}

func streamed(text string, err error) func(context.Context, *jsonrpc.Request, transport.Peer) *jsonrpc.Response {
	return func(context.Context, *jsonrpc.Request, transport.Peer) *jsonrpc.Response {
		return &jsonrpc.Response{Stream: func(w io.Writer) error {
			if _, err := io.WriteString(w, text); err != nil {
				return err
			}
			return err
		}}
	}
}

func TestResponsesAreOneLine(t *testing.T) {
	methods := map[string]func(context.Context, *jsonrpc.Request, transport.Peer) *jsonrpc.Response{
		"raw": func(_ context.Context, req *jsonrpc.Request, _ transport.Peer) *jsonrpc.Response {
			return result(req, "{\r\n\"a\": \"\\n\"}\n")
		},
		"stream":        streamed("[1,\n2]", nil),
		"broken stream": streamed("[1,", errors.New("no more")),
		"panicking stream": func(context.Context, *jsonrpc.Request, transport.Peer) *jsonrpc.Response {
			return &jsonrpc.Response{Stream: func(io.Writer) error { panic("no more") }}
		},
		"panic":  func(context.Context, *jsonrpc.Request, transport.Peer) *jsonrpc.Response { panic("no") },
		"no one": func(context.Context, *jsonrpc.Request, transport.Peer) *jsonrpc.Response { return nil },
		"other id": func(context.Context, *jsonrpc.Request, transport.Peer) *jsonrpc.Response {
			return &jsonrpc.Response{ID: jsonrpc.NumberID(99)}
		},
	}
	for _, test := range []struct {
		method string
		want   []string
	}{
		{"raw", []string{answer(1, `{  "a": "\n"} `)}},
		{"stream", []string{answer(1, `[1, 2]`)}},
		{"broken stream", []string{failure(1, -32603, "internal error")}},
		{"panicking stream", []string{failure(1, -32603, "internal error")}},
		{"panic", []string{failure(1, -32603, "internal error")}},
		{"no one", []string{failure(1, -32603, "internal error")}},
		{"other id", []string{answer(1, `{}`)}},
	} {
		t.Run(test.method, func(t *testing.T) {
			served(t, &handler{methods: methods}, nil, func(t *testing.T, p *peer) {
				p.send(request(1, test.method))
				for _, want := range test.want {
					require.Equal(t, want, p.receive())
				}
				p.send(request(2, "ping"))
				require.Equal(t, answer(2, `"ping"`), p.receive())
			})
		})
	}
}

const slowNote, quickNote = `{"jsonrpc":"2.0","method":"slow"}`, `{"jsonrpc":"2.0","method":"quick"}`

// recorded answers "order" with the methods of the notifications that were handled before it.
func recorded(slow func(ctx context.Context, peer transport.Peer)) *handler {
	var mu sync.Mutex
	var heard string
	hear := func(name string) {
		mu.Lock()
		defer mu.Unlock()
		heard += name
	}
	return &handler{methods: methods{
		"slow": func(ctx context.Context, _ *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
			slow(ctx, peer)
			hear("slow ")
			return nil
		},
		"quick": func(context.Context, *jsonrpc.Request, transport.Peer) *jsonrpc.Response {
			hear("quick ")
			return nil
		},
		"order": func(_ context.Context, req *jsonrpc.Request, _ transport.Peer) *jsonrpc.Response {
			mu.Lock()
			defer mu.Unlock()
			return result(req, `"`+heard+`"`)
		},
	}}
}

func TestARequestWaitsForTheNotificationsBeforeItHoweverLongTheyTake(t *testing.T) {
	for _, version := range []string{"2025-11-25", "2025-03-26"} {
		served(t, recorded(func(context.Context, transport.Peer) { time.Sleep(time.Hour) }), nil, func(t *testing.T, p *peer) {
			p.link.Session().SetVersion(version)
			begun := time.Now()
			p.send(slowNote, quickNote, request(1, "order"))
			if version == "2025-03-26" {
				p.send(`[` + slowNote + `,` + request(2, "order") + `]`)
			}
			require.Equal(t, answer(1, `"slow quick "`), p.receive())
			require.Equal(t, time.Hour, time.Since(begun))
			if version == "2025-03-26" {
				require.Equal(t, `[`+answer(2, `"slow quick slow "`)+`]`, p.receive())
			}
		})
	}
}

func TestAPingDoesNotWaitForNotifications(t *testing.T) {
	served(t, recorded(func(context.Context, transport.Peer) { time.Sleep(time.Second) }), nil, func(t *testing.T, p *peer) {
		begun := time.Now()
		p.send(slowNote, request(1, "ping"))
		require.Equal(t, answer(1, `"ping"`), p.receive())
		require.Zero(t, time.Since(begun))
	})
}

// Otherwise a peer that answers questions only between its requests would never be answered.
func TestARequestDoesNotWaitForANotificationThatWaitsForThePeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serve(t, recorded(func(ctx context.Context, peer transport.Peer) {
			_, err := peer.Call(ctx, &jsonrpc.Request{Method: "roots/list"})
			require.NoError(t, err)
		}), nil)
		p.link.Session().SetVersion("2025-11-25")
		p.send(slowNote, quickNote, request(1, "order"))
		require.ElementsMatch(t, []string{request(1, "roots/list"), answer(1, `"quick "`)}, []string{p.receive(), p.receive()})
		p.send(answer(1, `{}`))
		synctest.Wait()
		p.send(request(2, "order"))
		require.Equal(t, answer(2, `"quick slow "`), p.receive())
		p.hangUp()
	})
}

// A client's handlers of notifications may themselves wait for an answer for which the server asks
// something first.
func TestResponsesOfAClientDoNotWaitForNotifications(t *testing.T) {
	served(t, recorded(func(context.Context, transport.Peer) { time.Sleep(time.Second) }), &conn.Options{Client: true}, func(t *testing.T, p *peer) {
		p.send(slowNote, request(1, "order"))
		require.Equal(t, answer(1, `""`), p.receive())
	})
}

func TestCallCancelledBeforeItStartsNeverRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := recorded(func(context.Context, transport.Peer) { time.Sleep(time.Second) })
		h.methods["never"] = func(context.Context, *jsonrpc.Request, transport.Peer) *jsonrpc.Response {
			require.Fail(t, "the handler was called")
			return nil
		}
		p := serve(t, h, nil)
		p.send(slowNote, request(1, "never"), cancelOf(1), request(2, "order"))
		require.Equal(t, answer(2, `"slow "`), p.receive())
		p.hangUp()
	})
}

// A faulty response ends the call that it is for, at once, and is not answered: the peer would take
// an error with that ID for the answer to a request of its own.
func TestAFaultyResponseEndsItsCallAndIsNotAnswered(t *testing.T) {
	deep := strings.Repeat("[", 200) + strings.Repeat("]", 200)
	for _, test := range []struct{ name, response, want string }{
		{"nested too deep", `{"jsonrpc":"2.0","id":7,"result":` + deep + `}`, "malformed response: nested deeper than 128 levels"},
		{"nested too deep, the id behind", `{"jsonrpc":"2.0","result":` + deep + `,"id":7}`, "malformed response: nested deeper than 128 levels"},
		{"a member in the wrong case", `{"jsonrpc":"2.0","id":7,"Result":{}}`, `malformed response: member "Result" differs from "result" only by case`},
		{"neither result nor error", `{"jsonrpc":"2.0","id":7}`, "malformed response: it has neither a result nor an error"},
		{"result and error", `{"jsonrpc":"2.0","id":7,"result":{},"error":{"code":1,"message":"x"}}`, "malformed response: it has a result and an error"},
		{"bad UTF-8", `{"jsonrpc":"2.0","id":7,"result":"` + "\xff" + `"}`, `malformed response: invalid JSON: a fault or a repeated name within /result`},
		{"cut off", `{"jsonrpc":"2.0","id":7,"result":{`, `malformed response: invalid JSON: a fault or a repeated name within /result`},
		{"another version", `{"jsonrpc":"1.0","id":7,"result":{}}`, `malformed response: jsonrpc must be "2.0"`},
		{"two ids", `{"jsonrpc":"2.0","id":7,"id":8,"result":{}}`, `malformed response: invalid JSON: duplicate object member name "id"`},
		{"no id that can be read", `{"jsonrpc":"2.0","id":[7],"result":{}}`, "malformed response: id must be a string or a 64-bit integer"},
	} {
		for _, client := range []bool{true, false} {
			t.Run(test.name, func(t *testing.T) {
				served(t, &handler{}, &conn.Options{Client: client}, func(t *testing.T, p *peer) {
					p.link.Session().SetVersion("2025-11-25")
					got := make(chan *jsonrpc.Response, 1)
					go func() {
						resp, err := p.link.Do(context.Background(), &jsonrpc.Request{ID: jsonrpc.NumberID(7), Method: "ask"})
						require.NoError(t, err)
						got <- resp
					}()
					require.Equal(t, request(7, "ask"), p.receive())
					p.send(test.response)
					synctest.Wait()
					require.Len(t, got, 1, "the call still waits")
					require.Equal(t, test.want, (<-got).Error.Message)
					p.silent()
					p.send(test.response) // late: nobody waits for it
					if client || test.name != "neither result nor error" {
						p.silent()
					} else {
						require.Equal(t, failure(7, -32600, "invalid message: it has no method"), p.receive())
					}
				})
			})
		}
	}
}

func TestAFaultyRequestIsAnsweredAndEndsNoCallOfOurs(t *testing.T) {
	for _, test := range []struct{ name, message, want string }{
		{"params", `{"jsonrpc":"2.0","id":7,"method":"x","params":[]}`, failure(7, -32600, "invalid message: params must be an object")},
		{"params and the beginning of a result", `{"jsonrpc":"2.0","id":7,"method":"x","result":1}`, failure(7, -32600, "invalid message: it has a method and a result or an error")},
	} {
		t.Run(test.name, func(t *testing.T) {
			served(t, &handler{}, &conn.Options{Client: true}, func(t *testing.T, p *peer) {
				got := make(chan *jsonrpc.Response, 1)
				go func() {
					resp, _ := p.link.Do(context.Background(), &jsonrpc.Request{ID: jsonrpc.NumberID(7), Method: "ask"})
					got <- resp
				}()
				require.Equal(t, request(7, "ask"), p.receive())
				p.send(test.message)
				require.Equal(t, test.want, p.receive())
				require.Empty(t, got)
				p.send(answer(7, `1`))
				require.Equal(t, `1`, string((<-got).Result))
			})
		})
	}
}

package websocket_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	ws "github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/conn"
	"github.com/mcpkit/mcpkit-go/internal/httpserve"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/transporttest"
	"github.com/mcpkit/mcpkit-go/transport/websocket"
)

func TestMain(m *testing.M) { testkit.VerifyTestMain(m) }

// end is the client's end of a connection, as package client uses it.
type end struct {
	conn.Wire
	stop func()
	done <-chan struct{}
}

func (e end) Send(message []byte) error {
	_, err := e.Write(append(message, '\n'))
	return err
}

func (e end) Receive() ([]byte, error) { return e.Read() }
func (e end) Stop()                    { e.stop() }
func (e end) Done() <-chan struct{}    { return e.done }

// listen serves h and returns the address.
func listen(t *testing.T, h transport.Handler, opts *websocket.Options) (addr string, stop func(), done <-chan struct{}) {
	opts.Logger = slog.New(slog.DiscardHandler)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	handler := websocket.NewHandler(h, opts)
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		defer handler.Close()
		assert.NoError(t, httpserve.Run(ctx, listener, &http.Server{Handler: handler}, func() { _ = handler.Shutdown(context.Background()) }))
	}()
	return listener.Addr().String(), cancel, over
}

func TestContract(t *testing.T) {
	transporttest.Run(t, func(t *testing.T, h transport.Handler) transporttest.Conn {
		addr, stop, done := listen(t, h, &websocket.Options{MaxMessageBytes: transporttest.MaxMessageBytes, ShutdownTimeout: time.Minute, WriteTimeout: 10 * time.Minute})
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		wire, err := websocket.Dial(t.Context(), "ws://"+addr+"/ws", &websocket.DialOptions{Client: client})
		require.NoError(t, err)
		return end{wire, stop, done}
	})
}

func TestUpgradesAreGuarded(t *testing.T) {
	url := serveRaw(t, methods{}, &websocket.Options{}, nil)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, test := range []struct {
		name, field, value string // "" for a field that is left out
		status             int
		want               string
	}{
		{"one subprotocol of several", "Sec-Websocket-Protocol", "chat, mcp", 101, ""},
		{"no subprotocol", "Sec-Websocket-Protocol", "", 400, `the client must offer the WebSocket subprotocol "mcp"`},
		{"other subprotocols", "Sec-Websocket-Protocol", "mcpx, xmcp, MCP", 400, `the client must offer the WebSocket subprotocol "mcp"`},
		{"no upgrade", "Upgrade", "", 426, ""},
		{"no key", "Sec-Websocket-Key", "", 400, ""},
		{"a foreign page", "Origin", "http://evil.example.com", 403, `origin "http://evil.example.com" is not allowed; name it in AllowedOrigins`},
		{"a page without an origin", "Origin", "null", 403, `origin "null" is not allowed; name it in AllowedOrigins`},
		{"a page of this machine", "Origin", "http://localhost:6274", 101, ""},
		{"a rebound host", "Host", "evil.example.com", 403, `host "evil.example.com" is not allowed; name it in AllowedHosts`},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
			require.NoError(t, err)
			for name, value := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-Websocket-Version": "13",
				"Sec-Websocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-Websocket-Protocol": "mcp", test.field: test.value} {
				r.Header.Set(name, value)
			}
			switch {
			case test.field == "Host":
				r.Host = test.value
			case test.value == "":
				r.Header.Del(test.field)
			}
			resp, err := client.Do(r)
			require.NoError(t, err)
			defer resp.Body.Close()
			require.Equal(t, test.status, resp.StatusCode)
			if test.want != "" {
				body, err := io.ReadAll(resp.Body)
				require.NoError(t, err)
				require.Equal(t, test.want, strings.TrimSpace(string(body)))
			}
		})
	}
}

// dialWired serves h in a synctest bubble, and connects to it as the principal who. A deaf client
// does not answer pings.
func dialWired(t *testing.T, h transport.Handler, opts *websocket.Options, who *oauth.Principal, deaf bool) *ws.Conn {
	opts.Logger = slog.New(slog.DiscardHandler)
	handler := websocket.NewHandler(h, opts)
	client, closeAll := testkit.Serve(&http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(w, r.WithContext(oauth.NewContext(r.Context(), who)))
	})})
	t.Cleanup(func() {
		handler.Close()
		closeAll()
	})
	conn, _, err := ws.Dial(t.Context(), "ws://mcp.test", &ws.DialOptions{
		HTTPClient: client, Subprotocols: []string{"mcp"}, OnPingReceived: func(context.Context, []byte) bool { return !deaf },
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.CloseNow() })
	return conn
}

func TestAConnectionLastsAsLongAsItsCredential(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		conn := dialWired(t, methods{}, &websocket.Options{SessionIdle: -1}, &oauth.Principal{Subject: "ann", Expires: begun.Add(time.Hour)}, false)
		require.Equal(t, pong, exchange(t, conn, ping))
		// Reading answers the pings meanwhile.
		_, _, err := conn.Read(t.Context())
		require.Equal(t, ws.StatusNormalClosure, ws.CloseStatus(err), "%v", err)
		require.Equal(t, time.Hour, time.Since(begun))
	})
}

func TestClientThatIgnoresPingsIsDisconnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over := make(chan time.Time, 1)
		h := methods{"block": func(ctx context.Context, _ transport.Peer) {
			<-ctx.Done()
			over <- time.Now()
		}}
		conn := dialWired(t, h, &websocket.Options{KeepAlive: 20 * time.Second}, nil, true)
		begun := time.Now()
		require.Equal(t, pong, exchange(t, conn, ping))
		require.NoError(t, conn.Write(t.Context(), ws.MessageText, []byte(`{"jsonrpc":"2.0","id":2,"method":"block"}`)))
		_, _, err := conn.Read(t.Context())
		require.Error(t, err)
		require.Equal(t, 40*time.Second, (<-over).Sub(begun), "the next ping is due and the first is not answered")
	})
}

// trickle sends the beginning of a message and nothing more.
func trickle(t *testing.T, conn *ws.Conn) {
	w, err := conn.Writer(t.Context(), ws.MessageText)
	require.NoError(t, err)
	_, err = io.WriteString(w, `{"jsonrpc":`+strings.Repeat(" ", 8<<10)) // more than the client buffers
	require.NoError(t, err)
}

func TestUnfinishedMessageClosesTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := dialWired(t, methods{}, &websocket.Options{MessageTimeout: time.Second}, nil, false)
		require.Equal(t, pong, exchange(t, conn, ping))
		begun := time.Now()
		trickle(t, conn)
		_, _, err := conn.Read(t.Context())
		require.Equal(t, ws.StatusPolicyViolation, ws.CloseStatus(err), "%v", err)
		require.Contains(t, err.Error(), "the message did not end within 1s")
		require.Equal(t, time.Second, time.Since(begun))
	})
}

func TestAnIdleConnectionEnds(t *testing.T) {
	block := methods{"block": func(ctx context.Context, _ transport.Peer) { <-ctx.Done() }}
	for _, test := range []struct {
		name string
		idle time.Duration
		busy bool
		want time.Duration // 0 if it stays open
	}{
		{"by default", 0, false, 30 * time.Minute},
		{"sooner", time.Minute, false, time.Minute},
		{"never", -1, false, 0},
		{"with a call in flight", time.Minute, true, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				keepAlive := 7 * time.Second // no ping is due when the connection ends
				if test.want == 0 {
					keepAlive = -1 // nothing reads for a day
				}
				conn := dialWired(t, block, &websocket.Options{SessionIdle: test.idle, KeepAlive: keepAlive}, nil, false)
				require.Equal(t, pong, exchange(t, conn, ping))
				begun := time.Now()
				if test.busy {
					require.NoError(t, conn.Write(t.Context(), ws.MessageText, []byte(`{"jsonrpc":"2.0","id":2,"method":"block"}`)))
				}
				if test.want == 0 {
					time.Sleep(24 * time.Hour)
					require.Equal(t, pong, exchange(t, conn, ping))
					return
				}
				_, _, err := conn.Read(t.Context())
				require.Equal(t, ws.StatusNormalClosure, ws.CloseStatus(err), "%v", err)
				require.InDelta(t, test.want.Seconds(), time.Since(begun).Seconds(), test.want.Seconds()/4)
			})
		})
	}
}

// big answers with 8 MiB.
type big struct{}

func (big) ServeRPC(context.Context, *jsonrpc.Request, transport.Peer) *jsonrpc.Response {
	return &jsonrpc.Response{Result: []byte(`"` + strings.Repeat("x", 8<<20) + `"`)}
}

// The server reads nothing from a client that has much to read, not even its responses to pings.
func TestClientThatReadsSlowlyIsNotDisconnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := dialWired(t, big{}, &websocket.Options{}, nil, false)
		conn.SetReadLimit(-1)
		require.NoError(t, conn.Write(t.Context(), ws.MessageText, []byte(`{"jsonrpc":"2.0","id":2,"method":"big"}`)))
		_, r, err := conn.Reader(t.Context())
		require.NoError(t, err)
		n := int64(0)
		for err == nil {
			var more int64
			more, err = io.CopyN(io.Discard, r, 64<<10)
			n += more
			time.Sleep(time.Second)
		}
		require.ErrorIs(t, err, io.EOF, "after %d bytes", n)
		require.Greater(t, n, int64(8<<20))
	})
}

// methods calls a function for each method that it has. The result is always {}.
type methods map[string]func(ctx context.Context, peer transport.Peer)

func (m methods) ServeRPC(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
	if f := m[req.Method]; f != nil {
		f(ctx, peer)
	}
	return &jsonrpc.Response{Result: []byte(`{}`)}
}

// serveRaw serves h and returns the URL. If who is not nil, it returns the principal of each
// request.
func serveRaw(t *testing.T, h transport.Handler, opts *websocket.Options, who func() *oauth.Principal) string {
	t.Helper()
	opts.Logger = slog.New(slog.DiscardHandler)
	opts.ShutdownTimeout = time.Second
	handler := websocket.NewHandler(h, opts)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if who != nil {
			r = r.WithContext(oauth.NewContext(r.Context(), who()))
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		require.NoError(t, handler.Shutdown(context.Background()))
		handler.Close()
		server.Close()
	})
	return server.URL
}

// dialRaw returns a connection on which a test can send anything.
func dialRaw(t *testing.T, url string) *ws.Conn {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	conn, _, err := ws.Dial(t.Context(), url, &ws.DialOptions{HTTPClient: client, Subprotocols: []string{"mcp"}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.CloseNow() })
	return conn
}

const (
	ping = `{"jsonrpc":"2.0","id":1,"method":"initialize"}`
	pong = `{"jsonrpc":"2.0","id":1,"result":{}}`
)

func exchange(t *testing.T, conn *ws.Conn, message string) string {
	t.Helper()
	require.NoError(t, conn.Write(t.Context(), ws.MessageText, []byte(message)))
	_, got, err := conn.Read(t.Context())
	require.NoError(t, err)
	return string(got)
}

func TestInvalidMessagesGetErrors(t *testing.T) {
	conn := dialRaw(t, serveRaw(t, methods{}, &websocket.Options{}, nil))
	require.Equal(t, pong, exchange(t, conn, ping))
	require.Contains(t, exchange(t, conn, ""), `"code":-32700`, "an empty message")
	require.Contains(t, exchange(t, conn, "[]"), `"code":-32600`)
	require.Contains(t, exchange(t, conn, strings.Repeat("[", 50_000)), `"code":-32`, "deep nesting")

	w, err := conn.Writer(t.Context(), ws.MessageText)
	require.NoError(t, err)
	for i := range ping { // a frame for each byte
		_, err = w.Write([]byte{ping[i]})
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	_, got, err := conn.Read(t.Context())
	require.NoError(t, err)
	require.Equal(t, pong, string(got))
	require.NoError(t, conn.Ping(conn.CloseRead(t.Context())))
}

func TestConnectionsAreLimited(t *testing.T) {
	begun := make(chan struct{})
	url := serveRaw(t, methods{"wait": func(ctx context.Context, _ transport.Peer) {
		close(begun)
		<-ctx.Done()
	}}, &websocket.Options{MaxConnections: 1}, nil)
	conn := dialRaw(t, url)
	require.NoError(t, conn.Write(t.Context(), ws.MessageText, []byte(`{"jsonrpc":"2.0","id":1,"method":"wait"}`)))
	<-begun
	_, resp, err := ws.Dial(t.Context(), url, &ws.DialOptions{HTTPClient: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, Subprotocols: []string{"mcp"}})
	require.Error(t, err)
	require.Equal(t, 503, resp.StatusCode)
	require.Equal(t, "10", resp.Header.Get("Retry-After"))
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, "too many connections, or shutting down; try again later\n", string(body))
	require.NoError(t, conn.Close(ws.StatusNormalClosure, ""))
}

func TestMessagesThatCloseTheConnection(t *testing.T) {
	for _, test := range []struct {
		name   string
		kind   ws.MessageType
		text   string
		status ws.StatusCode
	}{
		{"binary", ws.MessageBinary, "{}", ws.StatusUnsupportedData},
		{"not UTF-8", ws.MessageText, "\"\xff\"", ws.StatusInvalidFramePayloadData},
		{"too large", ws.MessageText, strings.Repeat(" ", 1001), ws.StatusMessageTooBig},
	} {
		t.Run(test.name, func(t *testing.T) {
			conn := dialRaw(t, serveRaw(t, methods{}, &websocket.Options{MaxMessageBytes: 1000}, nil))
			require.Equal(t, pong, exchange(t, conn, ping+strings.Repeat(" ", 1000-len(ping))))
			require.NoError(t, conn.Write(t.Context(), test.kind, []byte(test.text)))
			_, _, err := conn.Read(t.Context())
			require.Equal(t, test.status, ws.CloseStatus(err), "%v", err)
		})
	}
}

func TestANewConnectionEvictsTheOneThatWasIdleLongest(t *testing.T) {
	url := serveRaw(t, methods{}, &websocket.Options{MaxConnections: 2}, nil)
	first, second := dialRaw(t, url), dialRaw(t, url)
	require.Equal(t, pong, exchange(t, second, ping))
	require.Equal(t, pong, exchange(t, first, ping))
	third := dialRaw(t, url)
	_, _, err := second.Read(t.Context())
	require.Equal(t, ws.StatusNormalClosure, ws.CloseStatus(err), "%v", err)
	require.Equal(t, pong, exchange(t, first, ping))
	require.Equal(t, pong, exchange(t, third, ping))
}

// Health checks and browsers open no WebSocket.
func TestRequestsWithoutAnUpgradeTakeNoPlace(t *testing.T) {
	url := serveRaw(t, methods{}, &websocket.Options{MaxConnections: 1}, nil)
	conn := dialRaw(t, url)
	require.Equal(t, pong, exchange(t, conn, ping))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusUpgradeRequired, resp.StatusCode)
	require.Equal(t, pong, exchange(t, conn, ping))
}

func TestCancelledCallsRespondAfterTheShutdownTimeout(t *testing.T) {
	begun := make(chan struct{})
	handler := websocket.NewHandler(methods{"wait": func(ctx context.Context, _ transport.Peer) {
		close(begun)
		<-ctx.Done()
	}}, &websocket.Options{Logger: slog.New(slog.DiscardHandler)})
	server := httptest.NewServer(handler)
	defer server.Close()
	conn := dialRaw(t, server.URL)
	require.NoError(t, conn.Write(t.Context(), ws.MessageText, []byte(`{"jsonrpc":"2.0","id":1,"method":"wait"}`)))
	<-begun
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("no time"))
	ended := make(chan error, 1)
	go func() { ended <- handler.Shutdown(ctx) }()
	_, got, err := conn.Read(t.Context())
	require.NoError(t, err)
	require.Equal(t, pong, string(got), "the cancelled call may still respond")
	_, _, err = conn.Read(t.Context())
	require.Equal(t, ws.StatusNormalClosure, ws.CloseStatus(err), "%v", err)
	require.EqualError(t, <-ended, "no time")
}

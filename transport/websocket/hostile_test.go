package websocket_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	ws "github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/websocket"
)

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

package websocket_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	ws "github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/websocket"
)

// dialFrom connects from an address behind a proxy.
func dialFrom(t *testing.T, url, addr string) (*ws.Conn, error) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	conn, _, err := ws.Dial(t.Context(), url, &ws.DialOptions{HTTPClient: client, Subprotocols: []string{"mcp"},
		HTTPHeader: http.Header{"X-Forwarded-For": {addr}}})
	if err == nil {
		t.Cleanup(func() { _ = conn.CloseNow() })
	}
	return conn, err
}

func TestOneAddressCannotTakeAllConnections(t *testing.T) {
	url := serveRaw(t, methods{}, &websocket.Options{MaxConnections: 5, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, nil)
	var flood []*ws.Conn
	for range 5 {
		conn, err := dialFrom(t, url, "203.0.113.1")
		require.NoError(t, err)
		require.Equal(t, pong, exchange(t, conn, ping))
		flood = append(flood, conn)
	}
	_, err := dialFrom(t, url, "203.0.113.1")
	require.ErrorContains(t, err, "503", "none of the connections of this address was idle for a minute")
	ended := make(chan error, len(flood))
	for _, conn := range flood {
		go func() { // ends with the connection
			_, _, err := conn.Read(context.Background())
			ended <- err
		}()
	}
	for i := range 2 {
		conn, err := dialFrom(t, url, fmt.Sprintf("192.0.2.%d", i+1))
		require.NoError(t, err)
		require.Equal(t, pong, exchange(t, conn, ping), "a new caller is served")
		err = <-ended
		require.Equal(t, ws.StatusNormalClosure, ws.CloseStatus(err), "in the place of one of the flood: %v", err)
	}
	for _, conn := range flood {
		_ = conn.CloseNow()
	}
	for range 3 {
		<-ended
	}
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

// Health checks and browsers open no WebSocket.
func TestRequestsWithoutAnUpgradeTakeNoPlace(t *testing.T) {
	url := serveRaw(t, methods{}, &websocket.Options{MaxConnections: 2, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, nil)
	var conns []*ws.Conn
	for range 2 {
		conn, err := dialFrom(t, url, "203.0.113.1")
		require.NoError(t, err)
		require.Equal(t, pong, exchange(t, conn, ping))
		conns = append(conns, conn)
	}
	for range 2 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		require.NoError(t, err)
		r.Header.Set("X-Forwarded-For", "192.0.2.1")
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.StatusUpgradeRequired, resp.StatusCode)
	}
	for _, conn := range conns {
		require.Equal(t, pong, exchange(t, conn, ping))
	}
}

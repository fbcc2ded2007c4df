package websocket_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	ws "github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/websocket"
)

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

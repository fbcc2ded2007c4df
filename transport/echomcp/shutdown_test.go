package echomcp_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// Sleeper has a tool that returns when its context ends.
type Sleeper struct{ started chan struct{} }

// Sleep waits for the end of its context.
func (s *Sleeper) Sleep(ctx context.Context) error {
	s.started <- struct{}{}
	<-ctx.Done()
	return errors.New("I was woken")
}

// The app runs as in the documentation.
func TestEveryCallIsAnsweredWhenAnAppShutsDown(t *testing.T) {
	service := &Sleeper{make(chan struct{}, 10)}
	srv, err := mcpkit.New(service, mcpkit.Logger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	app := echo.New()
	app.HideBanner, app.HidePort = true, true
	app.Listener, err = net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	base := "http://" + app.Listener.Addr().String()
	shutdown := mountAll(app, srv, slog.New(slog.DiscardHandler))
	served := make(chan error, 1)
	go func() { served <- app.Start("") }()

	answers := make(chan error, 3)
	for _, target := range []client.Target{client.URL(base + "/mcp"), client.HTTPSSE(base + "/sse"), client.URL(strings.Replace(base, "http", "ws", 1) + "/ws")} {
		c, err := client.Dial(t.Context(), target, client.Logger(slog.New(slog.DiscardHandler)))
		require.NoError(t, err)
		defer c.Close()
		go func() {
			_, err := client.Call[string](context.Background(), c, "sleep", nil)
			answers <- err
		}()
		<-service.started
	}
	bound, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- shutdown(bound) }()
	// All handlers refuse new calls at once: none waits for the calls of another.
	web := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, path := range []string{"/mcp", "/sse", "/ws"} {
		require.Eventually(t, func() bool { return status(t, web, base+path) == http.StatusServiceUnavailable }, time.Minute, time.Millisecond, path)
	}
	cancel()
	for range 3 {
		err := <-answers
		require.Error(t, err)
		require.Regexp(t, "I was woken|internal error|cancel|shutting down", err.Error(), "a response, not a broken connection")
	}
	require.NoError(t, <-ended, "cancelled calls are not an error")
	require.ErrorIs(t, <-served, http.ErrServerClosed)
	require.NoError(t, srv.Close())
}

// status returns the status of a request that begins a call or a stream.
func status(t *testing.T, web *http.Client, url string) int {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, url, nil)
	require.NoError(t, err)
	switch {
	case strings.HasSuffix(url, "/mcp"):
		r, err = http.NewRequest(http.MethodPost, url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/json")
	case strings.HasSuffix(url, "/ws"):
		for name, value := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-Websocket-Version": "13",
			"Sec-Websocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-Websocket-Protocol": "mcp"} {
			r.Header.Set(name, value)
		}
	}
	resp, err := web.Do(r)
	if err != nil {
		return 0
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

package routers

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/middleware/otelmcp"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

type clerk struct{ heard, begun, cancelled chan struct{} }

func (*clerk) Whoami(user *oauth.Principal) string { return user.Subject }

// Work reports progress, and ends when the client has got it.
func (d *clerk) Work(ctx context.Context, call *mcpkit.Call) (string, error) {
	call.Progress(1, 2, "half")
	select {
	case <-d.heard:
		return "done", nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// Wait ends when the client gives up.
func (d *clerk) Wait(ctx context.Context) {
	close(d.begun)
	<-ctx.Done()
	close(d.cancelled)
}

func serve(t *testing.T, h http.Handler) string {
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

func serveFiber(t *testing.T, app *fiber.App) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan error, 1)
	// Ends when the app is shut down.
	go func() { ended <- app.Listener(ln, fiber.ListenConfig{DisableStartupMessage: true}) }()
	t.Cleanup(func() {
		require.NoError(t, app.Shutdown())
		require.NoError(t, <-ended)
	})
	return "http://" + ln.Addr().String()
}

func TestServersWorkInEachRouter(t *testing.T) {
	for name, start := range map[string]func(t *testing.T, mcp http.Handler) string{
		"net/http": func(t *testing.T, mcp http.Handler) string { return serve(t, inNetHTTP(mcp)) },
		"chi":      func(t *testing.T, mcp http.Handler) string { return serve(t, inChi(mcp)) },
		"gin":      func(t *testing.T, mcp http.Handler) string { return serve(t, inGin(mcp)) },
		"fiber":    func(t *testing.T, mcp http.Handler) string { return serveFiber(t, inFiber(mcp)) },
	} {
		for _, version := range []protocol.Version{protocol.V20251125, protocol.V20260728} {
			t.Run(name+" "+string(version), func(t *testing.T) {
				d := &clerk{make(chan struct{}), make(chan struct{}), make(chan struct{})}
				srv, err := mcpkit.New(d, mcpkit.Authenticated(), mcpkit.Logger(slog.New(slog.DiscardHandler)))
				require.NoError(t, err)
				mcp := streamable.NewHandler(srv, &streamable.Options{Logger: slog.New(slog.DiscardHandler)})
				url := start(t, mcp) + "/mcp"
				t.Cleanup(mcp.Close) // before the router: it ends the streams

				_, err = client.Dial(t.Context(), url, client.Version(version))
				var status *client.StatusError
				require.True(t, errors.As(err, &status), "%v", err)
				require.Equal(t, http.StatusUnauthorized, status.Code)

				token := "Basic " + base64.StdEncoding.EncodeToString([]byte("ann:x"))
				c, err := client.Dial(t.Context(), url, client.Version(version), client.Header("Authorization", token))
				require.NoError(t, err)
				defer c.Close()
				user, err := client.Call[string](t.Context(), c, "whoami", nil)
				require.NoError(t, err)
				require.Equal(t, "ann", user)

				done, err := client.Call[string](t.Context(), c, "work", nil, client.OnProgress(func(*protocol.ProgressParams) { close(d.heard) }))
				require.NoError(t, err)
				require.Equal(t, "done", done)

				if name == "fiber" && version == protocol.V20260728 {
					return // fasthttp does not notice that a client has disconnected
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				// Ends when the call has begun.
				go func() {
					<-d.begun
					cancel()
				}()
				_, err = c.CallTool(ctx, "wait", nil)
				require.ErrorIs(t, err, context.Canceled)
				<-d.cancelled
			})
		}
	}
}

func TestCallsInFlightFinishWhenTheServerShutsDown(t *testing.T) {
	d := &clerk{heard: make(chan struct{})}
	srv, err := mcpkit.New(d, mcpkit.Authenticated(), mcpkit.Logger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	mcp := streamable.NewHandler(srv, nil)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := &http.Server{Handler: inNetHTTP(mcp), ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	// Ends when the server is shut down.
	go func() { served <- server.Serve(ln) }()
	token := "Basic " + base64.StdEncoding.EncodeToString([]byte("ann:x"))
	c, err := client.Dial(t.Context(), "http://"+ln.Addr().String()+"/mcp", client.Header("Authorization", token))
	require.NoError(t, err)
	defer c.Close()

	down := make(chan error, 1)
	done, err := client.Call[string](t.Context(), c, "work", nil, client.OnProgress(func(*protocol.ProgressParams) {
		// Ends when the call is over.
		go func() { down <- shutDown(t.Context(), mcp, server, srv) }()
		close(d.heard)
	}))
	require.NoError(t, err)
	require.Equal(t, "done", done)
	require.NoError(t, <-down)
	require.ErrorIs(t, <-served, http.ErrServerClosed)
}

func TestCallsAreSpansAtTheCollector(t *testing.T) {
	var exported testkit.Buffer
	collector := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(&exported, r.Body) }))
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector)
	t.Setenv("OTEL_SERVICE_NAME", "orders")
	shutdown, err := startTracing(t.Context())
	require.NoError(t, err)
	srv, err := mcpkit.New(nil, mcpkit.Name("orders", "1.0.0"))
	require.NoError(t, err)
	require.NoError(t, srv.Add(mcpkit.NewTool("now", time.Now)))
	srv.Use(otelmcp.Middleware())
	c, err := client.Dial(t.Context(), srv)
	require.NoError(t, err)
	_, err = c.CallTool(t.Context(), "now", nil)
	require.NoError(t, err)
	require.NoError(t, errors.Join(c.Close(), shutdown(t.Context())))
	require.Regexp(t, "(?s)orders.*tools/call now", exported.String())
}

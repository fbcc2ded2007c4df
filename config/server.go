package config

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/internal/httpserve"
	"github.com/mcpkit/mcpkit-go/middleware/healthz"
	"github.com/mcpkit/mcpkit-go/oauth/resource"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/sse"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
	"github.com/mcpkit/mcpkit-go/transport/websocket"
)

// server is a transport that serves the HTTP endpoints, the health checks and the metadata of auth.
type server struct {
	http    *HTTP
	timeout time.Duration // for shutting down
	guard   *resource.Guard
	login   resource.Login              // nil for none
	engine  engine                      // of the login
	tls     *tls.Config                 // nil: no TLS
	joined  atomic.Pointer[fleet.Fleet] // of the server, once it is served; nil if it has none
	logger  *slog.Logger

	onListen func(net.Addr) // for tests
}

// An engine is that of the server's fleet once it is served, which the fleet closes.
type engine struct{ fleet.Engine }

// Close implements [fleet.Engine].
func (*engine) Close() error { return nil }

// streamable returns the options of Streamable HTTP.
func (s *server) streamable() *streamable.Options {
	t := s.http
	return &streamable.Options{
		Path: t.Path, Stateless: t.Stateless, JSONOnly: t.JSONOnly, MaxBodyBytes: int64(t.MaxBody),
		MaxSessions: t.MaxSessions, AllowedOrigins: t.Origins, AllowedHosts: t.Hosts,
		KeepAlive: never(t.KeepAlive), Logger: s.logger, ShutdownTimeout: s.timeout, TrustedProxies: t.TrustedProxies,
	}
}

// endpoints returns the endpoints by their paths.
func (s *server) endpoints(h transport.Handler) map[string]httpserve.Handler {
	t := s.http
	all := map[string]httpserve.Handler{t.Path: streamable.NewHandler(h, s.streamable())}
	if t.SSE != "" {
		all[t.SSE] = sse.NewHandler(h, &sse.Options{
			MaxBodyBytes: int64(t.MaxBody), MaxSessions: t.MaxSessions, SessionIdle: never(t.SessionIdle),
			AllowedOrigins: t.Origins, AllowedHosts: t.Hosts, TrustedProxies: t.TrustedProxies,
			KeepAlive: never(t.KeepAlive), Logger: s.logger, ShutdownTimeout: s.timeout,
		})
	}
	if t.WebSocket != "" {
		all[t.WebSocket] = websocket.NewHandler(h, &websocket.Options{
			MaxMessageBytes: int64(t.MaxBody), MaxConnections: t.MaxSessions, SessionIdle: never(t.SessionIdle),
			AllowedOrigins: t.Origins, AllowedHosts: t.Hosts, TrustedProxies: t.TrustedProxies,
			KeepAlive: never(t.KeepAlive), Logger: s.logger, ShutdownTimeout: s.timeout,
		})
	}
	return all
}

// Serve implements [transport.Transport].
func (s *server) Serve(ctx context.Context, h transport.Handler) error {
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.http.Addr)
	if err != nil {
		return fmt.Errorf("config: transport.http.addr: %w", err)
	}
	endpoints := s.endpoints(h)
	s.logger.Info("config: serving", "addr", ln.Addr().String(), "tls", s.tls != nil,
		"paths", slices.Sorted(maps.Keys(endpoints)))
	var checks []healthz.Check
	if member, ok := h.(interface{ Fleet() *fleet.Fleet }); ok && member.Fleet() != nil {
		s.joined.Store(member.Fleet())
		s.engine.Engine = member.Fleet().Engine()
		checks = append(checks, healthz.Fleet(member.Fleet().Health))
	}
	ready := healthz.New(checks...)
	errorLog := slog.NewLogLogger(s.logger.Handler(), slog.LevelDebug)
	srv := &http.Server{Handler: s.routes(endpoints, ready), ErrorLog: errorLog, TLSConfig: s.tls}
	if s.onListen != nil {
		s.onListen(ln.Addr())
	}
	for _, e := range endpoints {
		defer e.Close()
	}
	if s.login != nil {
		defer s.login.Close()
	}
	return httpserve.Run(ctx, ln, srv, func() {
		ready.Drain()
		time.Sleep(s.http.Drain) //nolint:forbidigo // the load balancer sends requests until it sees that /readyz fails
		bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.timeout)
		defer cancel()
		var end sync.WaitGroup
		defer end.Wait()
		for path, e := range endpoints { // because the HTTP server waits for their streams
			end.Go(func() {
				if err := e.Shutdown(bound); err != nil {
					s.logger.Warn("config: requests were cut off at the end", "path", path, "error", err)
				}
			})
		}
	})
}

// routes returns the handler of the server.
func (s *server) routes(endpoints map[string]httpserve.Handler, ready http.Handler) http.Handler {
	mux := http.NewServeMux()
	if s.guard != nil {
		s.guard.Mount(mux)
	}
	if s.login != nil {
		s.login.Mount(mux)
	}
	for path, e := range endpoints {
		var h http.Handler = e
		if s.guard != nil {
			h = s.guard.Wrap(h)
		}
		mux.Handle(path, h)
	}
	mux.Handle(streamable.CardPath(s.http.Path), endpoints[s.http.Path]) // without the guard
	if s.http.Health {
		mux.Handle("/livez", healthz.Live())
		mux.Handle("/readyz", ready)
	}
	return mux
}

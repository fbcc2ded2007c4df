package config

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
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

// named is a transport whose errors start with its key.
type named struct {
	key string
	transport.Transport
}

// Serve implements [transport.Transport].
func (n named) Serve(ctx context.Context, h transport.Handler) error {
	if err := n.Transport.Serve(ctx, h); err != nil {
		return fmt.Errorf("config: %s: %w", n.key, err)
	}
	return nil
}

// server is a transport that serves the HTTP endpoints, the health checks and the metadata of auth.
type server struct {
	http        *HTTP
	path        string
	timeout     time.Duration // for shutting down
	guard       *resource.Guard
	certificate *certificate // nil: no TLS
	proxies     []netip.Prefix
	joined      atomic.Pointer[fleet.Fleet] // of the server, once it is served; nil if it has none
	logger      *slog.Logger

	onListen func(net.Addr) // for tests
}

// Paths of the health checks.
const livePath, readyPath = "/livez", "/readyz"

// streamable returns the options of Streamable HTTP.
func (s *server) streamable() *streamable.Options {
	t := s.http
	return &streamable.Options{
		Path: s.path, Stateless: or(t.Stateless, false), JSONOnly: or(t.JSONOnly, false), MaxBodyBytes: int64(or(t.MaxBody, 0)),
		MaxSessions: or(t.MaxSessions, 0), SessionIdle: never(t.SessionIdle), AllowedOrigins: t.Origins, AllowedHosts: t.Hosts,
		KeepAlive: never(t.KeepAlive), Retry: or(t.Retry, 0), Logger: s.logger, ShutdownTimeout: s.timeout, TrustedProxies: s.proxies,
		MaxInFlight: or(t.MaxInFlight, 0), MaxInFlightTotal: or(t.MaxInFlightTotal, 0),
		MaxInFlightBytes: int64(or(t.MaxInFlightBytes, 0)), MaxInFlightBytesTotal: int64(or(t.MaxInFlightBytesTotal, 0)),
		MaxSubscriptions: or(t.MaxSubscriptions, 0), MaxSubscriptionsTotal: or(t.MaxSubscriptionsTotal, 0),
	}
}

// endpoints returns the endpoints by their paths.
func (s *server) endpoints(h transport.Handler) map[string]httpserve.Handler {
	t := s.http
	body, sessions := int64(or(t.MaxBody, 0)), or(t.MaxSessions, 0)
	calls, bytes := or(t.MaxInFlight, 0), int64(or(t.MaxInFlightBytes, 0))
	all := map[string]httpserve.Handler{s.path: streamable.NewHandler(h, s.streamable())}
	if t.SSE != "" {
		all[t.SSE] = sse.NewHandler(h, &sse.Options{
			MaxBodyBytes: body, MaxSessions: sessions, SessionIdle: never(t.SessionIdle), AllowedOrigins: t.Origins,
			AllowedHosts: t.Hosts, KeepAlive: never(t.KeepAlive), Logger: s.logger, ShutdownTimeout: s.timeout,
			TrustedProxies: s.proxies, MaxInFlight: calls, MaxInFlightBytes: bytes, WriteTimeout: or(t.WriteTimeout, 0),
		})
	}
	if t.WebSocket != "" {
		all[t.WebSocket] = websocket.NewHandler(h, &websocket.Options{
			MaxMessageBytes: body, MaxConnections: sessions, AllowedOrigins: t.Origins, AllowedHosts: t.Hosts,
			KeepAlive: never(t.KeepAlive), Logger: s.logger, ShutdownTimeout: s.timeout, SessionIdle: never(t.SessionIdle),
			TrustedProxies: s.proxies, MaxInFlight: calls, MaxInFlightBytes: bytes, MessageTimeout: never(t.MessageTimeout),
			WriteTimeout: or(t.WriteTimeout, 0),
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
	s.logger.InfoContext(ctx, "config: serving", "addr", ln.Addr().String(), "tls", s.certificate != nil, "paths", slices.Sorted(maps.Keys(endpoints)))
	f := fleetOf(h)
	s.joined.Store(f)
	ready := healthz.New(checks(f)...)
	srv := &http.Server{Handler: s.routes(endpoints, ready), ErrorLog: slog.NewLogLogger(s.logger.Handler(), slog.LevelDebug)}
	if s.certificate != nil {
		srv.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.certificate.get}
	}
	if s.onListen != nil {
		s.onListen(ln.Addr())
	}
	for _, e := range endpoints {
		defer e.Close()
	}
	return httpserve.Run(ctx, ln, srv, func() {
		ready.Drain()
		time.Sleep(or(s.http.Drain, 0)) // the load balancer sends requests until it sees that /readyz fails
		bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.timeout)
		defer cancel()
		s.shutdown(bound, endpoints)
	})
}

// shutdown closes the endpoints, because the HTTP server waits for their streams.
func (s *server) shutdown(ctx context.Context, endpoints map[string]httpserve.Handler) {
	var end sync.WaitGroup
	for path, e := range endpoints {
		end.Go(func() {
			if err := e.Shutdown(ctx); err != nil {
				s.logger.WarnContext(ctx, "config: requests were cut off at the end", "path", path, "error", err)
			}
		})
	}
	end.Wait()
}

// routes returns the handler of the server.
func (s *server) routes(endpoints map[string]httpserve.Handler, ready http.Handler) http.Handler {
	mux := http.NewServeMux()
	if s.guard != nil {
		s.guard.Mount(mux)
	}
	for path, e := range endpoints {
		var h http.Handler = e
		if s.guard != nil {
			h = s.guard.Wrap(h)
		}
		mux.Handle(path, h)
	}
	if or(s.http.Health, false) {
		mux.Handle(livePath, healthz.Live())
		mux.Handle(readyPath, ready)
	}
	return mux
}

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
	"time"

	"github.com/mcpkit/mcpkit-go/middleware/healthz"
	"github.com/mcpkit/mcpkit-go/oauth/resourceserver"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/sse"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
	"github.com/mcpkit/mcpkit-go/transport/websocket"
)

// named is a transport whose errors say which key it is of.
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

// server is a transport over HTTP with what stands beside the endpoint.
type server struct {
	http        *HTTP
	path        string
	timeout     time.Duration // of the shutdown
	guard       *resourceserver.Guard
	certificate *certificate // nil: no TLS
	proxies     []netip.Prefix
	logger      *slog.Logger

	onListen func(net.Addr) // of tests
}

// Limits of the HTTP server. Requests and streams have their own in the endpoints.
const (
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 40 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 64 << 10
)

// Where health is told.
const livePath, readyPath = "/livez", "/readyz"

// A binding is an endpoint.
type binding interface {
	http.Handler
	Shutdown(ctx context.Context) error
	Close()
}

// bindings are the endpoints by their paths.
func (s *server) bindings(h transport.Handler) map[string]binding {
	t := s.http
	body, sessions := int64(or(t.MaxBody, 0)), or(t.MaxSessions, 0)
	calls, bytes := or(t.MaxInFlight, 0), int64(or(t.MaxInFlightBytes, 0))
	all := map[string]binding{s.path: streamable.NewHandler(h, &streamable.Options{
		Stateless: or(t.Stateless, false), JSONOnly: or(t.JSONOnly, false), MaxBodyBytes: body, MaxSessions: sessions,
		SessionIdle: never(t.SessionIdle), AllowedOrigins: t.Origins, AllowedHosts: t.Hosts, KeepAlive: never(t.KeepAlive),
		Retry: or(t.Retry, 0), Logger: s.logger, ShutdownTimeout: s.timeout, TrustedProxies: s.proxies,
		MaxInFlight: calls, MaxInFlightTotal: or(t.MaxInFlightTotal, 0),
		MaxInFlightBytes: bytes, MaxInFlightBytesTotal: int64(or(t.MaxInFlightBytesTotal, 0)),
		MaxSubscriptions: or(t.MaxSubscriptions, 0), MaxSubscriptionsTotal: or(t.MaxSubscriptionsTotal, 0),
	})}
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
	endpoints := s.bindings(h)
	s.logger.InfoContext(ctx, "config: serving", "addr", ln.Addr().String(), "tls", s.certificate != nil, "paths", slices.Sorted(maps.Keys(endpoints)))
	ready := healthz.New()
	srv := &http.Server{
		Handler: s.routes(endpoints, ready), ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeaderBytes, ErrorLog: slog.NewLogLogger(s.logger.Handler(), slog.LevelDebug),
	}
	if s.onListen != nil {
		s.onListen(ln.Addr())
	}
	failed := make(chan error, 1)
	// Ends when the server is shut down.
	go func() { failed <- s.serve(srv, ln) }()
	select {
	case err := <-failed:
		for _, e := range endpoints {
			e.Close()
		}
		return err
	case <-ctx.Done():
	}
	ready.Drain()
	wait(or(s.http.Drain, 0), failed) // the load balancer looks at /readyz now and then, and sends requests until it has
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.timeout)
	defer cancel()
	s.shutdown(bound, endpoints)
	// bound may be over by now, and what was answered last has to be sent.
	last, cancelLast := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancelLast()
	if err := srv.Shutdown(last); err != nil {
		_ = srv.Close()
	}
	return nil
}

// serve takes requests from ln.
func (s *server) serve(srv *http.Server, ln net.Listener) error {
	if s.certificate == nil {
		return srv.Serve(ln)
	}
	srv.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.certificate.get}
	return srv.ServeTLS(ln, "", "")
}

// shutdown ends the endpoints, whose streams the HTTP server would wait for.
func (s *server) shutdown(ctx context.Context, endpoints map[string]binding) {
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

// wait lets d pass, but for what ends before.
func wait(d time.Duration, failed chan error) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case err := <-failed:
		failed <- err
	}
}

// routes are what the server answers.
func (s *server) routes(endpoints map[string]binding, ready http.Handler) http.Handler {
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

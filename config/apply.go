package config

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/middleware"
	"github.com/mcpkit/mcpkit-go/middleware/healthz"
	"github.com/mcpkit/mcpkit-go/oauth/jwtverify"
	"github.com/mcpkit/mcpkit-go/oauth/resourceserver"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/stdio"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

// said calls f with what v points to, if it was said.
func said[T any](v *T, f func(T)) {
	if v != nil {
		f(*v)
	}
}

// or is what v points to, and otherwise what was not said means.
func or[T any](v *T, unsaid T) T {
	if v != nil {
		return *v
	}
	return unsaid
}

// never makes 0, which in a file means none or for ever, what it is for options: less than 0.
func never(d *time.Duration) time.Duration {
	if d != nil && *d == 0 {
		return -1
	}
	return or(d, 0)
}

// Logger is what log says, and otherwise when nothing is said.
func (c *Config) Logger(otherwise *slog.Logger) *slog.Logger {
	if c.Log == (Log{}) {
		return otherwise
	}
	opts := &slog.HandlerOptions{Level: or(c.Log.Level, slog.LevelInfo)}
	if c.Log.Format == "json" {
		return slog.New(slog.NewJSONHandler(os.Stderr, opts))
	}
	return slog.New(slog.NewTextHandler(os.Stderr, opts))
}

// Options are the options of mcpkit.New that server, log and auth say. Given after those of code they hold.
func (c *Config) Options() []mcpkit.Option {
	var opts []mcpkit.Option
	add := func(o mcpkit.Option) { opts = append(opts, o) }
	s := &c.Server
	if s.Name != "" {
		add(mcpkit.Name(s.Name, s.Version))
	}
	if s.Instructions != "" {
		add(mcpkit.Instructions(s.Instructions))
	}
	said(s.PageSize, func(n int) { add(mcpkit.PageSize(n)) })
	said(s.ListTTL, func(d time.Duration) { add(mcpkit.ListTTL(d)) })
	said(s.ToolTimeout, func(d time.Duration) { add(mcpkit.ToolTimeout(d)) })
	said(s.MaxResultBytes, func(n Size) { add(mcpkit.MaxResultBytes(int(n))) })
	if or(s.ExposeErrors, false) {
		add(mcpkit.ExposeErrors())
	}
	if or(s.Repair, false) {
		add(mcpkit.Repair())
	}
	if or(s.StepUp, false) {
		add(mcpkit.StepUp())
	}
	if len(s.TrustLocal) > 0 {
		add(mcpkit.TrustLocal(s.TrustLocal...))
	}
	if len(s.StateKeys) > 0 {
		keys := make([][]byte, len(s.StateKeys))
		for i, k := range s.StateKeys {
			keys[i] = k.value
		}
		add(mcpkit.StateKeys(keys[0], keys[1:]...))
	}
	if c.Auth != nil {
		add(mcpkit.Authenticated())
	}
	if c.Log != (Log{}) {
		add(mcpkit.Logger(c.Logger(nil)))
	}
	return opts
}

// Middlewares are what middleware says, the outermost first, and what has to be closed when no call needs it any more. The
// error is that the audit file cannot be written.
func (c *Config) Middlewares() (mw []mcpkit.Middleware, close func() error, err error) {
	m := &c.Middleware
	close = func() error { return nil }
	add := func(one mcpkit.Middleware) { mw = append(mw, one) }
	said(m.Logging, func(l Logging) {
		add(middleware.LoggingWith(middleware.LoggingOptions{
			Logger: c.Logger(nil), Arguments: or(l.Arguments, false), MaxArgumentBytes: int(or(l.MaxArgumentBytes, 0)),
		}))
	})
	if a := m.Audit; a != nil {
		log, err := middleware.OpenAuditFile(a.File, middleware.AuditFileOptions{Sync: or(a.Sync, false)})
		if err != nil {
			return nil, nil, fmt.Errorf("config: middleware.audit.file: %w", err)
		}
		close = log.Close
		add(middleware.Audit(log, middleware.AuditOptions{Begin: or(a.Begin, false), Arguments: or(a.Arguments, false)}))
	}
	if or(m.ErrorCodes, false) {
		add(middleware.ErrorCodes())
	}
	said(m.RateLimit, func(r RateLimit) { add(middleware.RateLimit(r.PerSecond, r.Burst)) })
	said(m.Concurrency, func(l Concurrency) { add(middleware.Concurrency(l.Limit, or(l.Queue, 0))) })
	said(m.Timeout, func(d time.Duration) { add(middleware.Timeout(d)) })
	said(m.ResultLimit, func(l ResultLimit) {
		limit := middleware.ResultLimit
		if or(l.Strict, false) {
			limit = middleware.ResultLimitStrict
		}
		add(limit(int(l.MaxBytes)))
	})
	said(m.Cache, func(k Cache) {
		add(middleware.Cache(k.TTL, middleware.CacheOptions{Entries: or(k.Entries, 0), MaxBytes: int(or(k.MaxBytes, 0))}))
	})
	said(m.Retry, func(r Retry) {
		add(middleware.Retry(middleware.RetryOptions{Attempts: or(r.Attempts, 0), Backoff: or(r.Backoff, 0)}))
	})
	return mw, close, nil
}

// New makes a server of a service, as mcpkit.New does, with all that was said put on; opts are those of code. The server is
// not served yet: what transport and auth say is for [Config.Serve] and [Config.Transports].
func (c *Config) New(service any, opts ...mcpkit.Option) (*mcpkit.Server, error) {
	mw, end, err := c.Middlewares()
	if err != nil {
		return nil, err
	}
	srv, err := mcpkit.New(service, slices.Concat(opts, c.Options())...)
	if err != nil {
		return nil, errors.Join(err, end())
	}
	srv.Use(mw...)
	// It is closed with the server, after every service that was registered later.
	return srv, srv.Register(&ending{end}, mcpkit.OptIn())
}

// ending closes what middleware needs.
type ending struct{ end func() error }

// Close closes it.
func (e *ending) Close() error { return e.end() }

// Serve makes a server and serves it as was said, until ctx ends or the program is told to stop; see mcpkit.Server.Serve.
func (c *Config) Serve(ctx context.Context, service any, opts ...mcpkit.Option) error {
	transports, err := c.Transports()
	if err != nil {
		return err
	}
	srv, err := c.New(service, opts...)
	if err != nil {
		return err
	}
	return srv.Serve(ctx, transports...)
}

// Transports are what transport says, with what auth says in front of HTTP; none when it says nothing, which serves on standard
// input and output. The error says what of auth is wrong.
func (c *Config) Transports() ([]transport.Transport, error) {
	var all []transport.Transport
	t := &c.Transport
	if or(t.Stdio, t.HTTP == nil) {
		all = append(all, stdio.New(nil))
	}
	if t.HTTP == nil {
		return all, nil
	}
	s := &server{http: t.HTTP, logger: c.Logger(slog.Default()), onListen: c.onListen}
	s.options = streamable.Options{
		Stateless: or(t.HTTP.Stateless, false), JSONOnly: or(t.HTTP.JSONOnly, false), MaxBodyBytes: int64(or(t.HTTP.MaxBody, 0)),
		MaxSessions: or(t.HTTP.MaxSessions, 0), SessionIdle: never(t.HTTP.SessionIdle), AllowedOrigins: t.HTTP.Origins,
		AllowedHosts: t.HTTP.Hosts, KeepAlive: never(t.HTTP.KeepAlive), Retry: or(t.HTTP.Retry, 0), Logger: s.logger,
		Path: t.HTTP.Path, ShutdownTimeout: or(t.HTTP.ShutdownTimeout, streamable.DefaultShutdownTimeout),
	}
	if s.options.Path == "" {
		s.options.Path = streamable.DefaultPath
	}
	if c.Auth != nil {
		guard, err := c.Auth.guard(s.logger, t.HTTP.Origins)
		if err != nil {
			return nil, err
		}
		s.guard = guard
	}
	return append(all, s), nil
}

// guard makes what stands in front of the endpoint.
func (a *Auth) guard(logger *slog.Logger, origins []string) (*resourceserver.Guard, error) {
	fetch := jwtverify.Fetch{InsecureLoopback: or(a.InsecureLoopback, false)}
	for i, text := range a.PrivateNetworks {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("config: auth.privateNetworks[%d]: %q is no network; write for example 10.1.0.0/16", i, text)
		}
		fetch.PrivateNetworks = append(fetch.PrivateNetworks, network)
	}
	verifier, err := jwtverify.New(jwtverify.Options{
		Issuer: a.Issuer, Audience: append([]string{a.Resource}, a.Audience...), JWKSURI: a.JWKSURI, Algorithms: a.Algorithms,
		RequireType: or(a.RequireType, false), Leeway: never(a.Leeway), Fetch: fetch, Logger: logger,
	})
	if err != nil {
		return nil, fmt.Errorf("config: auth: %w", err)
	}
	guard, err := resourceserver.New(resourceserver.Options{
		Resource: a.Resource, AuthorizationServers: []string{a.Issuer}, Verifier: verifier, Scopes: a.Scopes,
		ScopesSupported: a.ScopesSupported, Anonymous: or(a.Anonymous, false), AllowedOrigins: origins, Logger: logger,
	})
	if err != nil {
		return nil, fmt.Errorf("config: auth: %w", err)
	}
	return guard, nil
}

// server is a transport over HTTP with what stands beside the endpoint.
type server struct {
	http    *HTTP
	options streamable.Options
	guard   *resourceserver.Guard
	logger  *slog.Logger

	onListen func(net.Addr) // of tests
}

// Limits of the HTTP server. Requests and streams have their own in the endpoint.
const (
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 40 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 64 << 10
)

// Serve implements [transport.Transport].
func (s *server) Serve(ctx context.Context, h transport.Handler) error {
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.http.Addr)
	if err != nil {
		return fmt.Errorf("config: transport.http.addr: %w", err)
	}
	s.logger.InfoContext(ctx, "config: serving", "addr", ln.Addr().String(), "path", s.options.Path)
	endpoint := streamable.NewHandler(h, &s.options)
	ready := healthz.New()
	srv := &http.Server{
		Handler: s.routes(endpoint, ready), ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeaderBytes, ErrorLog: slog.NewLogLogger(s.logger.Handler(), slog.LevelDebug),
	}
	if s.onListen != nil {
		s.onListen(ln.Addr())
	}
	failed := make(chan error, 1)
	// Ends when the server is shut down.
	go func() { failed <- srv.Serve(ln) }()
	select {
	case err := <-failed:
		endpoint.Close()
		return err
	case <-ctx.Done():
	}
	ready.Drain()
	wait(or(s.http.Drain, 0), failed) // the load balancer looks at /readyz now and then, and sends requests until it has
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.options.ShutdownTimeout)
	defer cancel()
	if err := endpoint.Shutdown(bound); err != nil {
		s.logger.WarnContext(ctx, "config: requests were cut off at the end", "error", err)
	}
	if err := srv.Shutdown(bound); err != nil {
		_ = srv.Close()
	}
	return nil
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
func (s *server) routes(endpoint http.Handler, ready http.Handler) http.Handler {
	mux := http.NewServeMux()
	if s.guard != nil {
		endpoint = s.guard.Wrap(endpoint)
		s.guard.Mount(mux)
	}
	mux.Handle(s.options.Path, endpoint)
	if or(s.http.Health, false) {
		mux.Handle("/livez", healthz.Live())
		mux.Handle("/readyz", ready)
	}
	return mux
}

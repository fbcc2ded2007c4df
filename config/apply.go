package config

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/middleware"
)

// ifSet calls f with *v if v is set.
func ifSet[T any](v *T, f func(T)) {
	if v != nil {
		f(*v)
	}
}

// or returns *v, or otherwise if v is not set.
func or[T any](v *T, otherwise T) T {
	if v != nil {
		return *v
	}
	return otherwise
}

// never turns 0, which means "no limit" in a file, into -1, which means the same in options.
func never(d *time.Duration) time.Duration {
	if d != nil && *d == 0 {
		return -1
	}
	return or(d, 0)
}

// Logger returns the configured logger, or otherwise if log is not set.
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

// Options returns the options of mcpkit.New for server, fleet, log and auth. Pass them after the
// options in code, so that they override these. The engine of the fleet is opened by mcpkit.New; the
// program imports its package (see fleet.Open).
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
	ifSet(s.PageSize, func(n int) { add(mcpkit.PageSize(n)) })
	ifSet(s.ListTTL, func(d time.Duration) { add(mcpkit.ListTTL(d)) })
	ifSet(s.ToolTimeout, func(d time.Duration) { add(mcpkit.ToolTimeout(d)) })
	ifSet(s.MaxResultBytes, func(n Size) { add(mcpkit.MaxResultBytes(int(n))) })
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
	if c.Fleet != (EngineURL{}) {
		add(mcpkit.FleetFrom(c.openFleet))
	}
	if c.Auth != nil {
		add(mcpkit.Authenticated())
	}
	if c.Log != (Log{}) {
		add(mcpkit.Logger(c.Logger(nil)))
	}
	return opts
}

// Middlewares returns the configured middleware, outermost first, and a function that closes it
// after the last call. It returns an error if the audit file cannot be opened.
func (c *Config) Middlewares() (mw []mcpkit.Middleware, close func() error, err error) {
	m := &c.Middleware
	close = func() error { return nil }
	add := func(one mcpkit.Middleware) { mw = append(mw, one) }
	ifSet(m.Logging, func(l Logging) {
		var opts []middleware.LoggingOption
		if or(l.Arguments, false) {
			opts = append(opts, middleware.LogArguments(int(or(l.MaxArgumentBytes, 0))))
		}
		add(middleware.Logging(c.Logger(nil), opts...))
	})
	if a := m.Audit; a != nil {
		file, err := os.OpenFile(string(a.File), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return nil, nil, fmt.Errorf("config: middleware.audit.file: %w", err)
		}
		close = file.Close
		var opts []middleware.AuditOption
		if or(a.Begin, false) {
			opts = append(opts, middleware.AuditBegin())
		}
		if or(a.Arguments, false) {
			opts = append(opts, middleware.AuditArguments())
		}
		add(middleware.Audit(slog.NewJSONHandler(file, nil), opts...))
	}
	if or(m.ErrorCodes, false) {
		add(middleware.ErrorCodes())
	}
	ifSet(m.RateLimit, func(r RateLimit) { add(middleware.RateLimit(r.PerSecond, r.Burst)) })
	ifSet(m.Concurrency, func(l Concurrency) { add(middleware.Concurrency(l.Limit)) })
	ifSet(m.Timeout, func(d time.Duration) { add(middleware.Timeout(d)) })
	ifSet(m.ResultLimit, func(l ResultLimit) {
		var opts []middleware.ResultLimitOption
		if or(l.NoTruncation, false) {
			opts = append(opts, middleware.NoTruncation())
		}
		add(middleware.ResultLimit(int(l.MaxBytes), opts...))
	})
	ifSet(m.Cache, func(k Cache) {
		add(middleware.Cache(k.TTL, middleware.CacheEntries(or(k.Entries, 0)), middleware.CacheBytes(int(or(k.MaxBytes, 0)))))
	})
	return mw, close, nil
}

// New returns a server for a service, as mcpkit.New does, with the configured options and
// middleware. opts are the options in code. New does not apply transport and auth; see
// [Config.Serve] and [Config.Transports].
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
	// Registered first, so that it closes after every later service.
	return srv, srv.Register(&ending{end}, mcpkit.OptIn())
}

// An ending closes the middleware with the server.
type ending struct{ end func() error }

func (e *ending) Close() error { return e.end() }

// Serve makes a server and serves it on the configured transports, until ctx ends or the program
// gets a signal to stop; see mcpkit.Server.Serve.
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

package config

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"time"

	"github.com/mcpkit/mcpkit-go/ext/catalog"
	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/middleware"
)

// or returns *v, or otherwise if v is not set.
func or[T any](v *T, otherwise T) T {
	if v != nil {
		return *v
	}
	return otherwise
}

// when returns all if a setting is set, and nothing otherwise.
func when[T any](set bool, all ...T) []T {
	if set {
		return all
	}
	return nil
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

// Options returns the options of mcpkit.New for server, fleet, log, auth, select and overrides. Pass them after the
// options in code, so that they override these. The engine of the fleet is opened by mcpkit.New; the
// program imports its package (see fleet.Open).
func (c *Config) Options() []mcpkit.Option {
	s := &c.Server
	opts := slices.Concat(
		when(s.Name != "", mcpkit.Name(s.Name, s.Version)),
		when(s.Instructions != "", mcpkit.Instructions(s.Instructions)),
		when(s.ToolTimeout != nil, mcpkit.ToolTimeout(or(s.ToolTimeout, 0))),
		when(s.ExposeErrors, mcpkit.ExposeErrors()),
		when(len(s.Lenient) > 0, mcpkit.Lenient(s.Lenient...)),
		when(s.StepUp, mcpkit.StepUp()),
		when(len(s.TrustLocal) > 0, mcpkit.TrustLocal(s.TrustLocal...)),
		when(c.Fleet.URL() != "", mcpkit.FleetFrom(c.openFleet)),
		when(c.Auth.Issuer != "", mcpkit.Authenticated()),
		when(c.Log != (Log{}), mcpkit.Logger(c.Logger(nil))),
		when(c.texts != nil, c.texts),
		when(!reflect.ValueOf(c.Select).IsZero(), catalog.Select(c.Select)),
	)
	if keys := c.stateKeys(); keys != nil {
		opts = append(opts, mcpkit.StateKeys(keys[0], keys[1:]...))
	}
	return opts
}

func (c *Config) stateKeys() (all [][]byte) {
	for _, k := range c.Server.StateKeys {
		all = append(all, k.value)
	}
	return all
}

// openFleet opens the engine.
func (c *Config) openFleet() (fleet.Engine, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return fleet.Open(ctx, c.Fleet.URL())
}

// Middlewares returns the configured middleware, outermost first. It returns an error if the audit
// file cannot be opened. The file stays open until the process ends.
func (c *Config) Middlewares() (mw []mcpkit.Middleware, err error) {
	m := &c.Middleware
	add := func(set bool, one func() mcpkit.Middleware) {
		if set {
			mw = append(mw, one())
		}
	}
	add(m.Logging, func() mcpkit.Middleware {
		return middleware.Logging(c.Logger(nil), when(m.LogArguments, middleware.LogArguments(0))...)
	})
	if m.Audit.File != "" {
		file, err := os.OpenFile(string(m.Audit.File), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return nil, fmt.Errorf("config: middleware.audit.file: %w", err)
		}
		withArguments := when(m.Audit.Arguments, middleware.AuditArguments())
		mw = append(mw, middleware.Audit(slog.NewJSONHandler(file, nil), withArguments...))
	}
	add(m.ErrorCodes, middleware.ErrorCodes)
	add(m.RateLimit.Burst > 0, func() mcpkit.Middleware {
		return middleware.RateLimit(m.RateLimit.PerSecond, m.RateLimit.Burst)
	})
	add(m.Concurrency > 0, func() mcpkit.Middleware { return middleware.Concurrency(m.Concurrency) })
	add(m.Timeout > 0, func() mcpkit.Middleware { return middleware.Timeout(m.Timeout) })
	add(m.MaxResult > 0, func() mcpkit.Middleware { return middleware.ResultLimit(int(m.MaxResult)) })
	add(m.Cache > 0, func() mcpkit.Middleware { return middleware.Cache(m.Cache) })
	return mw, nil
}

// New returns a server for a service, as mcpkit.New does, with the configured options and
// middleware. opts are the options in code. New does not apply transport and auth; see
// [Config.Serve] and [Config.Transports].
func (c *Config) New(service any, opts ...mcpkit.Option) (*mcpkit.Server, error) {
	mw, err := c.Middlewares()
	if err != nil {
		return nil, err
	}
	srv, err := mcpkit.New(service, slices.Concat(opts, c.Options())...)
	if err == nil {
		srv.Use(mw...)
	}
	return srv, err
}

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

package config

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/oauth/resource"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/stdio"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

// Transports returns the configured transports, with auth in front of HTTP. Without any, it returns
// standard input and output. The error describes mistakes of auth and of the certificate.
func (c *Config) Transports() ([]transport.Transport, error) {
	var all []transport.Transport
	t := &c.Transport
	logger := c.Logger(slog.Default())
	if or(t.Stdio.Enabled, t.HTTP.Addr == "" && t.Unix.Path == "") {
		opts := stream(t.Stdio.Framing, t.Stdio.MaxMessage, t.Stdio.ShutdownTimeout, logger)
		all = append(all, stdio.New(&opts))
	}
	if u := t.Unix; u.Path != "" {
		all = append(all, &unixSocket{string(u.Path), stream(u.Framing, u.MaxMessage, u.ShutdownTimeout, logger), c.onListen})
	}
	if len(all) == 0 && len(c.Server.TrustLocal) > 0 { // neither stdio nor a Unix socket
		logger.Warn("config: server.trustLocal has no effect, because no transport has local callers")
	}
	if t.HTTP.Addr == "" {
		return all, nil
	}
	s, err := c.web(logger)
	if err != nil {
		return nil, err
	}
	return append(all, s), nil
}

// Mounted returns the path and the options of Streamable HTTP, for a program that mounts the server in
// its own app:
//
//	path, opts, err := c.Mounted()
//	handler := echomcp.Mount(app, path, srv, echomcp.Streamable(opts))
//	err = app.Start(c.Transport.HTTP.Addr)
//
// The app listens and authenticates callers itself. The error names each setting that only
// [Config.Serve] and [Config.Transports] apply, and says what to do in the app instead.
func (c *Config) Mounted() (path string, opts *streamable.Options, err error) {
	t, http := &c.Transport, &c.Transport.HTTP
	var faults []error
	for _, refused := range []struct {
		key     string
		set     bool
		instead string
	}{
		{"transport.http.addr", http.Addr == "", "it is missing, and an app is reached over HTTP"},
		{"transport.stdio", or(t.Stdio.Enabled, false), instead + "serve it with Config.Transports"},
		{"transport.unix", t.Unix.Path != "", instead + "serve it with Config.Transports"},
		{"transport.http.sse", http.SSE != "", instead + "use echomcp.Wrap"},
		{"transport.http.websocket", http.WebSocket != "", instead + "use echomcp.Wrap"},
		{"transport.http.tls", http.TLS.Certificate != "", instead + "give the certificate to the app"},
		{"transport.http.health", http.Health, instead + "add healthz.Live and healthz.New to the app"},
		{"transport.http.drain", http.Drain != 0, instead + "wait before echomcp.Shutdown"},
		{"transport.http.sessionIdle", http.SessionIdle != nil, instead + "it is for HTTP+SSE and WebSockets: use echomcp.Wrap"},
		{"transport.http.shutdownTimeout", http.ShutdownTimeout != 0, instead + "give echomcp.Shutdown a deadline"},
		{"auth", c.Auth.Issuer != "", instead + "the app authenticates callers: use its middleware, or a resource.Guard"},
	} {
		if refused.set {
			faults = append(faults, fmt.Errorf("config: %s: %s", refused.key, refused.instead))
		}
	}
	s := &server{http: http, logger: c.Logger(slog.Default())}
	return http.Path, s.streamable(), errors.Join(faults...)
}

const instead = "it does not apply to a mounted server; "

// stream returns the options of a connection.
func stream(framing string, maxMessage Size, shutdownTimeout time.Duration, logger *slog.Logger) stdio.Options {
	return stdio.Options{
		MaxMessageBytes: int(maxMessage), DrainTimeout: shutdownTimeout, Logger: logger,
		Framing: map[string]stdio.Framing{"headers": stdio.ContentLength, "any": stdio.AnyFraming}[framing],
	}
}

// web returns the server over HTTP.
func (c *Config) web(logger *slog.Logger) (*server, error) {
	t := &c.Transport.HTTP
	s := &server{http: t, logger: logger, onListen: c.onListen}
	s.timeout = cmp.Or(t.ShutdownTimeout, 10*time.Second)
	if t.TLS.Certificate != "" {
		s.certificate = &certificate{files: t.TLS, logger: logger}
		if _, err := s.certificate.get(nil); err != nil {
			return nil, fmt.Errorf("config: transport.http.tls: %w", err)
		}
	}
	if c.Auth.Issuer != "" {
		var err error
		if s.guard, err = c.Auth.guard(logger, t.Origins, s.joined.Load); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// guard returns the guard of the endpoints. The fleet may be known later.
func (a *Auth) guard(logger *slog.Logger, origins []string, joined func() *fleet.Fleet) (*resource.Guard, error) {
	opts := resource.Options{
		Issuer: a.Issuer, Resource: a.Resource, Audience: a.Audience, Scopes: a.Scopes,
		ScopesSupported: a.ScopesSupported, Anonymous: a.Anonymous,
		JWKSURI: a.JWKSURI, Algorithms: a.Algorithms, AllowUntyped: a.AllowUntyped,
		AllowedOrigins: origins, Name: a.Name,
		PrivateNetworks: a.PrivateNetworks, InsecureLoopback: a.InsecureLoopback, Logger: logger,
	}
	if in := a.Introspection; in.Endpoint != "" {
		opts.Introspection = &resource.Introspection{Endpoint: in.Endpoint, ClientID: in.ClientID}
		opts.Introspection.ClientSecret = string(in.ClientSecret.value)
		opts.CacheTime = never(in.CacheTime)
	}
	if a.DPoP != "" {
		opts.DPoP = &resource.DPoP{Required: a.DPoP == "require", Fleet: joined}
	}
	guard, err := resource.New(opts)
	if err != nil {
		return nil, fmt.Errorf("config: auth: %w", err)
	}
	return guard, nil
}

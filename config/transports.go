package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"

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
	switch others := t.HTTP != nil || t.Unix != nil; {
	case t.Stdio == nil && !others:
		all = append(all, stdio.New(nil))
	case t.Stdio != nil && or(t.Stdio.Enabled, true):
		opts := t.Stdio.options(logger)
		all = append(all, stdio.New(&opts))
	}
	if u := t.Unix; u != nil {
		s := &unixSocket{path: string(u.Path), maxConnections: or(u.MaxConnections, 100), stream: u.options(logger), onListen: c.onListen}
		all = append(all, named{"transport.unix", s})
	}
	if len(all) == 0 && len(c.Server.TrustLocal) > 0 { // neither stdio nor a Unix socket
		logger.Warn("config: server.trustLocal has no effect, because no transport has local callers; set transport.stdio or transport.unix")
	}
	if t.HTTP == nil {
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
	t, http := &c.Transport, c.Transport.HTTP
	var faults []error
	if http == nil {
		faults = append(faults, errors.New("config: transport.http.addr: it is missing, and an app is reached over HTTP"))
		http = &HTTP{}
	}
	for _, refused := range []struct {
		key     string
		set     bool
		instead string
	}{
		{"transport.stdio", t.Stdio != nil && or(t.Stdio.Enabled, true), "serve it with Config.Transports"},
		{"transport.unix", t.Unix != nil, "serve it with Config.Transports"},
		{"transport.http.sse", http.SSE != "", "use echomcp.MountSSE"},
		{"transport.http.websocket", http.WebSocket != "", "use echomcp.MountWebSocket"},
		{"transport.http.tls", http.TLS != nil, "give the certificate to the app"},
		{"transport.http.health", or(http.Health, false), "add healthz.Live and healthz.New to the app"},
		{"transport.http.drain", http.Drain != nil, "wait before echomcp.Shutdown"},
		{"transport.http.shutdownTimeout", http.ShutdownTimeout != nil, "give echomcp.Shutdown a context with a deadline"},
		{"transport.http.messageTimeout", http.MessageTimeout != nil, "use echomcp.MountWebSocket"},
		{"transport.http.writeTimeout", http.WriteTimeout != nil, "use echomcp.MountSSE or echomcp.MountWebSocket"},
		{"auth", c.Auth != nil, "the app authenticates callers: use its middleware, or a resource.Guard"},
	} {
		if refused.set {
			faults = append(faults, fmt.Errorf("config: %s: it does not apply to a mounted server; %s", refused.key, refused.instead))
		}
	}
	if faults != nil {
		return "", nil, errors.Join(faults...)
	}
	s, err := c.web(c.Logger(slog.Default()))
	if err != nil {
		return "", nil, err
	}
	return s.path, s.streamable(), nil
}

// options returns the options of a connection.
func (s *Stream) options(logger *slog.Logger) stdio.Options {
	return stdio.Options{
		MaxMessageBytes: int(or(s.MaxMessage, 0)), MaxInFlight: or(s.MaxInFlight, 0), MaxInFlightBytes: int64(or(s.MaxInFlightBytes, 0)),
		MaxUnsentBytes: int64(or(s.MaxUnsent, 0)), WriteTimeout: never(s.WriteTimeout), DrainTimeout: or(s.ShutdownTimeout, 0),
		Framing: map[string]stdio.Framing{"headers": stdio.ContentLength, "any": stdio.AnyFraming}[s.Framing], Logger: logger,
	}
}

// web returns the server over HTTP.
func (c *Config) web(logger *slog.Logger) (*server, error) {
	t := c.Transport.HTTP
	s := &server{http: t, logger: logger, onListen: c.onListen, path: t.Path, timeout: or(t.ShutdownTimeout, streamable.DefaultShutdownTimeout)}
	if s.path == "" {
		s.path = streamable.DefaultPath
	}
	var err error
	if s.proxies, err = networks("transport.http.trustedProxies", t.TrustedProxies); err != nil {
		return nil, err
	}
	if t.TLS != nil {
		cert := &certificate{files: *t.TLS, logger: logger}
		if _, err := cert.get(nil); err != nil {
			return nil, fmt.Errorf("config: transport.http.tls: %w", err)
		}
		s.certificate = cert
	}
	if c.Auth != nil {
		guard, err := c.Auth.guard(logger, t.Origins, s.joined.Load)
		if err != nil {
			return nil, err
		}
		s.guard = guard
	}
	return s, nil
}

// guard returns the guard of the endpoints. The fleet may be known later.
func (a *Auth) guard(logger *slog.Logger, origins []string, joined func() *fleet.Fleet) (*resource.Guard, error) {
	opts := resource.Options{
		Issuer: a.Issuer, Resource: a.Resource, Audience: a.Audience, Scopes: a.Scopes,
		ScopesSupported: a.ScopesSupported, Anonymous: or(a.Anonymous, false),
		JWKSURI: a.JWKSURI, Algorithms: a.Algorithms, AllowUntyped: or(a.AllowUntyped, false),
		AllowedOrigins: origins, Name: a.Name, Documentation: a.Documentation, Policy: a.Policy, Terms: a.Terms,
		InsecureLoopback: or(a.InsecureLoopback, false), Logger: logger,
	}
	var err error
	if opts.PrivateNetworks, err = networks("auth.privateNetworks", a.PrivateNetworks); err != nil {
		return nil, err
	}
	if in := a.Introspection; in != nil {
		opts.Introspection = &resource.Introspection{Endpoint: in.Endpoint, ClientID: in.ClientID}
		if in.ClientSecret != nil {
			opts.Introspection.ClientSecret = string(in.ClientSecret.value)
		}
		opts.CacheTime = never(in.CacheTime)
	}
	if d := a.DPoP; d != nil {
		opts.DPoP = &resource.DPoP{Required: or(d.Required, false), Fleet: joined}
		if d.NonceKey != nil {
			opts.DPoP.NonceKey = d.NonceKey.value
		}
	}
	guard, err := resource.New(opts)
	if err != nil {
		return nil, fmt.Errorf("config: auth: %w", err)
	}
	return guard, nil
}

// networks parses the networks of the list at key.
func networks(key string, texts []string) ([]netip.Prefix, error) {
	var all []netip.Prefix
	for i, text := range texts {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("config: %s[%d]: "+notNetwork, key, i, text)
		}
		all = append(all, network)
	}
	return all, nil
}

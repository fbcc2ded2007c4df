package config

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/oauth/resource"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/stdio"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
	"github.com/mcpkit/mcpkit-go/transport/unix"
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
		all = append(all, &unix.Transport{
			Path: string(u.Path), Options: stream(u.Framing, u.MaxMessage, u.ShutdownTimeout, logger), OnListen: c.onListen,
		})
	}
	if t.HTTP.Addr == "" {
		return all, nil
	}
	timeout := cmp.Or(t.HTTP.ShutdownTimeout, 10*time.Second)
	s := &server{http: &t.HTTP, timeout: timeout, logger: logger, onListen: c.onListen}
	if t.HTTP.TLS.Certificate != "" {
		files := &certificate{files: t.HTTP.TLS, logger: logger}
		if _, err := files.get(nil); err != nil {
			return nil, fmt.Errorf("config: transport.http.tls: %w", err)
		}
		s.tls = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: files.get}
	}
	if err := c.protect(s); err != nil {
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
	refuse := func(set bool, key, why string) {
		if set {
			faults = append(faults, fmt.Errorf("config: %s: %s", key, why))
		}
	}
	refuse(http.Addr == "", "transport.http.addr", "it is missing, and an app is reached over HTTP")
	refuse(or(t.Stdio.Enabled, false), "transport.stdio", instead+"serve it with Config.Transports")
	refuse(t.Unix.Path != "", "transport.unix", instead+"serve it with Config.Transports")
	refuse(http.SSE != "", "transport.http.sse", instead+"use echomcp.Wrap")
	refuse(http.WebSocket != "", "transport.http.websocket", instead+"use echomcp.Wrap")
	refuse(http.TLS.Certificate != "", "transport.http.tls", instead+"give the certificate to the app")
	refuse(http.Health, "transport.http.health", instead+"add healthz.Live and healthz.New to the app")
	refuse(http.Drain != 0, "transport.http.drain", instead+"wait before echomcp.Shutdown")
	refuse(http.SessionIdle != nil, "transport.http.sessionIdle", instead+"it is for HTTP+SSE and WebSockets: use echomcp.Wrap")
	refuse(http.ShutdownTimeout != 0, "transport.http.shutdownTimeout", instead+"give echomcp.Shutdown a deadline")
	refuse(c.Auth.Issuer != "", "auth", instead+"the app authenticates callers: use its middleware, or a resource.Guard")
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

// protect makes the guard of the endpoints, and the login, if auth is set. The fleet may be known
// later.
func (c *Config) protect(s *server) (err error) {
	a := &c.Auth
	if a.Issuer == "" {
		return nil
	}
	opts := resource.Options{
		Issuer: a.Issuer, Resource: a.Resource, Audience: a.Audience, Scopes: a.Scopes,
		ScopesSupported: a.ScopesSupported, Anonymous: a.Anonymous,
		JWKSURI: a.JWKSURI, Algorithms: a.Algorithms, AllowUntyped: a.AllowUntyped,
		AllowedOrigins: s.http.Origins, Name: a.Name,
		PrivateNetworks: a.PrivateNetworks, InsecureLoopback: a.InsecureLoopback, Logger: s.logger,
	}
	if in := a.Introspection; in.Endpoint != "" {
		secret := string(in.ClientSecret.value)
		opts.Introspection = &resource.Introspection{Endpoint: in.Endpoint, ClientID: in.ClientID, ClientSecret: secret}
		opts.CacheTime = never(in.CacheTime)
	}
	if a.DPoP != "" || a.Login.Provider != "" {
		opts.DPoP = &resource.DPoP{Required: a.DPoP == "require", Fleet: s.joined.Load}
	}
	if l := &a.Login; l.Provider != "" {
		s.engine.Engine = fleet.NewMemory(fleet.MemoryOptions{})
		s.login, err = resource.NewLogin(resource.LoginOptions{
			Issuer: a.Issuer, Resource: a.Resource, Name: a.Name, Provider: l.Provider, At: l.At, ClientID: l.ClientID,
			ClientSecret: string(l.ClientSecret.value), Domains: l.Domains, Groups: l.Groups, Anyone: l.Anyone, Scopes: l.Scopes,
			Keys: c.stateKeys(), Engine: &s.engine, InsecureLoopback: a.InsecureLoopback, Logger: s.logger,
		})
		if err != nil {
			return fmt.Errorf("config: auth.login: %w", err)
		}
		own := s.login.ResourceOptions()
		opts.JWKS, opts.ScopesSupported, opts.Name = own.JWKS, own.ScopesSupported, own.Name
	}
	if s.guard, err = resource.New(opts); err != nil {
		return fmt.Errorf("config: auth: %w", err)
	}
	return nil
}

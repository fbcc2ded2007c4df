// Package httpserve holds what the HTTP transports share: an HTTP server with the limits that a
// public server needs and a graceful shutdown, reading of request bodies, and flushing through
// wrapped response writers.
package httpserve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/mcpkit/mcpkit-go/transport"
)

// A Handler is an HTTP handler of a transport.
type Handler interface {
	http.Handler

	// Shutdown lets calls in flight finish until ctx ends, and then acts like Close. It returns an
	// error if calls did not finish.
	Shutdown(ctx context.Context) error

	// Close cancels everything without waiting.
	Close()
}

// A Server is a transport that serves one Handler at one path. All fields except OnListen are
// required.
type Server struct {
	NewHandler      func(transport.Handler) Handler
	Name            string // of the transport, for errors and logs
	Addr            string // "127.0.0.1:8080"
	Path            string // other paths get 404
	ShutdownTimeout time.Duration
	AllowedHosts    []string // for the warning of a server that other machines can reach
	Logger          *slog.Logger
	OnListen        func(net.Addr) // called with the address once the server accepts requests
}

// Limits of the server. Reads of bodies and writes have their own deadlines.
const (
	readHeaderTimeout = 10 * time.Second                // time of the header of a request
	readTimeout       = readHeaderTimeout + BodyTimeout // for requests that are refused before their body is read
	idleTimeout       = 2 * time.Minute                 // time between two requests
)

// maxHeaderBytes limits the header of a request.
const maxHeaderBytes = 64 << 10

// Positive returns v if it is positive, or else otherwise. Most options follow this rule.
func Positive[N int | int64 | time.Duration](v, otherwise N) N {
	if v > 0 {
		return v
	}
	return otherwise
}

// Serve listens and serves h. When ctx ends, it lets requests in flight finish within
// ShutdownTimeout, cancels the rest, and returns nil. It implements [transport.Transport].
func (s *Server) Serve(ctx context.Context, h transport.Handler) error {
	if !strings.HasPrefix(s.Path, "/") {
		return fmt.Errorf("%s: path %q must begin with a slash", s.Name, s.Path)
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", s.Addr)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	handler := s.NewHandler(h)
	defer handler.Close()
	s.warnIfOpen(listener.Addr())
	if s.OnListen != nil {
		s.OnListen(listener.Addr())
	}
	server := &http.Server{Handler: s.at(handler), ErrorLog: slog.NewLogLogger(s.Logger.Handler(), slog.LevelWarn)}
	return Run(ctx, listener, server, func() {
		bound, cancel := context.WithTimeout(context.Background(), s.ShutdownTimeout)
		defer cancel()
		if err := handler.Shutdown(bound); err != nil {
			s.Logger.Warn(s.Name+": requests were cancelled at the end of the shutdown timeout", "timeout", s.ShutdownTimeout)
		}
	})
}

// Run serves on listener with the limits above, over TLS if server has a TLSConfig, and returns an
// error if listener fails. When ctx ends, it calls drain, which lets requests in flight finish, and
// returns nil. The listener stays open during drain: clients must still be able to respond to
// server requests.
func Run(ctx context.Context, listener net.Listener, server *http.Server, drain func()) error {
	server.ReadHeaderTimeout, server.ReadTimeout, server.IdleTimeout = readHeaderTimeout, readTimeout, idleTimeout
	server.MaxHeaderBytes = maxHeaderBytes
	// Requests in flight do not end with ctx.
	server.BaseContext = func(net.Listener) context.Context { return context.WithoutCancel(ctx) }
	failed := make(chan error, 1)
	// Ends when the server is shut down or its listener fails.
	go func() {
		if server.TLSConfig != nil {
			failed <- server.ServeTLS(listener, "", "")
			return
		}
		failed <- server.Serve(listener)
	}()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	drain()
	// Cancelled calls get a moment to respond.
	last, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if server.Shutdown(last) != nil {
		_ = server.Close()
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// warnIfOpen logs a warning if other machines can reach addr: Listen does not authenticate callers.
func (s *Server) warnIfOpen(addr net.Addr) {
	if tcp, ok := addr.(*net.TCPAddr); ok && !tcp.IP.IsLoopback() {
		s.Logger.Warn(s.Name+": other machines can reach this server, and it does not authenticate callers; mount its handler behind authentication, or listen on 127.0.0.1",
			"addr", addr.String(), "allowedHosts", s.AllowedHosts)
	}
}

// at serves h at the path of s and 404 elsewhere.
func (s *Server) at(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != s.Path {
			http.NotFound(w, r)
			return
		}
		h.ServeHTTP(w, r)
	})
}

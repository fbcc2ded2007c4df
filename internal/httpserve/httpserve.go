// Package httpserve is what the bindings over HTTP share of serving: an HTTP server with the limits that a public one
// needs and an end that lets requests finish, and flushing through whatever wraps a response writer.
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

// A Handler is what a binding serves.
type Handler interface {
	http.Handler

	// Shutdown lets what is in flight finish until ctx ends, and then does as Close does. The error says that it did
	// not finish.
	Shutdown(ctx context.Context) error

	// Close ends everything without waiting.
	Close()
}

// A Server serves one Handler at one path. All fields but OnListen are needed.
type Server struct {
	Name            string // of the binding, for what is said to the operator
	Addr            string // "127.0.0.1:8080"
	Path            string // what other paths there are is not found
	ShutdownTimeout time.Duration
	AllowedHosts    []string // for the warning of servers that listen beyond this machine
	Logger          *slog.Logger
	OnListen        func(net.Addr) // hears the address as soon as requests are taken
}

// Limits of the server. Requests and replies have deadlines of their own.
const (
	//limit:message time of the header of an HTTP request, for the Listen functions | the connection is closed
	readHeaderTimeout = 10 * time.Second
	readTimeout       = readHeaderTimeout + BodyTimeout // of requests that are refused before their body is read
	//limit:connection time between two HTTP requests, for the Listen functions | the connection is closed
	idleTimeout = 2 * time.Minute
)

// maxHeaderBytes is how long the header of a request may be.
//
//limit:message bytes of the header of an HTTP request, for the Listen functions | 431
const maxHeaderBytes = 64 << 10

// Positive returns v, or otherwise where v is not positive: the rule of most options.
func Positive[N int | int64 | time.Duration](v, otherwise N) N {
	if v > 0 {
		return v
	}
	return otherwise
}

// Listen returns a transport that serves what newHandler makes of a handler of messages, as [Server.Serve] does.
func Listen(s Server, newHandler func(transport.Handler) Handler) transport.Transport {
	return &listener{s, newHandler}
}

type listener struct {
	server     Server
	newHandler func(transport.Handler) Handler
}

// Serve implements [transport.Transport].
func (l *listener) Serve(ctx context.Context, h transport.Handler) error {
	return l.server.Serve(ctx, func() Handler { return l.newHandler(h) })
}

// Serve listens and serves the handler that makeHandler makes, once it listens, until ctx ends. It returns nil then,
// after the requests in flight finished or were cancelled at the end of ShutdownTimeout.
func (s *Server) Serve(ctx context.Context, makeHandler func() Handler) error {
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
	handler := makeHandler()
	httpServer := &http.Server{
		Handler:           s.at(handler),
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(s.Logger.Handler(), slog.LevelWarn),
		// Ends not with ctx but with what Shutdown decides: requests in flight may finish.
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	failed := make(chan error, 1)
	// Ends when the server is shut down or its listener fails.
	go func() { failed <- httpServer.Serve(listener) }()
	s.warnIfOpen(listener.Addr())
	if s.OnListen != nil {
		s.OnListen(listener.Addr())
	}
	select {
	case err := <-failed:
		handler.Close()
		return err
	case <-ctx.Done():
	}
	return s.stop(httpServer, handler, failed)
}

// warnIfOpen tells the operator that everyone who reaches addr may call the server: Listen asks nobody who they are.
func (s *Server) warnIfOpen(addr net.Addr) {
	if tcp, ok := addr.(*net.TCPAddr); ok && !tcp.IP.IsLoopback() {
		s.Logger.Warn(s.Name+": this server listens beyond this machine and authenticates nobody; mount its handler behind authentication, or listen on 127.0.0.1",
			"addr", addr.String(), "allowedHosts", s.AllowedHosts)
	}
}

// at serves h at the path and nothing else.
func (s *Server) at(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != s.Path {
			http.NotFound(w, r)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// stop lets requests finish within the bound. The handler goes first: while it drains, clients must still be
// able to answer what methods in flight ask them.
func (s *Server) stop(httpServer *http.Server, handler Handler, failed <-chan error) error {
	bound, cancel := context.WithTimeout(context.Background(), s.ShutdownTimeout)
	defer cancel()
	if err := handler.Shutdown(bound); err != nil {
		s.Logger.Warn(s.Name+": requests were cancelled at the end of the shutdown timeout", "timeout", s.ShutdownTimeout)
	}
	// What was cancelled just now gets a moment to be answered.
	last, cancelLast := context.WithTimeout(context.Background(), time.Second)
	defer cancelLast()
	if httpServer.Shutdown(last) != nil {
		_ = httpServer.Close()
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

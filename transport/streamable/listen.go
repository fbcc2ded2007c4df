package streamable

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

// Listen returns a transport that serves MCP over HTTP on addr ("127.0.0.1:8080"; ":8080" for all addresses of
// this machine, ":0" for a free port) at the path of opts, with an HTTP server of its own. The zero
// options serve.
//
// Its Serve returns nil when ctx ended, after the requests in flight finished or were cancelled at the end of
// Options.ShutdownTimeout.
func Listen(addr string, opts *Options) transport.Transport {
	return &server{addr: addr, opts: opts.withDefaults()}
}

type server struct {
	addr string
	opts Options
}

// Limits of the server that Listen makes. Requests and replies have deadlines of their own.
const (
	readHeaderTimeout = 10 * time.Second
	readTimeout       = readHeaderTimeout + bodyTimeout // of requests that are refused before their body is read
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 64 << 10
)

// Serve implements [transport.Transport].
func (s *server) Serve(ctx context.Context, h transport.Handler) error {
	if !strings.HasPrefix(s.opts.Path, "/") {
		return fmt.Errorf("streamable: path %q must begin with a slash", s.opts.Path)
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", s.addr)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	handler := NewHandler(h, &s.opts)
	httpServer := &http.Server{
		Handler:           s.at(handler),
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(s.opts.Logger.Handler(), slog.LevelWarn),
		// Ends not with ctx but with what Shutdown decides: requests in flight may finish.
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	failed := make(chan error, 1)
	// Ends when the server is shut down or its listener fails.
	go func() { failed <- httpServer.Serve(listener) }()
	if s.opts.OnListen != nil {
		s.opts.OnListen(listener.Addr())
	}
	select {
	case err := <-failed:
		handler.Close()
		return err
	case <-ctx.Done():
	}
	return s.stop(httpServer, handler, failed)
}

// at serves h at the path of the options and nothing else.
func (s *server) at(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != s.opts.Path {
			http.NotFound(w, r)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// stop lets requests finish within the bound. The handler goes first: while it drains, clients must still be
// able to answer what methods in flight ask them.
func (s *server) stop(httpServer *http.Server, handler *Handler, failed <-chan error) error {
	bound, cancel := context.WithTimeout(context.Background(), s.opts.ShutdownTimeout)
	defer cancel()
	if err := handler.Shutdown(bound); err != nil {
		s.opts.Logger.Warn("streamable: requests were cancelled at the end of the shutdown timeout", "timeout", s.opts.ShutdownTimeout)
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

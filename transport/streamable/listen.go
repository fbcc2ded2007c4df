package streamable

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/httpserve"
	"github.com/mcpkit/mcpkit-go/transport"
)

// Listen returns a transport that runs an HTTP server on addr ("127.0.0.1:8080", ":8080" for all
// addresses of this machine, or ":0" for a free port) at Options.Path. When ctx ends, its Serve
// lets requests in flight finish within Options.ShutdownTimeout, cancels the rest, and returns nil.
func Listen(addr string, opts *Options) transport.Transport {
	return &server{addr, opts.withDefaults()}
}

// A server serves one Handler at one path.
type server struct {
	addr string
	opts Options
}

// Serve implements [transport.Transport].
func (s *server) Serve(ctx context.Context, h transport.Handler) error {
	if !strings.HasPrefix(s.opts.Path, "/") {
		return fmt.Errorf("streamable: path %q must begin with a slash", s.opts.Path)
	}
	var config net.ListenConfig
	listener, err := config.Listen(context.WithoutCancel(ctx), "tcp", s.addr)
	if err != nil {
		return fmt.Errorf("streamable: %w; give Listen a free address, such as 127.0.0.1:8080", err)
	}
	handler := NewHandler(h, &s.opts)
	defer handler.Close()
	s.warnIfOpen(listener.Addr())
	if s.opts.OnListen != nil {
		s.opts.OnListen(listener.Addr())
	}
	srv := &http.Server{ErrorLog: slog.NewLogLogger(s.opts.Logger.Handler(), slog.LevelWarn)}
	srv.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != s.opts.Path && r.URL.Path != CardPath(s.opts.Path) {
			http.NotFound(w, r)
			return
		}
		handler.ServeHTTP(w, r)
	})
	return httpserve.Run(ctx, listener, srv, func() {
		bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.opts.ShutdownTimeout)
		defer cancel()
		if err := handler.Shutdown(bound); err != nil {
			s.opts.Logger.Warn("streamable: requests were cancelled at the end of the shutdown timeout", "timeout", s.opts.ShutdownTimeout)
		}
	})
}

// warnIfOpen logs a warning if other machines can reach addr: Listen does not authenticate callers.
func (s *server) warnIfOpen(addr net.Addr) {
	if tcp, ok := addr.(*net.TCPAddr); ok && !tcp.IP.IsLoopback() {
		s.opts.Logger.Warn("streamable: other machines can reach this server, and it does not authenticate callers; "+
			"mount its handler behind authentication, or listen on 127.0.0.1",
			"addr", addr.String(), "allowedHosts", s.opts.AllowedHosts)
	}
}

package streamable

import (
	"context"

	"github.com/mcpkit/mcpkit-go/internal/httpserve"
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

// Serve implements [transport.Transport].
func (s *server) Serve(ctx context.Context, h transport.Handler) error {
	listener := httpserve.Server{
		Name:            "streamable",
		Addr:            s.addr,
		Path:            s.opts.Path,
		ShutdownTimeout: s.opts.ShutdownTimeout,
		AllowedHosts:    s.opts.AllowedHosts,
		Logger:          s.opts.Logger,
		OnListen:        s.opts.OnListen,
	}
	return listener.Serve(ctx, func() httpserve.Handler { return NewHandler(h, &s.opts) })
}

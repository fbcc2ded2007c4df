package streamable

import (
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
	o := opts.withDefaults()
	return httpserve.Listen(httpserve.Server{
		Name:            "streamable",
		Addr:            addr,
		Path:            o.Path,
		ShutdownTimeout: o.ShutdownTimeout,
		AllowedHosts:    o.AllowedHosts,
		Logger:          o.Logger,
		OnListen:        o.OnListen,
	}, func(h transport.Handler) httpserve.Handler { return NewHandler(h, &o) })
}

package streamable

import (
	"github.com/mcpkit/mcpkit-go/internal/httpserve"
	"github.com/mcpkit/mcpkit-go/transport"
)

// Listen returns a transport that runs an HTTP server on addr ("127.0.0.1:8080", ":8080" for all
// addresses of this machine, or ":0" for a free port) at Options.Path. When ctx ends, its Serve
// lets requests in flight finish within Options.ShutdownTimeout, cancels the rest, and returns nil.
func Listen(addr string, opts *Options) transport.Transport {
	o := opts.withDefaults()
	return &httpserve.Server{
		NewHandler:      func(h transport.Handler) httpserve.Handler { return NewHandler(h, &o) },
		Name:            "streamable",
		Addr:            addr,
		Path:            o.Path,
		ShutdownTimeout: o.ShutdownTimeout,
		AllowedHosts:    o.AllowedHosts,
		Logger:          o.Logger,
		OnListen:        o.OnListen,
	}
}

package main

import (
	"context"
	"errors"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/sse"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
	"github.com/mcpkit/mcpkit-go/transport/websocket"
)

// endpoints serves three transports at one address: Streamable HTTP at /mcp, HTTP+SSE at /sse and
// WebSocket at /ws.
type endpoints struct {
	addr     string
	onListen func(net.Addr)
}

// endpoint is the handler of one transport.
type endpoint interface {
	http.Handler
	Shutdown(ctx context.Context) error
}

// shutdownTimeout is how long open requests may take when the server shuts down.
const shutdownTimeout = time.Minute

// Serve implements [transport.Transport].
func (e endpoints) Serve(ctx context.Context, h transport.Handler) error {
	handlers := map[string]endpoint{
		"/mcp": streamable.NewHandler(h, nil),
		"/sse": sse.NewHandler(h, nil),
		"/ws":  websocket.NewHandler(h, nil),
	}
	mux := http.NewServeMux()
	for path, handler := range handlers {
		mux.Handle(path, handler)
	}
	ln, err := net.Listen("tcp", e.addr)
	if err != nil {
		return err
	}
	web := &http.Server{Handler: mux, ReadHeaderTimeout: shutdownTimeout}
	failed := make(chan error, 1)
	// Ends with the shutdown below, or when the listener fails.
	go func() { failed <- web.Serve(ln) }()
	e.onListen(ln.Addr())
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	// Shut down the handlers first: web.Shutdown waits for their open streams.
	for path, handler := range handlers {
		if late := handler.Shutdown(stop); late != nil {
			log.Printf("%s: requests were aborted: %v", path, late)
		}
	}
	return errors.Join(err, web.Shutdown(stop))
}

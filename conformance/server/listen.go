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

// endpoints serves all that goes over HTTP at one address: Streamable HTTP at /mcp, HTTP+SSE at /sse
// and WebSockets at /ws.
type endpoints struct {
	addr     string
	onListen func(net.Addr)
}

// endpoint is what the handlers have in common.
type endpoint interface {
	http.Handler
	Shutdown(ctx context.Context) error
}

// patience is how long requests may take to finish at the end.
const patience = time.Minute

// Serve implements [transport.Transport].
func (b endpoints) Serve(ctx context.Context, h transport.Handler) error {
	handlers := map[string]endpoint{
		"/mcp": streamable.NewHandler(h, nil),
		"/sse": sse.NewHandler(h, nil),
		"/ws":  websocket.NewHandler(h, nil),
	}
	mux := http.NewServeMux()
	for path, handler := range handlers {
		mux.Handle(path, handler)
	}
	ln, err := net.Listen("tcp", b.addr)
	if err != nil {
		return err
	}
	web := &http.Server{Handler: mux, ReadHeaderTimeout: patience}
	failed := make(chan error, 1)
	// Ends with the shutdown below, or when the listener fails.
	go func() { failed <- web.Serve(ln) }()
	b.onListen(ln.Addr())
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	// Streams that are open keep web.Shutdown waiting: their handlers go first.
	for path, handler := range handlers {
		if late := handler.Shutdown(stop); late != nil {
			log.Printf("%s: requests were cut off: %v", path, late)
		}
	}
	return errors.Join(err, web.Shutdown(stop))
}

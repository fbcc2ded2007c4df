// Package httpserve holds what the HTTP transports share: running an HTTP server with the limits that
// a public server needs and a graceful shutdown, checks of Origin and Host, telling callers apart,
// reading of request bodies, and flushing through wrapped response writers.
package httpserve

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"time"
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

// Limits of the server. Reads of bodies and writes have their own deadlines.
const (
	readHeaderTimeout = 10 * time.Second                // time of the header of a request
	readTimeout       = readHeaderTimeout + BodyTimeout // for requests that are refused before their body is read
	idleTimeout       = 2 * time.Minute                 // time between two requests
)

// maxHeaderBytes limits the header of a request.
const maxHeaderBytes = 64 << 10

// Positive returns v if it is positive, or else otherwise. Most options follow this rule.
func Positive[N int | int64 | time.Duration](v, otherwise N) N { return cmp.Or(max(v, 0), otherwise) }

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

package echomcp

import (
	"context"
	"sync"
	"time"
)

// A Handler serves a mounted transport. [Mount], [MountSSE] and [MountWebSocket] return Handlers.
type Handler interface {
	// Shutdown rejects new requests and lets calls in flight finish until ctx ends.
	Shutdown(ctx context.Context) error
}

// An App serves the routes. *echo.Echo and *http.Server are Apps.
type App interface {
	Shutdown(ctx context.Context) error
	Close() error
}

// lastMoment is how long the app may take to send the last responses after ctx has ended.
const lastMoment = time.Second

// Shutdown shuts down the handlers that are mounted in an app, then the app. The app alone would
// wait for their streams, and would not close WebSockets. All handlers shut down at the same time.
// When ctx ends, they cancel the calls that are still in flight and respond to them, which takes up
// to two seconds; that is not an error. Shutdown returns an error if the app cannot close its
// listener or a connection.
func Shutdown(ctx context.Context, app App, handlers ...Handler) error {
	var ending sync.WaitGroup
	for _, h := range handlers {
		// Ends at most a second after ctx.
		ending.Go(func() { _ = h.Shutdown(ctx) }) // the error says that calls were cancelled
	}
	ending.Wait()
	// ctx may have ended, and the last responses must still be sent.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastMoment)
	defer cancel()
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) > lastMoment {
		last = ctx
	}
	if app.Shutdown(last) == nil {
		return nil
	}
	return app.Close()
}

package echomcp

import (
	"context"
	"sync"
	"time"
)

// A Handler is what [Mount], [MountSSE] and [MountWebSocket] return.
type Handler interface {
	// Shutdown refuses new requests and lets those in flight finish until ctx ends.
	Shutdown(ctx context.Context) error
}

// An App is what serves the routes: *echo.Echo and *http.Server are.
type App interface {
	Shutdown(ctx context.Context) error
	Close() error
}

// lastMoment is how long the app has to send the last responses when the time for shutting down is over.
const lastMoment = time.Second

// Shutdown ends an app and the handlers that are mounted in it. The handlers end first, since the app would wait for their streams and
// knows nothing of WebSockets. They end all at the same time, so that ctx bounds them together: when it ends, the calls that are still
// in flight are cancelled and answered, which takes up to two seconds more. That is not an error. The error is that of the app, when its
// listener or a connection cannot be closed.
func Shutdown(ctx context.Context, app App, handlers ...Handler) error {
	var ending sync.WaitGroup
	for _, h := range handlers {
		// Ends a second after ctx at the latest.
		ending.Go(func() { _ = h.Shutdown(ctx) }) // the error says that calls had to be cancelled
	}
	ending.Wait()
	// ctx may be over by now, and what the handlers answered last has to be sent.
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

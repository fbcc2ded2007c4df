package httpserve

import (
	"context"
	"io"
	"net/http"
	"net/netip"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/admission"
	"github.com/mcpkit/mcpkit-go/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// SpareConnection is how long a connection must be idle before it is evicted for a caller that
// holds as many connections as its owner.
const SpareConnection = time.Minute

// RetryConnection is the retry time for a client that was refused a connection.
const RetryConnection = 10 * time.Second

// Connections manages the connections of a handler where a connection is a session (HTTP+SSE,
// WebSockets): it admits them and shuts them down. Create it with [NewConnections].
type Connections struct {
	*Lifecycle
	places  *admission.Places
	trusted []netip.Prefix
}

// NewConnections returns the connections of a handler, at most max at once. [admission.Places]
// shares them among callers: principals, or else addresses as seen by the trusted proxies.
func NewConnections(max int, trusted []netip.Prefix) *Connections {
	return &Connections{Lifecycle: NewLifecycle(), places: admission.NewPlaces(max, SpareConnection), trusted: trusted}
}

// A Connection holds one place in [Connections]. It is a [Task].
type Connection struct {
	all   *Connections
	place admission.Place

	draining, cancelling, cutting context.Context
	drain, cancel, cut            context.CancelFunc
}

// Open returns a connection for r; the caller must close it. If there is no place, Open responds
// with 503 and returns nil.
func (c *Connections) Open(w http.ResponseWriter, r *http.Request) *Connection {
	x := &Connection{all: c}
	x.place.Value = x
	x.draining, x.drain = context.WithCancel(context.Background())
	x.cancelling, x.cancel = context.WithCancel(context.Background())
	x.cutting, x.cut = context.WithCancel(context.Background())
	if c.Begin(x) {
		evicted, ok := c.places.Take(&x.place, admission.Caller(r, c.trusted))
		if evicted != nil {
			// The evicted connection is drained and cancelled now, and cut after CancelGrace.
			old := evicted.Value.(*Connection)
			old.Drain()
			old.Cancel()
			time.AfterFunc(CancelGrace, old.Cut)
		}
		if ok {
			return x
		}
		c.End(x)
	}
	w.Header().Set("Retry-After", "10")
	http.Error(w, "too many connections, or shutting down; try again later", http.StatusServiceUnavailable)
	return nil
}

// Close releases the place.
func (x *Connection) Close() {
	x.all.places.Leave(&x.place)
	x.all.End(x)
	x.drain()
	x.cancel()
	x.cut()
}

// Drain lets the calls finish and then ends the connection.
func (x *Connection) Drain() { x.drain() }

// Cancel cancels the calls in flight.
func (x *Connection) Cancel() { x.cancel() }

// Cut closes the connection.
func (x *Connection) Cut() { x.cut() }

// Attach makes Drain call closeLink, which lets calls in flight finish, and makes Cut call cut. The
// function that it returns undoes that.
func (x *Connection) Attach(closeLink, cut func()) (detach func()) {
	// Each function runs at most once.
	drain := context.AfterFunc(x.draining, closeLink)
	cutter := context.AfterFunc(x.cutting, cut)
	return func() { drain(); cutter() }
}

// Cancelling returns a context that ends when the calls in flight must be cancelled.
func (x *Connection) Cancelling() context.Context { return x.cancelling }

// Handler wraps h so that the connection counts as in use during its calls.
func (x *Connection) Handler(h transport.Handler) transport.Handler { return used{h, x} }

type used struct {
	transport.Handler
	x *Connection
}

// ServeRPC implements [transport.Handler].
func (u used) ServeRPC(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
	defer u.x.use()()
	resp := u.Handler.ServeRPC(ctx, req, peer)
	if resp == nil || resp.Stream == nil {
		return resp
	}
	streamed := *resp
	streamed.Stream = func(w io.Writer) error {
		defer u.x.use()()
		return resp.Stream(w)
	}
	return &streamed
}

// use marks the connection as in use until release is called.
func (x *Connection) use() (release func()) {
	if x.all.places.Use(&x.place) {
		return x.release
	}
	return func() {}
}

func (x *Connection) release() { x.all.places.Release(&x.place) }

// SessionEnded implements [transport.SessionHandler].
func (u used) SessionEnded(s *transport.Session) {
	if sh, ok := u.Handler.(transport.SessionHandler); ok {
		sh.SessionEnded(s)
	}
}

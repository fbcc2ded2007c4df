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

// SpareConnection is how long a connection must have been idle to make room for another one of callers that hold as many.
const SpareConnection = time.Minute

// RetryConnection is when a client that was refused a connection is told to come back.
const RetryConnection = 10 * time.Second

// Connections are those of a handler whose connections are sessions, as with HTTP+SSE and WebSockets: who gets one, and how they
// end. Make them with [NewConnections].
type Connections struct {
	*Lifecycle
	places  *admission.Places
	trusted []netip.Prefix
}

// NewConnections returns the connections of a handler, of which there may be max. Their places are shared as
// [admission.Places] says, by principal, or else by address as proxies in trusted say.
func NewConnections(max int, trusted []netip.Prefix) *Connections {
	return &Connections{Lifecycle: NewLifecycle(), places: admission.NewPlaces(max, SpareConnection), trusted: trusted}
}

// A Connection is one place among [Connections]. It is a [Task].
type Connection struct {
	all   *Connections
	place admission.Place

	draining, cancelling, cutting context.Context
	drain, cancel, cut            context.CancelFunc
}

// Open returns a connection for r, to be closed. It returns nil when there is none to be had, which it has answered.
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

// Close gives up the place.
func (x *Connection) Close() {
	x.all.places.Leave(&x.place)
	x.all.End(x)
	x.drain()
	x.cancel()
	x.cut()
}

// Drain lets the link finish its calls and end.
func (x *Connection) Drain() { x.drain() }

// Cancel ends the contexts of the calls in flight.
func (x *Connection) Cancel() { x.cancel() }

// Cut ends the connection.
func (x *Connection) Cut() { x.cut() }

// Attach makes the handler's end close what runs on the connection, which lets calls in flight finish, and then cut
// it. The function that it returns takes that back.
func (x *Connection) Attach(closeLink, cut func()) (detach func()) {
	// Each runs at most once.
	drain := context.AfterFunc(x.draining, closeLink)
	cutter := context.AfterFunc(x.cutting, cut)
	return func() { drain(); cutter() }
}

// Cancelling ends when the calls in flight are to be cancelled.
func (x *Connection) Cancelling() context.Context { return x.cancelling }

// Handler returns h for the calls of this connection, which is in use while there are some.
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

// use marks the connection as in use until the function that it returns is called.
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

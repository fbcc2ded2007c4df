package httpserve

import (
	"context"
	"io"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/admission"
	"github.com/mcpkit/mcpkit-go/internal/conn"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
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

// A Wire is a [conn.Wire] with a [LastUse].
type Wire interface {
	conn.Wire
	IdleFor(d time.Duration) bool
}

// A LastUse is the time of the last message. A wire embeds it, and calls Touch for each message.
type LastUse struct{ nanoseconds atomic.Int64 } // since 1970

// Touch sets the time to now.
func (u *LastUse) Touch() { u.nanoseconds.Store(time.Now().UnixNano()) }

// IdleFor reports whether no message was read or written for d.
func (u *LastUse) IdleFor(d time.Duration) bool {
	return time.Since(time.Unix(0, u.nanoseconds.Load())) >= d
}

// Serve passes the messages on wire to h until the connection ends. Calls have the context values
// of r, which opened the connection. The connection ends when the credential of r expires, since
// the client has no way to send a new one, and when it has neither messages nor calls in flight for
// idle; a negative value means no limit. It uses cut to close the wire at once.
func (x *Connection) Serve(r *http.Request, wire Wire, h transport.Handler, o conn.Options, idle time.Duration, cut func()) error {
	o.Cancelling = x.cancelling
	link := conn.New(wire, used{h, x}, &o)
	// Each function runs at most once.
	defer context.AfterFunc(x.draining, link.Close)()
	defer context.AfterFunc(x.cutting, cut)()
	ctx, cancel := oauth.WithExpiry(context.WithoutCancel(r.Context()))
	defer cancel()
	if idle > 0 {
		// Ends with ctx.
		go endIdle(ctx, wire, link, idle)
	}
	return link.Serve(ctx)
}

// endIdle closes link when it has been idle for so long, or returns when ctx ends.
func endIdle(ctx context.Context, wire Wire, link *conn.Conn, idle time.Duration) {
	const parts = 8 // checks in that time
	tick := time.NewTicker(max(idle/parts, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if wire.IdleFor(idle) && link.Idle() {
			link.Close()
			return
		}
	}
}

// A used handler marks its connection as in use during calls.
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

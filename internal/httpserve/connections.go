package httpserve

import (
	"context"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/conn"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/transport"
)

// Connections manages the connections of a handler where a connection is a session (HTTP+SSE,
// WebSockets): it admits them and shuts them down. Create it with [NewConnections].
type Connections struct {
	*Lifecycle
	Memory  conn.Memory // that connections and their requests share
	max     int
	trusted []netip.Prefix

	mu   sync.Mutex
	open map[*Connection]struct{} // guarded by mu
}

// NewConnections returns the connections of a handler, at most max at once, which hold at most so
// many bytes in memory. A new one evicts the one that was idle longest. The trusted proxies say which
// addresses connections come from.
func NewConnections(max int, bytes int64, trusted []netip.Prefix) *Connections {
	return &Connections{Lifecycle: NewLifecycle(), Memory: conn.Memory{Max: bytes}, max: max, trusted: trusted, open: map[*Connection]struct{}{}}
}

// A Connection is one of [Connections].
type Connection struct {
	all    *Connections
	link   *conn.Conn // nil until Serve; guarded by Connections.mu
	cut    func()     // closes the wire; nil until Serve; guarded by Connections.mu
	calls  context.Context
	cancel context.CancelFunc // of calls
}

// Open returns a connection for a request; the caller must close it. If there are too many that are
// in use, Open responds with 503 and returns nil.
func (c *Connections) Open(w http.ResponseWriter) *Connection {
	if c.Begin() {
		x := &Connection{all: c}
		x.calls, x.cancel = context.WithCancel(c.Cancelling)
		if c.add(x) {
			return x
		}
		x.cancel()
		c.End()
	}
	w.Header().Set("Retry-After", "10")
	http.Error(w, "too many connections, or shutting down; try again later", http.StatusServiceUnavailable)
	return nil
}

// add adds x, in place of the connection that was idle longest if there are too many.
func (c *Connections) add(x *Connection) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.open) >= c.max {
		var oldest *Connection
		var longest time.Time
		for other := range c.open {
			if other.link != nil {
				if since, idle := other.link.IdleSince(); idle && (oldest == nil || since.Before(longest)) {
					oldest, longest = other, since
				}
			}
		}
		if oldest == nil {
			return false
		}
		delete(c.open, oldest)
		oldest.link.Close()
		oldest.cancel()
		time.AfterFunc(CancelGrace, oldest.cut)
	}
	c.open[x] = struct{}{}
	return true
}

// Close removes the connection.
func (x *Connection) Close() {
	x.all.mu.Lock()
	delete(x.all.open, x)
	x.all.mu.Unlock()
	x.all.End()
	x.cancel()
}

// Serve passes the messages on wire to h until the connection ends. Calls have the context values
// of r, which opened the connection. The connection ends when the credential of r expires, since
// the client has no way to send a new one, and when it has neither messages nor calls in flight for
// idle; a negative value means no limit. It uses cut to close the wire at once.
func (x *Connection) Serve(r *http.Request, wire conn.Wire, h transport.Handler, o conn.Options, idle time.Duration, cut func()) error {
	o.Cancelling, o.Memory = x.calls, &x.all.Memory
	link := conn.New(wire, h, &o)
	x.all.mu.Lock()
	x.link, x.cut = link, cut
	x.all.mu.Unlock()
	// Each function runs at most once.
	defer context.AfterFunc(x.all.Draining, link.Close)()
	defer context.AfterFunc(x.all.Cutting, cut)()
	values := transport.WithAddress(context.WithoutCancel(r.Context()), Address(r, x.all.trusted))
	ctx, cancel := oauth.WithExpiry(transport.WithPath(values, r.URL.Path))
	defer cancel()
	if idle > 0 {
		// Ends with ctx.
		go endIdle(ctx, link, idle)
	}
	return link.Serve(ctx)
}

// endIdle closes link when it has been idle for so long, or returns when ctx ends.
func endIdle(ctx context.Context, link *conn.Conn, idle time.Duration) {
	const parts = 8 // checks in that time
	tick := time.NewTicker(max(idle/parts, time.Millisecond))
	defer tick.Stop()
	for since, ok := link.IdleSince(); !ok || time.Since(since) < idle; since, ok = link.IdleSince() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
	link.Close()
}

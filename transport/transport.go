// Package transport is the seam between what carries messages and what understands them.
//
// A transport pushes: it calls [Handler.ServeRPC] for each request, and the answer is the return value,
// the way net/http calls its handlers. What the bindings share and the handler needs to know of them is
// here; the bindings themselves are the packages below this one.
package transport

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/mcpkit/mcpkit-go/jsonrpc"
)

// A Handler answers the requests of peers. Transports call it; mcpkit.Server is one.
//
// ServeRPC may be called concurrently. For a notification it returns nil. The ID of a response is the transport's to fill in.
// ctx ends when the peer no longer wants the answer, however its binding says so, or when the transport
// shuts down.
type Handler interface {
	ServeRPC(ctx context.Context, req *jsonrpc.Request, peer Peer) *jsonrpc.Response
}

// A SessionHandler is a [Handler] that wants to know when a session is over.
// Transports call SessionEnded once for each session that a ServeRPC of theirs has seen.
type SessionHandler interface {
	Handler
	SessionEnded(s *Session)
}

// A Peer is the way back to whoever sent the request being handled. Its methods may be called concurrently,
// but not after ServeRPC returned.
type Peer interface {
	// Notify sends n on the stream of the request being handled. A peer that is gone is no error:
	// what would have been sent is dropped, or kept for it to come back.
	Notify(ctx context.Context, n *jsonrpc.Request) error

	// Call asks the peer and waits for its answer; the ID of req is chosen by the transport.
	// Only legacy revisions allow it; elsewhere, and where there is no way back, the error is
	// [ErrNoServerRequests]. It calls [Sent] with ctx when req is on its way.
	Call(ctx context.Context, req *jsonrpc.Request) (*jsonrpc.Response, error)

	// Session is the legacy session that the request belongs to. It is nil where there is none:
	// on HTTP for modern requests and stateless handlers. On bindings where the connection is the
	// session (stdio, memory, WebSocket), it is never nil.
	Session() *Session

	// Header holds the header fields that came with the request; nil where the binding has none.
	Header() Header
}

// A StreamCloser is a [Peer] that can end the stream of the request being handled before its answer is there:
// the client comes back for the rest after about retry (Streamable HTTP of 2025-11-25, "polling").
// The error is [errors.ErrUnsupported] when this peer cannot come back.
type StreamCloser interface {
	CloseStream(retry time.Duration) error
}

// A Transport carries messages to h until ctx ends or there are no more peers.
// When ctx ends it lets the requests in flight finish within a bound of its own and then returns nil.
type Transport interface {
	Serve(ctx context.Context, h Handler) error
}

// ErrNoServerRequests says that this peer cannot be asked anything.
var ErrNoServerRequests = errors.New("transport: this peer takes no requests from the server")

// ErrClosed says that the peer or the transport is gone.
var ErrClosed = errors.New("transport: closed")

// A Header holds header fields by canonical name; it converts from and to http.Header.
type Header map[string][]string

// Get returns the first value of the field name, given in canonical form ("Mcp-Method"), or "".
func (h Header) Get(name string) string {
	if v := h[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// A SessionLink is how a binding reaches the client of a session outside any request.
type SessionLink interface {
	// Notify sends n, or keeps it within bounds for when the client listens. It never waits for a
	// slow client.
	Notify(ctx context.Context, n *jsonrpc.Request) error
}

// A Session is one legacy client's stay: what lives between its requests.
// The binding makes it; handler and binding share it. Safe for concurrent use.
type Session struct {
	id      string
	link    SessionLink
	version atomic.Pointer[string]
	state   atomic.Pointer[any]
}

// NewSession returns a session named id ("" where the connection is the session) whose client is reached by link.
func NewSession(id string, link SessionLink) *Session {
	return &Session{id: id, link: link}
}

// ID names the session on the wire; "" where the connection is the session.
func (s *Session) ID() string { return s.id }

// Notify sends n to the client outside any request.
func (s *Session) Notify(ctx context.Context, n *jsonrpc.Request) error { return s.link.Notify(ctx, n) }

// Version is the protocol revision agreed on by initialize; "" before that.
func (s *Session) Version() string {
	if v := s.version.Load(); v != nil {
		return *v
	}
	return ""
}

// SetVersion keeps the revision that initialize agreed on. The handler calls it before it answers.
func (s *Session) SetVersion(v string) { s.version.Store(&v) }

// State is what the handler keeps with the session; nil until SetState.
func (s *Session) State() any {
	if v := s.state.Load(); v != nil {
		return *v
	}
	return nil
}

// SetState keeps v with the session.
func (s *Session) SetState(v any) { s.state.Store(&v) }

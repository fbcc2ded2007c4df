// Package transport defines the interfaces between transports, which carry messages, and handlers,
// which understand them.
//
// A transport calls [Handler.ServeRPC] for each request and sends the response that it returns, as
// net/http does with its handlers. The transports themselves are the packages below this one.
package transport

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"sync/atomic"
	"time"

	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// A Handler answers the requests of clients. Transports call it; mcpkit.Server is one.
//
// ServeRPC may be called concurrently. It returns nil for a notification. The transport fills in
// the ID of the response. ctx ends when the client cancels the request or disconnects, or when the
// transport shuts down.
type Handler interface {
	ServeRPC(ctx context.Context, req *jsonrpc.Request, peer Peer) *jsonrpc.Response
}

// ServeAll serves h over several transports until one of them ends, which ends the others. It returns
// their errors when all have ended.
func ServeAll(ctx context.Context, h Handler, transports ...Transport) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan error, len(transports))
	for _, t := range transports {
		// Ends when the transport does, which cancel causes.
		go func() { results <- t.Serve(ctx, h) }()
	}
	var errs []error
	for range transports {
		errs = append(errs, <-results)
		cancel()
	}
	return errors.Join(errs...)
}

// A CardHandler is a [Handler] that describes itself to clients that have not connected to it.
type CardHandler interface {
	Handler

	// ServerCard returns the server card (SEP-2127) of a server with the URL, which may be "". The error
	// says why there is none.
	ServerCard(url string) ([]byte, error)
}

// A SessionHandler is a [Handler] that is notified when a session ends. The transport calls
// SessionEnded once for each session, even if no request came. It must not call the transport.
type SessionHandler interface {
	Handler
	SessionEnded(s *Session)
}

// A SessionStorer is a [SessionHandler] whose sessions over HTTP travel with their clients: the ID of
// a session is what initialize agreed on, sealed. So any replica of the program, and the same one
// after a restart, goes on with it. Its methods may be called concurrently.
type SessionStorer interface {
	SessionHandler

	// HasSessions reports whether the handler serves a version with sessions.
	HasSessions() bool

	// SealSession returns plain as bytes that only the program can read or make. OpenSession is its
	// inverse.
	SealSession(plain []byte) []byte
	OpenSession(sealed []byte) ([]byte, error)

	// Extensions returns the IDs of the extensions that a session keeps if the client has declared them.
	Extensions() []string

	// StoreSession returns the params of initialize with the version that was agreed on, and what the
	// client has changed since; nil for nothing.
	StoreSession(s *Session) (agreed, changes []byte)

	// RestoreSession sets the version and the state of a session from these, for a request with ctx.
	// It replaces what was restored before.
	RestoreSession(ctx context.Context, s *Session, agreed, changes []byte) error

	// SessionMissed notifies the client of whatever it may have missed while it listened to no
	// replica.
	SessionMissed(s *Session)
}

// A Peer reaches the sender of the request being handled. Its methods may be called concurrently,
// but not after ServeRPC has returned.
type Peer interface {
	// Notify sends n on the stream of the request being handled. Writing to a disconnected peer is
	// not an error: n is dropped, or kept until the peer resumes the stream.
	Notify(ctx context.Context, n *jsonrpc.Request) error

	// Call sends a request to the peer and waits for the response. The transport chooses the ID of
	// req. Only legacy versions allow server requests; otherwise, and if the request cannot reach
	// the peer, the error is [ErrNoServerRequests]. Call calls [Sent] with ctx once req is sent.
	Call(ctx context.Context, req *jsonrpc.Request) (*jsonrpc.Response, error)

	// Session returns the legacy session of the request. It is nil for modern requests and
	// stateless handlers over HTTP. Where the connection is the session (stdio, memory, WebSocket),
	// it is never nil.
	Session() *Session

	// Header returns the header fields that came with the request; nil if the transport has none.
	Header() Header
}

// A StreamCloser is a [Peer] that can close the stream of the request being handled before the
// response is ready. The client resumes the stream after about retry (Streamable HTTP of
// 2025-11-25, "polling"). The error is [errors.ErrUnsupported] if the client cannot resume the
// stream.
type StreamCloser interface {
	CloseStream(retry time.Duration) error
}

// A Reserver is a [Peer] of a transport that limits the bytes in memory.
type Reserver interface {
	// Reserve makes n the bytes that are reserved for the result of the request, and its encoding, until
	// it is sent. If there is no memory for them, the error is the response.
	Reserve(n int64) error
}

// A Transport passes messages to h until ctx ends or no peers are left. When ctx ends, it lets the
// requests in flight finish within its own time limit and then returns nil.
type Transport interface {
	Serve(ctx context.Context, h Handler) error
}

// ErrNoServerRequests is returned by [Peer.Call] if the server cannot send requests to the peer.
var ErrNoServerRequests = errors.New("transport: this peer takes no requests from the server")

// ErrClosed is returned if the peer has disconnected or the transport is closed.
var ErrClosed = errors.New("transport: closed")

type (
	addressKey struct{}
	pathKey    struct{}
)

// WithAddress returns ctx with the network address that limits of callers without a principal count
// for. Transports over a network set it for each request or connection.
func WithAddress(ctx context.Context, address string) context.Context {
	return context.WithValue(ctx, addressKey{}, address)
}

// Address returns the address that [WithAddress] set; "" if there is none.
func Address(ctx context.Context) string {
	address, _ := ctx.Value(addressKey{}).(string)
	return address
}

// WithPath returns ctx with the path of the URL of the HTTP request. Transports over HTTP set it.
func WithPath(ctx context.Context, path string) context.Context {
	return context.WithValue(ctx, pathKey{}, path)
}

// Path returns the path that [WithPath] set; "" if there is none.
func Path(ctx context.Context) string {
	path, _ := ctx.Value(pathKey{}).(string)
	return path
}

// A Header maps canonical names to the values of header fields. It converts from and to
// http.Header.
type Header map[string][]string

// Get returns the first value of the field name, given in canonical form ("Mcp-Method"), or "".
func (h Header) Get(name string) string {
	if v := h[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// A SessionLink reaches the client of a session outside any request. The transport implements it.
type SessionLink interface {
	// Notify sends n, or keeps it within limits until the client listens. It never waits for a slow
	// client.
	Notify(ctx context.Context, n *jsonrpc.Request) error
}

// A StoringLink is a [SessionLink] that stores what clients change in their sessions.
type StoringLink interface {
	SessionLink
	Change(ctx context.Context, f func()) error
}

// A Session holds what one legacy client keeps between its requests. The transport creates it and
// shares it with the handler. It is safe for concurrent use.
type Session struct {
	id      string
	digest  string
	link    SessionLink
	version atomic.Pointer[string]
	state   atomic.Pointer[any]
}

// NewSession returns a session with the ID, or "" if the connection is the session. link reaches its
// client.
func NewSession(id string, link SessionLink) *Session {
	s := &Session{id: id, link: link}
	if id != "" {
		sum := sha256.Sum256([]byte(id))
		s.digest = base64.RawURLEncoding.EncodeToString(sum[:])
	}
	return s
}

// ID returns the session ID on the wire; "" if the connection is the session. Whoever knows it may
// speak for a client without a principal, so logs show the Digest.
func (s *Session) ID() string { return s.id }

// Digest returns a name of the session that says nothing about its ID: 43 characters of A-Z, a-z,
// 0-9, "_" and "-"; "" if the connection is the session.
func (s *Session) Digest() string { return s.digest }

// Notify sends n to the client outside any request.
func (s *Session) Notify(ctx context.Context, n *jsonrpc.Request) error { return s.link.Notify(ctx, n) }

// Version returns the protocol version that initialize agreed on, or that of a modern request before it;
// "" before that.
func (s *Session) Version() string {
	if v := s.version.Load(); v != nil {
		return *v
	}
	return ""
}

// SetVersion stores the version. The handler calls it before it responds.
func (s *Session) SetVersion(v string) { s.version.Store(&v) }

// State returns the value stored by SetState; nil before that.
func (s *Session) State() any {
	if v := s.state.Load(); v != nil {
		return *v
	}
	return nil
}

// SetState stores v, a value of the handler, in the session.
func (s *Session) SetState(v any) { s.state.Store(&v) }

// Change calls f, which changes the state that the handler keeps in the session, and stores it if
// other replicas may serve the session. f may be called again, with the state that another replica
// stored meanwhile. The error is that of the store, or [ErrClosed] if the session has ended.
func (s *Session) Change(ctx context.Context, f func()) error {
	if l, ok := s.link.(StoringLink); ok {
		return l.Change(ctx, f)
	}
	f()
	return nil
}

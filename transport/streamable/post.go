package streamable

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/admission"
	"github.com/mcpkit/mcpkit-go/internal/httpserve"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// servePost handles one message or a batch. Methods run on this goroutine.
func (h *Handler) servePost(w http.ResponseWriter, r *http.Request) {
	acceptStream, refusal := negotiate(r.Header)
	if refusal != nil {
		httpserve.Discard(w, r)
		refusal.write(w)
		return
	}
	p := h.newPost(w, r, acceptStream)
	defer p.held.Close()
	body, refusal := p.readBody()
	if refusal != nil {
		httpserve.Discard(w, r)
		refusal.write(w)
		return
	}
	p.serveMessage(body)
}

// negotiate reports whether the client accepts a stream, or returns why the POST is refused.
func negotiate(header http.Header) (acceptStream bool, _ *refusal) {
	if !httpserve.IsJSON(header) {
		return false, refuse(http.StatusUnsupportedMediaType, jsonrpc.CodeInvalidRequest, "Content-Type must be application/json")
	}
	acceptJSON, acceptStream := httpserve.Accepts(header)
	if !acceptJSON {
		return false, refuse(http.StatusNotAcceptable, jsonrpc.CodeInvalidRequest, "Accept must list application/json and text/event-stream")
	}
	return acceptStream, nil
}

func (h *Handler) newPost(w http.ResponseWriter, r *http.Request, acceptStream bool) *post {
	r = r.WithContext(transport.WithAddress(r.Context(), admission.Address(r, h.opts.TrustedProxies)))
	return &post{h: h, w: w, r: r, rc: *http.NewResponseController(w), acceptStream: acceptStream,
		held: admission.Held{All: &h.bytes}}
}

// readBody reads the body, or returns why the POST is refused.
func (p *post) readBody() ([]byte, *refusal) {
	body, bad := httpserve.ReadBody(p.w, p.r, p.h.opts.MaxBodyBytes, &p.held)
	switch {
	case bad == nil:
		return body, nil
	case bad.Status == http.StatusServiceUnavailable:
		return nil, busy(bad.Text)
	default:
		return nil, refuse(bad.Status, jsonrpc.CodeInvalidRequest, "%s", bad.Text)
	}
}

// serveMessage handles the body of a POST.
func (p *post) serveMessage(body []byte) {
	if i := jsonx.SkipSpace(body, 0); i < len(body) && body[i] == '[' {
		p.serveBatch(body)
		return
	}
	msg, bad := jsonrpc.Decode(body)
	switch {
	case bad != nil:
		p.serveMalformed(msg, bad)
	case msg.Response != nil:
		p.serveResponse(msg.Response)
	case msg.Request.Method == protocol.MethodSubscriptionsListen && len(body) > maxListenBytes:
		refuse(http.StatusRequestEntityTooLarge, jsonrpc.CodeInvalidRequest, "body is larger than %d bytes", maxListenBytes).writeTo(p.w, msg.Request.ID)
	case msg.Request.Method == protocol.MethodSubscriptionsListen:
		closed, refusal := p.h.takeSlot(p.r)
		if refusal != nil {
			refusal.writeTo(p.w, msg.Request.ID)
			return
		}
		defer closed()
		p.serveRequest(msg.Request)
	default:
		p.serveRequest(msg.Request)
	}
}

// A post is one POST request.
type post struct {
	h            *Handler
	w            http.ResponseWriter
	r            *http.Request
	rc           http.ResponseController
	held         admission.Held // bytes that the POST holds in memory
	acceptStream bool
}

// serveRequest routes a request or notification by its version.
func (p *post) serveRequest(req *jsonrpc.Request) {
	modern := isModern(p.r.Header, req)
	if name := repeated(p.r.Header); name != "" {
		code := jsonrpc.CodeInvalidRequest
		if modern {
			code = protocol.CodeHeaderMismatch
		}
		refuse(http.StatusBadRequest, code, "header %s is repeated", name).writeTo(p.w, req.ID)
		return
	}
	switch {
	case modern:
		p.serveModern(req)
	case p.h.opts.Stateless:
		p.serveStateless(req)
	case req.Method == protocol.MethodInitialize && !req.IsNotification():
		p.serveInitialize(req)
	default:
		p.serveInSession(req)
	}
}

// serveModern handles a request of 2026-07-28 or later: it is cancelled when the client
// disconnects.
func (p *post) serveModern(req *jsonrpc.Request) {
	e := newExchange(p, nil)
	e.modern, e.listens = true, req.Method == protocol.MethodSubscriptionsListen
	p.serve(p.r.Context(), e, req)
}

// serveStateless handles a legacy request outside sessions.
func (p *post) serveStateless(req *jsonrpc.Request) {
	ctx, stop := lasting(p.r.Context())
	defer stop()
	e := newExchange(p, nil)
	p.serve(ctx, e, req)
}

// serve handles one request outside a session, or a notification.
func (p *post) serve(ctx context.Context, e *exchange, req *jsonrpc.Request) {
	ctx = e.begin(ctx)
	defer e.cancel(nil)
	defer e.abandon()
	end, ok := p.h.begin(e)
	if !ok {
		shuttingDown(p.w, req.ID)
		return
	}
	defer end()
	if req.IsNotification() {
		e.acknowledge(p.h.rpc.ServeRPC(ctx, req, silent{e}))
		return
	}
	e.sendResponse(ctx, complete(req, p.h.rpc.ServeRPC(ctx, req, e)))
}

// serveInitialize opens a session. The client learns of it only if initialize succeeds.
func (p *post) serveInitialize(req *jsonrpc.Request) {
	s := p.h.newSession("", nil)
	defer s.end() // all of it travels in its ID
	defer s.out.close()
	e := newExchange(p, s)
	ctx := e.begin(p.r.Context())
	defer e.cancel(nil)
	end, ok := p.h.begin(e)
	if !ok {
		shuttingDown(p.w, req.ID)
		return
	}
	defer end()
	// Only the response decides whether the header gets a session ID, so nothing may be sent
	// before.
	resp := complete(req, p.h.rpc.ServeRPC(ctx, req, silent{e}))
	if resp.Error == nil {
		agreed, _ := p.h.storer.StoreSession(s.Session)
		p.w.Header().Set(headerSession, p.h.sealSession(oauth.FromContext(p.r.Context()).Key(), agreed))
	}
	e.sendResponse(ctx, resp)
}

// serveInSession handles a legacy request in its session. It continues when the client disconnects,
// which may resume the stream.
func (p *post) serveInSession(req *jsonrpc.Request) {
	s, refusal := p.h.session(p.r)
	if refusal != nil {
		refusal.writeTo(p.w, req.ID)
		return
	}
	defer p.h.sessions.release(s)
	if req.IsNotification() && req.Method == protocol.NotificationCancelled {
		s.cancel(req)
		p.w.WriteHeader(http.StatusAccepted)
		return
	}
	ctx, stop := lasting(p.r.Context())
	defer stop()
	e := newExchange(p, s)
	if req.IsNotification() {
		p.serve(ctx, e, req)
		return
	}
	defer e.abandon()
	c, refusal := s.beginCall(ctx, req)
	if refusal != nil {
		refusal.writeTo(p.w, req.ID)
		return
	}
	defer c.End()
	e.entry, e.cancel = c, c.Cancel
	end, ok := p.h.begin(e)
	if !ok {
		shuttingDown(p.w, req.ID)
		return
	}
	defer end()
	e.sendResponse(c.Context(), endCall(c, p.h.rpc.ServeRPC(c.Context(), req, e)))
}

// serveMalformed refuses a malformed message. If it is a malformed response, the server request
// that it is for ends.
func (p *post) serveMalformed(msg jsonrpc.Message, bad *jsonrpc.Response) {
	if msg.Response != nil && !p.h.opts.Stateless && !modernHeader(p.r.Header) {
		if s, refusal := p.h.session(p.r); refusal == nil {
			s.ledger.Answer(msg.Response)
			p.h.sessions.release(s)
		}
	}
	writeBad(p.w, bad)
}

// serveResponse passes a response of the client to the server request that waits for it.
func (p *post) serveResponse(resp *jsonrpc.Response) {
	if modernHeader(p.r.Header) || p.h.opts.Stateless {
		refuse(http.StatusBadRequest, jsonrpc.CodeInvalidRequest, "a response needs a session; modern and stateless servers send no requests").write(p.w)
		return
	}
	s, refusal := p.h.session(p.r)
	if refusal != nil {
		refusal.write(p.w)
		return
	}
	defer p.h.sessions.release(s)
	if !s.ledger.Answer(resp) {
		if refusal := p.h.replica.answer(s, resp); refusal != nil {
			refusal.write(p.w)
			return
		}
	}
	p.w.WriteHeader(http.StatusAccepted)
}

// lasting returns a context with the values and the deadline of ctx that is not cancelled with it:
// only the program itself can have set a deadline.
func lasting(ctx context.Context) (context.Context, context.CancelFunc) {
	lasts := context.WithoutCancel(ctx)
	if deadline, ok := ctx.Deadline(); ok {
		return context.WithDeadline(lasts, deadline)
	}
	return lasts, func() {}
}

func shuttingDown(w http.ResponseWriter, id jsonrpc.ID) {
	busy("server is shutting down").writeTo(w, id)
}

// A silent Peer belongs to a request whose reply must not begin before its response.
type silent struct{ *exchange }

// Notify sends n on the stream that the client opened with GET. Outside sessions it drops n.
func (p silent) Notify(ctx context.Context, n *jsonrpc.Request) error {
	return p.notifyStandalone(ctx, n)
}

// Call returns [transport.ErrNoServerRequests].
func (p silent) Call(context.Context, *jsonrpc.Request) (*jsonrpc.Response, error) {
	return nil, transport.ErrNoServerRequests
}

// CloseStream returns [errors.ErrUnsupported].
func (p silent) CloseStream(time.Duration) error { return errors.ErrUnsupported }

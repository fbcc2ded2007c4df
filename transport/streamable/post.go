package streamable

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/httpserve"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/jsonrpc"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport"
)

// servePost takes one message, or a batch of them.
func (h *Handler) servePost(w http.ResponseWriter, r *http.Request) {
	if !isJSON(r.Header) {
		httpserve.Discard(w, r)
		refuse(http.StatusUnsupportedMediaType, jsonrpc.CodeInvalidRequest,
			"Content-Type must be application/json").write(w)
		return
	}
	acceptJSON, acceptStream := accepts(r.Header)
	if !acceptJSON {
		httpserve.Discard(w, r)
		refuse(http.StatusNotAcceptable, jsonrpc.CodeInvalidRequest,
			"Accept must list application/json and text/event-stream").write(w)
		return
	}
	body, refusal := h.readBody(w, r)
	if refusal != nil {
		httpserve.Discard(w, r)
		refusal.write(w)
		return
	}
	p := post{h: h, w: w, r: r, acceptStream: acceptStream}
	if i := jsonx.SkipSpace(body, 0); i < len(body) && body[i] == '[' {
		p.serveBatch(body)
		return
	}
	msg, bad := jsonrpc.Decode(body)
	switch {
	case bad != nil:
		p.serveMalformed(msg, bad)
	case msg.Response != nil:
		p.serveAnswer(msg.Response)
	case msg.Request.Method == protocol.MethodSubscriptionsListen && len(body) > maxListenBytes:
		tooLarge(maxListenBytes).writeTo(w, msg.Request.ID)
	default:
		p.serveRequest(msg.Request)
	}
}

// readBody reads the whole body, which is not kept in any pool: the message shares its memory.
func (h *Handler) readBody(w http.ResponseWriter, r *http.Request) ([]byte, *refusal) {
	limit := h.opts.MaxBodyBytes
	if r.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	// Without a deadline a client could hold the connection by sending nothing. Where the writer knows none
	// it is for the server around it to have one.
	rc := http.NewResponseController(w)
	timed := rc.SetReadDeadline(time.Now().Add(bodyTimeout)) == nil
	// The declared length is only a hint: a middleware may have decompressed the body, and what is
	// declared has not been sent yet. The byte beyond it is where the end is met.
	const trusted = 64 << 10
	hint := int64(512)
	if r.ContentLength >= 0 {
		hint = min(r.ContentLength, trusted) + 1
	}
	body := make([]byte, 0, hint)
	for {
		n, err := r.Body.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if int64(len(body)) > limit {
			return nil, tooLarge(limit)
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, unreadable(err)
		}
		if len(body) == cap(body) {
			body = append(body, 0)[:len(body)]
		}
	}
	if timed {
		_ = rc.SetReadDeadline(time.Time{})
	}
	return body, nil
}

func tooLarge(limit int64) *refusal {
	return refuse(http.StatusRequestEntityTooLarge, jsonrpc.CodeInvalidRequest, "body is larger than %d bytes", limit)
}

func unreadable(err error) *refusal {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return refuse(http.StatusRequestEntityTooLarge, jsonrpc.CodeInvalidRequest, "body is larger than this server takes")
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return refuse(http.StatusRequestTimeout, jsonrpc.CodeInvalidRequest, "body took longer than %v", bodyTimeout)
	}
	return refuse(http.StatusBadRequest, jsonrpc.CodeInvalidRequest, "body could not be read")
}

// A post is one POST whose body was read.
type post struct {
	h            *Handler
	w            http.ResponseWriter
	r            *http.Request
	acceptStream bool
}

// serveRequest routes a request or notification by its era, which for the binding is only a matter of framing.
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

// serveModern serves a request of 2026-07-28 and later: it ends when the client disconnects.
func (p *post) serveModern(req *jsonrpc.Request) {
	ctx, cancel := context.WithCancelCause(p.r.Context())
	e := &exchange{post: *p, call: call{cancel: cancel, listens: req.Method == protocol.MethodSubscriptionsListen}, modern: true}
	p.serve(ctx, e, req)
}

// serveStateless serves a legacy request that belongs to no session.
func (p *post) serveStateless(req *jsonrpc.Request) {
	ctx, cancel := lasting(p.r.Context())
	p.serve(ctx, &exchange{post: *p, call: call{cancel: cancel}}, req)
}

// serve runs one request, or notification, outside a session.
func (p *post) serve(ctx context.Context, e *exchange, req *jsonrpc.Request) {
	defer e.cancel(nil)
	if !p.h.begin(&e.call) {
		shuttingDown(p.w, req.ID)
		return
	}
	defer p.h.finish(&e.call)
	if req.IsNotification() {
		e.acknowledge(p.h.rpc.ServeRPC(ctx, req, e.silent()))
		return
	}
	defer e.abandon()
	e.finish(ctx, req, p.h.rpc.ServeRPC(ctx, req, e))
}

// serveInitialize opens a session, which exists for its client only when initialize succeeded.
func (p *post) serveInitialize(req *jsonrpc.Request) {
	ctx, cancel := context.WithCancelCause(p.r.Context())
	defer cancel(nil)
	s := p.h.newSession(ctx)
	e := &exchange{post: *p, call: call{cancel: cancel}, s: s}
	if !p.h.begin(&e.call) {
		shuttingDown(p.w, req.ID)
		return
	}
	defer p.h.finish(&e.call)
	// Whether the session goes into the header is known only by the answer, so that nothing may go before it.
	resp := p.h.rpc.ServeRPC(ctx, req, e.silent())
	if resp == nil || resp.Error != nil || p.r.Context().Err() != nil {
		p.h.sessions.end(s)
		e.finish(ctx, req, resp)
		return
	}
	if !p.h.sessions.add(s) {
		p.h.sessions.end(s)
		p.w.Header().Set("Retry-After", "60")
		refuse(http.StatusServiceUnavailable, jsonrpc.CodeInternalError, "too many sessions; try again later").writeTo(p.w, req.ID)
		return
	}
	defer p.h.sessions.release(s)
	p.w.Header().Set(headerSession, s.ID())
	e.finish(ctx, req, resp)
}

// serveInSession serves a legacy request that names its session. It goes on when the client disconnects,
// which may come back for the answer.
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
	ctx, cancel := lasting(p.r.Context())
	e := &exchange{post: *p, call: call{cancel: cancel}, s: s}
	if req.IsNotification() {
		p.serve(ctx, e, req)
		return
	}
	defer cancel(nil)
	if !p.h.begin(&e.call) {
		shuttingDown(p.w, req.ID)
		return
	}
	defer p.h.finish(&e.call)
	if !s.start(req.ID, &e.call) {
		refuse(http.StatusBadRequest, jsonrpc.CodeInvalidRequest, "id %s is in use by a request that is not answered yet", quote(req.ID.String())).
			writeTo(p.w, req.ID)
		return
	}
	defer s.finish(req.ID, &e.call)
	defer e.abandon()
	resp := p.h.rpc.ServeRPC(ctx, req, e)
	e.finish(ctx, req, s.finishWith(req.ID, &e.call, resp))
}

// serveMalformed refuses what is no message. Where it was meant as an answer, whoever waits for it learns of it.
func (p *post) serveMalformed(msg jsonrpc.Message, bad *jsonrpc.Response) {
	if msg.Response != nil && !p.h.opts.Stateless && !modernHeader(p.r.Header) {
		if s, refusal := p.h.session(p.r); refusal == nil {
			s.answer(msg.Response)
			p.h.sessions.release(s)
		}
	}
	writeBad(p.w, bad)
}

// serveAnswer takes the answer of a client to what the server asked.
func (p *post) serveAnswer(resp *jsonrpc.Response) {
	if modernHeader(p.r.Header) || p.h.opts.Stateless {
		refuse(http.StatusBadRequest, jsonrpc.CodeInvalidRequest, "a response without a session answers nothing").write(p.w)
		return
	}
	s, refusal := p.h.session(p.r)
	if refusal != nil {
		refusal.write(p.w)
		return
	}
	s.answer(resp)
	p.h.sessions.release(s)
	p.w.WriteHeader(http.StatusAccepted)
}

// lasting returns a context that carries what ctx does but does not end with it, save for a deadline: nobody
// but the program itself can have set one.
func lasting(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	deadline, ok := ctx.Deadline()
	lasting, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	if !ok {
		return lasting, cancel
	}
	timed, stop := context.WithDeadline(lasting, deadline)
	return timed, func(cause error) {
		cancel(cause)
		stop()
	}
}

func shuttingDown(w http.ResponseWriter, id jsonrpc.ID) {
	w.Header().Set("Retry-After", "1")
	refuse(http.StatusServiceUnavailable, jsonrpc.CodeInternalError, "server is shutting down").writeTo(w, id)
}

// silent is the peer of a request whose reply must not begin before its answer.
type silent struct{ *exchange }

func (e *exchange) silent() transport.Peer { return silent{e} }

// Notify sends n on the stream that the client opens by GET; without a session there is no such way.
func (p silent) Notify(ctx context.Context, n *jsonrpc.Request) error { return p.elsewhere(ctx, n) }

// Call has no way to ask.
func (p silent) Call(context.Context, *jsonrpc.Request) (*jsonrpc.Response, error) {
	return nil, transport.ErrNoServerRequests
}

// CloseStream has no stream to close.
func (p silent) CloseStream(time.Duration) error { return errors.ErrUnsupported }

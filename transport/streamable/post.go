package streamable

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/admission"
	"github.com/mcpkit/mcpkit-go/internal/httpserve"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/jsonrpc"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport"
)

// servePost takes one message, or a batch of them.
func (h *Handler) servePost(w http.ResponseWriter, r *http.Request) {
	if !httpserve.IsJSON(r.Header) {
		httpserve.Discard(w, r)
		refuse(http.StatusUnsupportedMediaType, jsonrpc.CodeInvalidRequest,
			"Content-Type must be application/json").write(w)
		return
	}
	acceptJSON, acceptStream := httpserve.Accepts(r.Header)
	if !acceptJSON {
		httpserve.Discard(w, r)
		refuse(http.StatusNotAcceptable, jsonrpc.CodeInvalidRequest,
			"Accept must list application/json and text/event-stream").write(w)
		return
	}
	p := &post{h: h, w: w, r: r, rc: *http.NewResponseController(w), acceptStream: acceptStream,
		account: admission.Account{Budget: h.bytes, Key: h.caller(r)}}
	defer p.account.Close()
	body, bad := httpserve.ReadBody(w, r, h.opts.MaxBodyBytes, &p.account)
	if bad != nil {
		httpserve.Discard(w, r)
		if bad.Status == http.StatusServiceUnavailable {
			w.Header().Set("Retry-After", "1")
		}
		refuse(bad.Status, bodyCode(bad), "%s", bad.Text).write(w)
		return
	}
	p.serveMessage(body)
}

// bodyCode is the code of the error for a body that was not read.
func bodyCode(bad *httpserve.BodyError) int {
	if bad.Status == http.StatusServiceUnavailable {
		return jsonrpc.CodeInternalError
	}
	return jsonrpc.CodeInvalidRequest
}

// serveMessage serves what a POST carries.
func (p *post) serveMessage(body []byte) {
	if i := jsonx.SkipSpace(body, 0); i < len(body) && body[i] == '[' {
		if place, ok := p.admit(nil, false); ok {
			defer place.giveBack()
			p.serveBatch(body)
		}
		return
	}
	msg, bad := jsonrpc.Decode(body)
	switch {
	case bad != nil:
		p.serveMalformed(msg, bad)
	case msg.Response != nil:
		p.serveAnswer(msg.Response)
	case msg.Request.Method == protocol.MethodSubscriptionsListen && len(body) > MaxListenBytes:
		refuse(http.StatusRequestEntityTooLarge, jsonrpc.CodeInvalidRequest, "body is larger than %d bytes", MaxListenBytes).writeTo(p.w, msg.Request.ID)
	case msg.Request.Method == protocol.NotificationCancelled:
		p.serveRequest(msg.Request) // which ends a call and begins none
	default:
		if place, ok := p.admit(msg.Request, msg.Request.Method == protocol.MethodSubscriptionsListen); ok {
			defer place.giveBack()
			p.serveRequest(msg.Request)
		}
	}
}

// A post is one POST.
type post struct {
	h            *Handler
	w            http.ResponseWriter
	r            *http.Request
	rc           http.ResponseController
	account      admission.Account // what the caller holds for it in memory
	acceptStream bool
	length       [1]string // of the reply, as its header field has it

	exchange exchange // set by newExchange; here so that the two are one piece of memory
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
	e := newExchange(p, nil)
	e.modern, e.listens = true, req.Method == protocol.MethodSubscriptionsListen
	p.serve(p.r.Context(), e, req)
}

// serveStateless serves a legacy request that belongs to no session.
func (p *post) serveStateless(req *jsonrpc.Request) {
	ctx, stop := lasting(p.r.Context())
	defer stop()
	e := newExchange(p, nil)
	p.serve(ctx, e, req)
}

// serve runs one request outside a session, or a notification.
func (p *post) serve(ctx context.Context, e *exchange, req *jsonrpc.Request) {
	ctx, e.cancel = context.WithCancelCause(ctx)
	defer e.cancel(nil)
	defer e.abandon()
	if !p.h.life.Begin(&e.call) {
		shuttingDown(p.w, req.ID)
		return
	}
	defer p.h.life.End(&e.call)
	if !e.modern {
		e.watch()
	}
	if req.IsNotification() {
		e.acknowledge(p.h.rpc.ServeRPC(ctx, req, e.silent()))
		return
	}
	e.finish(ctx, settled(req, p.h.rpc.ServeRPC(ctx, req, e)))
}

// serveInitialize opens a session, which exists for its client only when initialize succeeded.
func (p *post) serveInitialize(req *jsonrpc.Request) {
	ctx, cancel := context.WithCancelCause(p.r.Context())
	defer cancel(nil)
	s := p.h.newSession(ctx)
	e := newExchange(p, s)
	e.cancel = cancel
	if !p.h.life.Begin(&e.call) {
		shuttingDown(p.w, req.ID)
		return
	}
	defer p.h.life.End(&e.call)
	listed := false
	defer func() {
		if !listed {
			p.h.sessions.end(s) // also where the handler panics: it has seen the session
		}
	}()
	// Whether the session goes into the header is known only by the answer, so that nothing may go before it.
	resp := settled(req, p.h.rpc.ServeRPC(ctx, req, e.silent()))
	if resp.Error != nil || p.r.Context().Err() != nil {
		e.finish(ctx, resp)
		return
	}
	if listed = p.h.sessions.add(s, p.account.Key); !listed {
		p.refuseSession(req.ID)
		return
	}
	p.w.Header().Set(headerSession, s.ID())
	e.finish(ctx, resp)
}

// refuseSession answers an initialize whose session cannot be kept.
func (p *post) refuseSession(id jsonrpc.ID) {
	if p.h.isDraining() {
		shuttingDown(p.w, id)
		return
	}
	p.w.Header().Set("Retry-After", "60")
	refuse(http.StatusServiceUnavailable, jsonrpc.CodeInternalError, "too many sessions; try again later").writeTo(p.w, id)
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
		s.ledger.Cancel(req)
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
	c := &e.entry
	if refusal := s.begin(c, ctx, req); refusal != nil {
		refusal.writeTo(p.w, req.ID)
		return
	}
	defer c.End()
	e.cancel = c.CancelFunc()
	if !p.h.life.Begin(&e.call) {
		shuttingDown(p.w, req.ID)
		return
	}
	defer p.h.life.End(&e.call)
	e.watch()
	resp := p.h.rpc.ServeRPC(c.Context(), req, e)
	e.finish(c.Context(), settle(c, resp))
}

// serveMalformed refuses what is no message. Where it was meant as an answer, whoever waits for it learns of it.
func (p *post) serveMalformed(msg jsonrpc.Message, bad *jsonrpc.Response) {
	if msg.Response != nil && !p.h.opts.Stateless && !modernHeader(p.r.Header) {
		if s, refusal := p.h.session(p.r); refusal == nil {
			s.ledger.Answer(msg.Response)
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
	s.ledger.Answer(resp)
	p.h.sessions.release(s)
	p.w.WriteHeader(http.StatusAccepted)
}

// lasting returns a context that carries what ctx does but does not end with it, save for a deadline: nobody
// but the program itself can have set one.
func lasting(ctx context.Context) (context.Context, context.CancelFunc) {
	lasts := context.WithoutCancel(ctx)
	if deadline, ok := ctx.Deadline(); ok {
		return context.WithDeadline(lasts, deadline)
	}
	return lasts, func() {}
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

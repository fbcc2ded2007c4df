package streamable

import (
	"cmp"
	"net/http"

	"github.com/mcpkit/mcpkit-go/internal/admission"
	"github.com/mcpkit/mcpkit-go/internal/httpserve"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// A post is one POST request.
type post struct {
	timedWriter
	h            *Handler
	r            *http.Request
	held         admission.Held // bytes that the POST holds in memory
	acceptStream bool
}

// servePost handles one message or a batch. Methods run on this goroutine.
func (h *Handler) servePost(w http.ResponseWriter, r *http.Request) {
	p := &post{timedWriter: newTimedWriter(w), h: h, r: r, held: admission.Held{All: &h.bytes}}
	defer p.held.Close()
	body, refusal := p.receive()
	if refusal != nil {
		httpserve.Discard(w, r)
		writeError(w, refusal)
		return
	}
	p.serveMessage(body)
}

// receive reads the body, or returns why the POST is refused.
func (p *post) receive() ([]byte, *jsonrpc.Response) {
	if !httpserve.IsJSON(p.r.Header) {
		return nil, refuse(http.StatusUnsupportedMediaType, "Content-Type must be application/json")
	}
	acceptJSON, acceptStream := httpserve.Accepts(p.r.Header)
	if !acceptJSON {
		return nil, refuse(http.StatusNotAcceptable, "Accept must list application/json and text/event-stream")
	}
	p.acceptStream = acceptStream
	body, bad := httpserve.ReadBody(p.w, p.r, p.h.opts.MaxBodyBytes, &p.held)
	switch {
	case bad == nil:
		return body, nil
	case bad.Status == http.StatusServiceUnavailable:
		return nil, busy(bad.Text)
	default:
		return nil, refuse(bad.Status, "%s", bad.Text)
	}
}

// serveMessage handles the body of a POST.
func (p *post) serveMessage(body []byte) {
	if jsonx.Kind(jsonx.TrimSpace(body)) == '[' {
		p.serveBatch(body)
		return
	}
	msg, bad := jsonrpc.Decode(body)
	switch {
	case msg.Response != nil:
		p.serveResponse(msg.Response, bad)
	case bad != nil:
		writeError(p.w, bad)
	case msg.Request.Method == protocol.MethodSubscriptionsListen && len(body) > maxListenBytes:
		writeErrorTo(p.w, msg.Request,
			refuse(http.StatusRequestEntityTooLarge, "body is larger than %d bytes", maxListenBytes))
	case msg.Request.Method == protocol.MethodSubscriptionsListen:
		closed, refusal := p.h.takeSlot(p.r)
		if refusal != nil {
			writeErrorTo(p.w, msg.Request, refusal)
			return
		}
		defer closed()
		p.serveRequest(msg.Request)
	default:
		p.serveRequest(msg.Request)
	}
}

// serveRequest handles a request or notification by its version.
func (p *post) serveRequest(req *jsonrpc.Request) {
	e := &exchange{post: p, req: req, modern: isModern(p.r.Header, req), plain: p.h.opts.JSONOnly || req.IsNotification()}
	if name := repeated(p.r.Header); name != "" {
		refusal := refuse(http.StatusBadRequest, "header %s is repeated", name)
		if e.modern {
			refusal.Error.Code = protocol.CodeHeaderMismatch
		}
		writeErrorTo(p.w, req, refusal)
		return
	}
	switch {
	case e.modern || p.h.opts.Stateless:
		e.serve(e.reply)
	case req.Method == protocol.MethodInitialize && !req.IsNotification():
		e.initialize()
	default:
		e.serveInSession()
	}
}

// initialize opens a session. The client learns of it only if initialize succeeds.
func (e *exchange) initialize() {
	e.s = e.h.newSession("")
	defer e.s.end() // all of it travels in its ID
	// Only the response decides whether the header gets a session ID, so nothing may be sent before.
	e.plain = true
	e.serve(func(resp *jsonrpc.Response) {
		if resp.Error == nil {
			agreed, _ := e.h.storer.StoreSession(e.s.Session)
			e.w.Header().Set(protocol.HeaderSessionID, e.h.sealSession(oauth.FromContext(e.r.Context()).Key(), agreed))
		}
		e.reply(resp)
	})
}

// serveInSession handles a legacy request or notification in its session.
func (e *exchange) serveInSession() {
	s, refusal := e.h.session(e.r)
	if refusal != nil {
		writeErrorTo(e.w, e.req, refusal)
		return
	}
	defer e.h.sessions.release(s)
	if e.req.IsNotification() && e.req.Method == protocol.NotificationCancelled {
		s.cancel(e.req)
		e.w.WriteHeader(http.StatusAccepted)
		return
	}
	e.s = s
	e.serve(e.reply)
}

// serveResponse passes a response of the client to the server request that waits for it. If it is
// malformed, bad is why, and the server request ends with an error.
func (p *post) serveResponse(resp, bad *jsonrpc.Response) {
	refusal := bad
	if modernHeader(p.r.Header) || p.h.opts.Stateless {
		refusal = cmp.Or(bad, refuse(http.StatusBadRequest,
			"a response needs a session; modern and stateless servers send no requests"))
	} else if s, unknown := p.h.session(p.r); unknown != nil {
		refusal = cmp.Or(bad, unknown)
	} else {
		defer p.h.sessions.release(s)
		refusal = cmp.Or(bad, s.answer(resp))
	}
	if refusal != nil {
		writeError(p.w, refusal)
		return
	}
	p.w.WriteHeader(http.StatusAccepted)
}

package streamable

import (
	"net/http"

	"github.com/mcpkit/mcpkit-go/jsonrpc"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// A batch is what 2025-03-26 alone has: several messages in one POST. Its requests run one after the other on
// the goroutine of the POST, and its reply holds all their answers.
type batch struct {
	answers []*jsonrpc.Response // those that were there before the reply became a stream
}

// A batched request is in flight from the beginning, so that it can be cancelled before its turn.
type batched struct {
	call
	req *jsonrpc.Request
	run func()
}

// serveBatch takes several messages at once.
func (p *post) serveBatch(body []byte) {
	if name := repeated(p.r.Header); name != "" {
		refuse(http.StatusBadRequest, jsonrpc.CodeInvalidRequest, "header %s is repeated", name).write(p.w)
		return
	}
	var s *session
	if !p.h.opts.Stateless && field(p.r.Header, headerSession) != "" && !modernHeader(p.r.Header) {
		var refusal *refusal
		if s, refusal = p.h.session(p.r); refusal != nil {
			refusal.write(p.w)
			return
		}
		defer p.h.sessions.release(s)
	}
	if !p.mayBatch(s) {
		refuse(http.StatusBadRequest, jsonrpc.CodeInvalidRequest, "batches exist only in %s; send each message by itself", protocol.V20250326).write(p.w)
		return
	}
	if s == nil && !p.h.opts.Stateless {
		_, refusal := p.h.session(p.r)
		refusal.write(p.w)
		return
	}
	elements, _, bad := jsonrpc.Batch(body)
	if bad != nil {
		writeBad(p.w, bad)
		return
	}
	e := &exchange{post: *p, s: s, batch: &batch{}}
	e.cancel = func(error) {}
	defer e.abandon()
	var requests []*jsonrpc.Request
	for _, element := range elements {
		if req := e.takeBatched(element); req != nil {
			requests = append(requests, req)
		}
	}
	e.serveBatched(requests)
	e.finishBatch(len(requests) == 0)
}

// mayBatch reports whether the revision of the client has batches.
func (p *post) mayBatch(s *session) bool {
	if s != nil {
		return s.Version() == string(protocol.V20250326)
	}
	v := protocol.Version(field(p.r.Header, headerVersion))
	return v == "" || v == protocol.V20250326
}

// takeBatched does what one message of a batch asks for, unless it is a request, which it returns.
func (e *exchange) takeBatched(element []byte) *jsonrpc.Request {
	msg, bad := jsonrpc.Decode(element)
	switch {
	case msg.Response != nil:
		if e.s != nil {
			e.s.answer(msg.Response)
		}
		if bad != nil {
			e.batch.answers = append(e.batch.answers, bad)
		}
	case bad != nil:
		e.batch.answers = append(e.batch.answers, bad)
	case !msg.Request.IsNotification():
		return msg.Request
	case msg.Request.Method == protocol.NotificationCancelled && e.s != nil:
		e.s.cancel(msg.Request)
	default:
		ctx, cancel := lasting(e.r.Context())
		defer cancel(nil)
		c := &call{cancel: cancel}
		if e.h.begin(c) {
			defer e.h.finish(c)
			e.h.rpc.ServeRPC(ctx, msg.Request, e.silent())
		}
	}
	return nil
}

// serveBatched runs the requests of a batch.
func (e *exchange) serveBatched(requests []*jsonrpc.Request) {
	var all []*batched
	for _, req := range requests {
		ctx, cancel := lasting(e.r.Context())
		defer cancel(nil)
		b := &batched{call: call{cancel: cancel}, req: req}
		if refusal := e.beginBatched(b); refusal != nil {
			e.batch.answers = append(e.batch.answers, &jsonrpc.Response{ID: req.ID, Error: refusal})
			continue
		}
		defer e.h.finish(&b.call)
		if e.s != nil {
			defer e.s.finish(req.ID, &b.call)
		}
		b.run = func() {
			resp := e.h.rpc.ServeRPC(ctx, req, e)
			if e.s != nil {
				e.s.finish(req.ID, &b.call)
			}
			e.answerBatched(e.wanted(ctx, req, resp))
		}
		all = append(all, b)
	}
	for _, b := range all {
		b.run()
	}
}

// beginBatched puts b in flight, or says why not.
func (e *exchange) beginBatched(b *batched) *jsonrpc.Error {
	if b.req.Method == protocol.MethodInitialize {
		return invalidRequest("initialize must not be in a batch")
	}
	if !e.h.begin(&b.call) {
		return jsonrpc.Errorf(jsonrpc.CodeInternalError, "server is shutting down")
	}
	if e.s != nil && !e.s.start(b.req.ID, &b.call) {
		e.h.finish(&b.call)
		return invalidRequest("id %s is in use by a request that is not answered yet", quote(b.req.ID.String()))
	}
	return nil
}

// answerBatched puts one answer on the stream, or keeps it for the reply. A request that its client cancelled
// has none.
func (e *exchange) answerBatched(resp *jsonrpc.Response) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case resp == nil:
	case e.state == replyOpen:
		e.batch.answers = append(e.batch.answers, resp)
	default:
		e.sendAnswer(e.r.Context(), resp)
	}
}

// finishBatch ends the reply: 202 where nothing was asked.
func (e *exchange) finishBatch(nothingAsked bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	answers := e.batch.answers
	if e.state != replyOpen {
		for _, resp := range answers {
			e.sendAnswer(e.r.Context(), resp)
		}
		e.end()
		e.breakOff()
		return
	}
	e.state = replyDone
	if len(answers) == 0 {
		e.w.WriteHeader(http.StatusAccepted)
		return
	}
	status := http.StatusOK
	if nothingAsked {
		status = http.StatusBadRequest
	}
	buf := getBuffer()
	defer putBuffer(buf)
	*buf = append(*buf, '[')
	for i, resp := range answers {
		if i > 0 {
			*buf = append(*buf, ',')
		}
		*buf = append(*buf, encode(resp)...)
	}
	*buf = append(*buf, ']')
	writeTimed(e.w, e.r, status, *buf)
}

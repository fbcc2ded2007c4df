package streamable

import (
	"context"
	"net/http"

	"github.com/mcpkit/mcpkit-go/internal/conn"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// A batch is an array of messages in one POST, which only version 2025-03-26 has. Its requests run
// one after the other on the goroutine of the POST, and its reply holds all their responses.
type batch struct {
	responses []*jsonrpc.Response // from before the reply became a stream
}

// A batched message is in flight from the beginning, so that it can be cancelled before it runs.
type batched struct {
	call
	ctx   context.Context
	req   *jsonrpc.Request
	noted *conn.Entry // nil outside sessions
}

// begin makes the context of a message outside sessions.
func (b *batched) begin(parent context.Context) {
	b.ctx, b.cancel = context.WithCancelCause(parent)
}

// serveBatch handles a batch.
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
	e := newExchange(p, s)
	e.batch = &batch{}
	e.watch()
	defer e.abandon()
	var requests []*jsonrpc.Request
	for _, element := range elements {
		if req := e.takeBatched(element); req != nil {
			requests = append(requests, req)
		}
	}
	e.serveBatched(requests)
	e.sendBatch(len(requests) == 0)
}

// mayBatch reports whether the version of the client has batches.
func (p *post) mayBatch(s *session) bool {
	if s != nil {
		return s.Version() == string(protocol.V20250326)
	}
	v := protocol.Version(field(p.r.Header, headerVersion))
	return v == "" || v == protocol.V20250326
}

// takeBatched handles one message of a batch, unless it is a request, which it returns.
func (e *exchange) takeBatched(element []byte) *jsonrpc.Request {
	msg, bad := jsonrpc.Decode(element)
	switch {
	case msg.Response != nil:
		if e.s != nil {
			if !e.s.ledger.Answer(msg.Response) {
				_ = e.h.replica.answer(e.r.Context(), e.s, msg.Response) // a batch cannot be refused in part
			}
		}
		if bad != nil {
			e.batch.responses = append(e.batch.responses, bad)
		}
	case bad != nil:
		e.batch.responses = append(e.batch.responses, bad)
	case !msg.Request.IsNotification():
		return msg.Request
	case msg.Request.Method == protocol.NotificationCancelled && e.s != nil:
		e.s.cancel(msg.Request)
	default:
		lasts, stop := lasting(e.r.Context())
		defer stop()
		n := &batched{}
		n.begin(lasts)
		defer n.cancel(nil)
		if e.h.life.Begin(&n.call) {
			defer e.h.life.End(&n.call)
			e.h.rpc.ServeRPC(n.ctx, msg.Request, e.silent())
		}
	}
	return nil
}

// serveBatched runs the requests of a batch.
func (e *exchange) serveBatched(requests []*jsonrpc.Request) {
	lasts, stop := lasting(e.r.Context())
	defer stop()
	var all []*batched
	for _, req := range requests {
		b := &batched{req: req}
		if refusal := e.beginBatched(lasts, b); refusal != nil {
			e.batch.responses = append(e.batch.responses, &jsonrpc.Response{ID: req.ID, Error: refusal})
			continue
		}
		defer e.endBatched(b)
		all = append(all, b)
	}
	for _, b := range all {
		resp := e.h.rpc.ServeRPC(b.ctx, b.req, e)
		if b.noted != nil {
			resp = endCall(b.noted, resp)
		} else {
			resp = complete(b.req, resp)
		}
		e.respondBatched(resp)
	}
}

// beginBatched puts b in flight, or returns why it cannot.
func (e *exchange) beginBatched(ctx context.Context, b *batched) *jsonrpc.Error {
	if b.req.Method == protocol.MethodInitialize {
		return invalidRequest("initialize must not be in a batch")
	}
	if isModern(e.r.Header, b.req) {
		// Only 2025-03-26 has batches, and a subscription would not end with its POST.
		return invalidRequest("a request of a modern version must not be in a batch")
	}
	if e.s == nil {
		b.begin(ctx)
	} else {
		noted, refusal := e.s.beginCall(ctx, b.req)
		if refusal != nil {
			return refusal.err
		}
		b.noted, b.ctx, b.cancel = noted, noted.Context(), noted.Cancel
	}
	if !e.h.life.Begin(&b.call) {
		e.endBatched(b)
		return jsonrpc.Errorf(jsonrpc.CodeInternalError, "server is shutting down")
	}
	return nil
}

// endBatched undoes beginBatched.
func (e *exchange) endBatched(b *batched) {
	e.h.life.End(&b.call)
	if b.noted != nil {
		b.noted.End()
	} else {
		b.cancel(nil)
	}
}

// respondBatched writes one response to the stream, or keeps it for the reply. A cancelled request
// has none.
func (e *exchange) respondBatched(resp *jsonrpc.Response) {
	if resp == nil {
		return
	}
	// Ends when the store does what it is at.
	_ = e.takeTurn(context.Background())
	defer e.giveTurn()
	e.mu.Lock()
	unsent := e.state == replyOpen
	e.mu.Unlock()
	if unsent {
		e.batch.responses = append(e.batch.responses, e.hold(resp))
		return
	}
	e.streamResponse(e.r.Context(), resp)
}

// sendBatch ends the reply: with 202 if the batch had no requests and no errors.
func (e *exchange) sendBatch(nothingAsked bool) {
	_ = e.takeTurn(context.Background())
	defer e.giveTurn()
	if e.sendBatchJSON(nothingAsked) {
		return
	}
	for _, resp := range e.batch.responses {
		e.streamResponse(e.r.Context(), resp)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closeReply()
	e.abortIfBroken()
}

// sendBatchJSON sends the responses as one JSON array and returns true, if nothing was sent before.
func (e *exchange) sendBatchJSON(nothingAsked bool) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state != replyOpen {
		return false
	}
	e.state = replyDone
	responses := e.batch.responses
	if len(responses) == 0 {
		e.w.WriteHeader(http.StatusAccepted)
		return true
	}
	status := http.StatusOK
	if nothingAsked {
		status = http.StatusBadRequest
	}
	var body []byte
	body = append(body, '[')
	for i, resp := range responses {
		if i > 0 {
			body = append(body, ',')
		}
		body = jsonrpc.AppendResponse(body, resp)
	}
	body = append(body, ']')
	e.writeTimed(status, body)
	return true
}

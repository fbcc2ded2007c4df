package streamable

import (
	"net/http"

	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// serveBatch handles an array of messages in one POST, which only version 2025-03-26 has. Its
// requests run one after the other, and the reply is an array of their responses. What they notify
// or ask goes to the stream that the client opened with GET.
func (p *post) serveBatch(body []byte) {
	if name := repeated(p.r.Header); name != "" {
		refuse(http.StatusBadRequest, jsonrpc.CodeInvalidRequest, "header %s is repeated", name).write(p.w)
		return
	}
	var s *legacySession
	if !p.h.opts.Stateless && !modernHeader(p.r.Header) {
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
	elements, _, bad := jsonrpc.Batch(body)
	if bad != nil {
		writeBad(p.w, bad)
		return
	}
	var responses []*jsonrpc.Response
	asked := false
	for _, element := range elements {
		msg, bad := jsonrpc.Decode(element)
		if msg.Response != nil && s != nil && !s.ledger.Answer(msg.Response) {
			_ = p.h.replica.answer(s, msg.Response) // a batch cannot be refused in part
		}
		if bad != nil {
			responses = append(responses, bad)
		} else if msg.Request != nil {
			asked = asked || !msg.Request.IsNotification()
			if resp := p.serveBatched(s, msg.Request); resp != nil {
				responses = append(responses, resp)
			}
		}
	}
	p.sendBatch(responses, asked)
}

// mayBatch reports whether the version of the client has batches.
func (p *post) mayBatch(s *legacySession) bool {
	if s != nil {
		return s.Version() == string(protocol.V20250326)
	}
	v := protocol.Version(field(p.r.Header, headerVersion))
	return v == "" || v == protocol.V20250326
}

// serveBatched runs one message of a batch. A notification and a cancelled request have no response.
func (p *post) serveBatched(s *legacySession, req *jsonrpc.Request) *jsonrpc.Response {
	fail := func(err *jsonrpc.Error) *jsonrpc.Response {
		if req.IsNotification() {
			return nil
		}
		return &jsonrpc.Response{ID: req.ID, Error: err}
	}
	switch {
	case req.Method == protocol.NotificationCancelled && s != nil:
		s.cancel(req)
		return nil
	case req.Method == protocol.MethodInitialize:
		return fail(invalidRequest("initialize must not be in a batch"))
	case isModern(p.r.Header, req):
		// Only 2025-03-26 has batches, and a subscription would not end with its POST.
		return fail(invalidRequest("a request of a modern version must not be in a batch"))
	}
	lasts, stop := lasting(p.r.Context())
	defer stop()
	e := newExchange(p, s)
	ctx := e.begin(lasts)
	defer e.cancel(nil)
	if s != nil && !req.IsNotification() {
		c, refusal := s.beginCall(ctx, req)
		if refusal != nil {
			return fail(refusal.err)
		}
		defer c.End()
		e.entry, e.cancel, ctx = c, c.Cancel, c.Context()
	}
	end, ok := p.h.begin(e)
	if !ok {
		return fail(jsonrpc.Errorf(jsonrpc.CodeInternalError, "server is shutting down"))
	}
	defer end()
	resp := p.h.rpc.ServeRPC(ctx, req, silent{e})
	switch {
	case req.IsNotification():
		return nil
	case e.entry != nil:
		resp = endCall(e.entry, resp)
	default:
		resp = complete(req, resp)
	}
	if resp != nil {
		resp = p.hold(resp) // while its call lasts
	}
	return resp
}

// sendBatch sends the responses as one JSON array; 202 if there are none.
func (p *post) sendBatch(responses []*jsonrpc.Response, asked bool) {
	if len(responses) == 0 {
		p.w.WriteHeader(http.StatusAccepted)
		return
	}
	status := http.StatusOK
	if !asked {
		status = http.StatusBadRequest
	}
	body := []byte{'['}
	for i, resp := range responses {
		if i > 0 {
			body = append(body, ',')
		}
		body = jsonrpc.AppendResponse(body, resp)
	}
	p.writeTimed(status, append(body, ']'))
}

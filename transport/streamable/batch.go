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
		writeError(p.w, refuse(http.StatusBadRequest, "header %s is repeated", name))
		return
	}
	version := versionOf(p.r.Header)
	var s *legacySession
	if !p.h.opts.Stateless && !modernHeader(p.r.Header) {
		var refusal *jsonrpc.Response
		if s, refusal = p.h.session(p.r); refusal != nil {
			writeError(p.w, refusal)
			return
		}
		defer p.h.sessions.release(s)
		version = protocol.Version(s.Version())
	}
	if version != protocol.V20250326 && (version != "" || s != nil) {
		writeError(p.w, refuse(http.StatusBadRequest,
			"batches exist only in %s; send each message by itself", protocol.V20250326))
		return
	}
	elements, _, bad := jsonrpc.Batch(body)
	if bad != nil {
		writeError(p.w, bad)
		return
	}
	var responses []*jsonrpc.Response
	asked := false
	for _, element := range elements {
		msg, bad := jsonrpc.Decode(element)
		if msg.Response != nil && s != nil {
			_ = s.answer(msg.Response) // a batch cannot be refused in part
		}
		resp := bad
		if bad == nil && msg.Request != nil {
			asked = asked || !msg.Request.IsNotification()
			resp = p.serveBatched(s, msg.Request)
		}
		if resp != nil {
			responses = append(responses, resp)
		}
	}
	p.sendBatch(responses, asked)
}

// serveBatched runs one message of a batch. A notification and a cancelled request have no response.
func (p *post) serveBatched(s *legacySession, req *jsonrpc.Request) (resp *jsonrpc.Response) {
	switch {
	case req.Method == protocol.NotificationCancelled && s != nil:
		s.cancel(req)
	case req.Method == protocol.MethodInitialize:
		resp = refuse(0, "initialize must not be in a batch")
	case isModern(p.r.Header, req):
		// Only 2025-03-26 has batches, and a subscription would not end with its POST.
		resp = refuse(0, "a request of a modern version must not be in a batch")
	default:
		e := &exchange{post: p, req: req, s: s, plain: true}
		refusal := e.run(func(done *jsonrpc.Response) {
			if done != nil {
				resp = p.hold(done)
			}
		})
		if refusal != nil {
			resp = refusal
		}
	}
	if resp == nil || req.IsNotification() {
		return nil
	}
	resp.ID = req.ID
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
	p.writeJSON(status, append(body, ']'))
}

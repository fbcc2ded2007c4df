package streamable

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"

	"github.com/mcpkit/mcpkit-go/internal/conn"
	"github.com/mcpkit/mcpkit-go/internal/httpserve"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// A post is one POST request.
type post struct {
	timedWriter
	h            *Handler
	r            *http.Request
	s            *legacySession // nil outside sessions
	held         conn.Share     // bytes that the POST holds in memory
	size         int            // of the body, in bytes
	acceptStream bool
}

// servePost handles one message or a batch. Methods run on this goroutine.
func (h *Handler) servePost(w http.ResponseWriter, r *http.Request) *jsonrpc.Response {
	p := &post{timedWriter: h.newWriter(w), h: h, r: r, held: conn.Share{All: &h.bytes}}
	defer p.close()
	body, refusal := p.receive()
	if refusal != nil {
		return refusal
	}
	if elements, isBatch, bad := jsonrpc.Batch(body); isBatch {
		return p.serveBatch(elements, bad)
	}
	switch msg, bad := jsonrpc.Decode(body); {
	case msg.Response != nil:
		return p.serveResponse(msg.Response, bad)
	case bad != nil:
		return bad
	default:
		return p.serveRequest(msg.Request)
	}
}

func (p *post) close() {
	p.held.Close()
	if p.s != nil {
		p.h.sessions.release(p.s)
	}
}

// receive reads the body, or returns why the POST is refused.
func (p *post) receive() ([]byte, *jsonrpc.Response) {
	if !httpserve.IsJSON(p.r.Header) {
		return nil, refuse(http.StatusUnsupportedMediaType, "Content-Type must be application/json")
	}
	var acceptJSON bool
	if acceptJSON, p.acceptStream = httpserve.Accepts(p.r.Header); !acceptJSON {
		return nil, refuse(http.StatusNotAcceptable, "Accept must list application/json and text/event-stream")
	}
	body, bad := httpserve.ReadBody(p.w, p.r, p.h.opts.MaxBodyBytes, &p.held)
	switch p.size = len(body); {
	case bad == nil:
		return body, nil
	case bad.Status == http.StatusServiceUnavailable:
		return nil, busy(bad.Text)
	default:
		return nil, refuse(bad.Status, "%s", bad.Text)
	}
}

// serveRequest handles a request or notification by its version.
func (p *post) serveRequest(req *jsonrpc.Request) (refusal *jsonrpc.Response) {
	e := &exchange{post: p, req: req, modern: isModern(p.r.Header, req)}
	switch {
	case e.modern || p.h.opts.Stateless:
	case e.initializes():
		s := p.h.newSession("")
		defer s.end() // all of it travels in its ID
		e.s = s
	default:
		p.s, refusal = p.h.session(p.r)
	}
	if refusal == nil {
		refusal = e.serve()
	}
	if refusal != nil {
		refusal.ID = req.ID
	}
	return refusal
}

// initializes reports whether the request opens a session.
func (e *exchange) initializes() bool {
	return e.req.Method == protocol.MethodInitialize && !e.req.IsNotification()
}

// serveResponse passes a response of the client to the server request that waits for it. If it is
// malformed, bad is why, and the server request ends with an error.
func (p *post) serveResponse(resp, bad *jsonrpc.Response) (refusal *jsonrpc.Response) {
	if p.h.sessionless(p.r) {
		refusal = refuse(http.StatusBadRequest, "a response needs a session; modern and stateless servers send no requests")
	} else if p.s, refusal = p.h.session(p.r); refusal == nil {
		refusal = p.h.replica.answer(p.s, resp)
	}
	if refusal = cmp.Or(bad, refusal); refusal == nil {
		p.w.WriteHeader(http.StatusAccepted)
	}
	return refusal
}

// serveBatch handles an array of messages in one POST, which only version 2025-03-26 has, unless bad
// says what is wrong with it. Its requests run one after the other, and the reply is an array of their
// responses. What they notify or ask goes to the stream that the client opened with GET.
func (p *post) serveBatch(elements []json.RawMessage, bad *jsonrpc.Response) (refusal *jsonrpc.Response) {
	version := versionOf(p.r.Header)
	if !p.h.sessionless(p.r) {
		if p.s, refusal = p.h.session(p.r); refusal != nil {
			return refusal
		}
		version = protocol.Version(p.s.Version())
	}
	if version != protocol.V20250326 && (version != "" || p.s != nil) {
		return refuse(http.StatusBadRequest, "batches exist only in %s; send each message by itself", protocol.V20250326)
	}
	if bad != nil {
		return bad
	}
	var responses [][]byte
	status := http.StatusBadRequest
	for _, element := range elements {
		msg, refusal := jsonrpc.Decode(element)
		if msg.Response != nil && p.s != nil {
			_ = p.h.replica.answer(p.s, msg.Response) // a batch cannot be refused in part
		}
		if req := msg.Request; req != nil {
			e := &exchange{post: p, req: req, modern: isModern(p.r.Header, req), batch: &responses}
			if refusal = e.serve(); req.IsNotification() {
				continue
			}
			status = http.StatusOK
			if refusal != nil {
				refusal.ID = req.ID
			}
		}
		if refusal != nil {
			responses = append(responses, jsonrpc.AppendResponse(nil, refusal))
		}
	}
	if len(responses) == 0 {
		p.w.WriteHeader(http.StatusAccepted)
		return nil
	}
	p.writeParts(status, []byte{'['}, bytes.Join(responses, []byte{','}), []byte{']'})
	return nil
}

// Names of header fields in canonical form.
const (
	headerLastEventID = "Last-Event-Id"
	headerVersion     = "Mcp-Protocol-Version"
)

// versionOf returns the protocol version that the header fields of a request name; "" for none.
func versionOf(h http.Header) protocol.Version {
	return protocol.Version(h.Get(headerVersion))
}

// modernHeader reports whether the header fields make a request modern: its version is not legacy.
// The handler responds to an unknown version with those it supports, unless the request has a
// session ID, which modern requests do not.
func modernHeader(h http.Header) bool {
	v := versionOf(h)
	return v != "" && !v.Legacy() && (v.Known() || h.Get(protocol.HeaderSessionID) == "")
}

// isModern reports whether a request is of 2026-07-28 or later, by its header or its body.
func isModern(h http.Header, req *jsonrpc.Request) bool {
	return modernHeader(h) || protocol.IsModern("", req.Param("_meta"))
}

package streamable

import (
	"net/http"

	"github.com/mcpkit/mcpkit-go/internal/admission"
	"github.com/mcpkit/mcpkit-go/internal/conn"
	"github.com/mcpkit/mcpkit-go/internal/httpserve"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// takeSlot counts a stream that only listens against its caller, until closed is called. It
// returns a refusal if the caller has too many.
func (h *Handler) takeSlot(r *http.Request) (closed func(), _ *refusal) {
	caller := admission.Caller(r, h.opts.TrustedProxies)
	if !h.listening.Open(caller) {
		return nil, busy("busy: too many streams listen; try again later")
	}
	return func() { h.listening.Close(caller) }, nil
}

// fits counts a notification or server request that is about to be written, if it is large enough
// to wait for the client. It returns false if too much is unread. Otherwise sent undoes the count.
func (p *post) fits(req *jsonrpc.Request) (sent func(), ok bool) {
	n := int64(len(req.Params))
	if n < largeReply {
		return func() {}, true
	}
	if !p.h.bytes.Take(n) {
		return nil, false
	}
	return func() { p.h.bytes.Give(n) }, true
}

// afford counts a response that is about to be written, if it is large enough to wait for the
// client, until the POST ends. If too much is unread, it returns an error response instead.
func (p *post) afford(resp *jsonrpc.Response) *jsonrpc.Response {
	if n := int64(len(resp.Result)); n >= largeReply && !p.held.Take(n) {
		return tooMuchUnread(resp.ID)
	}
	return resp
}

// hold is like afford for a response that cannot be streamed: it reads the result into memory, as
// far as there is room.
func (p *post) hold(resp *jsonrpc.Response) *jsonrpc.Response {
	if resp.Stream == nil || resp.Error != nil {
		return p.afford(resp)
	}
	w := &conn.Held{Spend: p.held.Take}
	if err := resp.Stream(w); err != nil {
		return &jsonrpc.Response{ID: resp.ID, Error: resp.Broken(err)}
	}
	return &jsonrpc.Response{ID: resp.ID, Result: w.Text.Bytes(), RetryAfter: resp.RetryAfter}
}

// tooMuchUnread returns the error that replaces a response that does not fit.
func tooMuchUnread(id jsonrpc.ID) *jsonrpc.Response {
	return &jsonrpc.Response{ID: id, Error: jsonrpc.Errorf(jsonrpc.CodeInternalError, "%s", httpserve.BusyBytes), HTTPStatus: http.StatusServiceUnavailable, RetryAfter: retryBusy}
}

package streamable

import (
	"net/http"

	"github.com/mcpkit/mcpkit-go/internal/admission"
	"github.com/mcpkit/mcpkit-go/internal/conn"
	"github.com/mcpkit/mcpkit-go/internal/httpserve"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// The error texts for requests beyond a limit.
const (
	busyCalls   = "busy: too many requests are in flight; try again later"
	busyListens = "busy: too many streams listen; try again later"
)

// caller returns the caller of r, whose share its requests, sessions and streams count against.
// Sessions have no share of their own, since a caller may open as many as it likes.
func (h *Handler) caller(r *http.Request) admission.Key {
	return admission.Caller(r, h.opts.TrustedProxies)
}

// admit counts a request as in flight in the budget that it returns, until giveBack. If the caller has
// too many, it refuses the request and returns nil.
func (p *post) admit(id jsonrpc.ID, listens bool) *admission.Budget {
	budget, text := p.h.calls, busyCalls
	if listens {
		budget, text = p.h.listening, busyListens
	}
	if budget.Spend(p.account.Key, 1) {
		return budget
	}
	busy(text).writeTo(p.w, id)
	return nil
}

// giveBack undoes admit.
func (p *post) giveBack(budget *admission.Budget) { budget.Return(p.account.Key, 1) }

// fits counts a notification or server request that is about to be written, if it is large enough
// to wait for the client. It returns false if the caller has too much unread. Otherwise sent undoes
// the count.
func (p *post) fits(req *jsonrpc.Request) (sent func(), ok bool) {
	n := int64(len(req.Params))
	if n < largeReply {
		return func() {}, true
	}
	if !p.h.bytes.Spend(p.account.Key, n) {
		return nil, false
	}
	return func() { p.h.bytes.Return(p.account.Key, n) }, true
}

// afford counts a response that is about to be written, if it is large enough to wait for the
// client, until the POST ends. If the caller has too much unread, it returns an error response
// instead.
func (p *post) afford(resp *jsonrpc.Response) *jsonrpc.Response {
	if n := int64(len(resp.Result)); n >= largeReply && !p.account.Spend(n) {
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
	w := &conn.Held{Spend: p.account.Spend}
	if err := resp.Stream(w); err != nil {
		return &jsonrpc.Response{ID: resp.ID, Error: resp.Broken(err)}
	}
	return &jsonrpc.Response{ID: resp.ID, Result: w.Text.Bytes(), RetryAfter: resp.RetryAfter}
}

// tooMuchUnread returns the error that replaces a response that does not fit.
func tooMuchUnread(id jsonrpc.ID) *jsonrpc.Response {
	return &jsonrpc.Response{ID: id, Error: jsonrpc.Errorf(jsonrpc.CodeInternalError, "%s", httpserve.BusyBytes), HTTPStatus: http.StatusServiceUnavailable, RetryAfter: retryBusy}
}

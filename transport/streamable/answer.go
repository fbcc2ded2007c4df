package streamable

import (
	"io"
	"net/http"

	"github.com/mcpkit/mcpkit-go/internal/sse"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// finish ends the call of the request and returns its complete response: an error if the handler
// returned none, and nil if the client has cancelled the request. The client may reuse the ID once
// it has the response. It can cancel a streamed response until it is written.
func (e *exchange) finish(resp *jsonrpc.Response) *jsonrpc.Response {
	if resp == nil {
		resp = &jsonrpc.Response{
			Error: jsonrpc.Errorf(jsonrpc.CodeInternalError, "internal error"), HTTPStatus: http.StatusInternalServerError,
		}
	}
	streamed := resp.Stream != nil && resp.Error == nil
	switch {
	case e.entry == nil:
	case streamed && !e.entry.Wanted(), !streamed && !e.entry.End():
		return nil
	}
	last := *resp
	last.ID = e.req.ID
	if streamed && e.entry != nil {
		last.Stream = func(w io.Writer) error {
			defer e.entry.End()
			return resp.Stream(w)
		}
	}
	return &last
}

// reply sends the response. It is nil if the client has cancelled the request, and may be nil for a
// notification.
func (e *exchange) reply(resp *jsonrpc.Response) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state != replyOpen {
		complete := resp == nil || e.streamResponse(resp)
		e.end()
		if !complete {
			panic(http.ErrAbortHandler) // so that the response does not look complete
		}
		return
	}
	e.state = replyDone
	switch {
	case e.batch != nil:
		if resp != nil && !e.req.IsNotification() {
			*e.batch = append(*e.batch, e.hold(resp))
		}
	case resp == nil || e.req.IsNotification() && resp.Error == nil:
		e.w.WriteHeader(http.StatusAccepted)
	case e.req.IsNotification():
		writeError(e.w, resp)
	case !e.disconnected():
		if e.s != nil && e.initializes() && resp.Error == nil {
			e.seal()
		}
		e.writeReply(resp)
	}
}

// streamResponse writes the response to the event stream. It returns false if the connection has a
// part of it. The caller holds mu.
func (e *exchange) streamResponse(resp *jsonrpc.Response) (complete bool) {
	if resp.Stream == nil || e.state != replyStream {
		// A client that has disconnected gets an error in place of what the store cannot keep.
		if e.send(e.r.Context(), jsonrpc.AppendResponse(nil, e.hold(resp)), true) != nil {
			e.sendError(errLost)
		}
		return true
	}
	failed := e.streamResult(resp)
	if failed != nil {
		e.lose()
		e.sendError(failed)
	}
	return failed == nil
}

var errLost = jsonrpc.Errorf(jsonrpc.CodeInternalError,
	"the response was lost with the connection and is too large to be stored")

// sendError stores an error in place of a response that was lost. The caller holds mu.
func (e *exchange) sendError(rpc *jsonrpc.Error) {
	data := jsonrpc.AppendResponse(nil, &jsonrpc.Response{ID: e.req.ID, Error: rpc})
	_ = e.send(e.r.Context(), data, true) // a failure is logged
}

// streamResult writes a response with a streamed result to the connection alone. If that fails, it
// returns the error for a client that resumes. The caller holds mu.
func (e *exchange) streamResult(resp *jsonrpc.Response) *jsonrpc.Error {
	_, err := e.Write(sse.AppendHead(nil, ""))
	if err == nil {
		err = jsonrpc.WriteResponse(dataWriter{e}, resp)
	}
	if err == nil {
		err = e.post.send([]byte("\n\n"))
	}
	switch {
	case err == nil:
		return nil
	case e.post.err != nil:
		return errLost
	}
	return resp.Broken(err)
}

// closeReply ends the reply if nothing else has.
func (e *exchange) closeReply() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.end()
}

// end ends the reply after the response. It may be called more than once. The caller holds mu.
func (e *exchange) end() {
	if e.state == replyDone {
		return
	}
	e.post.endStream()
	if e.st != nil {
		_, _ = e.s.out.append(e.r.Context(), e.st, nil, true) // if it has no response
		e.s.out.free(e.st, e.reader)
	}
	e.state = replyDone
}

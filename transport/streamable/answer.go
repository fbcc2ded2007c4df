package streamable

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"github.com/mcpkit/mcpkit-go/internal/conn"
	"github.com/mcpkit/mcpkit-go/internal/sse"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// acknowledge responds to a notification: 202, or the error of the handler.
func (e *exchange) acknowledge(resp *jsonrpc.Response) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.state = replyDone
	if resp != nil && resp.Error != nil {
		writeBad(e.w, resp)
		return
	}
	e.w.WriteHeader(http.StatusAccepted)
}

// sendResponse sends the response and ends the exchange. A nil response means that the client
// cancelled the request.
func (e *exchange) sendResponse(ctx context.Context, resp *jsonrpc.Response) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state == replyOpen {
		e.state = replyDone
		switch {
		case e.disconnected():
		case resp == nil:
			e.w.WriteHeader(http.StatusAccepted)
		default:
			e.writeReply(resp)
		}
		return
	}
	if resp != nil {
		e.streamResponse(ctx, resp)
	}
	e.closeReply()
	if e.broken && e.s == nil {
		panic(http.ErrAbortHandler) // so that the response does not look complete
	}
}

// complete returns the response for the client: resp with the ID of req, or an error if the handler
// returned nil.
func complete(req *jsonrpc.Request, resp *jsonrpc.Response) *jsonrpc.Response {
	switch {
	case resp == nil:
		return &jsonrpc.Response{ID: req.ID, Error: jsonrpc.Errorf(jsonrpc.CodeInternalError, "internal error"), HTTPStatus: http.StatusInternalServerError}
	case !resp.ID.IsValid():
		named := *resp
		named.ID = req.ID
		return &named
	}
	return resp
}

// endCall ends a call of a session and returns its complete response, or nil if the client
// cancelled the call. The client may reuse the ID once it has the response. It can cancel a
// streamed response until it is written.
func endCall(c *conn.Entry, resp *jsonrpc.Response) *jsonrpc.Response {
	if resp == nil || resp.Stream == nil || resp.Error != nil {
		if !c.End() {
			return nil
		}
		return complete(c.Request, resp)
	}
	if !c.Wanted() {
		return nil
	}
	last := *complete(c.Request, resp)
	last.Stream = func(w io.Writer) error {
		defer c.End()
		return resp.Stream(w)
	}
	return &last
}

// streamResponse writes the response to the event stream. The caller holds mu.
func (e *exchange) streamResponse(ctx context.Context, resp *jsonrpc.Response) {
	switch {
	case resp.Stream != nil && e.state == replyStream:
		broken := e.streamResult(resp)
		if e.st == nil {
			return
		}
		if broken != nil {
			e.storeError(ctx, resp.ID, broken)
		} else if e.state != replyStream {
			e.storeError(ctx, resp.ID, errLost)
		}
	case e.st != nil:
		// A client that has disconnected gets an error in place of what the store cannot keep.
		if err := e.sendStored(ctx, jsonrpc.AppendResponse(nil, e.hold(resp)), true); err != nil {
			e.storeError(ctx, resp.ID, errLost)
		}
	case e.state == replyStream:
		e.write(sse.AppendEvent(nil, "", jsonrpc.AppendResponse(nil, e.afford(resp))))
	}
}

var errLost = jsonrpc.Errorf(jsonrpc.CodeInternalError, "the response was lost with the connection and is too large to be stored")

// storeError stores an error in place of a response that was lost.
func (e *exchange) storeError(ctx context.Context, id jsonrpc.ID, rpc *jsonrpc.Error) {
	_ = e.sendStored(ctx, jsonrpc.AppendResponse(nil, &jsonrpc.Response{ID: id, Error: rpc}), true) // a failure is logged
}

// streamResult writes a response with a streamed result. If the stream fails, it gives up the
// connection and returns the error for a client that resumes; nil if the connection failed. The
// caller holds mu.
func (e *exchange) streamResult(resp *jsonrpc.Response) *jsonrpc.Error {
	if e.alive != nil {
		e.alive.Stop()
	}
	out := &timedWriter{w: &dataWriter{w: e.w}, rc: &e.rc}
	_, err := out.Write(sse.AppendHead(nil, ""))
	if err == nil {
		err = jsonrpc.WriteResponse(out, resp)
	}
	if err == nil {
		_, err = e.w.Write([]byte("\n\n"))
	}
	if err == nil {
		err = e.flush()
	}
	if err == nil {
		return nil
	}
	e.lose()
	e.broken = true
	if e.s != nil {
		if conn, err := e.hijack(); err == nil {
			_ = conn.Close() // so that the response does not look complete
		}
	}
	if out.err != nil {
		return nil
	}
	return resp.Broken(err)
}

// A dataWriter writes the data of one event, with a data line for each of its lines.
type dataWriter struct {
	w    http.ResponseWriter
	head bool // the head of the event was written
}

func (d *dataWriter) Write(p []byte) (int, error) {
	if !d.head || bytes.IndexByte(p, '\n') < 0 && bytes.IndexByte(p, '\r') < 0 {
		d.head = true
		return d.w.Write(p)
	}
	if _, err := d.w.Write(sse.AppendData(nil, p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// abandon ends an exchange whose handler panicked: nothing may use the writer after net/http has it
// back.
func (e *exchange) abandon() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closeReply()
}

// closeReply ends the reply after the response. It may be called more than once. The caller holds
// mu.
func (e *exchange) closeReply() {
	if e.state == replyDone {
		return
	}
	if e.alive != nil {
		e.alive.Stop()
	}
	if e.state == replyStream {
		clearWriteDeadline(&e.rc, e.r)
	}
	if e.st != nil {
		e.s.out.end(context.WithoutCancel(e.r.Context()), e.st)
		e.s.out.free(e.st, e.reader)
	}
	e.state = replyDone
}

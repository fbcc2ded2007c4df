package streamable

import (
	"bytes"
	"context"
	"errors"
	"net/http"

	"github.com/mcpkit/mcpkit-go/internal/sse"
	"github.com/mcpkit/mcpkit-go/jsonrpc"
)

// acknowledge answers a notification: 202, or what the handler found wrong with it.
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

// finish sends the answer to req and ends the exchange.
func (e *exchange) finish(ctx context.Context, req *jsonrpc.Request, resp *jsonrpc.Response) {
	e.mu.Lock()
	defer e.mu.Unlock()
	resp = e.wanted(ctx, req, resp)
	if e.state == replyOpen {
		e.state = replyDone
		switch {
		case e.gone():
		case resp == nil:
			e.w.WriteHeader(http.StatusAccepted)
		default:
			writeReply(e.w, e.r, resp)
		}
		return
	}
	e.sendAnswer(ctx, resp)
	e.end()
	e.breakOff()
}

// wanted is what the client gets of the answer: nothing when it cancelled, whatever the handler still had to say, and
// an error in the place of one that the handler did not give.
func (e *exchange) wanted(ctx context.Context, req *jsonrpc.Request, resp *jsonrpc.Response) *jsonrpc.Response {
	switch {
	case errors.Is(context.Cause(ctx), errCancelled):
		return nil
	case resp == nil:
		return &jsonrpc.Response{ID: req.ID, Error: jsonrpc.Errorf(jsonrpc.CodeInternalError, "internal error"), HTTPStatus: http.StatusInternalServerError}
	case !resp.ID.IsValid():
		named := *resp
		named.ID = req.ID
		return &named
	}
	return resp
}

// sendAnswer puts the answer on the stream. The caller holds mu.
func (e *exchange) sendAnswer(ctx context.Context, resp *jsonrpc.Response) {
	switch {
	case resp == nil:
	case e.st != nil:
		e.sendAnswerStored(ctx, resp)
	case resp.Stream != nil:
		e.streamAnswer(resp)
	default:
		buf, body := getBuffer(), getBuffer()
		*body = jsonrpc.AppendResponse(*body, resp)
		*buf = sse.AppendEvent(*buf, "", *body)
		e.write(*buf)
		putBuffer(buf)
		putBuffer(body)
	}
}

// sendAnswerStored keeps the answer for a client that comes back, then writes it. An answer that the
// store cannot keep is written all the same; a client that is not there to read it gets an error instead.
func (e *exchange) sendAnswerStored(ctx context.Context, resp *jsonrpc.Response) {
	if resp.Stream != nil && e.state == replyStream {
		broken := e.streamAnswer(resp)
		switch {
		case e.state == replyStream:
		case broken != nil:
			e.storeError(ctx, resp.ID, broken)
		default:
			e.storeLoss(ctx, resp.ID)
		}
		return
	}
	data := encode(resp)
	if err := e.sendStored(ctx, data, e.batch == nil); err != nil {
		e.storeLoss(ctx, resp.ID)
	}
}

// storeLoss keeps an error in the place of an answer that was lost.
func (e *exchange) storeLoss(ctx context.Context, id jsonrpc.ID) {
	e.storeError(ctx, id, jsonrpc.Errorf(jsonrpc.CodeInternalError, "the answer was lost with the connection and is too large to be kept"))
}

func (e *exchange) storeError(ctx context.Context, id jsonrpc.ID, rpc *jsonrpc.Error) {
	answer := jsonrpc.AppendResponse(nil, &jsonrpc.Response{ID: id, Error: rpc})
	_ = e.sendStored(ctx, answer, e.batch == nil) // the session is over, or the store is broken and said so
}

// streamAnswer writes an answer that is too large to hold. When it breaks off so does the connection. The error is what the caller is told
// who comes back; nil where it was the connection that broke.
func (e *exchange) streamAnswer(resp *jsonrpc.Response) *jsonrpc.Error {
	if e.state != replyStream || e.gone() {
		return nil
	}
	if e.alive != nil {
		e.alive.Stop()
	}
	out := &timedWriter{w: &dataWriter{w: e.w}, rc: e.rc}
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
	if out.err != nil {
		return nil
	}
	return resp.Broken(err)
}

// breakOff ends the connection where the reply broke off: an end in order would make it look complete. The caller holds mu.
func (e *exchange) breakOff() {
	if e.broken && e.s == nil {
		panic(http.ErrAbortHandler)
	}
}

// A dataWriter writes the data of one event, a line for each of its lines.
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

// abandon ends an exchange whose handler panicked: nothing may touch the writer when net/http has it back.
func (e *exchange) abandon() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state == replyStream || e.state == replyLost {
		e.end()
	}
	e.state = replyDone
}

// end closes the stream after its answer. The caller holds mu.
func (e *exchange) end() {
	if e.alive != nil {
		e.alive.Stop()
	}
	if e.unwatch != nil {
		e.unwatch()
	}
	if e.st != nil {
		e.s.out.finish(e.st)
	}
	if e.state == replyStream {
		clearWriteDeadline(e.rc, e.r)
		if e.st != nil {
			e.s.out.free(e.st) // to a client that came back before the end, if there is one
		}
	}
	e.state = replyDone
}

// encode returns resp as JSON of its own.
func encode(resp *jsonrpc.Response) []byte {
	if resp.Stream == nil {
		return jsonrpc.AppendResponse(nil, resp)
	}
	var buf bytes.Buffer
	if err := jsonrpc.WriteResponse(&buf, resp); err != nil {
		return jsonrpc.AppendResponse(nil, &jsonrpc.Response{ID: resp.ID, Error: resp.Broken(err)})
	}
	return buf.Bytes()
}

package streamable

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"github.com/mcpkit/mcpkit-go/internal/ledger"
	"github.com/mcpkit/mcpkit-go/internal/sse"
	"github.com/mcpkit/mcpkit-go/jsonrpc"
)

// acknowledge answers a notification: 202, or what the handler found wrong with it.
func (e *exchange) acknowledge(resp *jsonrpc.Response) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stopWatching()
	if e.state == replyLost {
		return
	}
	e.state = replyDone
	if resp != nil && resp.Error != nil {
		writeBad(e.w, resp)
		return
	}
	e.w.WriteHeader(http.StatusAccepted)
}

// finish sends the answer and ends the exchange. A nil answer is none: the client cancelled the request.
func (e *exchange) finish(ctx context.Context, resp *jsonrpc.Response) {
	if e.finishUnsent(resp, false) {
		return
	}
	// Ends when the store does what it is at, within storeTimeout.
	_ = e.takeTurn(context.Background())
	defer e.giveTurn()
	if e.finishUnsent(resp, true) {
		return
	}
	e.sendAnswer(ctx, resp)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.end()
	e.breakOff()
}

// finishUnsent is finish where nothing was sent yet: the reply is JSON. Otherwise it reports false. Without the turn it also does so
// where somebody may have it.
func (e *exchange) finishUnsent(resp *jsonrpc.Response, hasTurn bool) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state != replyOpen || e.turn != nil && !hasTurn {
		return false
	}
	e.stopWatching()
	e.state = replyDone
	switch {
	case e.gone():
	case resp == nil:
		e.w.WriteHeader(http.StatusAccepted)
	default:
		e.writeReply(resp)
	}
	return true
}

// settled is what the client gets of an answer: an error in the place of one that the handler did not give.
func settled(req *jsonrpc.Request, resp *jsonrpc.Response) *jsonrpc.Response {
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

// settle is settled for a call of a session: it is nil when the client cancelled the call. The client may use the id again as soon as it
// has the answer, and can cancel an answer that is streamed until it is written.
func settle(c *ledger.Call, resp *jsonrpc.Response) *jsonrpc.Response {
	if resp == nil || resp.Stream == nil || resp.Error != nil {
		if !c.End() {
			return nil
		}
		return settled(c.Request, resp)
	}
	if !c.Wanted() {
		return nil
	}
	last := *settled(c.Request, resp)
	last.Stream = func(w io.Writer) error {
		defer c.End()
		return resp.Stream(w)
	}
	return &last
}

// sendAnswer puts the answer on the stream. The caller has the turn.
func (e *exchange) sendAnswer(ctx context.Context, resp *jsonrpc.Response) {
	switch {
	case resp == nil:
	case e.st != nil:
		e.sendAnswerStored(ctx, resp)
	case resp.Stream != nil:
		e.mu.Lock()
		defer e.mu.Unlock()
		e.streamAnswer(resp)
	default:
		body := getBuffer()
		defer putBuffer(body)
		*body = jsonrpc.AppendResponse(*body, e.afford(resp))
		e.writeEvent("", *body)
	}
}

// sendAnswerStored keeps the answer for a client that comes back, then writes it. An answer that the
// store cannot keep is written all the same; a client that is not there to read it gets an error instead.
func (e *exchange) sendAnswerStored(ctx context.Context, resp *jsonrpc.Response) {
	if resp.Stream != nil {
		e.mu.Lock()
		live := e.state == replyStream
		var broken *jsonrpc.Error
		if live {
			broken = e.streamAnswer(resp)
		}
		lost := e.state != replyStream
		e.mu.Unlock()
		switch {
		case live && broken != nil:
			e.storeError(ctx, resp.ID, broken)
		case live && lost:
			e.storeLoss(ctx, resp.ID)
		}
		if live {
			return
		}
	}
	data := jsonrpc.AppendResponse(nil, e.hold(resp))
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
// who comes back; nil where it was the connection that broke. The caller holds mu.
func (e *exchange) streamAnswer(resp *jsonrpc.Response) *jsonrpc.Error {
	if e.state != replyStream || e.gone() {
		return nil
	}
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
	e.end()
}

// end closes the stream after its answer. It may be called more than once. The caller holds mu.
func (e *exchange) end() {
	if e.state == replyDone {
		return
	}
	if e.alive != nil {
		e.alive.Stop()
	}
	e.stopWatching()
	if e.st != nil {
		e.s.out.finish(e.st)
	}
	if e.state == replyStream {
		clearWriteDeadline(&e.rc, e.r)
		if e.st != nil {
			e.s.out.free(e.st) // to a client that came back before the end, if there is one
		}
	}
	e.state = replyDone
}

// stopWatching lets go of the connection, which net/http is about to have back. The caller holds mu.
func (e *exchange) stopWatching() {
	if e.unwatch != nil {
		e.unwatch()
	}
}

package streamable

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/admission"
	"github.com/mcpkit/mcpkit-go/internal/conn"
	"github.com/mcpkit/mcpkit-go/internal/httpserve"
	"github.com/mcpkit/mcpkit-go/internal/sse"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// replyState is the state of an exchange's HTTP response.
type replyState int

const (
	replyOpen   replyState = iota // nothing is sent yet
	replyStream                   // it is an event stream
	replyLost                     // the client has disconnected, or was told to resume the stream later
	replyDone                     // the response is sent; the writer must no longer be used
)

// An exchange is one request or notification of a POST, with what is sent meanwhile and its
// response. It is the Peer of that request. The fields of the event stream are set when the reply
// becomes one.
type exchange struct {
	*post
	req    *jsonrpc.Request
	s      *legacySession // nil outside sessions
	entry  *conn.Entry    // of a request in a session; otherwise nil
	modern bool
	plain  bool // the reply never becomes a stream

	state  replyState // guarded by mu, as all below
	st     *stream    // the stream that the client can resume; nil outside sessions
	reader *reader    // of st
	broken bool       // the response is incomplete
}

// serve runs the request, or refuses it.
func (e *exchange) serve(reply func(*jsonrpc.Response)) {
	if refusal := e.run(reply); refusal != nil {
		writeErrorTo(e.w, e.req, refusal)
	}
}

// run lets the handler serve the request, as a call of its session if it has one, and passes the
// complete response to reply while the call lasts. The response is nil if the client has cancelled
// the request, and that of the handler for a notification. The context of a modern request ends when
// the client disconnects; see outlive for a legacy one.
func (e *exchange) run(reply func(*jsonrpc.Response)) (refusal *jsonrpc.Response) {
	ctx := transport.WithAddress(e.r.Context(), admission.Address(e.r, e.h.opts.TrustedProxies))
	if !e.modern {
		lasts, stop := lasting(ctx)
		defer stop()
		ctx = lasts
	}
	var cancel context.CancelCauseFunc
	if e.s != nil && !e.req.IsNotification() {
		if e.entry, refusal = e.s.beginCall(ctx, e.req); refusal != nil {
			return refusal
		}
		defer e.entry.End()
		ctx, cancel = e.entry.Context(), e.entry.Cancel
	} else {
		ctx, cancel = context.WithCancelCause(ctx)
		defer cancel(nil)
	}
	if !e.modern {
		// Runs at most once.
		defer context.AfterFunc(e.r.Context(), func() { e.outlive(ctx, cancel) })()
	}
	if !e.h.life.Begin() {
		return shuttingDown()
	}
	defer e.h.life.End()
	over := e.h.life.Cancelling
	if e.modern && e.req.Method == protocol.MethodSubscriptionsListen {
		over = e.h.life.Draining // it would not end by itself
	}
	// Runs at most once.
	defer context.AfterFunc(over, func() { cancel(transport.ErrClosed) })()
	// If the handler panics, nothing may use the writer after net/http has it back.
	defer e.closeReply()
	resp := e.h.rpc.ServeRPC(ctx, e.req, e)
	if !e.req.IsNotification() {
		resp = e.finish(resp)
	}
	reply(resp)
	return nil
}

// outlive lets the call with this context go on although its client has disconnected, since the
// client may resume its stream. It cancels the call if too many calls of the same caller go on like
// this.
func (e *exchange) outlive(ctx context.Context, cancel context.CancelCauseFunc) {
	caller := admission.Caller(e.r, e.h.opts.TrustedProxies)
	if !e.h.abandoned.Open(caller) {
		cancel(nil)
		return
	}
	<-ctx.Done() // at the latest when the call ends
	e.h.abandoned.Close(caller)
}

// lasting returns a context with the values and the deadline of ctx that is not cancelled with it:
// only the program itself can have set a deadline.
func lasting(ctx context.Context) (context.Context, context.CancelFunc) {
	lasts := context.WithoutCancel(ctx)
	if deadline, ok := ctx.Deadline(); ok {
		return context.WithDeadline(lasts, deadline)
	}
	return lasts, func() {}
}

// Session returns the session of the request; nil outside sessions. It implements [transport.Peer].
func (e *exchange) Session() *transport.Session {
	if e.s == nil {
		return nil
	}
	return e.s.Session
}

// Header returns the header fields of the POST.
func (e *exchange) Header() transport.Header { return transport.Header(e.r.Header) }

// Notify sends n on the reply, which becomes an event stream, or else on the stream that the client
// opened with GET. Notifying a disconnected peer is not an error.
func (e *exchange) Notify(ctx context.Context, n *jsonrpc.Request) (err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.state == replyDone:
		return transport.ErrClosed
	case e.becomeStream():
		err = e.send(ctx, n)
	case e.s != nil:
		err = e.s.Notify(ctx, n)
	}
	if errors.Is(err, transport.ErrClosed) {
		return nil
	}
	return err
}

// Call sends a request on the reply, which becomes an event stream, or else on the stream that the
// client opened with GET. The response arrives in another POST.
func (e *exchange) Call(ctx context.Context, req *jsonrpc.Request) (*jsonrpc.Response, error) {
	if e.s == nil {
		return nil, transport.ErrNoServerRequests
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	q, err := e.s.ledger.Ask(e.h.replica.questionID())
	if err != nil {
		return nil, err
	}
	defer q.End()
	named := *req
	named.ID = q.ID
	if err := e.ask(ctx, &named); err != nil {
		return nil, err
	}
	select {
	case resp, ok := <-q.Answered():
		if !ok {
			return nil, transport.ErrClosed
		}
		return resp, nil
	case <-ctx.Done():
		if q.End() {
			e.cancelRequest(q.ID)
		}
		return nil, ctx.Err()
	}
}

// ask sends a server request, on the reply or on the stream that the client opened with GET.
func (e *exchange) ask(ctx context.Context, req *jsonrpc.Request) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.state == replyDone:
		return transport.ErrClosed
	case e.becomeStream() && e.st != nil: // a reply that was lost before it became a stream cannot be resumed
		return e.send(ctx, req)
	case e.s.out.listening():
		return e.s.Notify(ctx, req)
	default:
		return transport.ErrNoServerRequests
	}
}

// cancelRequest cancels a server request at the client.
func (e *exchange) cancelRequest(id jsonrpc.ID) {
	params := &protocol.CancelledParams{RequestID: id, Reason: "the server no longer waits for the response"}
	if n, err := jsonrpc.NewNotification(protocol.NotificationCancelled, params); err == nil {
		_ = e.ask(context.Background(), n) // a disconnected client need not be notified
	}
}

// becomeStream makes the reply an event stream unless it is one already. It returns false if that
// is impossible. The caller holds mu.
func (e *exchange) becomeStream() bool {
	if e.plain {
		return false
	}
	if e.state == replyOpen && !e.modern && e.disconnected() {
		e.state = replyLost
	}
	if e.state != replyOpen {
		return true
	}
	if !e.acceptStream {
		e.h.warnNoStream(e.r, "the client does not accept text/event-stream")
		return false
	}
	if e.flush = httpserve.Flusher(e.w); e.flush == nil {
		e.h.warnNoStream(e.r, noFlush)
		return false
	}
	e.state = replyStream
	e.beginStream(e.h.opts.KeepAlive, e.lose)
	if e.s != nil {
		e.st, e.reader = e.s.out.create(e.req.ID.String())
		if e.s.canPoll() {
			e.write(sse.AppendPriming(nil, eventID(e.st, 0), e.h.opts.Retry))
		}
	}
	return true
}

// send writes a notification or a server request to the stream. The caller holds mu.
func (e *exchange) send(ctx context.Context, req *jsonrpc.Request) error {
	if e.st != nil {
		return e.sendStored(ctx, jsonrpc.AppendRequest(nil, req), false)
	}
	e.write(sse.AppendEvent(nil, "", jsonrpc.AppendRequest(nil, req)))
	return nil
}

// sendStored stores data for a client that resumes the stream, and then writes it. The caller holds
// mu.
func (e *exchange) sendStored(ctx context.Context, data []byte, response bool) error {
	seq, err := e.s.out.append(ctx, e.st, data, response)
	if err != nil && e.state != replyStream {
		return err
	}
	id := ""
	if err == nil {
		id = eventID(e.st, seq)
	}
	e.write(sse.AppendEvent(nil, id, data))
	return nil
}

// write writes and flushes frame, unless the client has disconnected or resumed the stream with a
// GET. The caller holds mu.
func (e *exchange) write(frame []byte) {
	if e.state != replyStream || e.modern && e.disconnected() {
		return
	}
	if e.st != nil && !e.s.out.reads(e.st, e.reader) || e.post.send(frame) != nil {
		e.lose()
	}
}

// disconnected reports whether the connection has ended. If a deadline of the program ended the
// context, the client is still connected.
func (e *exchange) disconnected() bool { return errors.Is(e.r.Context().Err(), context.Canceled) }

// lose separates the stream from the connection. In a session, the client can resume the stream. The
// caller holds mu.
func (e *exchange) lose() {
	e.state = replyLost
	e.endStream()
	if e.st != nil {
		e.s.out.free(e.st, e.reader)
	}
}

// CloseStream ends the reply while the method continues; the client resumes the stream with GET. It
// implements [transport.StreamCloser]. The error is [errors.ErrUnsupported] for modern clients and
// those before 2025-11-25, over HTTP/2, where a reply cannot end before its handler returns, and
// behind a middleware that compresses.
func (e *exchange) CloseStream(retry time.Duration) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.state == replyDone:
		return transport.ErrClosed
	case e.state == replyLost:
		return nil
	case e.s == nil || !e.s.canPoll() || e.r.ProtoMajor != 1 || !e.becomeStream():
		return errors.ErrUnsupported
	case e.w.Header().Get("Content-Encoding") != "": // a compressor may still write to the connection
		return errors.ErrUnsupported
	}
	e.write(sse.AppendRetry(nil, retry))
	if e.state != replyStream {
		return nil
	}
	conn, _, err := e.rc.Hijack()
	if err != nil {
		return errors.ErrUnsupported
	}
	e.lose()
	_ = conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	if e.r.ProtoMinor > 0 {
		// The last chunk (RFC 9112, section 7.1): the reply is complete, not broken.
		_, _ = io.WriteString(conn, "0\r\n\r\n")
	}
	_ = conn.Close()
	return nil
}

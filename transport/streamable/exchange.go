package streamable

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/conn"
	"github.com/mcpkit/mcpkit-go/internal/httpserve"
	"github.com/mcpkit/mcpkit-go/internal/sse"
	"github.com/mcpkit/mcpkit-go/oauth"
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
	entry  *conn.Entry // nil outside sessions
	batch  *[][]byte   // gets the response; nil outside batches
	modern bool

	mu     sync.Mutex // held while a message is stored and written
	state  replyState // guarded by mu, as st and reader
	st     *stream    // the stream that the client can resume; nil outside sessions
	reader *reader    // of st

	reserved int64 // bytes for the result; only the goroutine of the request uses it
}

// serve lets the handler serve the request, as a call of its session if it has one, and replies,
// unless it returns a refusal. The context of a modern request ends when the client disconnects; see
// outlive for a legacy one.
func (e *exchange) serve() (refusal *jsonrpc.Response) {
	switch {
	case e.s != nil && e.req.IsNotification() && e.req.Method == protocol.NotificationCancelled:
		e.h.replica.cancel(e.s, e.req)
		e.reply(nil)
		return nil
	case e.batch != nil && e.initializes():
		return refuse(0, "initialize must not be in a batch")
	case e.batch != nil && e.modern: // a subscription would not end with its POST
		return refuse(0, "a request of a modern version must not be in a batch")
	case !e.h.life.Begin():
		return shuttingDown()
	}
	defer e.h.life.End()
	// If the handler panics, nothing may use the writer after net/http has it back.
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.end()
	}()
	ctx := transport.WithAddress(e.r.Context(), httpserve.Address(e.r, e.h.opts.TrustedProxies))
	ctx = transport.WithPath(ctx, e.r.URL.Path)
	if !e.modern {
		ctx = context.WithoutCancel(ctx)
	}
	var cancel context.CancelCauseFunc
	if e.s != nil {
		var err *jsonrpc.Error
		if e.entry, err = e.s.ledger.Begin(ctx, e.req, 0); err != nil && err.Code == jsonrpc.CodeInternalError {
			return busy(err.Message)
		} else if err != nil {
			return &jsonrpc.Response{Error: err, HTTPStatus: http.StatusBadRequest}
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
	over := e.h.life.Cancelling
	if e.modern && protocol.StaysOpen(e.req.Method) {
		if e.size > maxListenBytes {
			return refuse(http.StatusRequestEntityTooLarge, "request body is larger than %d bytes", maxListenBytes)
		}
		closed, refusal := e.h.takeSlot(e.r)
		if refusal != nil {
			return refusal
		}
		defer closed()
		over = e.h.life.Draining // it would not end by itself
	}
	// Runs at most once.
	defer context.AfterFunc(over, func() { cancel(transport.ErrClosed) })()
	resp := e.h.rpc.ServeRPC(ctx, e.req, e)
	if resp != nil && resp.Error != nil && e.req.IsNotification() {
		refusal := *resp
		return &refusal
	}
	e.reply(e.finish(resp))
	return nil
}

// outlive lets the call with this context go on although its client has disconnected, since the
// client may resume its stream. It cancels the call if too many calls of the same caller go on like
// this.
func (e *exchange) outlive(ctx context.Context, cancel context.CancelCauseFunc) {
	caller := httpserve.Caller(e.r, e.h.opts.TrustedProxies)
	if !e.h.abandoned.begin(caller) {
		cancel(nil)
		return
	}
	<-ctx.Done() // at the latest when the call ends
	e.h.abandoned.end(caller)
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
func (e *exchange) Notify(ctx context.Context, n *jsonrpc.Request) error {
	if err := e.tell(ctx, n); !errors.Is(err, transport.ErrNoServerRequests) {
		return err
	}
	return nil
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
	named := *req
	named.ID = e.h.replica.questionID()
	return e.s.ledger.Do(ctx, &named, nil, e.tell, e.cancelRequest)
}

// tell sends a notification or a server request on the reply, or on the stream that the client opened
// with GET. A notification waits there for a client that is about to open it again.
func (e *exchange) tell(ctx context.Context, req *jsonrpc.Request) (err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.state == replyDone:
		return transport.ErrClosed
	case e.becomeStream():
		err = e.send(ctx, jsonrpc.AppendRequest(nil, req), false)
	case e.s == nil, !req.IsNotification() && !e.s.out.listening():
		return transport.ErrNoServerRequests
	default:
		err = e.s.Notify(ctx, req)
	}
	if errors.Is(err, transport.ErrClosed) { // the session has ended, and with it the call
		return nil
	}
	return err
}

// cancelRequest cancels a server request at the client.
func (e *exchange) cancelRequest(id jsonrpc.ID) {
	params := &protocol.CancelledParams{RequestID: id, Reason: "the server no longer waits for the response"}
	if n, err := jsonrpc.NewNotification(protocol.NotificationCancelled, params); err == nil {
		_ = e.tell(context.Background(), n) // a disconnected client need not be notified
	}
}

// becomeStream makes the reply an event stream unless it is one already. It returns false if that
// is impossible. The caller holds mu.
func (e *exchange) becomeStream() bool {
	if e.state != replyOpen {
		return true
	}
	// The header with the ID of a session is not known before the response to initialize.
	if e.h.opts.JSONOnly || e.batch != nil || e.req.IsNotification() || e.s != nil && e.initializes() || e.disconnected() {
		return false
	}
	if e.flush = e.h.flusher(e.w, e.r, e.acceptStream); e.flush == nil {
		return false
	}
	e.state = replyStream
	e.beginStream()
	e.alive = time.AfterFunc(e.every, e.keepAlive) // at most once for each write
	if e.s != nil {
		e.st, e.reader = e.s.out.create(e.req.ID.String())
		if e.s.canPoll() {
			e.write(sse.AppendPriming(nil, eventID(e.st, 0)))
		}
	}
	return true
}

// keepAlive sends a comment on a stream that was silent.
func (e *exchange) keepAlive() {
	if e.mu.TryLock() { // or else a message is being sent, which starts the timer again
		defer e.mu.Unlock()
		e.write([]byte(sse.KeepAlive))
	}
}

// send stores a message for a client that resumes the stream, and then writes it. The caller holds mu.
func (e *exchange) send(ctx context.Context, data []byte, response bool) error {
	id := ""
	if e.st != nil {
		seq, err := e.s.out.append(ctx, e.st, data, response)
		if err == nil {
			id = eventID(e.st, seq)
		} else if e.state != replyStream {
			return err
		}
	}
	e.write(sse.AppendHead(nil, id), sse.Data(data), []byte("\n\n"))
	return nil
}

// write writes the parts of an event, unless the client has disconnected or resumed the stream with
// a GET. The caller holds mu.
func (e *exchange) write(parts ...[]byte) {
	if e.state != replyStream {
		return
	}
	if e.disconnected() || e.resumed() || e.writeEvent(parts...) != nil {
		e.lose()
	}
}

// resumed reports whether the client has resumed the stream with a GET.
func (e *exchange) resumed() bool { return e.st != nil && e.s.out.readerOf(e.st) != e.reader }

// disconnected reports whether the connection has ended. If a deadline of the program ended the
// context, the client is still connected.
func (e *exchange) disconnected() bool { return errors.Is(e.r.Context().Err(), context.Canceled) }

// lose separates the stream from the connection. In a session, the client can resume the stream. The
// caller holds mu.
func (e *exchange) lose() {
	e.state = replyLost
	if e.alive != nil {
		e.alive.Stop()
	}
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

// finish ends the call of the request and returns its complete response: an error if the handler
// returned none, and nil for a notification and if the client has cancelled the request. The client
// may reuse the ID once it has the response. It can cancel a streamed response until it is written.
func (e *exchange) finish(resp *jsonrpc.Response) *jsonrpc.Response {
	if e.req.IsNotification() {
		return nil
	}
	last := jsonrpc.Response{
		Error: jsonrpc.Errorf(jsonrpc.CodeInternalError, "internal error"), HTTPStatus: http.StatusInternalServerError,
	}
	if resp != nil {
		last = *resp
	}
	last.ID = e.req.ID
	switch {
	case e.entry == nil:
	case isStreamed(resp) && e.entry.Wanted():
		last.Stream = func(w io.Writer) error {
			defer e.entry.End()
			return resp.Stream(w)
		}
	case isStreamed(resp), !e.entry.End():
		return nil
	}
	return &last
}

// isStreamed reports whether the result of resp, which may be nil, is written while it is read.
func isStreamed(resp *jsonrpc.Response) bool {
	return resp != nil && resp.Stream != nil && resp.Error == nil
}

// reply sends the response. It is nil for a notification, and if the client has cancelled the
// request.
func (e *exchange) reply(resp *jsonrpc.Response) {
	e.mu.Lock()
	defer e.mu.Unlock()
	defer e.end()
	if e.resumed() {
		e.lose()
	}
	switch {
	case e.batch != nil:
		if resp != nil {
			*e.batch = append(*e.batch, jsonrpc.AppendResponse(nil, e.hold(resp)))
		}
	case e.state == replyOpen && resp == nil:
		e.w.WriteHeader(http.StatusAccepted)
	case resp == nil, e.st == nil && e.disconnected(): // nobody gets it
	case isStreamed(resp) && e.state != replyLost:
		e.streamResult(resp)
	case e.state == replyStream && len(resp.Result) > maxSessionBytes: // no store takes it, so that it need not be copied
		resp = e.hold(resp)
		resp.Stream = func(w io.Writer) error { _, err := w.Write(resp.Result); return err }
		e.streamResult(resp)
	case e.state != replyOpen:
		id := resp.ID
		data := jsonrpc.AppendResponse(nil, e.hold(resp)) // resp is not used again, so that its result is freed
		if e.send(e.r.Context(), data, true) != nil {
			e.sendError(id, errLost)
		}
	default:
		if e.s != nil && e.initializes() && resp.Error == nil {
			e.w.Header().Set(protocol.HeaderSessionID, e.h.sealSession(oauth.FromContext(e.r.Context()).Key(), e.s.Session))
		}
		e.writeJSON(e.hold(resp), http.StatusOK)
	}
}

// streamResult writes a response to the connection alone: its result is read meanwhile, or large. If
// that fails, the reply does not look complete, and a client that resumes the stream gets an error.
// The caller holds mu.
func (e *exchange) streamResult(resp *jsonrpc.Response) {
	var err error
	if e.state == replyOpen {
		e.w.Header().Set("Content-Type", "application/json")
		err = jsonrpc.WriteResponse(e, resp)
	} else {
		_, _ = e.Write(sse.AppendHead(nil, "")) // if it fails, so does what follows
		if err = jsonrpc.WriteResponse(dataWriter{e}, resp); err == nil {
			err = e.writeEvent([]byte("\n\n"))
		}
	}
	if err == nil {
		return
	}
	why := errLost
	if e.post.err == nil {
		why = resp.Broken(err)
	}
	e.lose()
	e.sendError(resp.ID, why)
	panic(http.ErrAbortHandler)
}

var errLost = jsonrpc.Errorf(jsonrpc.CodeInternalError,
	"the response was lost with the connection and is too large to be stored")

// sendError sends an error in place of a response that cannot be stored. The caller holds mu.
func (e *exchange) sendError(id jsonrpc.ID, err *jsonrpc.Error) {
	_ = e.send(e.r.Context(), jsonrpc.AppendResponse(nil, &jsonrpc.Response{ID: id, Error: err}), true) // a failure is logged
}

// end ends the reply after the response. It may be called more than once. The caller holds mu.
func (e *exchange) end() {
	if e.state == replyDone {
		return
	}
	e.lose()
	if e.st != nil {
		_, _ = e.s.out.append(e.r.Context(), e.st, nil, true) // if it has no response
	}
	e.state = replyDone
}

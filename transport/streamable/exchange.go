package streamable

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/conn"
	"github.com/mcpkit/mcpkit-go/internal/httpserve"
	"github.com/mcpkit/mcpkit-go/internal/sse"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// keepAliveRetry is how long a keep-alive comment waits if the stream is being written.
const keepAliveRetry = time.Second

// replyState is the state of an exchange's HTTP response.
type replyState int

const (
	replyOpen   replyState = iota // nothing is sent yet
	replyStream                   // it is an event stream
	replyLost                     // the client has disconnected, or was told to resume the stream later
	replyDone                     // the response is sent; the writer must no longer be used
)

// An exchange is one POST with a request, its notifications and its response. It is the Peer of
// that request. The fields of the event stream are set when the reply becomes one.
type exchange struct {
	*post
	s       *legacySession          // nil outside sessions
	entry   *conn.Entry             // of the request, in a session; otherwise nil
	cancel  context.CancelCauseFunc // ends the context of the call
	listens bool                    // a subscription: it ends when the client disconnects or the server stops
	modern  bool

	mu     sync.Mutex // held while a message is stored and written
	state  replyState
	flush  func() error
	st     *stream     // the stream that the client can resume; nil outside sessions
	reader *reader     // of st
	alive  *time.Timer // nil without keep-alive
	broken bool        // the response is incomplete
}

// newExchange returns the exchange of a POST. s is the session of its request, or nil.
func newExchange(p *post, s *legacySession) *exchange {
	return &exchange{post: p, s: s}
}

// begin returns the context of a request outside sessions, or of initialize.
func (e *exchange) begin(parent context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(parent)
	e.cancel = cancel
	return ctx
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

// Notify sends n on the reply, which becomes an event stream.
func (e *exchange) Notify(ctx context.Context, n *jsonrpc.Request) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.state == replyDone:
		return transport.ErrClosed
	case !e.becomeStream():
		return e.notifyStandalone(ctx, n)
	}
	err := e.send(ctx, n)
	if err == transport.ErrClosed {
		return nil // notifying a disconnected peer is not an error
	}
	return err
}

// notifyStandalone sends n on the stream that the client opened with GET.
func (e *exchange) notifyStandalone(ctx context.Context, n *jsonrpc.Request) error {
	if e.s == nil {
		return nil
	}
	if err := e.s.Notify(ctx, n); err != transport.ErrClosed {
		return err
	}
	return nil
}

// Call sends a request on the reply, which becomes an event stream. The response arrives in another
// POST.
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
	n, err := jsonrpc.NewRequest(jsonrpc.ID{}, protocol.NotificationCancelled, struct {
		RequestID json.RawMessage `json:"requestId"`
		Reason    string          `json:"reason"`
	}{json.RawMessage(id.String()), "the server no longer waits for the response"})
	if err != nil {
		return
	}
	_ = e.ask(context.Background(), n) // a disconnected client need not be notified
}

// becomeStream makes the reply an event stream unless it is one already. It returns false if that
// is impossible. The caller holds mu.
func (e *exchange) becomeStream() bool {
	if e.state == replyOpen && !e.modern && e.disconnected() {
		e.state = replyLost
	}
	if e.state != replyOpen {
		return true
	}
	if e.h.opts.JSONOnly {
		return false
	}
	if !e.acceptStream {
		e.h.warnNoStream(e.r, "the client does not accept text/event-stream")
		return false
	}
	if e.flush = httpserve.Flusher(e.w); e.flush == nil {
		e.h.warnNoStream(e.r, "the response writer cannot flush; does a middleware buffer it?")
		return false
	}
	e.state = replyStream
	header := e.w.Header()
	header["Content-Type"] = contentTypeStream
	header["Cache-Control"] = noStore
	header["X-Accel-Buffering"] = noBuffering
	e.w.WriteHeader(http.StatusOK)
	if e.h.opts.KeepAlive > 0 {
		// Runs each time the stream was silent; closeReply and lose stop it.
		e.alive = time.AfterFunc(e.h.opts.KeepAlive, e.keepAlive)
	}
	if e.s != nil {
		e.st, e.reader = e.s.out.create(e.entry.Request.ID.String())
		if e.s.canPoll() {
			e.write(sse.AppendPriming(nil, string(appendEventID(nil, e.st, 0)), e.h.opts.Retry))
		}
	}
	return true
}

// send writes a notification or a server request to the stream. The caller holds mu.
func (e *exchange) send(ctx context.Context, req *jsonrpc.Request) error {
	if e.st != nil {
		return e.sendStored(ctx, jsonrpc.AppendRequest(nil, req), false)
	}
	sent, ok := e.fits(req)
	if !ok {
		return errUnread
	}
	defer sent()
	e.write(sse.AppendEvent(nil, "", jsonrpc.AppendRequest(nil, req)))
	return nil
}

// errUnread is returned for a notification or server request that was dropped.
var errUnread = errors.New("streamable: dropped, since the client has too many unread bytes")

// sendStored stores data for a client that resumes the stream, and then writes it. The caller holds
// mu.
func (e *exchange) sendStored(ctx context.Context, data []byte, response bool) error {
	seq, err := e.s.out.append(ctx, e.st, data, response)
	if err != nil && e.state != replyStream {
		return err
	}
	var id []byte
	if err == nil {
		id = appendEventID(nil, e.st, seq)
	}
	e.write(sse.AppendEvent(nil, string(id), data))
	return nil
}

// write writes and flushes frame, unless the client has disconnected or resumed the stream with a
// GET. The caller holds mu.
func (e *exchange) write(frame []byte) {
	if e.state != replyStream || e.modern && e.disconnected() {
		return
	}
	if e.reader != nil {
		select {
		case <-e.reader.left:
			e.lose()
			return
		default:
		}
	}
	_ = e.rc.SetWriteDeadline(time.Now().Add(writeTimeout))
	_, err := e.w.Write(frame)
	if err == nil {
		err = e.flush()
	}
	if err != nil {
		e.lose()
		return
	}
	if e.alive != nil {
		e.alive.Reset(e.h.opts.KeepAlive)
	}
}

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

// keepAlive runs when the stream has been silent for Options.KeepAlive.
func (e *exchange) keepAlive() {
	// A write may take long; no goroutine needs to wait for it.
	if !e.mu.TryLock() {
		time.AfterFunc(keepAliveRetry, e.keepAlive)
		return
	}
	defer e.mu.Unlock()
	e.write([]byte(sse.KeepAlive))
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
	}
	e.write(sse.AppendRetry(nil, retry))
	if e.state != replyStream {
		return nil
	}
	conn, err := e.hijack()
	if err != nil {
		return err
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

// hijack takes the connection from net/http, unless another writer, such as a compressor, may still
// write to it: then the error is [errors.ErrUnsupported]. The caller holds mu.
func (e *exchange) hijack() (net.Conn, error) {
	if e.w.Header().Get("Content-Encoding") != "" {
		return nil, errors.ErrUnsupported
	}
	conn, _, err := e.rc.Hijack()
	if err != nil {
		return nil, errors.ErrUnsupported
	}
	return conn, nil
}

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
// that request, and an [httpserve.Task]. The fields of the event stream are set when the reply
// becomes one.
type exchange struct {
	*post
	call
	s      *session    // nil outside sessions
	entry  *conn.Entry // of the request, in a session; nil outside, and in a batch
	modern bool

	mu    sync.Mutex // not held while the event store works
	state replyState
	flush func() error

	// turn holds one token. Its owner stores and sends a message, so messages are sent in the order
	// in which they are stored, and mu is not held while the store works. It is created for the
	// first message before the response. It is nil outside sessions, where nothing is stored.
	turn chan struct{}

	st      *stream     // the stream that the client can resume; nil outside sessions
	alive   *time.Timer // nil without keep-alive
	wrote   time.Time   // time of the last write; only with keep-alive
	unwatch func() bool // stops watching the connection of a stream or a batch; otherwise nil
	batch   *batch      // the batch that the reply is for, or nil
	broken  bool        // the response is incomplete
}

// newExchange returns the exchange of a POST. s is the session of its request, or nil.
func newExchange(p *post, s *session) *exchange {
	e := &p.exchange
	e.post, e.s = p, s
	return e
}

// begin returns the context of a request outside sessions, or of initialize.
func (e *exchange) begin(parent context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(parent)
	e.cancel = cancel
	return ctx
}

// takeTurn waits until no other goroutine stores or sends a message. The caller gives the turn
// back.
func (e *exchange) takeTurn(ctx context.Context) error {
	if e.s == nil {
		return nil
	}
	e.mu.Lock()
	if e.turn == nil {
		e.turn = make(chan struct{}, 1)
		e.turn <- struct{}{}
	}
	turn := e.turn
	e.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// giveTurn undoes takeTurn.
func (e *exchange) giveTurn() {
	if e.s != nil {
		e.turn <- struct{}{}
	}
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
	if err := e.takeTurn(ctx); err != nil {
		return err
	}
	defer e.giveTurn()
	e.mu.Lock()
	state, streams := e.state, e.state != replyDone && e.becomeStream()
	e.mu.Unlock()
	switch {
	case state == replyDone:
		return transport.ErrClosed
	case !streams:
		return e.notifyStandalone(ctx, n)
	}
	return unlessGone(e.send(ctx, n))
}

// notifyStandalone sends n on the stream that the client opened with GET.
func (e *exchange) notifyStandalone(ctx context.Context, n *jsonrpc.Request) error {
	if e.s == nil {
		return nil
	}
	return unlessGone(e.s.Notify(ctx, n))
}

// unlessGone drops the error that the session has ended: notifying a disconnected peer is not an
// error.
func unlessGone(err error) error {
	if err == transport.ErrClosed {
		return nil
	}
	return err
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
	stop, err := e.h.replica.expect(ctx, e.s, q)
	if err != nil {
		return nil, err
	}
	defer stop()
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
	if err := e.takeTurn(ctx); err != nil {
		return err
	}
	defer e.giveTurn()
	e.mu.Lock()
	state, streams := e.state, e.state != replyDone && e.becomeStream()
	// A reply that was lost before it became a stream cannot be resumed.
	nowhere := !streams || e.st == nil
	e.mu.Unlock()
	switch {
	case state == replyDone:
		return transport.ErrClosed
	case !nowhere:
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
	if !e.modern {
		e.release()
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
	if e.flush == nil {
		if e.flush = httpserve.Flusher(e.w); e.flush == nil {
			e.h.warnNoStream(e.r, "the response writer cannot flush; does a middleware buffer it?")
			return false
		}
	}
	e.state = replyStream
	header := e.w.Header()
	header["Content-Type"] = contentTypeStream
	header["Cache-Control"] = noStore
	header["X-Accel-Buffering"] = noBuffering
	e.w.WriteHeader(http.StatusOK)
	if e.s != nil {
		e.st = e.s.out.create(e.requestID())
		if e.s.canPoll() {
			id := appendEventID(nil, e.st, 0)
			e.write(sse.AppendPriming(nil, string(id), e.h.opts.Retry))
		}
	}
	if e.h.opts.KeepAlive > 0 && e.state == replyStream {
		e.wrote = time.Now()
		// Runs each time the stream was silent; closeReply and detach stop it.
		e.alive = time.AfterFunc(e.h.opts.KeepAlive, e.keepAlive)
	}
	if !e.modern && e.state == replyStream && e.unwatch == nil {
		e.watch()
	}
	return true
}

// requestID returns the JSON of the ID of the request; "" in a batch.
func (e *exchange) requestID() string {
	if e.entry == nil {
		return ""
	}
	return e.entry.Request.ID.String()
}

// send writes a notification or a server request to the stream. The caller has the turn.
func (e *exchange) send(ctx context.Context, req *jsonrpc.Request) error {
	e.mu.Lock()
	stored := e.st != nil
	e.mu.Unlock()
	if stored {
		return e.sendStored(ctx, jsonrpc.AppendRequest(nil, req), false)
	}
	sent, ok := e.fits(req)
	if !ok {
		return errUnread
	}
	defer sent()
	e.writeEvent("", jsonrpc.AppendRequest(nil, req))
	return nil
}

// errUnread is returned for a notification or server request that was dropped.
var errUnread = errors.New("streamable: dropped, since the client has too many unread bytes")

// writeEvent writes data as an event.
func (e *exchange) writeEvent(id string, data []byte) {
	event := sse.AppendEvent(nil, id, data)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.write(event)
}

// sendStored stores data for a client that resumes the stream, and then writes it. The caller has
// the turn.
func (e *exchange) sendStored(ctx context.Context, data []byte, answer bool) error {
	seq, err := e.s.out.append(ctx, e.st, data, answer)
	e.mu.Lock()
	defer e.mu.Unlock()
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

// write writes and flushes frame, unless the client has disconnected. The caller holds mu.
func (e *exchange) write(frame []byte) {
	if e.state != replyStream || e.gone() {
		return
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
		e.wrote = time.Now()
		e.alive.Reset(e.h.opts.KeepAlive)
	}
}

// gone reports whether the client has disconnected from a modern request, so that nothing more may
// be sent.
func (e *exchange) gone() bool { return e.modern && e.disconnected() }

// disconnected reports whether the connection has ended. If a deadline of the program ended the
// context, the client is still connected.
func (e *exchange) disconnected() bool { return errors.Is(e.r.Context().Err(), context.Canceled) }

// lose gives up the connection. In a session, the client can resume the stream. The caller holds
// mu.
func (e *exchange) lose() {
	e.detach()
	if e.s == nil {
		return // the request and its connection end together
	}
	e.closeConn()
}

// closeConn closes the connection if net/http allows it. The caller holds mu.
func (e *exchange) closeConn() {
	if conn, err := e.hijack(); err == nil {
		_ = conn.Close()
	}
}

// detach separates the stream from the connection. The caller holds mu.
func (e *exchange) detach() {
	e.state = replyLost
	if e.alive != nil {
		e.alive.Stop()
	}
	if e.st != nil {
		e.s.out.free(e.st)
	}
}

// hijack takes the connection from net/http, unless another writer, such as a compressor, may still
// write to it: then the error is [errors.ErrUnsupported]. The caller holds mu.
func (e *exchange) hijack() (net.Conn, error) {
	if e.r.ProtoMajor != 1 || e.w.Header().Get("Content-Encoding") != "" {
		return nil, errors.ErrUnsupported
	}
	conn, _, err := e.rc.Hijack()
	if err != nil {
		return nil, errors.ErrUnsupported
	}
	return conn, nil
}

// watch releases the connection as soon as the client disconnects. The caller holds mu, or is the
// only user of e.
func (e *exchange) watch() {
	// Runs at most once, when the connection ends; closeReply stops it.
	e.unwatch = context.AfterFunc(e.r.Context(), func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.release()
	})
}

// release gives up the connection of a legacy request if its client has disconnected. The method
// continues without it. The caller holds mu.
func (e *exchange) release() {
	if e.disconnected() && (e.state == replyOpen || e.state == replyStream) {
		e.detach()
		e.closeConn()
	}
}

// releaseEvery is how often the connections of calls that are not streams are checked.
const releaseEvery = time.Second

// watchConnections lets releaseConnections run soon. Watching each connection would cost more than
// most calls take.
func (h *Handler) watchConnections() {
	if !h.watching.Load() && h.watching.CompareAndSwap(false, true) {
		time.AfterFunc(releaseEvery, h.releaseConnections)
	}
}

// releaseConnections gives up the connections of legacy requests whose clients have disconnected, and
// keeps the sessions of the others.
func (h *Handler) releaseConnections() {
	h.watching.Store(false)
	h.life.Each(h.releaseConnection)
}

// releaseConnection does that for t. The reply may have been sent meanwhile.
func (h *Handler) releaseConnection(t httpserve.Task) {
	e, ok := t.(*exchange)
	if !ok || e.modern {
		return
	}
	h.watchConnections()
	h.replica.keep(e.s)
	if e.disconnected() && e.mu.TryLock() { // or a write is about to fail
		e.release()
		e.mu.Unlock()
	}
}

// keepAlive runs when the stream has been silent for Options.KeepAlive.
func (e *exchange) keepAlive() {
	// The lock may be held for as long as a write takes, so try again soon.
	if !e.mu.TryLock() {
		time.AfterFunc(keepAliveRetry, e.keepAlive)
		return
	}
	defer e.mu.Unlock()
	if e.state == replyStream && time.Since(e.wrote) >= e.h.opts.KeepAlive {
		e.write([]byte(sse.KeepAlive))
	}
}

// CloseStream ends the reply while the method continues; the client resumes the stream with GET. It
// implements [transport.StreamCloser]. The error is [errors.ErrUnsupported] for modern clients and
// those before 2025-11-25, in batches, over HTTP/2, where a reply cannot end before its handler
// returns, and behind a middleware that compresses.
func (e *exchange) CloseStream(retry time.Duration) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.state == replyDone:
		return transport.ErrClosed
	case e.state == replyLost:
		return nil
	case e.s == nil || !e.s.canPoll() || e.batch != nil || e.r.ProtoMajor != 1 || !e.becomeStream():
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
	e.detach()
	_ = conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	if e.r.ProtoMinor > 0 {
		// The last chunk (RFC 9112, section 7.1): the reply is complete, not broken.
		_, _ = io.WriteString(conn, "0\r\n\r\n")
	}
	_ = conn.Close()
	return nil
}

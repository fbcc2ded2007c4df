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

	"github.com/mcpkit/mcpkit-go/internal/httpserve"
	"github.com/mcpkit/mcpkit-go/internal/ledger"
	"github.com/mcpkit/mcpkit-go/internal/sse"
	"github.com/mcpkit/mcpkit-go/jsonrpc"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport"
)

// keepAliveRetry is when a stream that was busy at the time of its comment is looked at again.
const keepAliveRetry = time.Second

// replyState is the state of an exchange's HTTP response.
type replyState int

const (
	replyOpen   replyState = iota // nothing was sent
	replyStream                   // it is an event stream
	replyLost                     // the client is gone, or was sent away to come back
	replyDone                     // the answer was sent; the writer must not be touched any more
)

// An exchange is one POST with a request, its notifications and its answer. It is the peer of that request.
// What an event stream needs is made when the reply becomes one.
type exchange struct {
	*post
	call
	s      *session    // nil outside sessions
	entry  ledger.Call // of its request, where it is in a session
	modern bool

	mu    sync.Mutex // not held while the event store works
	state replyState
	flush func() error

	// turn holds one token, which belongs to whoever stores and sends a message: so messages are sent in the order in which
	// they are stored, while nobody waits for mu until the store is done. It is made for the first message before the response,
	// and nil outside sessions, where nothing is stored.
	turn chan struct{}

	st      *stream     // where a client can come back to; nil outside sessions
	alive   *time.Timer // nil without keep-alive
	wrote   time.Time   // when the stream was written last; only with keep-alive
	unwatch func() bool // ends watching the connection; nil for modern requests
	batch   *batch      // what the reply of a batch has so far; nil where it is none
	broken  bool        // an answer broke off
}

// newExchange returns the exchange of a POST, which has one, and whose request belongs to s, or to no session.
func newExchange(p *post, s *session) *exchange {
	e := &p.exchange
	e.post, e.s = p, s
	return e
}

// watch makes a legacy request, which goes on when its client disconnects, give its connection back then.
func (e *exchange) watch() {
	// Runs at most once, when the connection ends; end stops it.
	e.unwatch = context.AfterFunc(e.r.Context(), e.disconnected)
}

// takeTurn waits until nobody stores or sends a message. The caller gives the turn back.
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

// giveTurn gives back the turn that takeTurn took.
func (e *exchange) giveTurn() {
	if e.s != nil {
		e.turn <- struct{}{}
	}
}

// Session is the session of the request; nil outside sessions. It implements [transport.Peer].
func (e *exchange) Session() *transport.Session {
	if e.s == nil {
		return nil
	}
	return e.s.Session
}

// Header holds the header fields of the POST.
func (e *exchange) Header() transport.Header { return transport.Header(e.r.Header) }

// Notify sends n on the reply, which becomes an event stream by it.
func (e *exchange) Notify(ctx context.Context, n *jsonrpc.Request) error {
	if err := e.takeTurn(ctx); err != nil {
		return err
	}
	defer e.giveTurn()
	e.mu.Lock()
	state, streams := e.state, e.state != replyDone && e.become()
	e.mu.Unlock()
	switch {
	case state == replyDone:
		return transport.ErrClosed
	case !streams:
		return e.elsewhere(ctx, n)
	}
	return unlessGone(e.send(ctx, n))
}

// elsewhere sends n where the client may still see it: on the stream that it opened by GET.
func (e *exchange) elsewhere(ctx context.Context, n *jsonrpc.Request) error {
	if e.s == nil {
		return nil
	}
	return unlessGone(e.s.Notify(ctx, n))
}

// unlessGone drops the error that the session is over: a peer that is gone is none.
func unlessGone(err error) error {
	if err == transport.ErrClosed {
		return nil
	}
	return err
}

// Call asks the client on the reply, which becomes an event stream by it; the answer comes by another POST.
func (e *exchange) Call(ctx context.Context, req *jsonrpc.Request) (*jsonrpc.Response, error) {
	if e.s == nil {
		return nil, transport.ErrNoServerRequests
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	q, err := e.s.ledger.Ask(jsonrpc.ID{})
	if err != nil {
		return nil, err
	}
	defer q.End()
	named := *req
	named.ID = q.ID
	if err := e.ask(ctx, &named); err != nil {
		return nil, err
	}
	transport.Sent(ctx)
	select {
	case resp, ok := <-q.Answered():
		if !ok {
			return nil, transport.ErrClosed
		}
		return resp, nil
	case <-ctx.Done():
		if q.End() {
			e.withdraw(q.ID)
		}
		return nil, ctx.Err()
	}
}

// ask sends a request of the server, on the reply or where the client listens.
func (e *exchange) ask(ctx context.Context, req *jsonrpc.Request) error {
	if err := e.takeTurn(ctx); err != nil {
		return err
	}
	defer e.giveTurn()
	e.mu.Lock()
	state, streams := e.state, e.state != replyDone && e.become()
	// Nobody can come back to a reply that was lost before it became a stream.
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

// withdraw tells the client that nobody waits for its answer any more.
func (e *exchange) withdraw(id jsonrpc.ID) {
	n, err := jsonrpc.NewRequest(jsonrpc.ID{}, protocol.NotificationCancelled, struct {
		RequestID json.RawMessage `json:"requestId"`
		Reason    string          `json:"reason"`
	}{json.RawMessage(id.String()), "the server no longer waits for the answer"})
	if err != nil {
		return
	}
	_ = e.ask(context.Background(), n) // a client that is gone need not be told
}

// become makes the reply an event stream unless it is one. It reports false where it cannot be.
// The caller holds mu.
func (e *exchange) become() bool {
	if e.state != replyOpen {
		return true
	}
	if e.h.opts.JSONOnly {
		return false
	}
	if !e.acceptStream {
		e.h.sayPlain(e.r, "the client does not accept text/event-stream")
		return false
	}
	if e.flush == nil {
		if e.flush = httpserve.Flusher(e.w); e.flush == nil {
			e.h.sayPlain(e.r, "the response writer cannot flush; is there a middleware that buffers?")
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
		e.st = e.s.out.create()
		if e.s.canPoll() {
			id := appendEventID(nil, e.st, 0)
			e.write(sse.AppendPriming(nil, string(id), e.h.opts.Retry))
		}
	}
	if e.h.opts.KeepAlive > 0 && e.state == replyStream {
		e.wrote = time.Now()
		// Runs each time the stream was silent; end and detach stop it.
		e.alive = time.AfterFunc(e.h.opts.KeepAlive, e.keepAlive)
	}
	return true
}

// send puts a notification or a request on the stream. The caller has the turn.
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
	body := getBuffer()
	defer putBuffer(body)
	*body = jsonrpc.AppendRequest(*body, req)
	e.writeEvent("", *body)
	return nil
}

// errUnread says that a notification or a request was not sent.
var errUnread = errors.New("streamable: dropped, since the client has too much to read")

// writeEvent sends data as an event.
func (e *exchange) writeEvent(id string, data []byte) {
	buf := getBuffer()
	defer putBuffer(buf)
	*buf = sse.AppendEvent(*buf, id, data)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.write(*buf)
}

// sendStored keeps data for a client that comes back, then writes it. The caller has the turn.
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
	buf := getBuffer()
	defer putBuffer(buf)
	*buf = sse.AppendEvent(*buf, string(id), data)
	e.write(*buf)
	return nil
}

// write sends frame at once, if there is still somebody to send it to. The caller holds mu.
func (e *exchange) write(frame []byte) {
	if e.state != replyStream || e.gone() {
		return
	}
	_ = e.rc.SetWriteDeadline(time.Now().Add(WriteTimeout))
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

// gone reports whether the client closed the connection of a modern request: nothing more may be sent then.
func (e *exchange) gone() bool {
	return e.modern && errors.Is(e.r.Context().Err(), context.Canceled)
}

// lose gives the connection up; what is sent from now on waits for the client to come back, if it can.
// The caller holds mu.
func (e *exchange) lose() {
	e.detach()
	if e.s == nil {
		return // the request ends with its connection, and the connection with the request
	}
	e.closeConn()
}

// closeConn closes the connection where it can be taken from net/http. The caller holds mu.
func (e *exchange) closeConn() {
	if conn, err := e.hijack(); err == nil {
		_ = conn.Close()
	}
}

// detach takes the stream off the connection. The caller holds mu.
func (e *exchange) detach() {
	e.state = replyLost
	if e.alive != nil {
		e.alive.Stop()
	}
	if e.st != nil {
		e.s.out.free(e.st)
	}
}

// hijack takes the connection out of the hands of net/http where that leaves nobody behind who still
// wants to write on it, as a compressor would. Elsewhere the error is [errors.ErrUnsupported].
// The caller holds mu.
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

// disconnected runs when the connection of a legacy request ended. The method goes on, without the connection.
func (e *exchange) disconnected() {
	e.mu.Lock()
	defer e.mu.Unlock()
	// A deadline is the program's own; the client is still there.
	if !errors.Is(e.r.Context().Err(), context.Canceled) {
		return
	}
	switch e.state {
	case replyOpen:
		e.state = replyLost
	case replyStream:
		e.detach()
	default:
		return
	}
	e.closeConn()
}

// keepAlive runs when the stream was silent for a while.
func (e *exchange) keepAlive() {
	// Whoever has the lock may be writing, for as long as the client takes, or may not: so look again soon.
	if !e.mu.TryLock() {
		time.AfterFunc(keepAliveRetry, e.keepAlive)
		return
	}
	defer e.mu.Unlock()
	if e.state == replyStream && time.Since(e.wrote) >= e.h.opts.KeepAlive {
		e.write([]byte(sse.KeepAlive))
	}
}

// CloseStream ends the reply while the method goes on; the client comes back for the rest by GET. It
// implements [transport.StreamCloser]. The error is [errors.ErrUnsupported] for clients before 2025-11-25 and
// modern ones, in batches, over HTTP/2, where a reply cannot end before its handler does, and behind a
// middleware that compresses.
func (e *exchange) CloseStream(retry time.Duration) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.state == replyDone:
		return transport.ErrClosed
	case e.state == replyLost:
		return nil
	case e.s == nil || !e.s.canPoll() || e.batch != nil || e.r.ProtoMajor != 1 || !e.become():
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
	_ = conn.SetWriteDeadline(time.Now().Add(WriteTimeout))
	if e.r.ProtoMinor > 0 {
		// The last chunk (RFC 9112, section 7.1): the reply is complete, not broken.
		_, _ = io.WriteString(conn, "0\r\n\r\n")
	}
	_ = conn.Close()
	return nil
}

package duplex

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mcpkit/mcpkit-go/internal/ledger"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// A Link is one end of a connection. Its methods may be called concurrently. Call and Notify work
// while Serve runs.
type Link struct {
	wire     Wire
	origins  OriginWire // the wire, if it is an OriginWire; else nil
	handler  transport.Handler
	opts     Options
	session  *transport.Session
	out      output
	requests ledger.Ledger
	order    order
	leader   leader

	base   context.Context // of all calls; cancelled at the end of the drain
	cancel context.CancelCauseFunc

	workers pool // of requests and their methods

	stopping chan struct{} // closed by Close
	stopOnce sync.Once
	inputEnd chan struct{} // closed when reading fails
	inputErr error         // why; set before inputEnd is closed
	draining atomic.Bool   // of the messages, only cancellations are handled
	served   atomic.Bool   // the handler has seen the session

	handshake <-chan struct{} // closed when initialize is answered; nil if none is in flight; used only by the leader
}

// New returns a Link that passes requests and notifications to h.
func New(w Wire, h transport.Handler, opts *Options) *Link {
	l := &Link{
		wire:     w,
		handler:  h,
		stopping: make(chan struct{}),
		inputEnd: make(chan struct{}),
	}
	if opts != nil {
		l.opts = *opts
	}
	l.opts.fill()
	l.requests.Limits = ledger.Limits{
		MaxCalls:         l.opts.MaxInFlight,
		MaxSubscriptions: MaxSubscriptions,
		MaxNotifications: max(l.opts.MaxInFlight, MaxNotifications),
		MaxBytes:         l.opts.MaxInFlightBytes,
	}
	l.order.link = l
	l.leader.start(l)
	l.session = transport.NewSession("", sessionLink{l})
	l.origins, _ = w.(OriginWire)
	room := int64(everything)
	if l.opts.Client {
		room = 0
		if w, ok := w.(RoomyWire); ok {
			room = w.Room()
		}
	}
	l.out.start(w, &l.opts, room)
	return l
}

// read reads messages until the input ends, writing fails, or another goroutine reads on. It waits
// only for initialize to be answered, for the peer to read or write, and, for at most patience, for
// a request that it runs itself.
func (l *Link) read() {
	buffered, _ := l.wire.(BufferedWire)
	hold := false
	for l.out.awaitReader(hold) {
		data, err := l.wire.Read()
		more := buffered != nil && buffered.Buffered()
		l.out.more.Store(more)
		bad, isBad := errors.AsType[*BadMessageError](err)
		var c *call
		switch {
		case err != nil && !isBad:
			l.inputErr = err
			close(l.inputEnd)
			return
		case l.draining.Load():
			l.receiveCancellations(data)
		case isBad:
			l.refuse(l.faulty(bad.Head, "", &jsonrpc.Response{Error: jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "%s", bad.Text)}))
		default:
			c = l.receive(data)
		}
		if hold = c != nil && l.leader.runs(c); hold {
			if !l.leader.run(c, more) {
				return
			}
			hold = more
			continue
		}
		if c != nil {
			l.workers.run(c.serve)
		}
		// Let a call that was started, or whose response arrived, run on this thread first. Read
		// may put the thread to sleep; waking another one takes longer than most calls.
		runtime.Gosched()
	}
}

// receive records one message and handles it, or returns a request that the caller must run or
// start.
func (l *Link) receive(data []byte) *call {
	var from Origin
	if l.origins != nil {
		from = l.origins.Origin()
	}
	m, bad := jsonrpc.Decode(data)
	switch {
	case m.Response != nil:
		// A malformed response gets no reply. A response that no request waits for came too late,
		// which is not an error.
		l.requests.Answer(m.Response)
	case bad != nil:
		if elements, isBatch, badBatch := jsonrpc.Batch(data); isBatch {
			l.receiveBatch(elements, badBatch, from)
		} else {
			l.refuse(l.faulty(data, malformed, bad))
		}
	case m.Request.IsNotification():
		l.receiveNotification(m.Request, len(data), from)
	default:
		return l.receiveRequest(m.Request, len(data), from)
	}
	return nil
}

// receiveCancellations handles the cancellations in data, a message or a batch.
func (l *Link) receiveCancellations(data []byte) {
	elements, isBatch, _ := jsonrpc.Batch(data)
	if !isBatch {
		elements = []json.RawMessage{data}
	}
	for _, data := range elements {
		if m, _ := jsonrpc.Decode(data); m.Request != nil && m.Request.Method == protocol.NotificationCancelled {
			l.requests.Cancel(m.Request)
		}
	}
}

// receiveNotification queues n. A cancellation takes effect at once.
func (l *Link) receiveNotification(n *jsonrpc.Request, size int, from Origin) {
	if n.Method == protocol.NotificationCancelled {
		l.requests.Cancel(n)
		return
	}
	l.awaitHandshake()
	if l.opts.First != nil && l.opts.First(n) {
		return
	}
	c, refused := l.beginCall(n, size, from)
	if refused != nil {
		l.opts.Logger.Warn("duplex: a notification was dropped, since too many wait", "method", n.Method, "reason", refused.Message)
		return
	}
	l.order.add(c)
}

// receiveRequest queues or refuses req, or returns it to the caller to start.
func (l *Link) receiveRequest(req *jsonrpc.Request, size int, from Origin) *call {
	if req.Method != protocol.MethodPing {
		l.awaitHandshake()
	}
	c, refused := l.beginCall(req, size, from)
	if refused != nil {
		l.refuse(&jsonrpc.Response{ID: req.ID, Error: refused})
		return nil
	}
	if req.Method == protocol.MethodInitialize {
		c.handshake = make(chan struct{})
		l.handshake = c.handshake
	}
	if !l.startsNow(c) {
		return nil
	}
	return c
}

// startsNow reports whether the request c starts at once. Otherwise it has been queued. Requests to
// a client do not wait for notifications: a notification handler may call the server, which may
// have to send a request first.
func (l *Link) startsNow(c *call) bool {
	return c.entry.Request.Method == protocol.MethodPing || l.opts.Client || !l.order.add(c)
}

// awaitHandshake waits until an earlier initialize is answered, since later messages depend on it.
func (l *Link) awaitHandshake() {
	if l.handshake != nil {
		<-l.handshake
		l.handshake = nil
	}
}

// beginCall records a request or a notification.
func (l *Link) beginCall(req *jsonrpc.Request, size int, from Origin) (*call, *jsonrpc.Error) {
	c := &call{l: l, header: from.Header}
	if refused := l.requests.BeginAt(&c.entry, l.contextFor(from), req, size); refused != nil {
		return nil, refused
	}
	return c, nil
}

// contextFor returns the context of calls with this origin.
func (l *Link) contextFor(from Origin) context.Context {
	if from.Context == nil {
		return l.base
	}
	return valued{l.base, context.WithoutCancel(from.Context)}
}

// A valued context adds the values of another context.
type valued struct {
	context.Context
	values context.Context
}

func (c valued) Value(key any) any {
	if v := c.values.Value(key); v != nil {
		return v
	}
	return c.Context.Value(key)
}

// refuse sends an error response; nil does nothing.
func (l *Link) refuse(refusal *jsonrpc.Response) {
	if refusal != nil {
		l.out.refuse(refusal)
	}
}

const (
	malformed = "malformed response: "

	// givenUp ends an incomplete line. (ASCII calls the character CANCEL: the data before it is in
	// error.) No JSON ends with it. Another line carries the error response of the call.
	givenUp = "\x18"
)

// faulty handles a message that could not be decoded; data is its beginning. For a request, it
// returns the error response to send. A response must not be answered, since the peer would take
// that for the response to its own request with the same ID. Instead, our request that it is for
// ends with the text of the refusal after prefix.
func (l *Link) faulty(data []byte, prefix string, refusal *jsonrpc.Response) *jsonrpc.Response {
	b := jsonrpc.ReadBeginning(data)
	if b.Request {
		if !refusal.ID.IsValid() {
			refusal.ID = b.ID
		}
		return refusal
	}
	if b.Response && bytes.HasSuffix(data, []byte(givenUp)) {
		return nil
	}
	id := b.ID
	if !id.IsValid() && b.Response {
		id = l.requests.OnlyQuestion()
	}
	text := strings.TrimPrefix(refusal.Error.Message, "invalid message: ")
	if id.IsValid() && !b.Response {
		text = "it has neither a result nor an error"
	}
	ending := &jsonrpc.Response{ID: id, Error: jsonrpc.Errorf(refusal.Error.Code, "%s%s", prefix, text)}
	switch {
	case id.IsValid() && l.requests.Answer(ending):
		return nil
	case b.Response || l.opts.Client:
		// Text that the program of a server printed between messages is not a request, and clients
		// of modern versions send no responses.
		l.opts.Logger.Warn("duplex: ignored input that is not a valid message", "fault", text)
		return nil
	}
	return refusal
}

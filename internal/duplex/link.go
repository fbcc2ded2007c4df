package duplex

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mcpkit/mcpkit-go/internal/ledger"
	"github.com/mcpkit/mcpkit-go/jsonrpc"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport"
)

// A Link is one end of a connection. Its methods may be called concurrently; Call and Notify work while Serve runs.
type Link struct {
	wire     Wire
	origins  OriginWire // the wire, where it knows origins
	handler  transport.Handler
	opts     Options
	session  *transport.Session
	out      output
	requests ledger.Ledger
	order    order

	base   context.Context // of all calls; ends with the drain
	cancel context.CancelCauseFunc

	workers pool // of requests and their methods

	stopping chan struct{} // closed by Close
	stopOnce sync.Once
	inputEnd chan struct{} // closed when the reader could read no more
	inputErr error         // why; set before
	draining atomic.Bool   // nothing that is read is handled any more
	served   atomic.Bool   // the handler has seen the session

	handshake <-chan struct{} // closed when the initialize that was read was answered; nil for none; the reader's alone
}

// New returns a Link whose requests and notifications go to h.
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

// read reads messages until the input ends or nothing can be written any more. It runs no code of
// the handler, and waits only for the handshake, for the peer to read, and for the peer to write.
func (l *Link) read() {
	buffered, _ := l.wire.(BufferedWire)
	for l.out.awaitReader() {
		l.out.more.Store(buffered != nil && buffered.Buffered())
		// The call that was started runs now, on this thread. Reading may put the thread to sleep, and
		// then another one has to be woken for the call, which takes longer than most calls do.
		runtime.Gosched()
		data, err := l.wire.Read()
		bad, isBad := errors.AsType[*BadMessageError](err)
		switch {
		case l.draining.Load():
			return
		case isBad:
			l.refuse(l.faulty(bad.Head, "", &jsonrpc.Response{Error: jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "%s", bad.Text)}))
		case err != nil:
			l.inputErr = err
			close(l.inputEnd)
			return
		default:
			l.receive(data)
		}
	}
}

// receive records one message, and has it handled.
func (l *Link) receive(data []byte) {
	var from Origin
	if l.origins != nil {
		from = l.origins.Origin()
	}
	m, bad := jsonrpc.Decode(data)
	switch {
	case m.Response != nil:
		// A malformed one is not answered: the peer waits for no answer to an answer. One that
		// nobody waits for came too late, and is not a mistake.
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
		l.receiveRequest(m.Request, len(data), from)
	}
}

// receiveNotification queues n. A cancellation is carried out here and now.
func (l *Link) receiveNotification(n *jsonrpc.Request, size int, from Origin) {
	if n.Method == protocol.NotificationCancelled {
		l.requests.Cancel(n)
		return
	}
	l.awaitHandshake()
	if l.opts.First != nil && l.opts.First(n) {
		return
	}
	c, refused := l.begin(n, size, from)
	if refused != nil {
		l.opts.Logger.Warn("duplex: a notification was dropped, since too many wait", "method", n.Method, "reason", refused.Message)
		return
	}
	l.order.add(c)
}

// receiveRequest starts the request req in its turn, or refuses it.
func (l *Link) receiveRequest(req *jsonrpc.Request, size int, from Origin) {
	if req.Method != protocol.MethodPing {
		l.awaitHandshake()
	}
	c, refused := l.begin(req, size, from)
	if refused != nil {
		l.refuse(&jsonrpc.Response{ID: req.ID, Error: refused})
		return
	}
	if req.Method == protocol.MethodInitialize {
		c.handshake = make(chan struct{})
		l.handshake = c.handshake
	}
	l.start(c)
}

// start runs the request c in its turn. What a client is asked does not wait for notifications:
// their handlers may call the server, which may have to ask first.
func (l *Link) start(c *call) {
	if c.req.Method == protocol.MethodPing || l.opts.Client {
		l.workers.run(c.serve)
		return
	}
	l.order.add(c)
}

// awaitHandshake waits until the initialize that came before has been answered: what comes behind it depends on it.
func (l *Link) awaitHandshake() {
	if l.handshake != nil {
		<-l.handshake
		l.handshake = nil
	}
}

// begin records a request or a notification.
func (l *Link) begin(req *jsonrpc.Request, size int, from Origin) (*call, *jsonrpc.Error) {
	c := &call{l: l, req: req, header: from.Header}
	if refused := l.requests.BeginAt(&c.entry, l.contextFor(from), req, size); refused != nil {
		return nil, refused
	}
	return c, nil
}

// contextFor returns the context of calls that come from there.
func (l *Link) contextFor(from Origin) context.Context {
	if from.Context == nil {
		return l.base
	}
	return valued{l.base, context.WithoutCancel(from.Context)}
}

// valued is a context with the values of another besides.
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

// refuse answers what is not a proper message, or is one too many. Nil answers nothing.
func (l *Link) refuse(refusal *jsonrpc.Response) {
	if refusal != nil {
		l.out.refuse(refusal)
	}
}

const (
	malformed = "malformed response: "

	// givenUp ends a line of which the rest will not come. (ASCII calls the character CANCEL: what is
	// before it is in error.) No JSON can end so, and another line says what became of the call.
	givenUp = "\x18"
)

// faulty deals with a message that could not be decoded, of which that much was read, and returns
// what to answer: for a request the refusal. A response is not answered, since the peer would take
// that for the answer to a request of its own with that ID. It ends the call that it is for, which
// would wait in vain, with the text of the refusal behind prefix.
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
		// What a server's program printed between the messages is not a request, and in the modern
		// versions clients send no responses at all.
		l.opts.Logger.Warn("duplex: the peer sent what is not a message", "fault", text)
		return nil
	}
	return refusal
}

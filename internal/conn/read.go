package conn

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync/atomic"

	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// A Conn is one end of a connection. Its methods may be called concurrently. Do and Notify work
// while Serve runs.
type Conn struct {
	wire     Wire
	origins  OriginWire // the wire, if it is an OriginWire; else nil
	handler  transport.Handler
	opts     Options
	session  *transport.Session
	out      output
	requests Ledger

	base     context.Context // of all calls; never ends
	stopping context.Context // ends with Close
	stop     context.CancelFunc
	inputEnd chan error  // receives why reading ended
	draining atomic.Bool // of the messages, only cancellations are handled

	handshake <-chan struct{} // closed when the last initialize was answered; nil if there was none; used only by read
	turn      <-chan struct{} // closed when the last message that others wait for lets them begin; nil if there was none; used only by read
}

// New returns a Conn that passes requests and notifications to h.
func New(w Wire, h transport.Handler, opts *Options) *Conn {
	c := &Conn{wire: w, handler: h, inputEnd: make(chan error, 1)}
	c.stopping, c.stop = context.WithCancel(context.Background())
	if opts != nil {
		c.opts = *opts
	}
	c.opts.fill()
	c.requests.Limits = Tally{
		Calls:         c.opts.MaxInFlight,
		Subscriptions: MaxSubscriptions,
		Notifications: max(c.opts.MaxInFlight, MaxNotifications),
		Bytes:         c.opts.MaxInFlightBytes,
	}
	c.session = transport.NewSession("", sessionPeer{c})
	c.origins, _ = w.(OriginWire)
	c.out.start(w, &c.opts)
	return c
}

// read reads messages until the input ends or writing fails. It waits only for the peer to read or
// write, and before a batch for initialize to be answered.
func (c *Conn) read() {
	for c.out.awaitReader() {
		data, err := c.wire.Read()
		c.out.touch()
		bad, isBad := errors.AsType[*BadMessageError](err)
		switch {
		case isBad:
			c.refuse(c.faulty(bad.Head, "", &jsonrpc.Response{Error: jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "%s", bad.Text)}))
		case err != nil:
			c.inputEnd <- err
			return
		default:
			c.receive(data)
		}
	}
}

// receive starts to handle a message or a batch.
func (c *Conn) receive(data []byte) {
	var from Origin
	if c.origins != nil {
		from = c.origins.Origin()
	}
	if elements, isBatch, bad := jsonrpc.Batch(data); isBatch {
		c.receiveBatch(elements, bad, from)
	} else {
		c.refuse(c.receiveOne(data, from, nil))
	}
}

// receiveOne starts to handle a message, which is in a batch if b is not nil. If it refuses the
// message, it returns the error response to send. A cancellation takes effect at once.
func (c *Conn) receiveOne(data []byte, from Origin, b *batch) *jsonrpc.Response {
	m, bad := jsonrpc.Decode(data)
	req := m.Request
	switch {
	case req != nil && req.IsNotification() && req.Method == protocol.NotificationCancelled:
		c.requests.Cancel(req)
		return nil
	case c.draining.Load():
		return nil
	case m.Response != nil:
		// A malformed response gets no reply. A response that no request waits for came too late,
		// which is not an error.
		c.requests.Answer(m.Response)
		return nil
	case bad != nil:
		return c.faulty(data, malformed, bad)
	case req.IsNotification() && c.opts.First != nil && c.opts.First(req):
		return nil
	}
	if b != nil && !req.IsNotification() {
		if refused := notInBatch(req); refused != nil {
			return &jsonrpc.Response{ID: req.ID, Error: refused}
		}
	}
	k, refused := c.begin(req, len(data), from)
	switch {
	case refused == nil:
		k.join(b)
		c.start(k)
	case req.IsNotification():
		c.opts.Logger.Warn("conn: a notification was dropped, since too many wait", "method", req.Method, "reason", refused.Message)
	default:
		return &jsonrpc.Response{ID: req.ID, Error: refused}
	}
	return nil
}

// begin records a request or a notification.
func (c *Conn) begin(req *jsonrpc.Request, size int, from Origin) (*call, *jsonrpc.Error) {
	ctx := c.base
	if from.Context != nil {
		ctx = valued{context.WithoutCancel(from.Context), c.base}
	}
	entry, refused := c.requests.Begin(ctx, req, size)
	if refused != nil {
		return nil, refused
	}
	k := &call{c: c, entry: entry, header: from.Header}
	if refused := c.out.reserve(k, 0, 0); refused != nil {
		entry.End()
		return nil, refused
	}
	return k, nil
}

// A valued context also has the values of another context.
type valued struct {
	context.Context
	more context.Context
}

func (c valued) Value(key any) any { return cmp.Or(c.Context.Value(key), c.more.Value(key)) }

// start handles k on a goroutine of its own, after the notifications and initialize before it. They
// let others begin when they have been handled, or when their handler is about to wait for the peer.
// Requests to a client do not wait for notifications: a notification handler may call the server,
// which may have to send a request first.
func (c *Conn) start(k *call) {
	req := k.entry.Request
	if req.IsNotification() || req.Method != protocol.MethodPing && !c.opts.Client {
		k.before = c.turn
	}
	if req.IsNotification() || req.Method == protocol.MethodInitialize {
		var done context.Context
		done, k.pass = context.WithCancel(context.Background())
		c.turn = done.Done()
	}
	if req.Method == protocol.MethodInitialize {
		c.handshake = c.turn
	}
	// Ends when the call is handled.
	go k.serve()
}

// refuse sends an error response; nil does nothing. Nothing is refused while the connection drains.
func (c *Conn) refuse(refusal *jsonrpc.Response) {
	if refusal != nil && !c.draining.Load() {
		c.out.send(jsonrpc.AppendResponse(nil, refusal))
	}
}

const malformed = "malformed response: "

// faulty handles a message that could not be decoded; data is its beginning. For a request, it
// returns the error response to send. A response must not be answered, since the peer would take
// that for the response to its own request with the same ID. Instead, our request that it is for
// ends with the text of the refusal after prefix.
func (c *Conn) faulty(data []byte, prefix string, refusal *jsonrpc.Response) *jsonrpc.Response {
	b := jsonrpc.ReadBeginning(data)
	if b.Request {
		if !refusal.ID.IsValid() {
			refusal.ID = b.ID
		}
		return refusal
	}
	id := b.ID
	if !id.IsValid() && b.Response {
		id = c.requests.OnlyOutgoing()
	}
	text := strings.TrimPrefix(refusal.Error.Message, "invalid message: ")
	if id.IsValid() && !b.Response {
		text = "it has neither a result nor an error"
	}
	ending := &jsonrpc.Response{ID: id, Error: jsonrpc.Errorf(refusal.Error.Code, "%s%s", prefix, text)}
	switch {
	case id.IsValid() && c.requests.Answer(ending):
		return nil
	case b.Response || c.opts.Client:
		// Text that the program of a server printed between messages is not a request, and clients
		// of modern versions send no responses.
		c.opts.Logger.Warn("conn: ignored input that is not a valid message", "fault", text)
		return nil
	}
	return refusal
}

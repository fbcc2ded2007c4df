package conn

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"

	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// A Conn is one end of a connection. Its methods may be called concurrently. Call and Notify work
// while Serve runs.
type Conn struct {
	wire     Wire
	origins  OriginWire // the wire, if it is an OriginWire; else nil
	handler  transport.Handler
	opts     Options
	session  *transport.Session
	out      output
	requests Ledger

	base     context.Context // of calls without an origin; never ends
	stopping context.Context // ends with Close
	stop     context.CancelFunc
	inputEnd chan error  // receives why reading ended
	draining atomic.Bool // of the messages, only cancellations are handled

	handshake <-chan struct{} // closed when the last initialize was answered; nil if there was none; used only by read
	turn      <-chan struct{} // closed when the last message that others wait for was handled; nil if there was none; used only by read
}

// New returns a Conn that passes requests and notifications to h.
func New(w Wire, h transport.Handler, opts *Options) *Conn {
	c := &Conn{
		wire:     w,
		handler:  h,
		inputEnd: make(chan error, 1),
	}
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
		case err != nil && !isBad:
			c.inputEnd <- err
			return
		case c.draining.Load():
			c.receiveCancellations(data)
		case isBad:
			c.refuse(c.faulty(bad.Head, "", &jsonrpc.Response{Error: jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "%s", bad.Text)}))
		default:
			c.receive(data)
		}
	}
}

// receive records one message and starts to handle it.
func (c *Conn) receive(data []byte) {
	var from Origin
	if c.origins != nil {
		from = c.origins.Origin()
	}
	m, bad := jsonrpc.Decode(data)
	switch {
	case m.Response != nil:
		// A malformed response gets no reply. A response that no request waits for came too late,
		// which is not an error.
		c.requests.Answer(m.Response)
	case bad != nil:
		if elements, isBatch, badBatch := jsonrpc.Batch(data); isBatch {
			c.receiveBatch(elements, badBatch, from)
		} else {
			c.refuse(c.faulty(data, malformed, bad))
		}
	case m.Request.IsNotification():
		c.receiveNotification(m.Request, len(data), from)
	default:
		c.receiveRequest(m.Request, len(data), from)
	}
}

// receiveCancellations handles the cancellations in data, a message or a batch.
func (c *Conn) receiveCancellations(data []byte) {
	elements, isBatch, _ := jsonrpc.Batch(data)
	if !isBatch {
		elements = []json.RawMessage{data}
	}
	for _, data := range elements {
		if m, _ := jsonrpc.Decode(data); m.Request != nil && m.Request.Method == protocol.NotificationCancelled {
			c.requests.Cancel(m.Request)
		}
	}
}

// receiveNotification starts to handle n. A cancellation takes effect at once.
func (c *Conn) receiveNotification(n *jsonrpc.Request, size int, from Origin) {
	if n.Method == protocol.NotificationCancelled {
		c.requests.Cancel(n)
		return
	}
	if c.opts.First != nil && c.opts.First(n) {
		return
	}
	k, refused := c.begin(n, size, from)
	if refused != nil {
		c.opts.Logger.Warn("conn: a notification was dropped, since too many wait", "method", n.Method, "reason", refused.Message)
		return
	}
	c.start(k)
}

// receiveRequest starts or refuses req.
func (c *Conn) receiveRequest(req *jsonrpc.Request, size int, from Origin) {
	k, refused := c.begin(req, size, from)
	if refused != nil {
		c.refuse(&jsonrpc.Response{ID: req.ID, Error: refused})
		return
	}
	c.start(k)
}

// begin records a request or a notification.
func (c *Conn) begin(req *jsonrpc.Request, size int, from Origin) (*call, *jsonrpc.Error) {
	ctx := c.base
	if from.Context != nil {
		ctx = context.WithoutCancel(from.Context)
	}
	entry, refused := c.requests.Begin(ctx, req, size)
	if refused != nil {
		return nil, refused
	}
	return &call{c: c, entry: entry, header: from.Header}, nil
}

// start handles k on a goroutine of its own, when it is its turn. Requests to a client do not wait
// for notifications: a notification handler may call the server, which may have to send a request
// first.
func (c *Conn) start(k *call) {
	req := k.entry.Request
	if req.IsNotification() || req.Method != protocol.MethodPing && !c.opts.Client {
		k.turn.before = c.turn
	}
	if req.IsNotification() || req.Method == protocol.MethodInitialize {
		k.turn.done = make(chan struct{})
		c.turn = k.turn.done
	}
	if req.Method == protocol.MethodInitialize {
		c.handshake = c.turn
	}
	// Ends when the call is handled.
	go k.serve()
}

// refuse sends an error response; nil does nothing.
func (c *Conn) refuse(refusal *jsonrpc.Response) {
	if refusal != nil {
		c.out.refuse(refusal)
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

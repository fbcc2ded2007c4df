package duplex

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpkit/mcpkit-go/jsonrpc"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport"
)

// A Link is one end of a connection. Its methods may be called concurrently; Call and Notify work while Serve runs.
type Link struct {
	wire    Wire
	origins OriginWire // the wire, where it knows origins
	handler transport.Handler
	opts    Options
	session *transport.Session
	out     output

	base   context.Context // of all calls; ends with the drain
	cancel context.CancelCauseFunc

	done     chan struct{} // closed when Serve is over
	stopping chan struct{} // closed by Close
	stopOnce sync.Once
	inputEnd chan struct{} // closed when the leader could read no more
	inputErr error         // why; set before
	served   atomic.Bool   // the handler has seen the session

	handshake <-chan struct{} // closed when the initialize that was read was answered; nil for none; the leader's alone

	turn    atomic.Uint64 // odd while the leader handles a message; see lead
	asleep  atomic.Bool   // the watchdog waits for wake
	wake    chan struct{}
	baton   chan struct{} // makes a parked worker the leader
	parked  atomic.Int32
	average atomic.Int64 // how long handlers take, in nanoseconds; a moving average

	mu      sync.Mutex
	calls   map[jsonrpc.ID]*call // of the peer, in flight; guarded by mu
	bytes   int64                // of these calls; guarded by mu
	listens int                  // of these calls, those that end with the connection; guarded by mu
	active  int                  // messages being handled; guarded by mu
	stopped bool                 // nothing is handled any more; guarded by mu
	idle    chan struct{}        // closed when stopped and active is 0; guarded by mu
	asked   map[jsonrpc.ID]asked // of ours, unanswered; nil after the end of input; guarded by mu
	lastID  int64                // guarded by mu
	notes   []note               // to be handled in their order; guarded by mu
	noting  bool                 // somebody handles them; guarded by mu
}

// New returns a Link whose requests and notifications go to h.
func New(w Wire, h transport.Handler, opts *Options) *Link {
	l := &Link{
		wire:     w,
		handler:  h,
		done:     make(chan struct{}),
		stopping: make(chan struct{}),
		inputEnd: make(chan struct{}),
		wake:     make(chan struct{}, 1),
		baton:    make(chan struct{}),
		calls:    make(map[jsonrpc.ID]*call),
		asked:    make(map[jsonrpc.ID]asked),
		idle:     make(chan struct{}),
	}
	if opts != nil {
		l.opts = *opts
	}
	l.opts.fill()
	l.session = transport.NewSession("", sessionLink{l})
	l.origins, _ = w.(OriginWire)
	room := int64(everything)
	if l.opts.Client {
		room = 0
		if w, ok := w.(RoomyWire); ok {
			room = w.Room()
		}
	}
	l.out.start(w, l.opts.WriteTimeout, room)
	l.asleep.Store(true)
	return l
}

func (l *Link) start(ctx context.Context) {
	// The end of ctx ends reading; the calls end when they had their time.
	l.base, l.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
}

// maxParked is how many goroutines are kept for becoming the leader, so that their stacks stay warm.
const maxParked = 4

// work leads, and waits to lead again.
func (l *Link) work() {
	for l.lead() {
		if l.parked.Add(1) > maxParked {
			l.parked.Add(-1)
			return
		}
		select {
		case <-l.baton:
			l.parked.Add(-1)
		case <-l.done:
			return
		}
	}
}

// lead reads and handles messages until another goroutine took over, or until the input ends: then it returns false.
//
// turn says who leads. While it is even, the leader reads, and enters what it read into the tables; nobody else
// does, so that a cancellation finds the call that came before it. The leader makes turn odd when it is about to
// do what may take long: run a handler, write. It becomes even again by a compare-and-swap from that very
// number: either of the leader, which then reads on, or of who takes the lead from it.
func (l *Link) lead() bool {
	// What an earlier leader put off sending must not wait for the next message.
	t := l.handling()
	l.out.flush()
	if !l.turn.CompareAndSwap(t, t+1) {
		return true
	}
	for {
		data, err := l.wire.Read()
		if !l.begin() {
			return false
		}
		k, ok := l.prepare(data, err)
		if !ok {
			l.end()
			return false
		}
		more := l.wire.Buffered()
		t := l.handling()
		l.perform(&k, t, more)
		if !more {
			l.out.flush()
		}
		if !l.turn.CompareAndSwap(t, t+1) {
			l.out.flush()
			return true
		}
	}
}

// handling begins a turn, and returns its number.
func (l *Link) handling() uint64 {
	t := l.turn.Add(1)
	if l.asleep.Load() && l.asleep.CompareAndSwap(true, false) {
		select {
		case l.wake <- struct{}{}:
		default: // the watchdog has not yet taken the last one
		}
	}
	return t
}

// yield makes another goroutine the leader if the lead is still of turn t.
func (l *Link) yield(t uint64) {
	if t&1 == 0 || !l.turn.CompareAndSwap(t, t+1) {
		return
	}
	select {
	case l.baton <- struct{}{}:
	default:
		// Ends when it no longer leads and enough others are parked, at the end of the input, or with l.done.
		go l.work()
	}
}

// watch takes the lead from a leader whose message takes longer than patience. It sleeps while nothing
// happens, so that an idle connection costs nothing.
func (l *Link) watch() {
	tick := time.NewTimer(patience)
	defer tick.Stop()
	for {
		select {
		case <-l.wake:
		case <-l.done:
			return
		}
		last := l.turn.Load()
		for !l.asleep.Load() {
			tick.Reset(patience)
			select {
			case <-tick.C:
			case <-l.done:
				return
			}
			t := l.turn.Load()
			if t == last {
				l.yield(t)
				l.asleep.Store(true)
				// A leader may have found us awake just before.
				if l.turn.Load() != t && l.asleep.CompareAndSwap(true, false) {
					t = l.turn.Load()
				}
			}
			last = t
		}
	}
}

// begin counts a message that is being handled, unless all is over.
func (l *Link) begin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped {
		return false
	}
	l.active++
	return true
}

// end is the counterpart of begin.
func (l *Link) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.active--
	if l.stopped && l.active == 0 {
		close(l.idle)
	}
}

// stop refuses further messages. Nothing of ours can be answered any more, and what has no end of its
// own is ended.
func (l *Link) stop() {
	l.mu.Lock()
	l.stopped = true
	if l.active == 0 {
		close(l.idle)
	}
	for _, c := range l.calls {
		if c.req.Method == protocol.MethodSubscriptionsListen {
			c.cancel(transport.ErrClosed)
		}
	}
	asked := l.asked
	l.asked = nil
	l.mu.Unlock()
	for _, a := range asked {
		close(a.answer)
	}
}

func (l *Link) inFlight() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.active
}

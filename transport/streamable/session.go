package streamable

import (
	"container/list"
	"context"
	"crypto/rand"
	"net/http"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/ledger"
	"github.com/mcpkit/mcpkit-go/jsonrpc"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport"
)

// A session is one legacy client's stay. It has no goroutine of its own.
type session struct {
	*transport.Session
	h *Handler

	owner string        // key of the principal that opened it
	done  chan struct{} // closed when the session is over

	ledger ledger.Ledger // of the requests in flight, in both directions

	out streams // what goes to the client

	// Guarded by sessionTable.mu, as its place in the table.
	busy         int // requests and streams that use the session
	used         time.Time
	unused       *list.Element // in the table's list of that name; nil once the client came back
	older, newer *session
	listed       bool
	ended        bool
}

// newSession returns a session that nobody can name yet: initialize has to succeed first.
func (h *Handler) newSession(ctx context.Context) *session {
	s := &session{
		h:     h,
		owner: oauth.FromContext(ctx).Key(),
		done:  make(chan struct{}),
	}
	// More than 128 random bits, in characters that may stand in a header field.
	s.Session = transport.NewSession(rand.Text(), s)
	s.out.init(s)
	return s
}

// Notify sends n on the stream that the client opened by GET, or keeps it until it does. It waits neither for
// the client nor for the event store. It implements [transport.SessionLink].
func (s *session) Notify(_ context.Context, n *jsonrpc.Request) error {
	if s.h.opts.JSONOnly {
		return nil // no client can ever listen
	}
	return s.out.notify(jsonrpc.AppendRequest(nil, n))
}

// canPoll reports whether the client knows events without data, and comes back when a stream ends early.
func (s *session) canPoll() bool {
	return protocol.Version(s.Version()).AtLeast(protocol.V20251125)
}

// begin records a request of the client as in flight, or says why it must not begin. The caller ends it.
func (s *session) begin(ctx context.Context, req *jsonrpc.Request) (*ledger.Call, *refusal) {
	c, err := s.ledger.Begin(ctx, req, 0)
	if err == nil {
		return c, nil
	}
	select {
	case <-s.done:
		return nil, sessionOver()
	default:
		return nil, &refusal{http.StatusBadRequest, err}
	}
}

// close does what is to be done once when the session is over. The channel is closed when the event store has forgotten
// the session; it is nil when there was nothing to forget.
func (s *session) close() (forgotten <-chan struct{}) {
	close(s.done)
	s.ledger.Close(transport.ErrClosed)
	forgotten = s.out.close()
	if sh, ok := s.h.rpc.(transport.SessionHandler); ok {
		sh.SessionEnded(s.Session)
	}
	return forgotten
}

// A sessionTable finds sessions by name, and those that nobody used for long. One timer serves them all.
type sessionTable struct {
	h *Handler

	mu     sync.Mutex
	byID   map[string]*session
	oldest *session // the one used longest ago
	newest *session
	timer  *time.Timer // set while the table is not empty
	unused list.List   // of *session: those whose clients have said nothing since initialize, the oldest first
	closed bool        // there are to be no more sessions
}

func (t *sessionTable) init(h *Handler) {
	t.h = h
	t.byID = make(map[string]*session)
}

// add makes s known, and busy until it is released. It reports whether there was room.
func (t *sessionTable) add(s *session) bool {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return false
	}
	var evicted *session
	if len(t.byID) >= t.h.opts.MaxSessions {
		if evicted = t.idleFor(time.Minute); evicted == nil {
			evicted = t.neverUsed()
		}
		if evicted == nil {
			t.mu.Unlock()
			return false
		}
		t.remove(evicted)
	}
	s.listed, s.busy = true, 1
	s.unused = t.unused.PushBack(s)
	t.byID[s.ID()] = s
	t.link(s)
	t.arm()
	t.mu.Unlock()
	if evicted != nil {
		evicted.close()
	}
	return true
}

// use returns the session named id of the principal owner, busy until it is released. Another
// principal's session is unknown: its name alone gives no right to it.
func (t *sessionTable) use(id, owner string) *session {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.byID[id]
	if s == nil || s.owner != owner {
		return nil
	}
	s.busy++
	t.touch(s)
	t.seen(s)
	return s
}

// seen notes that the client of s came back after initialize. The caller holds mu.
func (t *sessionTable) seen(s *session) {
	if s.unused != nil {
		t.unused.Remove(s.unused)
		s.unused = nil
	}
}

// neverUsed returns the oldest session whose client never came back after initialize, so that whoever opens sessions only
// to fill the table crowds out nobody but his like. The caller holds mu.
func (t *sessionTable) neverUsed() *session {
	for e := t.unused.Front(); e != nil; e = e.Next() {
		if s := e.Value.(*session); s.busy == 0 {
			return s
		}
	}
	return nil
}

func (t *sessionTable) release(s *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.busy--
	if s.listed {
		t.touch(s)
	}
}

// end ends s once, whether it was ever listed or not.
func (t *sessionTable) end(s *session) {
	t.mu.Lock()
	over := s.ended
	t.remove(s)
	t.mu.Unlock()
	if !over {
		s.close()
	}
}

// endAll ends all sessions and lets no more in. It returns what tells when the event store has forgotten them.
func (t *sessionTable) endAll() (forgotten []<-chan struct{}) {
	t.mu.Lock()
	t.closed = true
	all := make([]*session, 0, len(t.byID))
	for _, s := range t.byID {
		t.remove(s)
		all = append(all, s)
	}
	t.mu.Unlock()
	for _, s := range all {
		if done := s.close(); done != nil {
			forgotten = append(forgotten, done)
		}
	}
	return forgotten
}

// expire ends the sessions that were idle too long; the timer calls it.
func (t *sessionTable) expire() {
	var all []*session
	t.mu.Lock()
	for {
		s := t.idleFor(t.h.opts.SessionIdle)
		if s == nil {
			break
		}
		t.remove(s)
		all = append(all, s)
	}
	t.timer = nil
	t.arm()
	t.mu.Unlock()
	for _, s := range all {
		s.close()
	}
}

// idleFor returns a session that nobody used for d at least. The caller holds mu.
func (t *sessionTable) idleFor(d time.Duration) *session {
	now := time.Now()
	for s := t.oldest; s != nil && now.Sub(s.used) >= d; s = t.oldest {
		if s.busy == 0 {
			return s
		}
		t.touch(s)
	}
	return nil
}

// arm sets the timer for the session that is the next to become idle too long. The caller holds mu.
func (t *sessionTable) arm() {
	if t.timer != nil || t.oldest == nil || t.h.opts.SessionIdle < 0 {
		return
	}
	t.timer = time.AfterFunc(time.Until(t.oldest.used.Add(t.h.opts.SessionIdle)), t.expire)
}

func (t *sessionTable) remove(s *session) {
	t.seen(s)
	s.ended = true
	if !s.listed {
		return
	}
	s.listed = false
	delete(t.byID, s.ID())
	t.unlink(s)
	if t.oldest == nil && t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
}

func (t *sessionTable) touch(s *session) {
	t.unlink(s)
	t.link(s)
}

func (t *sessionTable) link(s *session) {
	s.used = time.Now()
	s.older, s.newer = t.newest, nil
	if t.newest != nil {
		t.newest.newer = s
	} else {
		t.oldest = s
	}
	t.newest = s
}

func (t *sessionTable) unlink(s *session) {
	if s.older != nil {
		s.older.newer = s.newer
	} else {
		t.oldest = s.newer
	}
	if s.newer != nil {
		s.newer.older = s.older
	} else {
		t.newest = s.older
	}
	s.older, s.newer = nil, nil
}

// session returns the session that r names, busy until it is released, or what to answer instead.
func (h *Handler) session(r *http.Request) (*session, *refusal) {
	id := field(r.Header, headerSession)
	if id == "" {
		return nil, refuse(http.StatusBadRequest, jsonrpc.CodeInvalidRequest,
			"header %s is missing; send initialize first and then the session id that its response names", protocol.HeaderSessionID)
	}
	if name := repeated(r.Header); name != "" {
		return nil, refuse(http.StatusBadRequest, jsonrpc.CodeInvalidRequest, "header %s is repeated", name)
	}
	if v := protocol.Version(field(r.Header, headerVersion)); v != "" && !v.Legacy() {
		return nil, refuse(http.StatusBadRequest, jsonrpc.CodeInvalidRequest,
			"header %s: %s is no version that sessions have; send the one that initialize agreed on", protocol.HeaderProtocolVersion, quote(string(v)))
	}
	s := h.sessions.use(id, oauth.FromContext(r.Context()).Key())
	if s == nil {
		return nil, sessionOver()
	}
	return s, nil
}

func sessionOver() *refusal {
	return refuse(http.StatusNotFound, jsonrpc.CodeInvalidRequest, "session is unknown or over; send initialize without a session id")
}

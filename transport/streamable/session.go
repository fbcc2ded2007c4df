package streamable

import (
	"context"
	"crypto/rand"
	"net/http"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/admission"
	"github.com/mcpkit/mcpkit-go/internal/httpguard"
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

	place admission.Place
	ended bool // guarded by sessionTable.mu
}

// newSession returns a session that nobody can name yet: initialize has to succeed first.
func (h *Handler) newSession(ctx context.Context) *session {
	s := &session{
		h:     h,
		owner: oauth.FromContext(ctx).Key(),
		done:  make(chan struct{}),
	}
	// More than 128 random bits, in characters that may stand in a header field.
	s.place.Value = s
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

// begin records a request of the client in c as in flight, or says why it must not begin. The caller ends it.
func (s *session) begin(c *ledger.Call, ctx context.Context, req *jsonrpc.Request) *refusal {
	err := s.ledger.BeginAt(c, ctx, req, 0)
	if err == nil {
		return nil
	}
	select {
	case <-s.done:
		return sessionOver()
	default:
		return &refusal{http.StatusBadRequest, err}
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

// A sessionTable finds sessions by name, shares their places among callers, and ends those that nobody used for long. One timer serves
// them all.
type sessionTable struct {
	h      *Handler
	places *admission.Places

	mu     sync.Mutex
	byID   map[string]*session // guarded by mu
	timer  *time.Timer         // set while the table is not empty and sessions expire; guarded by mu
	closed bool                // there are to be no more sessions; guarded by mu
}

func (t *sessionTable) init(h *Handler) {
	t.h = h
	t.byID = make(map[string]*session)
	t.places = admission.NewPlaces(h.opts.MaxSessions, 0)
}

// add makes s known as a session of the caller. It reports whether there was a place.
func (t *sessionTable) add(s *session, caller admission.Key) bool {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return false
	}
	evicted, ok := t.places.Take(&s.place, caller)
	if !ok {
		t.mu.Unlock()
		return false
	}
	var old *session
	if evicted != nil {
		old = evicted.Value.(*session)
		t.remove(old)
	}
	t.byID[s.ID()] = s
	if t.timer == nil && t.h.opts.SessionIdle > 0 {
		// Runs when a session may have expired; remove stops it.
		t.timer = time.AfterFunc(t.h.opts.SessionIdle, t.expire)
	}
	t.mu.Unlock()
	if old != nil {
		old.close()
	}
	return true
}

// use returns the session named id of the principal owner, busy until it is released. Another
// principal's session is unknown: its name alone gives no right to it.
func (t *sessionTable) use(id, owner string) *session {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.byID[id]
	if s == nil || s.owner != owner || !t.places.Use(&s.place) {
		return nil
	}
	return s
}

func (t *sessionTable) release(s *session) { t.places.Release(&s.place) }

// remove makes s unknown. It reports whether it was not over yet, so that the caller has to close it. The caller holds mu.
func (t *sessionTable) remove(s *session) bool {
	if s.ended {
		return false
	}
	s.ended = true
	t.places.Leave(&s.place)
	delete(t.byID, s.ID())
	if len(t.byID) == 0 && t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
	return true
}

// end ends s once, whether it was ever known or not.
func (t *sessionTable) end(s *session) {
	t.mu.Lock()
	last := t.remove(s)
	t.mu.Unlock()
	if last {
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
	idle, next := t.places.IdleFor(t.h.opts.SessionIdle)
	for _, p := range idle {
		s := p.Value.(*session)
		if t.remove(s) {
			all = append(all, s)
		}
	}
	if t.timer != nil {
		t.timer.Reset(next)
	}
	t.mu.Unlock()
	for _, s := range all {
		s.close()
	}
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
			"header %s: %s is no version that sessions have; send the one that initialize agreed on", protocol.HeaderProtocolVersion, httpguard.Quote(string(v)))
	}
	s := h.sessions.use(id, oauth.FromContext(r.Context()).Key())
	if s == nil {
		return nil, sessionOver()
	}
	return s, nil
}

func sessionOver() *refusal {
	return refuse(http.StatusNotFound, jsonrpc.CodeInvalidRequest, "session is unknown or has ended; send initialize without a session id")
}

package streamable

import (
	"container/list"
	"context"
	"crypto/rand"
	"net/http"
	"sync"

	"github.com/mcpkit/mcpkit-go/internal/conn"
	"github.com/mcpkit/mcpkit-go/internal/httpguard"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// A session is the state of one legacy client. It has no goroutine.
type session struct {
	*transport.Session
	h *Handler

	owner string        // key of the principal who opened it
	done  chan struct{} // closed when the session ends

	ledger conn.Ledger // of the requests in flight, in both directions

	out streams // to the client

	uses  int           // guarded by sessionTable.mu, as all below
	idle  *list.Element // nil while it is in use
	ended bool

	shared *shared // nil outside of a fleet
}

// newSession returns a session that is not listed yet: initialize has to succeed first. Its ID has
// at least 128 random bits, in characters that a header field allows.
func (h *Handler) newSession(ctx context.Context) *session {
	return h.makeSession(rand.Text(), oauth.FromContext(ctx).Key())
}

func (h *Handler) makeSession(id, owner string) *session {
	s := &session{h: h, owner: owner, done: make(chan struct{})}
	s.Session = transport.NewSession(id, h.link(s, id))
	s.out.init(s)
	return s
}

// link returns what reaches the client of s outside of requests.
func (h *Handler) link(s *session, id string) transport.SessionLink {
	if h.replica == nil {
		return ownLink{s}
	}
	s.shared = newShared(s, id)
	return s.shared
}

// ownLink is the link of a session that only this process serves. A session itself would be a
// [transport.SharedLink], since it embeds a [transport.Session].
type ownLink struct{ s *session }

// Notify sends n as [session.Notify] does.
func (l ownLink) Notify(ctx context.Context, n *jsonrpc.Request) error { return l.s.Notify(ctx, n) }

// Notify sends n on the stream that the client opened with GET, or keeps it until the client opens
// one. It waits neither for the client nor for the event store. It implements
// [transport.SessionLink].
func (s *session) Notify(_ context.Context, n *jsonrpc.Request) error {
	if s.h.opts.JSONOnly {
		return nil // no client can ever listen
	}
	return s.out.notify(jsonrpc.AppendRequest(nil, n))
}

// canPoll reports whether the client understands events without data, and resumes a stream that
// ends early.
func (s *session) canPoll() bool {
	return protocol.Version(s.Version()) >= protocol.V20251125
}

// beginCall records a request of the client, or returns why it must not begin. The caller ends the
// call.
func (s *session) beginCall(ctx context.Context, req *jsonrpc.Request) (*conn.Entry, *refusal) {
	c, err := s.ledger.Begin(ctx, req, 0)
	if err == nil {
		return c, nil
	}
	select {
	case <-s.done:
		return nil, sessionOver()
	default:
		return nil, &refusal{status: http.StatusBadRequest, err: err}
	}
}

// cancel handles a notifications/cancelled of the client, whichever replica runs the request.
func (s *session) cancel(n *jsonrpc.Request) {
	s.ledger.Cancel(n)
	s.h.replica.cancelElsewhere(s, n)
}

// close releases what the session holds; it is called once.
func (s *session) close() {
	close(s.done)
	s.ledger.Close(transport.ErrClosed)
	s.out.close()
	if sh, ok := s.h.rpc.(transport.SessionHandler); ok {
		sh.SessionEnded(s.Session)
	}
}

// A sessionTable finds sessions by ID. When it is full, it ends the one that was idle longest.
type sessionTable struct {
	h *Handler

	mu     sync.Mutex
	byID   map[string]*session // guarded by mu
	idle   list.List           // of *session: those not in use, longest first; guarded by mu
	closed bool                // no sessions may be added; guarded by mu
}

func (t *sessionTable) init(h *Handler) {
	t.h = h
	t.byID = make(map[string]*session)
}

// add lists s. It returns false if all others are in use.
func (t *sessionTable) add(s *session) bool {
	t.mu.Lock()
	var old *session
	if len(t.byID) >= t.h.opts.MaxSessions && t.idle.Len() > 0 {
		old = t.idle.Front().Value.(*session)
		t.remove(old)
	}
	if t.closed || len(t.byID) >= t.h.opts.MaxSessions {
		t.mu.Unlock()
		return false
	}
	t.byID[s.ID()] = s
	s.idle = t.idle.PushBack(s)
	t.mu.Unlock()
	if old != nil {
		t.h.replica.drop(old)
		old.close()
	}
	return true
}

// use returns the session id if the principal owner opened it, busy until it is released, or else
// nil: knowing a session ID gives no access to it.
func (t *sessionTable) use(id, owner string) *session {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.byID[id]
	if s == nil || s.owner != owner {
		return nil
	}
	s.uses++
	if s.idle != nil {
		t.idle.Remove(s.idle)
		s.idle = nil
	}
	return s
}

// named returns the session with the ID, of any owner; nil if there is none.
func (t *sessionTable) named(id string) *session {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byID[id]
}

func (t *sessionTable) release(s *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.uses--; s.uses == 0 && !s.ended {
		s.idle = t.idle.PushBack(s)
	}
}

// remove removes s. It returns true if the caller has to close s, and false if s was removed
// before. The caller holds mu.
func (t *sessionTable) remove(s *session) bool {
	if s.ended {
		return false
	}
	s.ended = true
	if s.idle != nil {
		t.idle.Remove(s.idle)
		s.idle = nil
	}
	delete(t.byID, s.ID())
	return true
}

// end ends s, listed or not.
func (t *sessionTable) end(s *session) {
	t.mu.Lock()
	last := t.remove(s)
	t.mu.Unlock()
	if last {
		s.close()
	}
}

// endAll ends all sessions and refuses new ones.
func (t *sessionTable) endAll() {
	t.mu.Lock()
	t.closed = true
	all := make([]*session, 0, len(t.byID))
	for _, s := range t.byID {
		t.remove(s)
		all = append(all, s)
	}
	t.mu.Unlock()
	for _, s := range all {
		s.close()
	}
}

// session returns the session that r names, busy until it is released, or the error response.
func (h *Handler) session(r *http.Request) (*session, *refusal) {
	id := field(r.Header, headerSession)
	if id == "" {
		return nil, refuse(http.StatusBadRequest, jsonrpc.CodeInvalidRequest,
			"header %s is missing; send initialize first, and then the session ID of its response", protocol.HeaderSessionID)
	}
	if name := repeated(r.Header); name != "" {
		return nil, refuse(http.StatusBadRequest, jsonrpc.CodeInvalidRequest, "header %s is repeated", name)
	}
	if v := protocol.Version(field(r.Header, headerVersion)); v != "" && !v.Legacy() {
		return nil, refuse(http.StatusBadRequest, jsonrpc.CodeInvalidRequest,
			"header %s: %s is not a version with sessions; send the version that initialize agreed on", protocol.HeaderProtocolVersion, httpguard.Quote(string(v)))
	}
	owner := oauth.FromContext(r.Context()).Key()
	s := h.sessions.use(id, owner)
	if h.replica != nil {
		return h.replica.session(r, s, id, owner)
	}
	if s == nil {
		return nil, sessionOver()
	}
	return s, nil
}

func sessionOver() *refusal {
	return refuse(http.StatusNotFound, jsonrpc.CodeInvalidRequest, "session is unknown or has ended; send initialize without a session id")
}

package streamable

import (
	"container/list"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

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

	mu      sync.Mutex
	calls   map[jsonrpc.ID]*call                  // of the client, in flight; guarded by mu
	asked   map[jsonrpc.ID]chan *jsonrpc.Response // of the server, unanswered; guarded by mu
	lastAsk int64                                 // guarded by mu

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

// Notify sends n on the stream that the client opened by GET, or keeps it until it does. It never waits for
// the client. It implements [transport.SessionLink].
func (s *session) Notify(ctx context.Context, n *jsonrpc.Request) error {
	if s.h.opts.JSONOnly {
		return nil // no client can ever listen
	}
	_, err := s.out.append(ctx, s.out.standalone, jsonrpc.AppendRequest(nil, n), false)
	return err
}

// canPoll reports whether the client knows events without data, and comes back when a stream ends early.
func (s *session) canPoll() bool {
	return protocol.Version(s.Version()).AtLeast(protocol.V20251125)
}

// start notes c as the call of the client named id. It reports false when another one has that name.
func (s *session) start(id jsonrpc.ID, c *call) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, taken := s.calls[id]; taken {
		return false
	}
	if s.calls == nil {
		s.calls = make(map[jsonrpc.ID]*call)
	}
	s.calls[id] = c
	return true
}

// finish takes back what start noted; it may be called again after the client used the id anew.
func (s *session) finish(id jsonrpc.ID, c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls[id] == c {
		delete(s.calls, id)
	}
}

// finishWith is finish for a request with that answer: one that is streamed can be cancelled until it is written. The client may use the id
// again as soon as it has the answer.
func (s *session) finishWith(id jsonrpc.ID, c *call, resp *jsonrpc.Response) *jsonrpc.Response {
	if resp == nil || resp.Stream == nil || resp.Error != nil {
		s.finish(id, c)
		return resp
	}
	last := *resp
	last.Stream = func(w io.Writer) error {
		defer s.finish(id, c)
		return resp.Stream(w)
	}
	return &last
}

var errCancelled = errors.New("streamable: cancelled by the client")

// cancel ends the call that a notification names. One that is not known is ignored: it may have
// crossed its answer on the way (basic/utilities/cancellation).
func (s *session) cancel(n *jsonrpc.Request) {
	id, ok := jsonrpc.ParseID(n.Param("requestId"))
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.calls[id]; c != nil {
		c.cancel(errCancelled)
	}
}

// ask gives a request of the server its name and a place where the answer arrives.
func (s *session) ask() (jsonrpc.ID, chan *jsonrpc.Response) {
	answer := make(chan *jsonrpc.Response, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastAsk++
	id := jsonrpc.NumberID(s.lastAsk)
	if s.asked == nil {
		s.asked = make(map[jsonrpc.ID]chan *jsonrpc.Response)
	}
	s.asked[id] = answer
	return id, answer
}

func (s *session) forget(id jsonrpc.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.asked, id)
}

// answer hands over what the client answers; the second answer, and one that nobody asked for, are dropped.
func (s *session) answer(resp *jsonrpc.Response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.asked[resp.ID]; c != nil {
		delete(s.asked, resp.ID)
		c <- resp
	}
}

// close does what is to be done once when the session is over.
func (s *session) close() {
	close(s.done)
	s.mu.Lock()
	for _, c := range s.calls {
		c.cancel(transport.ErrClosed)
	}
	s.mu.Unlock()
	s.out.close()
	if sh, ok := s.h.rpc.(transport.SessionHandler); ok {
		sh.SessionEnded(s.Session)
	}
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
}

func (t *sessionTable) init(h *Handler) {
	t.h = h
	t.byID = make(map[string]*session)
}

// add makes s known, and busy until it is released. It reports whether there was room.
func (t *sessionTable) add(s *session) bool {
	t.mu.Lock()
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

func (t *sessionTable) endAll() {
	t.mu.Lock()
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
		return nil, refuse(http.StatusNotFound, jsonrpc.CodeInvalidRequest,
			"session is unknown or over; send initialize without a session id")
	}
	return s, nil
}

package streamable

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/internal/conn"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// A replica is the part of a handler that shares its sessions with the handlers of other replicas.
// Methods of a nil *replica do what a handler without a fleet does.
//
// Each replica has its own copy of a session, which it makes of the session's record when a request
// arrives, and drops when the session is idle. Streams are in the log of the fleet, which is the
// event store. The bus only wakes: a replica that waits for another one also looks into the store.
type replica struct {
	h         *Handler
	f         *fleet.Fleet
	rpc       transport.SessionStorer
	sessions  *fleet.Set
	ended     *fleet.Set // the sessions that a client has ended
	questions *fleet.Set
	tag       string // begins the IDs of questions

	mu      sync.Mutex
	loading map[string]*loading      // guarded by mu
	waiting map[string]chan struct{} // wakes who waits for the answer to a question; guarded by mu
	asked   int64                    // guarded by mu
}

const (
	// The versions of the records.
	sessionFormat, questionFormat = 1, 1

	recheck         = 5 * time.Second  // how old a copy of a session may become
	lookAway        = 2 * time.Second  // between looks at a stream of another replica
	lookHome        = 20 * time.Second // between looks at the standalone stream
	lookAnswer      = 3 * time.Second  // between looks for an answer
	sessionLife     = 30 * time.Minute
	questionLife    = 24 * time.Hour
	clockSkew       = time.Minute
	conflictsInARow = 20
	replicaName     = 12 // length of a name
)

// The kinds of messages between replicas.
const (
	kindChanged = "session-changed"
	kindEnded   = "session-ended"
	kindTaken   = "stream-taken"
	kindWake    = "stream-wake"
	kindCancel  = "cancel"
	kindAnswer  = "answer"
)

// A notice is the payload of a message about a session.
type notice struct {
	Session  string          `json:"session"`
	Stream   string          `json:"stream,omitempty"`
	Question string          `json:"question,omitempty"`
	Params   json.RawMessage `json:"params,omitempty"`
}

// A sessionRecord is a session in the store.
type sessionRecord struct {
	Owner string          `json:"owner"` // key of the principal
	State json.RawMessage `json:"state"` // of the handler
	Home  string          `json:"home"`  // the replica that notifies the client
	Sent  uint64          `json:"sent"`  // number of the last message that a GET wrote to the standalone stream
	Ended bool            `json:"ended,omitempty"`

	// Until is when the record expires, in Unix seconds by the clock of the replica that wrote it.
	// It is sealed: a program that writes to the store cannot bring back a session that has ended.
	Until int64 `json:"until"`
}

// join makes h a part of the fleet of its server, if that has one.
func (h *Handler) join() {
	member, ok := h.rpc.(interface{ Fleet() *fleet.Fleet })
	if !ok || h.opts.Stateless {
		return
	}
	f := member.Fleet()
	rpc, ok := h.rpc.(transport.SessionStorer)
	if f == nil || !ok {
		return
	}
	p := &replica{
		h: h, f: f, rpc: rpc, tag: f.Replica() + strings.ToLower(rand.Text()[:8]),
		sessions: f.Set("sessions", sessionFormat), questions: f.Set("questions", questionFormat),
		ended:   f.Set("ended-sessions", sessionFormat),
		loading: map[string]*loading{}, waiting: map[string]chan struct{}{},
	}
	h.replica = p
	h.opts.Logger = h.opts.Logger.With("replica", f.Replica())
	h.events = p
	p.on(kindChanged, func(s *session, _ *notice) { s.shared.rereadSoon() })
	// Ends when the server has forgotten the session.
	p.on(kindEnded, func(s *session, _ *notice) { go h.sessions.end(s) })
	p.on(kindTaken, func(s *session, n *notice) {
		if s.out.leave(n.Stream) { // it may have missed the last message
			f.Tell("", kindWake, notice{Session: s.ID(), Stream: n.Stream})
		}
	})
	p.on(kindWake, func(s *session, n *notice) { s.out.wakeNamed(n.Stream) })
	p.on(kindCancel, func(s *session, n *notice) {
		s.ledger.Cancel(&jsonrpc.Request{Method: protocol.NotificationCancelled, Params: n.Params})
	})
	p.on(kindAnswer, func(_ *session, n *notice) { p.wake(n.Question) })
}

// on calls handle with the copy of the session that a message of another replica names.
func (p *replica) on(kind string, handle func(s *session, n *notice)) {
	p.f.On(kind, func(_ string, payload []byte) {
		var n notice
		if json.Unmarshal(payload, &n) != nil {
			return
		}
		if s := p.h.sessions.named(n.Session); s != nil {
			handle(s, &n)
		}
	})
}

// life is how long a session lives without a request.
func (p *replica) life() time.Duration {
	return sessionLife
}

// refuse returns the response to a request that the store of the fleet failed.
func (p *replica) refuse(ctx context.Context, err error) *refusal {
	if errors.Is(err, transport.ErrClosed) {
		return sessionOver()
	}
	p.f.Logger().WarnContext(ctx, "streamable: a session is not available", "error", err)
	return busy("the session cannot be reached at the moment; try again")
}

// create stores a new session.
func (p *replica) create(ctx context.Context, s *session, caller string) *refusal {
	if p == nil {
		return nil
	}
	group := fleet.Digest(caller)
	total, err := p.sessions.Count(ctx, "")
	own := 0
	if err == nil {
		own, err = p.sessions.Count(ctx, group)
	}
	if err != nil {
		return p.refuse(ctx, err)
	}
	// As for other limits, a caller may not have more than are left for all others.
	if total >= p.h.opts.MaxSessions || own >= p.h.opts.MaxSessions-total {
		return fullOfSessions()
	}
	x := s.shared
	x.record = sessionRecord{Owner: s.owner, Home: p.f.Replica()}
	if x.record.State, err = p.rpc.StoreSession(s.Session); err != nil {
		return p.refuse(ctx, err)
	}
	x.record.Until = until(p.life())
	data, err := json.Marshal(&x.record)
	if err == nil {
		x.revision, err = p.sessions.Create(ctx, fleet.Record{Key: x.key, Group: group, Data: data, TTL: p.life()})
	}
	if err != nil {
		return p.refuse(ctx, err)
	}
	x.home.Store(true)
	x.checked.Store(time.Now().UnixNano())
	return nil
}

// session returns the session of a request, busy until it is released. s is the copy of this
// replica; nil if it has none.
func (p *replica) session(r *http.Request, s *session, id, owner string) (*session, *refusal) {
	ctx := r.Context()
	if s == nil {
		if err := p.load(ctx, id, owner); err != nil {
			return nil, p.refuse(ctx, err)
		}
		if s = p.h.sessions.use(id, owner); s == nil {
			return nil, sessionOver()
		}
		return s, nil
	}
	if err := s.shared.refresh(ctx); errors.Is(err, transport.ErrClosed) {
		p.h.sessions.release(s)
		p.h.sessions.end(s)
		return nil, sessionOver()
	}
	return s, nil // as it was last seen, if the store is not available
}

// loading is a session that is being loaded.
type loading struct {
	done chan struct{} // closed when err is set
	err  error
}

// load makes a copy of a session that another replica has opened. The error is
// [transport.ErrClosed] if there is none of this owner.
func (p *replica) load(ctx context.Context, id, owner string) error {
	turn := id + " " + owner
	p.mu.Lock()
	if other := p.loading[turn]; other != nil {
		p.mu.Unlock()
		select {
		case <-other.done:
			return other.err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	own := &loading{done: make(chan struct{})}
	p.loading[turn] = own
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.loading, turn)
		p.mu.Unlock()
		close(own.done)
	}()
	own.err = p.loadNow(ctx, id, owner)
	return own.err
}

// loadNow is load for one caller at a time.
func (p *replica) loadNow(ctx context.Context, id, owner string) error {
	if p.h.sessions.named(id) != nil {
		return nil // it was loaded just now, or has another owner
	}
	s := p.h.makeSession(id, owner)
	if err := s.shared.read(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	s.shared.again = s.shared.record.Home == p.f.Replica()
	s.out.standalone.sent = s.shared.record.Sent
	s.out.standalone.last = s.shared.record.Sent // no message has been sent here yet
	if !p.h.sessions.add(s) {
		s.close()
		return errors.New("too many sessions are in use")
	}
	return nil
}

// drop notes that this replica drops its copy of a session, so that nobody notifies the client.
func (p *replica) drop(s *session) {
	if p == nil || !s.shared.Home() {
		return
	}
	// Ends when the engine has answered.
	go func() {
		_ = s.shared.change(context.Background(), p.life(), func(r *sessionRecord) {
			if r.Home == p.f.Replica() {
				r.Home = ""
			}
		})
	}()
}

// end ends a session on all replicas.
func (p *replica) end(ctx context.Context, s *session) *refusal {
	if p == nil {
		return nil
	}
	// Until all older records of the session have expired.
	_, err := p.ended.Create(ctx, fleet.Record{Key: s.shared.key, TTL: p.life() + 2*clockSkew})
	if err == nil || errors.Is(err, fleet.ErrExists) {
		err = s.shared.change(ctx, p.life(), func(r *sessionRecord) { r.Ended = true })
	}
	if err == nil {
		err = p.f.Drop(ctx, s.shared.key)
	}
	if err != nil && !errors.Is(err, transport.ErrClosed) {
		return p.refuse(ctx, err)
	}
	p.f.Tell("", kindEnded, notice{Session: s.ID()})
	return nil
}

// cancelElsewhere passes a cancellation to the replica that runs the request.
func (p *replica) cancelElsewhere(s *session, n *jsonrpc.Request) {
	if p != nil {
		p.f.Tell("", kindCancel, notice{Session: s.ID(), Params: n.Params})
	}
}

// A shared is the part of a session that replicas share. It is the link of the session.
type shared struct {
	*session
	p   *replica
	key string

	// turn holds one token. Its owner reads and writes the record; no lock is held meanwhile.
	turn     chan struct{}
	record   sessionRecord
	revision uint64 // 0 before the record is stored
	again    bool   // this replica was the home, and had dropped its copy

	checked atomic.Int64 // when the record was read, in Unix nanoseconds
	home    atomic.Bool
	rereads atomic.Bool // a goroutine is about to read the record
}

func newShared(s *session, id string) *shared {
	x := &shared{session: s, p: s.h.replica, key: fleet.Digest(id), turn: make(chan struct{}, 1)}
	x.turn <- struct{}{}
	return x
}

func (x *shared) takeTurn(ctx context.Context) error {
	select {
	case <-x.turn:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (x *shared) giveTurn() { x.turn <- struct{}{} }

// Home reports whether this replica notifies the client. It implements [transport.SharedLink].
func (x *shared) Home() bool { return x.home.Load() }

// Change changes the state of the handler and stores it. It implements [transport.SharedLink].
func (x *shared) Change(ctx context.Context, f func()) error {
	return x.change(ctx, x.p.life(), func(*sessionRecord) { f() })
}

// change changes the record, for as often as others change it meanwhile.
func (x *shared) change(ctx context.Context, ttl time.Duration, f func(*sessionRecord)) error {
	if err := x.takeTurn(ctx); err != nil {
		return err
	}
	defer x.giveTurn()
	if x.revision == 0 {
		f(&x.record) // initialize is not answered yet: create stores it
		return nil
	}
	for range conflictsInARow {
		f(&x.record)
		err := x.write(ctx, ttl)
		if !errors.Is(err, fleet.ErrConflict) {
			return err
		}
		if err := x.read(ctx); err != nil {
			return err
		}
	}
	return fleet.ErrConflict
}

// write stores the record. The caller has the turn.
func (x *shared) write(ctx context.Context, ttl time.Duration) error {
	state, err := x.p.rpc.StoreSession(x.Session)
	if err != nil {
		return err
	}
	x.record.State, x.record.Until = state, until(ttl)
	data, err := json.Marshal(&x.record)
	if err != nil {
		return err
	}
	revision, err := x.p.sessions.Update(ctx, fleet.Record{Key: x.key, Data: data, Revision: x.revision, TTL: ttl})
	switch {
	case err == nil:
		x.revision = revision
		x.home.Store(x.record.Home == x.p.f.Replica())
		if !x.Home() {
			x.p.f.Tell("", kindChanged, notice{Session: x.ID()})
		}
	case errors.Is(err, fleet.ErrNotFound):
		return transport.ErrClosed
	}
	return err
}

func until(life time.Duration) int64 { return time.Now().Add(life).Unix() }

// isOver reports whether the record expired by the clock of this replica.
func (r *sessionRecord) isOver() bool {
	return time.Since(time.Unix(r.Until, 0)) > clockSkew
}

// isEnded returns [transport.ErrClosed] if a client has ended the session.
func (p *replica) isEnded(ctx context.Context, key string) error {
	switch _, err := p.ended.Get(ctx, key); {
	case err == nil:
		return transport.ErrClosed
	case errors.Is(err, fleet.ErrNotFound):
		return nil
	default:
		return err
	}
}

// refresh reads the record again if it was read some time ago. The error is [transport.ErrClosed]
// if the session has ended.
func (x *shared) refresh(ctx context.Context) error {
	if x.isFresh() {
		return nil
	}
	if err := x.takeTurn(ctx); err != nil {
		return err
	}
	defer x.giveTurn()
	if x.isFresh() {
		return nil
	}
	return x.read(ctx)
}

func (x *shared) isFresh() bool {
	return time.Now().UnixNano()-x.checked.Load() < int64(min(recheck, x.p.life()/4))
}

// keep makes the record of a session live on during a long call. s is nil outside of sessions.
func (p *replica) keep(s *session) {
	if p != nil && s != nil && time.Now().UnixNano()-s.shared.checked.Load() > int64(p.life()/4) {
		s.shared.rereadSoon()
	}
}

// rereadSoon lets a goroutine read the record, unless one is about to.
func (x *shared) rereadSoon() {
	if x.rereads.CompareAndSwap(false, true) {
		go x.reread() // ends when the engine has answered
	}
}

// reread reads what another replica has stored.
func (x *shared) reread() {
	ctx := context.Background()
	if x.takeTurn(ctx) != nil {
		return
	}
	defer x.giveTurn()
	x.rereads.Store(false) // a change from now on needs another one
	if err := x.read(ctx); err != nil && !errors.Is(err, transport.ErrClosed) {
		x.checked.Store(0)
	}
}

// read reads the record, and makes it live on. The caller has the turn.
func (x *shared) read(ctx context.Context) error {
	stored, err := x.p.sessions.Get(ctx, x.key)
	var record sessionRecord
	if err == nil {
		err = json.Unmarshal(stored.Data, &record)
	}
	switch {
	case errors.Is(err, fleet.ErrNotFound), err == nil && (record.Ended || record.Owner != x.owner || record.isOver()):
		return transport.ErrClosed
	case err != nil:
		return err
	}
	if stored.Revision != x.revision {
		if err := x.p.isEnded(ctx, x.key); err != nil {
			return err
		}
		if err := x.p.rpc.RestoreSession(x.Session, record.State); err != nil {
			return err
		}
		x.record, x.revision = record, stored.Revision
		x.home.Store(record.Home == x.p.f.Replica())
	}
	if life := x.p.life(); stored.TTL < life/4*3 {
		record.Until = until(life)
		data, err := json.Marshal(&record)
		if err != nil {
			return err
		}
		revision, err := x.p.sessions.Update(ctx, fleet.Record{Key: x.key, Data: data, Revision: stored.Revision, TTL: life})
		if err == nil {
			x.record.Until, x.revision = record.Until, revision
		}
	}
	x.checked.Store(time.Now().UnixNano())
	return nil
}

// streamTag returns what the names of the streams of a new copy of a session begin with: the replica
// and a random text, since a copy that is made again counts from the beginning.
func (p *replica) streamTag() string {
	return p.f.Replica() + strings.ToLower(rand.Text()[:8]) + "_"
}

// isStream reports whether a name is like those of the streams of replicas.
func (p *replica) isStream(name string) bool {
	if p == nil || len(name) <= replicaName+9 || len(name) > 60 || name[replicaName+8] != '_' {
		return false
	}
	return strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// take makes this replica the one that writes the stream of l.
func (p *replica) take(ctx context.Context, l *listener) *refusal {
	if gone, err := p.isGone(ctx, l); err == nil && gone {
		all, err := p.h.events.after(ctx, l.s.ID(), l.st.name, 0)
		if err == nil && len(all) == 0 {
			return refuse(http.StatusBadRequest, jsonrpc.CodeInvalidRequest, "Last-Event-ID: the process that ran the request has ended; the request may have had effects")
		}
	}
	p.f.Tell("", kindTaken, notice{Session: l.s.ID(), Stream: l.st.name})
	x := l.s.shared
	if l.st.name != standaloneName {
		return nil
	}
	missed, err := x.becomeHome(ctx)
	if err != nil {
		return p.refuse(ctx, err)
	}
	sent := x.sent()
	if l.fresh {
		l.seq = max(l.seq, sent)
	}
	l.s.out.reached(l.st, max(l.seq, sent))
	if missed {
		p.rpc.SessionMissed(l.s.Session)
	}
	return nil
}

// becomeHome makes this replica the one that notifies the client. It reports whether there was none
// before.
func (x *shared) becomeHome(ctx context.Context) (missed bool, err error) {
	if x.Home() && !x.reloaded() {
		return false, nil
	}
	var before string
	err = x.change(ctx, x.p.life(), func(r *sessionRecord) {
		if r.Home != x.p.f.Replica() || x.again {
			before = r.Home
		}
		if x.again {
			before = ""
		}
		x.again, r.Home = false, x.p.f.Replica()
	})
	if err != nil || before == "" {
		return true, err
	}
	x.p.f.Tell("", kindChanged, notice{Session: x.ID()})
	alive, err := x.p.f.Alive(ctx, before)
	return err != nil || !alive, nil
}

func (x *shared) reloaded() bool {
	<-x.turn
	defer x.giveTurn()
	return x.again
}

// sent returns the number of the last message of the standalone stream that a client got, as far as
// the record says.
func (x *shared) sent() uint64 {
	<-x.turn
	defer x.giveTurn()
	return x.record.Sent
}

// leave notes how far a client got, for the replica that it reaches next.
func (p *replica) leave(l *listener) {
	x := l.s.shared
	if l.st.name != standaloneName || !x.Home() || l.seq == x.sent() {
		return
	}
	ctx := context.WithoutCancel(l.r.Context()) // the fleet limits the time of operations
	err := x.change(ctx, p.life(), func(r *sessionRecord) { r.Sent = max(r.Sent, l.seq) })
	if err != nil && !errors.Is(err, transport.ErrClosed) {
		p.f.Logger().WarnContext(ctx, "streamable: a client may get notifications twice", "error", err)
	}
}

// look returns a channel that is ready when l has to call check.
func (p *replica) look(l *listener) (<-chan time.Time, func()) {
	if p == nil {
		return nil, func() {}
	}
	every := lookAway
	if l.st.name == standaloneName {
		every = min(lookHome, p.life()/4) // it keeps the session alive
	}
	t := time.NewTicker(every)
	return t.C, t.Stop
}

// check reports whether l may go on. If the replica that runs the request of the stream has died,
// check answers the request.
func (p *replica) check(l *listener) bool {
	ctx := context.WithoutCancel(l.r.Context())
	err := l.s.shared.refresh(ctx)
	if errors.Is(err, transport.ErrClosed) {
		p.h.sessions.end(l.s)
		return false
	}
	if l.st.name == standaloneName {
		return err != nil || l.s.shared.Home()
	}
	if gone, err := p.isGone(ctx, l); err != nil || !gone {
		return true
	}
	if !l.writeNew(nil, true) || l.ended {
		return false
	}
	all, err := p.h.events.after(ctx, l.s.ID(), l.st.name, 0)
	if err != nil || len(all) == 0 {
		return false
	}
	if id, ok := jsonrpc.ParseID([]byte(all[0].request)); ok {
		l.writeLost(conn.Lost(id))
	}
	return false
}

// isGone reports whether the replica that runs the request of a stream has died.
func (p *replica) isGone(ctx context.Context, l *listener) (bool, error) {
	if _, own := l.s.out.number(l.st.name); own {
		return false, nil
	}
	alive, err := p.f.Alive(ctx, l.st.name[:replicaName])
	return !alive, err
}

// wakeOthers tells other replicas that a stream has another message, if one of them may write it.
// The caller holds streams.mu.
func (p *replica) wakeOthers(s *session, st *stream) {
	if st.moved || st.name == standaloneName && !s.shared.Home() {
		p.f.Tell("", kindWake, notice{Session: s.ID(), Stream: st.name})
	}
}

// last returns the number of the last message of a stream.
func (p *replica) last(ctx context.Context, s *session, stream string) (uint64, error) {
	return p.f.Last(ctx, s.shared.key, stream)
}

// questionID returns the ID of a new question, which names this replica, or an absent ID outside of
// a fleet.
func (p *replica) questionID() jsonrpc.ID {
	if p == nil {
		return jsonrpc.ID{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	return jsonrpc.StringID(p.tag + "-" + jsonrpc.NumberID(p.asked).String())
}

func questionKey(s *session, id jsonrpc.ID) string {
	return fleet.Digest(s.shared.key + " " + id.String())
}

// expect waits for an answer to q that arrives at another replica, until stop is called.
func (p *replica) expect(ctx context.Context, s *session, q *conn.Outgoing) (stop func(), err error) {
	if p == nil {
		return func() {}, nil
	}
	key := questionKey(s, q.ID)
	if _, err := p.questions.Create(ctx, fleet.Record{Key: key, TTL: questionLife}); err != nil {
		return nil, err
	}
	id := q.ID.String()
	woken := make(chan struct{}, 1)
	p.mu.Lock()
	p.waiting[id] = woken
	p.mu.Unlock()
	over := make(chan struct{})
	// Ends with stop.
	go p.await(s, key, woken, over)
	return func() {
		p.mu.Lock()
		delete(p.waiting, id)
		p.mu.Unlock()
		close(over)
	}, nil
}

// await looks for an answer until over is closed, and deletes the record.
func (p *replica) await(s *session, key string, woken, over <-chan struct{}) {
	tick := time.NewTicker(lookAnswer)
	defer tick.Stop()
	ctx := context.Background()
	defer func() { _ = p.questions.Delete(ctx, key, 0) }() // it expires
	for {
		select {
		case <-woken:
		case <-tick.C:
		case <-over:
			return
		}
		r, err := p.questions.Get(ctx, key)
		if err != nil || len(r.Data) == 0 {
			continue
		}
		if msg, bad := jsonrpc.Decode(r.Data); bad == nil && msg.Response != nil {
			s.ledger.Answer(msg.Response)
		}
	}
}

func (p *replica) wake(question string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case p.waiting[question] <- struct{}{}:
	default:
	}
}

// answer keeps a response for the replica that waits for it. A response that none waits for is
// dropped.
func (p *replica) answer(ctx context.Context, s *session, resp *jsonrpc.Response) *refusal {
	if p == nil {
		return nil
	}
	key := questionKey(s, resp.ID)
	r, err := p.questions.Get(ctx, key)
	if err == nil && len(r.Data) == 0 {
		r.Data, r.TTL = jsonrpc.AppendResponse(nil, resp), questionLife
		_, err = p.questions.Update(ctx, r)
	}
	switch {
	case errors.Is(err, fleet.ErrNotFound), errors.Is(err, fleet.ErrConflict):
		return nil // it has ended, or was answered
	case err != nil:
		return p.refuse(ctx, err)
	}
	p.f.Tell("", kindAnswer, notice{Session: s.ID(), Question: resp.ID.String()})
	return nil
}

// append stores a message. Each begins with a byte that says whether it is the last one, and the ID
// of the request with its length.
func (p *replica) append(ctx context.Context, session, stream string, e event) error {
	data := make([]byte, 1, 1+binary.MaxVarintLen64+len(e.request)+len(e.data))
	if e.last {
		data[0] = 1
	}
	data = binary.AppendUvarint(data, uint64(len(e.request)))
	data = append(append(data, e.request...), e.data...)
	keep := fleet.Keep{Entries: defaultSessionEvents, Bytes: defaultSessionBytes, TTL: p.life()}
	err := p.f.Append(ctx, fleet.Digest(session), stream, fleet.Entry{Seq: e.seq, Data: data}, keep)
	if errors.Is(err, fleet.ErrTooLarge) {
		return errTooLarge
	}
	return err
}

// after returns messages.
func (p *replica) after(ctx context.Context, session, stream string, seq uint64) ([]event, error) {
	entries, err := p.f.After(ctx, fleet.Digest(session), stream, seq, defaultSessionEvents)
	if err != nil {
		return nil, err
	}
	events := make([]event, 0, len(entries))
	for _, entry := range entries {
		n, width := binary.Uvarint(entry.Data[min(1, len(entry.Data)):])
		if width <= 0 || uint64(len(entry.Data)-1-width) < n {
			return nil, errors.New("a message in the store is damaged")
		}
		rest := entry.Data[1+width:]
		events = append(events, event{seq: entry.Seq, data: rest[n:], request: string(rest[:n]), last: entry.Data[0] == 1})
	}
	return events, nil
}

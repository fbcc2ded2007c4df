package streamable

import (
	"cmp"
	"container/list"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/internal/conn"
	"github.com/mcpkit/mcpkit-go/internal/limits"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

const (
	maxSessionID = 256                // characters
	sessionLife  = 7 * 24 * time.Hour // from initialize
	clockSkew    = time.Minute        // between replicas
	ownerBytes   = 12                 // of the digest of the principal in a session ID

	// maxDeleted is how many IDs of deleted sessions are remembered. The one that was deleted or used
	// longest ago is forgotten.
	maxDeleted = 10000

	// maxSpare is how many sessions are kept that hold nothing, since opening them again takes longer.
	maxSpare = 500
)

// sealSession returns the ID of a session: what initialize agreed on, the principal and the time,
// sealed. Nothing of it is kept here.
func (h *Handler) sealSession(owner string, s *transport.Session) string {
	agreed, _ := h.storer.StoreSession(s)
	packed := packAgreement(agreed, h.storer.Extensions())
	digest := sha256.Sum256([]byte(owner))
	plain := binary.BigEndian.AppendUint32(digest[:ownerBytes:ownerBytes], uint32(time.Now().Unix()))
	return base64.RawURLEncoding.EncodeToString(h.storer.SealSession(append(plain, packed...)))
}

// openSession returns the session with an ID that was sealed here; nil for another ID.
func (h *Handler) openSession(id string) *legacySession {
	if len(id) > maxSessionID || strings.ContainsAny(id, "\r\n") { // which decoders skip
		return nil
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(id)
	if err != nil {
		return nil
	}
	plain, err := h.storer.OpenSession(sealed)
	if err != nil || len(plain) < ownerBytes+4 {
		return nil
	}
	s := h.newSession(id)
	s.owner, s.agreed = plain[:ownerBytes], plain[ownerBytes+4:]
	s.begun = time.Unix(int64(binary.BigEndian.Uint32(plain[ownerBytes:])), 0)
	return s
}

// A legacySession is what a client of an older version has here while one of its requests runs, and
// for as long as it has changes or streams to resume. It has no goroutine.
type legacySession struct {
	*transport.Session
	h      *Handler
	owner  []byte    // of the digest of the principal
	begun  time.Time // when it was initialized
	agreed []byte    // in initialize, packed

	ledger  conn.Ledger // of the requests in flight, in both directions
	out     streams     // to the client
	backlog backlog     // in the memoryStore

	changed atomic.Bool // the client has changed something that only this process knows

	loading  sync.Mutex // held while the fleet's record is read or written
	loaded   bool       // guarded by loading, as all below
	revision uint64     // of the record; 0 if there is none
	checked  time.Time  // when the record was read

	uses int           // guarded by sessionTable.mu, as all below
	idle *list.Element // nil while it is in use
}

func (h *Handler) newSession(id string) *legacySession {
	s := &legacySession{h: h}
	s.Session = transport.NewSession(id, &s.out)
	s.ledger.Limits.Calls = conn.DefaultMaxInFlight
	s.out.init(s)
	return s
}

// isOf reports whether the principal owner has opened the session, less than sessionLife ago.
func (s *legacySession) isOf(owner string) bool {
	digest := sha256.Sum256([]byte(owner))
	age := time.Since(s.begun)
	return subtle.ConstantTimeCompare(digest[:ownerBytes], s.owner) == 1 && age >= -clockSkew && age <= sessionLife
}

// load makes the state of the session from its ID and, in a fleet, its record, unless it was made less
// than age ago. The error is [transport.ErrClosed] if the session was deleted.
func (s *legacySession) load(ctx context.Context, age time.Duration) error {
	s.loading.Lock()
	defer s.loading.Unlock()
	if s.loaded && time.Since(s.checked) < age {
		return nil
	}
	record, err := s.h.replica.read(ctx, s)
	if err != nil {
		if s.loaded && !errors.Is(err, transport.ErrClosed) {
			return nil // as it was last seen
		}
		return err
	}
	return s.restore(ctx, record)
}

// restore makes the state of the session from its ID and the record, unless it was made from that. The
// caller holds s.loading.
func (s *legacySession) restore(ctx context.Context, record fleet.Record) error {
	if !s.loaded || s.revision != record.Revision {
		agreed, err := unpackAgreement(s.agreed, s.h.storer.Extensions())
		if err == nil {
			err = s.h.storer.RestoreSession(ctx, s.Session, agreed, record.Data)
		}
		if err != nil {
			return err
		}
	}
	s.loaded, s.revision, s.checked = true, record.Revision, time.Now()
	return nil
}

// canPoll reports whether the client understands events without data, and resumes a stream that
// ends early.
func (s *legacySession) canPoll() bool {
	return protocol.Version(s.Version()) >= protocol.V20251125
}

// end ends the streams and calls of the session, and tells the handler.
func (s *legacySession) end() {
	s.out.close()
	s.ledger.Close(transport.ErrClosed)
	s.h.storer.SessionEnded(s.Session)
}

// A sessionTable has the sessions that are in use or hold something, by the digest of their IDs, some
// that were used lately, and the digests of deleted ones.
type sessionTable struct {
	h *Handler

	deleted *limits.Map[string, struct{}]

	mu     sync.Mutex
	all    map[string]*legacySession // guarded by mu
	idle   list.List                 // of *legacySession: not in use, longest first; guarded by mu
	spare  list.List                 // like idle, of those that hold nothing; guarded by mu
	closed bool                      // guarded by mu
}

// use returns the session with an ID, if it is one of the principal owner, or a refusal. It is in use
// until it is released.
func (t *sessionTable) use(id, owner string) (*legacySession, *jsonrpc.Response) {
	digest := fleet.Digest(id)
	t.mu.Lock()
	defer t.mu.Unlock()
	s, known := t.all[digest]
	if _, deleted := t.deleted.Get(digest, time.Now()); !known && !deleted && !t.closed {
		s = t.h.openSession(id)
	}
	switch {
	case s == nil || !s.isOf(owner):
		return nil, sessionOver()
	case !known && len(t.all) >= t.h.opts.MaxSessions && !t.evict():
		full := busy("too many sessions; try again later")
		full.RetryAfter = time.Minute
		return nil, full
	}
	t.all[digest] = s
	s.uses++
	t.unlist(s)
	return s, nil
}

// unlist removes s from the sessions that are not in use. The caller holds mu.
func (t *sessionTable) unlist(s *legacySession) {
	if s.idle != nil {
		t.idle.Remove(s.idle)
		t.spare.Remove(s.idle)
		s.idle = nil
	}
}

// evict drops the session that was idle longest, of those that hold nothing if there are any. If the
// client has changed something that is kept only here, its session ends, so that the client begins
// anew and knows. The caller holds mu.
func (t *sessionTable) evict() bool {
	front := cmp.Or(t.spare.Front(), t.idle.Front())
	if front == nil {
		return false
	}
	s := front.Value.(*legacySession)
	if s.changed.Load() {
		t.remember(s.Digest())
	}
	t.remove(s)
	return true
}

// remember remembers a deleted session, for as long as its ID is valid.
func (t *sessionTable) remember(digest string) {
	t.deleted.Put(digest, struct{}{}, time.Now().Add(sessionLife+clockSkew))
}

// remove removes a session. The caller holds mu.
func (t *sessionTable) remove(s *legacySession) {
	t.unlist(s)
	delete(t.all, s.Digest())
	s.end()
}

// release undoes use.
func (t *sessionTable) release(s *legacySession) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch s.uses--; {
	case s.uses > 0 || t.all[s.Digest()] != s:
	case s.changed.Load() || s.out.used():
		s.idle = t.idle.PushBack(s)
	default:
		if s.idle = t.spare.PushBack(s); t.spare.Len() > maxSpare {
			t.evict()
		}
	}
}

// known returns the session with the digest if it is in the table, or nil.
func (t *sessionTable) known(digest string) *legacySession {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all[digest]
}

// end ends a session for good, known here or not.
func (t *sessionTable) end(digest string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.remember(digest)
	if s := t.all[digest]; s != nil {
		t.remove(s)
	}
}

// endAll closes all sessions and takes no more.
func (t *sessionTable) endAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for _, s := range t.all {
		t.remove(s)
	}
}

// session returns the session that r names, in use until it is released, or the error response.
func (h *Handler) session(r *http.Request) (*legacySession, *jsonrpc.Response) {
	id := r.Header.Get(protocol.HeaderSessionID)
	if id == "" {
		return nil, refuse(http.StatusBadRequest,
			"header %s is missing; send initialize first, and then the session ID of its response", protocol.HeaderSessionID)
	}
	if v := versionOf(r.Header); v != "" && !v.Legacy() {
		return nil, refuse(http.StatusBadRequest,
			"header %s: %+.100q is not a version with sessions; send the version that initialize agreed on",
			protocol.HeaderProtocolVersion, string(v))
	}
	s, refusal := h.sessions.use(id, oauth.FromContext(r.Context()).Key())
	if refusal != nil {
		return nil, refusal
	}
	if err := s.load(r.Context(), recheck); err != nil {
		h.sessions.release(s)
		if errors.Is(err, transport.ErrClosed) {
			h.sessions.end(s.Digest())
			return nil, sessionOver()
		}
		h.opts.Logger.WarnContext(r.Context(), "streamable: a session is not available", "session", s.Digest(), "error", err)
		return nil, busy("the session cannot be reached at the moment; try again")
	}
	return s, nil
}

func sessionOver() *jsonrpc.Response {
	return refuse(http.StatusNotFound, "session is unknown or has ended; send initialize without a session id")
}

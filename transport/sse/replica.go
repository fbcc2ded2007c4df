package sse

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/internal/conn"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/transport"
)

// A replica is the part of a handler that takes messages for sessions of other replicas. Methods of
// a nil *replica do what a handler without a fleet does.
//
// A record says which replica holds the stream of a session and who owns it. A POST that arrives at
// another replica is appended to a log of the session, which the holder reads. The bus only wakes
// it; it also looks from time to time.
type replica struct {
	h        *Handler
	f        *fleet.Fleet
	sessions *fleet.Set
}

const (
	sessionFormat = 1
	sessionLife   = 6 * time.Hour // of a record; the holder renews it
	renewal       = time.Hour
	young         = 10 * time.Second
	lookIn        = 10 * time.Second // between looks for messages

	incoming = "in" // the log of messages
	kindPost = "sse-post"

	maxForwarded      = 1000     // messages that arrived at other replicas and that its own has not taken
	maxForwardedBytes = 16 << 20 // bytes of these messages

	conflictsInARow = 100
	pageOfMessages  = 100
)

// A sessionRecord is a session in the store.
type sessionRecord struct {
	Owner   string `json:"owner"`   // key of the principal
	Replica string `json:"replica"` // that holds the stream
}

// A forwarded message is the body of a POST at another replica, with the header fields that hold no
// credentials, and what the credential allows. Without header fields, it only makes the log live on.
type forwarded struct {
	Header  http.Header `json:"header"`
	Body    []byte      `json:"body"`
	Scopes  []string    `json:"scopes,omitempty"`
	Expires time.Time   `json:"expires,omitzero"`
}

// contextOf returns ctx, that of the stream, with what the credential of the POST allows: the
// principal is the same.
func (m *forwarded) contextOf(ctx context.Context) context.Context {
	p := oauth.FromContext(ctx)
	if p == nil {
		return ctx
	}
	q := *p
	q.Scopes, q.Expires = m.Scopes, m.Expires
	return oauth.NewContext(ctx, &q)
}

var credentials = []string{"Authorization", "Proxy-Authorization", "Cookie", "Dpop"}

// join makes h a part of the fleet of its server, if that has one.
func (h *Handler) join() {
	member, ok := h.rpc.(interface{ Fleet() *fleet.Fleet })
	if !ok || member.Fleet() == nil {
		return
	}
	p := &replica{h: h, f: member.Fleet(), sessions: member.Fleet().Set("sse-sessions", sessionFormat)}
	h.replica = p
	p.f.On(kindPost, func(_ string, payload []byte) {
		var key string
		if json.Unmarshal(payload, &key) == nil {
			h.wake(key)
		}
	})
	p.f.OnMissed(func() { h.wake("") })
}

// wake lets sessions look for messages; all if key is "".
func (h *Handler) wake(key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.sessions {
		if key == "" || s.key == key {
			select {
			case s.arrived <- struct{}{}:
			default:
			}
		}
	}
}

// announce makes a session known to the other replicas until end is called.
func (p *replica) announce(ctx context.Context, s *session) (end func(), err error) {
	if p == nil {
		return func() {}, nil
	}
	s.key, s.arrived = fleet.Digest(s.id), make(chan struct{}, 1)
	data, err := json.Marshal(sessionRecord{s.owner, p.f.Replica()})
	if err != nil {
		return nil, err
	}
	revision, err := p.sessions.Create(ctx, fleet.Record{Key: s.key, Data: data, TTL: sessionLife})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	// Ends with the session.
	go func() {
		defer close(ended)
		p.follow(ctx, s, fleet.Record{Key: s.key, Data: data, Revision: revision, TTL: sessionLife})
	}()
	return func() {
		cancel()
		<-ended
		ctx := context.WithoutCancel(ctx) // the fleet limits the time of operations
		err := p.sessions.Delete(ctx, s.key, 0)
		if err == nil {
			err = p.f.Drop(ctx, s.key)
		}
		if err != nil {
			p.f.Logger().Warn("sse: the record of a session that has ended was not deleted; it expires", "error", err)
		}
	}, nil
}

// follow passes messages that arrived at other replicas to s, and renews the record and the log, until
// ctx ends. If the log expired, the next message would have the number of an earlier one.
func (p *replica) follow(ctx context.Context, s *session, r fleet.Record) {
	look, renew := time.NewTicker(lookIn), time.NewTicker(renewal)
	defer look.Stop()
	defer renew.Stop()
	seq := uint64(0)
	for {
		select {
		case <-s.arrived:
		case <-look.C:
		case <-renew.C:
			revision, err := p.sessions.Update(ctx, r)
			if errors.Is(err, fleet.ErrConflict) { // an earlier update succeeded after all
				var stored fleet.Record
				if stored, err = p.sessions.Get(ctx, r.Key); err == nil {
					r.Revision = stored.Revision
					revision, err = p.sessions.Update(ctx, r)
				}
			}
			if err == nil {
				r.Revision = revision
			}
			if seq > 0 {
				if err := p.append(ctx, s.key, forwarded{}); err != nil && ctx.Err() == nil {
					p.f.Logger().WarnContext(ctx, "sse: the messages of a session were not kept alive", "error", err)
				}
			}
			continue
		case <-s.wire.ended:
			return
		case <-ctx.Done():
			return
		}
		for more := true; more; {
			seq, more = p.pass(ctx, s, seq)
		}
	}
}

// pass passes messages with numbers after seq to s. It returns the number of the last one, and
// whether there may be more.
func (p *replica) pass(ctx context.Context, s *session, seq uint64) (last uint64, more bool) {
	entries, err := p.f.After(ctx, s.key, incoming, seq, pageOfMessages)
	if err != nil {
		if ctx.Err() == nil {
			p.f.Logger().WarnContext(ctx, "sse: messages that arrived at other replicas wait", "error", err)
		}
		return seq, false
	}
	for _, e := range entries {
		var m forwarded
		if err := json.Unmarshal(e.Data, &m); err != nil || e.Seq != seq+1 {
			p.f.Logger().WarnContext(ctx, "sse: messages that arrived at other replicas were lost; closing the stream", "error", err)
			_ = s.wire.Close()
			return seq, false
		}
		if m.Header == nil {
			seq = e.Seq
			continue
		}
		select {
		case s.wire.in <- posted{m.Body, conn.Origin{Context: m.contextOf(ctx), Header: transport.Header(m.Header)}}:
		case <-s.wire.ended:
			return seq, false
		case <-ctx.Done():
			return seq, false
		}
		seq = e.Seq
	}
	return seq, len(entries) == pageOfMessages
}

// errUnknown means that there is no such session of this owner.
var errUnknown = errors.New("the session is unknown")

// find returns the key of a session that another replica holds, and the name of that replica.
func (p *replica) find(ctx context.Context, id, owner string) (key, holder string, err error) {
	if p == nil {
		return "", "", errUnknown
	}
	key = fleet.Digest(id)
	stored, err := p.sessions.Get(ctx, key)
	var r sessionRecord
	if err == nil {
		err = json.Unmarshal(stored.Data, &r)
	}
	switch {
	case errors.Is(err, fleet.ErrNotFound), err == nil && (r.Owner != owner || r.Replica == p.f.Replica()):
		return "", "", errUnknown
	case err != nil:
		return "", "", err
	}
	// A replica that has just started may not have shown yet that it is alive.
	if stored.TTL > sessionLife-young {
		return key, r.Replica, nil
	}
	alive, err := p.f.Alive(ctx, r.Replica)
	if err == nil && !alive {
		err = errUnknown
	}
	return key, r.Replica, err
}

// forward leaves a message for the replica that holds its session.
func (p *replica) forward(r *http.Request, key, holder string, body []byte) error {
	header := r.Header.Clone()
	for _, name := range credentials {
		header.Del(name)
	}
	m := forwarded{Header: header, Body: body}
	if caller := oauth.FromContext(r.Context()); caller != nil {
		m.Scopes, m.Expires = caller.Scopes, caller.Expires
	}
	err := p.append(r.Context(), key, m)
	if err == nil {
		p.f.Tell(holder, kindPost, key)
	}
	return err
}

// append appends a message to the log of a session.
func (p *replica) append(ctx context.Context, key string, m forwarded) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	keep := fleet.Keep{Entries: maxForwarded, Bytes: maxForwardedBytes, TTL: sessionLife}
	err = fleet.ErrConflict
	for n := 0; errors.Is(err, fleet.ErrConflict) && n < conflictsInARow; n++ {
		var last uint64
		if last, err = p.f.Last(ctx, key, incoming); err == nil {
			err = p.f.Append(ctx, key, incoming, fleet.Entry{Seq: last + 1, Data: data}, keep)
		}
	}
	return err
}

// serveForeign answers a POST for a session that this replica does not hold.
func (h *Handler) serveForeign(w http.ResponseWriter, r *http.Request, id string) {
	key, holder, err := h.replica.find(r.Context(), id, oauth.FromContext(r.Context()).Key())
	if errors.Is(err, errUnknown) {
		refuse(w, r, "session is unknown or has ended; open a new stream", http.StatusNotFound)
		return
	}
	if err != nil {
		h.unavailable(w, r, err)
		return
	}
	body, account, ok := h.read(w, r)
	defer account.Close()
	if !ok {
		return
	}
	switch err := h.replica.forward(r, key, holder, body); {
	case errors.Is(err, fleet.ErrTooLarge):
		http.Error(w, "message is larger than replicas can pass on", http.StatusRequestEntityTooLarge)
	case err != nil:
		h.unavailable(w, r, err)
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

// unavailable answers a request that the store of the fleet failed.
func (h *Handler) unavailable(w http.ResponseWriter, r *http.Request, err error) {
	h.replica.f.Logger().WarnContext(r.Context(), "sse: a session is not available", "error", err)
	w.Header().Set("Retry-After", "1")
	refuse(w, r, "the session cannot be reached at the moment; try again", http.StatusServiceUnavailable)
}

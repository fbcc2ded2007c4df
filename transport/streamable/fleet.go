package streamable

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/internal/conn"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// A replica is the part of a handler that works with the handlers of other replicas. Methods of a nil
// *replica do what a handler without a fleet does.
//
// Any replica opens a session from its ID. Only what a client changes after that is in a record, and
// the streams of POSTs are in the log of the fleet, for clients that resume them. Everything else
// travels on the bus, with the digest of the session: answers, cancellations, and what wakes others.
type replica struct {
	h       *Handler
	f       *fleet.Fleet
	records *fleet.Set
	asked   atomic.Int64
}

const (
	kindSession   = "session" // of messages
	recordFormat  = 1
	recheck       = 5 * time.Second // how old what was read of a session's record may become
	lookAway      = 3 * time.Second // between looks at the replica whose stream a client reads here
	replicaName   = 12              // length of a name
	maxPassedID   = 1 << 10         // bytes of an ID in a cancellation
	changedGroup  = "changed"       // of records with what clients have changed in their sessions
	deletedGroup  = "deleted"       // of empty records of deleted sessions
	logLife       = time.Hour       // after the last message
	questionJoint = "-"             // between the name of a replica and a number
)

// A message is what replicas tell each other about a session.
type message struct {
	Session string          `json:"session"`          // the digest of its ID
	About   string          `json:"about"`            // one of those below
	Stream  string          `json:"stream,omitempty"` // its name
	Since   int64           `json:"since,omitempty"`  // when a client began to read it elsewhere
	Passed  json.RawMessage `json:"passed,omitempty"` // a message of the client
}

// What a message is about.
const (
	aboutChange   = "change"   // the client has changed something
	aboutDeletion = "deletion" // the client has deleted the session
	aboutStream   = "stream"   // a stream has more, or is read at another replica
	aboutPassed   = "passed"   // an answer or a cancellation
)

// join makes h a part of the fleet of its server, if that has one.
func (h *Handler) join() {
	member, ok := h.rpc.(interface{ Fleet() *fleet.Fleet })
	if !ok || h.opts.Stateless || member.Fleet() == nil {
		return
	}
	f := member.Fleet()
	p := &replica{h: h, f: f, records: f.Set("sessions", recordFormat)}
	h.replica, h.replicaName, h.events = p, f.Replica(), p
	h.opts.Logger = h.opts.Logger.With("replica", f.Replica())
	f.On(kindSession, p.hear)
}

// hear handles a message of another replica.
func (p *replica) hear(_ string, payload []byte) {
	var m message
	if json.Unmarshal(payload, &m) != nil {
		return
	}
	if m.About == aboutDeletion {
		p.h.sessions.end(m.Session)
		return
	}
	s := p.h.sessions.known(m.Session)
	if s == nil {
		return
	}
	switch m.About {
	case aboutChange:
		// Ends when the engine has answered. If it fails, the next request tries again.
		go func() { _ = s.load(context.Background(), 0) }()
	case aboutStream:
		s.out.elsewhere(m.Stream, m.Since)
	case aboutPassed:
		if msg, bad := jsonrpc.Decode(m.Passed); bad == nil && msg.Response != nil {
			s.ledger.Answer(msg.Response)
		} else if bad == nil {
			s.ledger.Cancel(msg.Request)
		}
	}
}

// tell sends m, which is about s, to a replica, or to all others. It returns false if too many
// messages wait.
func (p *replica) tell(to string, s *legacySession, m message) bool {
	m.Session = s.Digest()
	return p == nil || p.f.Tell(to, kindSession, m)
}

// read returns the record of what a client has changed in its session. The error is
// [transport.ErrClosed] if it has deleted it.
func (p *replica) read(ctx context.Context, s *legacySession) (record fleet.Record, err error) {
	if p == nil {
		return record, nil
	}
	record, err = p.records.Get(ctx, s.Digest())
	if errors.Is(err, fleet.ErrNotFound) {
		return fleet.Record{}, nil
	}
	if record.Group == deletedGroup {
		err = transport.ErrClosed
	}
	return record, err
}

// change changes the state of a session with f, for as often as others change it meanwhile.
func (p *replica) change(ctx context.Context, s *legacySession, f func()) error {
	if p == nil {
		f()
		s.changed.Store(true)
		return nil
	}
	s.loading.Lock()
	defer s.loading.Unlock()
	revision, err := p.records.Change(ctx, s.Digest(), func(r *fleet.Record) error {
		if r.Group == deletedGroup {
			return transport.ErrClosed
		}
		if err := s.restore(ctx, *r); err != nil {
			return err
		}
		f()
		_, r.Data = p.h.storer.StoreSession(s.Session)
		r.Group, r.TTL = changedGroup, sessionLife
		if r.Revision > 0 {
			return nil
		}
		n, err := p.records.Count(ctx, changedGroup)
		if err == nil && n >= p.h.opts.MaxSessions {
			err = errors.New("too many sessions have changes; try again later")
		}
		return err
	})
	if err != nil {
		return err
	}
	s.revision = revision
	p.tell("", s, message{About: aboutChange})
	return nil
}

// delete deletes a session on all replicas.
func (p *replica) delete(ctx context.Context, s *legacySession) error {
	if p == nil {
		return nil
	}
	if err := p.records.Delete(ctx, s.Digest(), 0); err != nil {
		return err
	}
	n, err := p.records.Count(ctx, deletedGroup)
	if err == nil && n < maxDeleted {
		_, err = p.records.Create(ctx, fleet.Record{Key: s.Digest(), Group: deletedGroup, TTL: sessionLife})
	}
	if err == nil || errors.Is(err, fleet.ErrExists) {
		err = p.f.Drop(ctx, s.Digest())
	}
	p.tell("", s, message{About: aboutDeletion})
	return err
}

// cancel handles a notifications/cancelled of the client, whichever replica runs the request.
func (p *replica) cancel(s *legacySession, n *jsonrpc.Request) {
	s.ledger.Cancel(n)
	id, ok := jsonrpc.ParseID(n.Param("requestId"))
	if ok && len(id.String()) <= maxPassedID {
		params := fmt.Appendf(nil, `{"requestId":%s}`, id)
		p.tell("", s, message{About: aboutPassed, Passed: jsonrpc.AppendRequest(nil, &jsonrpc.Request{Method: n.Method, Params: params})})
	}
}

// questionID returns the ID of a new question, which names this replica, or an absent ID outside of
// a fleet.
func (p *replica) questionID() jsonrpc.ID {
	if p == nil {
		return jsonrpc.ID{}
	}
	return jsonrpc.StringID(fmt.Sprint(p.f.Replica(), questionJoint, p.asked.Add(1)))
}

// answer passes a response to the server request that waits for it, at the replica that its ID names.
// That checks whether the session waits for it.
func (p *replica) answer(s *legacySession, resp *jsonrpc.Response) (refusal *jsonrpc.Response) {
	if s.ledger.Answer(resp) || p == nil {
		return nil
	}
	asker, _, ok := strings.Cut(strings.Trim(resp.ID.String(), `"`), questionJoint)
	if !ok || len(asker) != replicaName || fleet.CheckNames(asker) != nil {
		return nil
	}
	data := jsonrpc.AppendResponse(nil, resp)
	if len(data) > fleet.MaxData/2 {
		return refuse(http.StatusRequestEntityTooLarge, "the response is larger than replicas can pass on")
	}
	if !p.tell(asker, s, message{About: aboutPassed, Passed: data}) {
		return busy("the response cannot be passed on at the moment; try again")
	}
	return nil
}

// ranElsewhere reports whether a stream is one of another replica.
func (p *replica) ranElsewhere(name string) bool {
	return p != nil && len(name) > replicaName+tagSize && name[replicaName+tagSize] == '_' &&
		!strings.HasPrefix(name, p.f.Replica())
}

// gone reports whether the replica that ran the request of the stream has ended. lost is the
// response to that request; nil if the replica has left nothing that names it.
func (p *replica) gone(l *listener) (lost *jsonrpc.Response, gone bool) {
	if !p.ranElsewhere(l.st.name) {
		return nil, false
	}
	ctx := context.WithoutCancel(l.r.Context())
	if alive, err := p.f.Alive(ctx, l.st.name[:replicaName]); err != nil || alive {
		return nil, false
	}
	left, err := p.after(ctx, l.s, l.st.name, 0)
	if err != nil {
		return nil, false
	}
	if len(left) > 0 {
		if id, ok := jsonrpc.ParseID([]byte(left[0].request)); ok {
			lost = conn.Lost(id)
		}
	}
	return lost, true
}

// append stores a message. Each begins with a line that says whether it is the last one, and the ID
// of the request.
func (p *replica) append(ctx context.Context, s *legacySession, e event) error {
	data := append(fmt.Appendf(nil, "%t %s\n", e.last, e.request), e.data...)
	keep := fleet.Keep{Entries: maxSessionEvents, Bytes: maxSessionBytes, TTL: logLife}
	err := p.f.Append(ctx, s.Digest(), e.stream, fleet.Entry{Seq: e.seq, Data: data}, keep)
	if errors.Is(err, fleet.ErrTooLarge) {
		return errTooLarge
	}
	return err
}

// after returns messages.
func (p *replica) after(ctx context.Context, s *legacySession, stream string, seq uint64) ([]event, error) {
	entries, err := p.f.After(ctx, s.Digest(), stream, seq, maxSessionEvents)
	if err != nil {
		return nil, err
	}
	events := make([]event, 0, len(entries))
	for _, entry := range entries {
		head, data, _ := bytes.Cut(entry.Data, []byte("\n"))
		last, request, ok := strings.Cut(string(head), " ")
		if !ok {
			return nil, errors.New("a message in the store is damaged")
		}
		events = append(events, event{stream: stream, seq: entry.Seq, data: data, request: request, last: last == "true"})
	}
	return events, nil
}

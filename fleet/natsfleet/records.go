package natsfleet

import (
	"context"
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/mcpkit/mcpkit-go/fleet"
)

// A record is the last message of its subject. Its revision is the number of that message in the
// stream. A record expires by the time of its message and headerTTL. The server removes the message
// some seconds later.
const (
	headerGroup   = "Mcpkit-Group"
	headerTTL     = "Mcpkit-TTL"     // nanoseconds
	headerDue     = "Mcpkit-Due"     // nanoseconds
	headerDeleted = "Mcpkit-Deleted" // there is no record
	headerID      = "Mcpkit-ID"      // of the message
	headerAfter   = "Mcpkit-After"   // number of the message that it replaces

	slack    = 5 * time.Second           // between the end of a record and that of its message
	deleted  = time.Minute               // how long the message of a deleted record is kept
	maxTTL   = 10 * 365 * 24 * time.Hour // more is forever
	busyWait = 2 * time.Millisecond

	//limit:server revisions of records on NATS that a replica knows without asking | it asks again
	maxFacts = 10_000
)

// A fact is what never changes of a revision.
type fact struct {
	revision uint64
	group    string
	expires  time.Time
}

func (e *Engine) subject(set, key string) string {
	return e.opts.Prefix + "." + records + "." + set + "." + key
}

// A meta is what the header of a message says of a record.
type meta struct {
	group   string
	expires time.Time
	due     time.Time // zero for never
}

// metaOf returns false if the message says that there is no record, or was not written by an engine.
func metaOf(m *stored) (meta, bool) {
	ttl, err := strconv.ParseInt(m.header.Get(headerTTL), 10, 64)
	if err != nil || m.header.Get(headerDeleted) != "" {
		return meta{}, false
	}
	result := meta{group: m.header.Get(headerGroup), expires: m.at.Add(time.Duration(ttl))}
	if text := m.header.Get(headerDue); text != "" {
		due, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return meta{}, false
		}
		result.due = m.at.Add(time.Duration(due) - fleet.AtOnce)
	}
	return result, true
}

// nanos is the value of a header.
func nanos(d time.Duration) string { return strconv.FormatInt(int64(d), 10) }

// lifetime is the value of the header that makes the server remove a message.
func lifetime(d time.Duration) string {
	if d > maxTTL {
		return "never"
	}
	return strconv.Itoa(int(math.Ceil(d.Seconds())))
}

// put writes a record if the last message of its subject is still the given one.
func (e *Engine) put(ctx context.Context, s *stream, set string, r fleet.Record, last uint64) (revision uint64, err error) {
	now, err := e.now(ctx, s)
	if err != nil {
		return 0, err
	}
	m := nats.NewMsg(e.subject(set, r.Key))
	m.Data = r.Data
	m.Header.Set(headerTTL, nanos(r.TTL))
	m.Header.Set("Nats-TTL", lifetime(r.TTL+slack))
	if r.Group != "" {
		m.Header.Set(headerGroup, r.Group)
	}
	if r.Due > 0 {
		m.Header.Set(headerDue, nanos(r.Due))
	}
	revision, err = e.publish(ctx, s, m, m.Subject, last)
	if err == nil {
		e.facts.set(set+"/"+r.Key, fact{revision, r.Group, now.Add(r.TTL)})
	}
	return revision, err
}

// current returns a record and the last number of its subject, which is not 0 if there was a record
// lately.
func (e *Engine) current(ctx context.Context, s *stream, set, key string) (r fleet.Record, last uint64, err error) {
	m, err := e.last(ctx, s, e.subject(set, key))
	if err != nil {
		return r, 0, err
	}
	if m == nil {
		return r, 0, fleet.ErrNotFound
	}
	now, err := e.now(ctx, s)
	if err != nil {
		return r, 0, err
	}
	r, ok := e.record(set, key, m, now)
	if !ok {
		return r, m.seq, fleet.ErrNotFound
	}
	return r, m.seq, nil
}

// record returns the record of a message, and false if there is none.
func (e *Engine) record(set, key string, m *stored, now time.Time) (fleet.Record, bool) {
	about, ok := metaOf(m)
	if !ok || !about.expires.After(now) {
		return fleet.Record{}, false
	}
	e.facts.set(set+"/"+key, fact{m.seq, about.group, about.expires})
	return fleet.Record{Key: key, Group: about.group, Data: m.data, Revision: m.seq, TTL: about.expires.Sub(now)}, true
}

// Get implements [fleet.Records].
func (e *Engine) Get(ctx context.Context, set, key string) (fleet.Record, error) {
	ctx, cancel, s, err := e.use(ctx, records)
	if err != nil {
		return fleet.Record{}, err
	}
	defer cancel()
	r, _, err := e.current(ctx, s, set, key)
	return r, err
}

// Create implements [fleet.Records].
func (e *Engine) Create(ctx context.Context, set string, r fleet.Record) (revision uint64, err error) {
	ctx, cancel, s, err := e.use(ctx, records)
	if err != nil {
		return 0, err
	}
	defer cancel()
	for last := uint64(0); ; {
		revision, err = e.put(ctx, s, set, r, last)
		if !isCode(err, codeWrongLast, codeWrongLastBusy) {
			return revision, err
		}
		_, found, err := e.current(ctx, s, set, r.Key)
		switch {
		case err == nil:
			return 0, fleet.ErrExists
		case !errors.Is(err, fleet.ErrNotFound):
			return 0, err
		case found == last && !pause(ctx, busyWait): // a message is on its way
			return 0, ctx.Err()
		}
		last = found
	}
}

// Update implements [fleet.Records].
func (e *Engine) Update(ctx context.Context, set string, r fleet.Record) (revision uint64, err error) {
	ctx, cancel, s, err := e.use(ctx, records)
	if err != nil {
		return 0, err
	}
	defer cancel()
	now, err := e.now(ctx, s)
	if err != nil {
		return 0, err
	}
	known, ok := e.facts.get(set + "/" + r.Key)
	for ok = ok && known.revision == r.Revision && known.expires.After(now); ; ok = false {
		if !ok {
			current, _, err := e.current(ctx, s, set, r.Key)
			if err == nil && current.Revision != r.Revision {
				err = fleet.ErrConflict
			}
			if err != nil {
				return 0, err
			}
			known.group = current.Group
		}
		r.Group = known.group
		revision, err = e.put(ctx, s, set, r, r.Revision)
		if !isCode(err, codeWrongLast, codeWrongLastBusy) {
			return revision, err
		}
		if !ok && !pause(ctx, busyWait) {
			return 0, ctx.Err()
		}
	}
}

// Delete implements [fleet.Records].
func (e *Engine) Delete(ctx context.Context, set, key string, revision uint64) error {
	ctx, cancel, s, err := e.use(ctx, records)
	if err != nil {
		return err
	}
	defer cancel()
	for {
		current, last, err := e.current(ctx, s, set, key)
		switch {
		case errors.Is(err, fleet.ErrNotFound):
			return nil
		case err != nil:
			return err
		case revision != 0 && current.Revision != revision:
			return fleet.ErrConflict
		}
		// A message and not the removal of one: only messages are compared with the last one when
		// a cluster orders them.
		m := nats.NewMsg(e.subject(set, key))
		m.Header.Set(headerDeleted, "1")
		m.Header.Set("Nats-TTL", lifetime(deleted))
		_, err = e.publish(ctx, s, m, m.Subject, last)
		if !isCode(err, codeWrongLast, codeWrongLastBusy) {
			return err
		}
		if !pause(ctx, busyWait) {
			return ctx.Err()
		}
	}
}

// use begins an operation on a stream. Unless it returns an error, the caller calls cancel at the
// end.
func (e *Engine) use(ctx context.Context, kind string) (context.Context, context.CancelFunc, *stream, error) {
	ctx, cancel, err := e.begin(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	s, err := e.open(ctx, kind)
	if err != nil {
		cancel()
		return nil, nil, nil, err
	}
	return ctx, cancel, s, nil
}

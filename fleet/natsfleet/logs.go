package natsfleet

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/mcpkit/mcpkit-go/fleet"
)

// An entry of a log is a message whose subject ends with its number. The engine appends on the
// condition that the last message of the log is the one that it knows. A log lives by the time and
// headerTTL of its last message.
//
// For each log there is a record in headSet, which becomes due when the log may have expired: any
// replica then looks, and removes the messages.
const (
	headSet = "~logs" // which no caller can name

	//limit:server logs on NATS whose end a replica knows without asking | it asks again
	maxTails = 10_000

	parts      = 8 // of a log, of which the oldest is dropped when the others are enough
	sweepEvery = time.Minute
	sweepBatch = 100
)

// A logTail is the end of a log, and where it can be cut. It does not change.
type logTail struct {
	last    uint64 // number of the last entry
	seq     uint64 // of its message; 0 if the log has none
	expires time.Time
	marks   []mark // the oldest first
	entries int
	bytes   int
}

// A mark is a part of a log.
type mark struct {
	seq     uint64 // of its first message
	entries int
	bytes   int
}

// with returns the tail after another entry.
func (t *logTail) with(entry, seq uint64, size int, expires time.Time, keep fleet.Keep) *logTail {
	next := &logTail{last: entry, seq: seq, expires: expires, entries: t.entries + 1, bytes: t.bytes + size}
	next.marks = append(make([]mark, 0, len(t.marks)+1), t.marks...)
	if n := len(next.marks); n > 0 {
		m := &next.marks[n-1]
		if m.entries < keep.Entries/parts && m.bytes+size <= keep.Bytes/parts {
			m.entries, m.bytes = m.entries+1, m.bytes+size
			return next
		}
	}
	next.marks = append(next.marks, mark{seq, 1, size})
	return next
}

// cut drops the parts that are not needed, and reports whether there were any.
func (t *logTail) cut(keep fleet.Keep) bool {
	n := len(t.marks)
	for len(t.marks) > 1 && (t.entries-t.marks[0].entries >= keep.Entries || t.bytes-t.marks[0].bytes >= keep.Bytes) {
		t.entries -= t.marks[0].entries
		t.bytes -= t.marks[0].bytes
		t.marks = t.marks[1:]
	}
	return len(t.marks) < n
}

func (e *Engine) logSubject(group, log string) string {
	return e.opts.Prefix + "." + logs + "." + group + "." + log + "."
}

// numberOf returns the number of the entry of a message, or 0.
func numberOf(m *stored) uint64 {
	n, _ := strconv.ParseUint(m.subject[strings.LastIndexByte(m.subject, '.')+1:], 10, 64)
	return n
}

func expiryOf(m *stored) time.Time {
	ttl, _ := strconv.ParseInt(m.header.Get(headerTTL), 10, 64)
	return m.at.Add(time.Duration(ttl))
}

// endOf returns the last message of a log, or nil if there is none or the log has expired.
func (e *Engine) endOf(ctx context.Context, s *stream, group, log string) (m *stored, expired bool, err error) {
	m, err = e.last(ctx, s, e.logSubject(group, log)+"*")
	if err != nil || m == nil {
		return nil, false, err
	}
	now, err := e.now(ctx, s)
	if err != nil {
		return nil, false, err
	}
	return m, !expiryOf(m).After(now), nil
}

// Append implements [fleet.Logs].
func (e *Engine) Append(ctx context.Context, group, log string, entry fleet.Entry, keep fleet.Keep) error {
	ctx, cancel, s, err := e.use(ctx, logs)
	if err != nil {
		return err
	}
	defer cancel()
	name, subject := group+"/"+log, e.logSubject(group, log)
	now, err := e.now(ctx, s)
	if err != nil {
		return err
	}
	tail, ok := e.tails.get(name)
	for ok = ok && entry.Seq > tail.last && tail.expires.After(now); ; ok = false {
		if !ok {
			if tail, err = e.readTail(ctx, s, group, log, keep); err != nil {
				return err
			}
			if tail.seq != 0 && entry.Seq <= tail.last {
				return e.compare(ctx, s, subject, entry)
			}
		}
		if tail.seq == 0 {
			if err := e.putHead(ctx, group, log, keep.TTL); err != nil {
				return err
			}
		}
		m := nats.NewMsg(subject + strconv.FormatUint(entry.Seq, 10))
		m.Data = entry.Data
		m.Header.Set(headerTTL, nanos(keep.TTL))
		seq, err := e.publish(ctx, s, m, subject+"*", tail.seq)
		if isCode(err, codeWrongLast, codeWrongLastBusy) {
			if !ok && !pause(ctx, busyWait) {
				return ctx.Err()
			}
			continue
		}
		if err != nil {
			e.tails.remove(name)
			return err
		}
		tail = tail.with(entry.Seq, seq, len(entry.Data), now.Add(keep.TTL), keep)
		if tail.cut(keep) {
			// If that fails, there is more than necessary until the next time.
			_ = e.purge(ctx, s, subject+"*", tail.marks[0].seq)
		}
		e.tails.set(name, tail)
		return nil
	}
}

// compare returns an error unless the log has the entry.
func (e *Engine) compare(ctx context.Context, s *stream, subject string, entry fleet.Entry) error {
	m, err := e.last(ctx, s, subject+strconv.FormatUint(entry.Seq, 10))
	if err != nil {
		return err
	}
	if m == nil || !bytes.Equal(m.data, entry.Data) {
		return fleet.ErrConflict
	}
	return nil
}

// readTail reads a log to its end. It removes one that has expired.
func (e *Engine) readTail(ctx context.Context, s *stream, group, log string, keep fleet.Keep) (*logTail, error) {
	subject := e.logSubject(group, log) + "*"
	last, expired, err := e.endOf(ctx, s, group, log)
	if err != nil || last == nil {
		return &logTail{}, err
	}
	if expired {
		return &logTail{}, e.purge(ctx, s, subject, last.seq+1)
	}
	tail := &logTail{}
	for tail.seq < last.seq {
		page, more, err := e.direct(ctx, s, getRequest{Seq: tail.seq + 1, NextFor: subject, Batch: pageEntries, MaxBytes: pageBytes})
		if err != nil {
			return nil, err
		}
		for _, m := range page {
			if m.seq < last.seq {
				tail = tail.with(numberOf(m), m.seq, len(m.data), expiryOf(m), keep)
			}
		}
		if len(page) == 0 || !more || page[len(page)-1].seq >= last.seq {
			break // a server that is behind leaves parts uncut, until they are read again
		}
	}
	return tail.with(numberOf(last), last.seq, len(last.data), expiryOf(last), keep), nil
}

// purge removes the messages of a subject before a number; 0 removes all.
func (e *Engine) purge(ctx context.Context, s *stream, subject string, before uint64) error {
	body := struct {
		Filter string `json:"filter"`
		Seq    uint64 `json:"seq,omitempty"`
	}{subject, before}
	return e.call(ctx, "STREAM.PURGE."+s.name, body, nil)
}

// After implements [fleet.Logs].
func (e *Engine) After(ctx context.Context, group, log string, seq uint64, limit int) ([]fleet.Entry, error) {
	ctx, cancel, s, err := e.use(ctx, logs)
	if err != nil {
		return nil, err
	}
	defer cancel()
	subject := e.logSubject(group, log)
	last, expired, err := e.endOf(ctx, s, group, log)
	if err != nil || last == nil || expired || numberOf(last) <= seq {
		return nil, err
	}
	from := uint64(1)
	if seq > 0 {
		// Without the entry, the log is read from its beginning.
		exact, _, err := e.direct(ctx, s, getRequest{LastFor: subject + strconv.FormatUint(seq, 10)})
		if err != nil {
			return nil, err
		}
		if len(exact) > 0 {
			from = exact[0].seq + 1
		}
	}
	var all []fleet.Entry
	for len(all) < limit && from <= last.seq {
		page, _, err := e.direct(ctx, s, getRequest{Seq: from, NextFor: subject + "*", Batch: min(limit, pageEntries), MaxBytes: pageBytes})
		if err == nil && len(page) == 0 && s.replicas > 1 { // the server is behind
			var next *stored
			if next, err = e.newest(ctx, s, getRequest{Seq: from, NextFor: subject + "*"}); next != nil {
				page = []*stored{next}
			}
		}
		if err != nil {
			return nil, err
		}
		if len(page) == 0 {
			break // dropped meanwhile
		}
		for _, m := range page {
			if number := numberOf(m); number > seq && len(all) < limit {
				all = append(all, fleet.Entry{Seq: number, Data: m.data})
			}
			from = m.seq + 1
		}
	}
	return all, nil
}

// Last implements [fleet.Logs].
func (e *Engine) Last(ctx context.Context, group, log string) (uint64, error) {
	ctx, cancel, s, err := e.use(ctx, logs)
	if err != nil {
		return 0, err
	}
	defer cancel()
	last, expired, err := e.endOf(ctx, s, group, log)
	if err != nil || last == nil || expired {
		return 0, err
	}
	return numberOf(last), nil
}

// Drop implements [fleet.Logs].
func (e *Engine) Drop(ctx context.Context, group string) error {
	ctx, cancel, s, err := e.use(ctx, logs)
	if err != nil {
		return err
	}
	defer cancel()
	return e.purge(ctx, s, e.opts.Prefix+"."+logs+"."+group+".>", 0)
}

// putHead writes the record that makes a replica look whether the log has expired. If there is one,
// it gets another revision, so that a replica that looks right now does not delete it.
func (e *Engine) putHead(ctx context.Context, group, log string, ttl time.Duration) error {
	e.startJanitor()
	digest := sha256.Sum256([]byte(group + "/" + log)) // since both together are too long for a key
	head := fleet.Record{
		Key: base64.RawURLEncoding.EncodeToString(digest[:]), Data: []byte(group + "/" + log), TTL: 2 * maxTTL, Due: ttl + sweepEvery,
	}
	for {
		_, err := e.Create(ctx, headSet, head)
		if !errors.Is(err, fleet.ErrExists) {
			return err
		}
		old, err := e.Get(ctx, headSet, head.Key)
		if err == nil {
			head.Revision = old.Revision
			_, err = e.Update(ctx, headSet, head)
		}
		if !errors.Is(err, fleet.ErrNotFound) && !errors.Is(err, fleet.ErrConflict) {
			return err
		}
	}
}

// startJanitor makes this replica one of those that remove logs that have expired, until Close.
func (e *Engine) startJanitor() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.janitor || e.ctx.Err() != nil {
		return
	}
	e.janitor = true
	e.ended.Go(func() {
		for pause(e.ctx, sweepEvery/2+rand.N(sweepEvery)) {
			_ = e.sweep(e.ctx) // the next time will do
		}
	})
}

// sweep removes logs that have expired.
func (e *Engine) sweep(ctx context.Context) error {
	for {
		heads, err := e.Due(ctx, headSet, sweepBatch)
		if err != nil {
			return err
		}
		for _, head := range heads {
			if err := e.sweepLog(ctx, head); err != nil && !errors.Is(err, fleet.ErrConflict) && !errors.Is(err, fleet.ErrNotFound) {
				return err
			}
		}
		if len(heads) < sweepBatch {
			return nil
		}
	}
}

func (e *Engine) sweepLog(ctx context.Context, head fleet.Record) error {
	group, log, _ := strings.Cut(string(head.Data), "/")
	// Other replicas may look, too: the one that changes the record does the work.
	head.TTL, head.Due = 2*maxTTL, sweepEvery
	var err error
	if head.Revision, err = e.Update(ctx, headSet, head); err != nil {
		return err
	}
	ctx, cancel, s, err := e.use(ctx, logs)
	if err != nil {
		return err
	}
	defer cancel()
	last, _, err := e.endOf(ctx, s, group, log)
	if err != nil {
		return err
	}
	if last != nil {
		now, err := e.now(ctx, s)
		if err != nil {
			return err
		}
		// For a replica whose clock is behind, the log may be alive for a moment longer.
		if rest := expiryOf(last).Add(slack).Sub(now); rest > 0 {
			head.Due = rest + sweepEvery/2
			_, err := e.Update(ctx, headSet, head)
			return err
		}
		if err := e.purge(ctx, s, e.logSubject(group, log)+"*", last.seq+1); err != nil {
			return err
		}
	}
	return e.Delete(ctx, headSet, head.Key, head.Revision)
}

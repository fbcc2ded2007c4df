package playground

import (
	"container/list"
	"context"
	"encoding/json"
	"sync"
	"time"
)

// Limits of the timeline.
const (
	// defaultMaxEntries is the default of [Options.MaxEntries].
	defaultMaxEntries = 10_000
	// maxTimelineBytes limits the entries together.
	maxTimelineBytes = 32 << 20
	// maxSteps limits the steps of one call.
	maxSteps = 200
	// maxText limits each text of an entry, in bytes.
	maxText = 2 << 10
	// maxWatchers limits the pages that watch.
	maxWatchers = 16
)

// An entry is a call in the timeline. All times are in milliseconds.
type entry struct {
	ID        int64           `json:"id"`
	Begun     float64         `json:"begun"` // since 1970
	Took      float64         `json:"took"`  // -1 while it runs
	Method    string          `json:"method"`
	Name      string          `json:"name,omitzero"`
	Version   string          `json:"version,omitzero"`
	Client    string          `json:"client,omitzero"`
	Principal string          `json:"principal,omitzero"`
	Session   string          `json:"session,omitzero"`
	Task      string          `json:"task,omitzero"` // the work that the call is a run of
	Ref       string          `json:"ref"`
	Request   string          `json:"request,omitzero"`
	Round     int             `json:"round,omitzero"`
	Repairs   int             `json:"repairs,omitzero"`
	Arguments json.RawMessage `json:"arguments,omitzero"` // without secrets
	Cut       bool            `json:"cut,omitzero"`       // the arguments are too long to be shown
	In        int             `json:"in"`                 // bytes of the params
	Out       int             `json:"out"`                // bytes of the content of the result; -1 if it is unknown
	Outcome   string          `json:"outcome,omitzero"`
	Error     string          `json:"error,omitzero"`
	Faults    []fault         `json:"faults,omitzero"`
	Steps     []*step         `json:"steps,omitzero"`
	More      int             `json:"more,omitzero"` // steps that are left out

	start   time.Time
	depth   int               // open spans
	ends    map[int64]endFunc // of what another program has begun, by its ID
	size    int               // bytes, about
	revised int64             // the count of changes of the timeline at the last change
	place   *list.Element     // in the timeline; nil if it was dropped
}

// A fault is what is wrong with an argument.
type fault struct {
	At   string `json:"at"`
	Text string `json:"text"`
}

// A step is what happens within a call.
type step struct {
	Kind  string  `json:"kind"` // "span", "once", "log", "progress" or "question"
	Name  string  `json:"name,omitzero"`
	At    float64 `json:"at"`            // since the call began
	Took  float64 `json:"took,omitzero"` // of a span or a question; -1 while it runs
	Depth int     `json:"depth,omitzero"`
	Kept  bool    `json:"kept,omitzero"` // the value of Once is from an earlier round
	Text  string  `json:"text,omitzero"`
	Error string  `json:"error,omitzero"`
}

// A timeline holds the newest calls, in the order of their last changes.
type timeline struct {
	max    int
	proxy  bool            // the steps are those of another program
	closed context.Context // ends with stop
	stop   context.CancelFunc

	mu       sync.Mutex
	entries  *list.List    // guarded by mu: *entry, the last one changed at the back
	bytes    int           // guarded by mu: of all entries
	lastID   int64         // guarded by mu
	changes  int64         // guarded by mu
	cleared  int64         // guarded by mu: changes at the last clear
	changed  chan struct{} // guarded by mu: closed at the next change
	watchers int           // guarded by mu
}

func newTimeline(most int, proxy bool) *timeline {
	t := &timeline{max: most, proxy: proxy, entries: list.New(), changed: make(chan struct{})}
	t.closed, t.stop = context.WithCancel(context.Background())
	return t
}

// add adds an entry.
func (t *timeline) add(e *entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lastID++
	e.ID = t.lastID
	t.touch(e)
}

// change changes an entry.
func (t *timeline) change(e *entry, f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f()
	t.touch(e)
}

// find returns the newest entry of a call, or nil.
func (t *timeline) find(ref string) *entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	for at := t.entries.Back(); at != nil; at = at.Prev() {
		if e := at.Value.(*entry); e.Ref == ref {
			return e
		}
	}
	return nil
}

// addStep adds a step to an entry, and returns nil if it has too many. The caller holds mu.
func (e *entry) addStep(s *step, at time.Time) *step {
	if len(e.Steps) >= maxSteps {
		e.More++
		return nil
	}
	s.At = between(e.start, at)
	e.Steps = append(e.Steps, s)
	return s
}

// touch moves an entry to the back, and drops those at the front that are too many. The caller holds
// mu.
func (t *timeline) touch(e *entry) {
	t.changes++
	e.revised = t.changes
	if e.place == nil {
		e.place = t.entries.PushBack(e)
	} else {
		t.entries.MoveToBack(e.place)
		t.bytes -= e.size
	}
	e.size = e.measure()
	t.bytes += e.size
	for t.entries.Len() > 1 && (t.entries.Len() > t.max || t.bytes > maxTimelineBytes) {
		t.drop(t.entries.Front())
	}
	t.wake()
}

func (t *timeline) drop(at *list.Element) {
	e := t.entries.Remove(at).(*entry)
	t.bytes -= e.size
	e.place = nil
}

func (t *timeline) wake() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// measure returns about how many bytes the entry takes.
func (e *entry) measure() int {
	n := 600 + len(e.Name) + len(e.Arguments) + len(e.Error)
	for _, f := range e.Faults {
		n += 40 + len(f.At) + len(f.Text)
	}
	for _, s := range e.Steps {
		n += 140 + len(s.Name) + len(s.Text) + len(s.Error)
	}
	return n
}

// clear drops all entries.
func (t *timeline) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.entries.Len() > 0 {
		t.drop(t.entries.Front())
	}
	t.changes++
	t.cleared = t.changes
	t.wake()
}

// watch counts a page that watches. It returns false if there are too many.
func (t *timeline) watch() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.watchers >= maxWatchers {
		return false
	}
	t.watchers++
	return true
}

func (t *timeline) unwatch() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.watchers--
}

// A batch is what changed since the last one.
type batch struct {
	Clear   bool              `json:"clear,omitzero"` // all earlier entries are dropped
	Entries []json.RawMessage `json:"entries"`
}

// maxBatch is how many entries a page gets at once.
const maxBatch = 500

// next returns the oldest of what changed after a count of changes, and the count up to which the
// batch goes. If there is nothing, b is nil, and more is closed at the next change.
func (t *timeline) next(after int64) (b *batch, upTo int64, more <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if after == t.changes {
		return nil, after, t.changed
	}
	b = &batch{Clear: t.cleared > after, Entries: []json.RawMessage{}}
	upTo = t.changes
	at := t.entries.Back()
	for at != nil && at.Prev() != nil && at.Prev().Value.(*entry).revised > after {
		at = at.Prev()
	}
	for ; at != nil; at = at.Next() {
		e := at.Value.(*entry)
		if e.revised <= after {
			continue
		}
		if len(b.Entries) == maxBatch {
			break
		}
		text, err := json.Marshal(e)
		if err != nil {
			continue // cannot happen: the entry has texts, numbers and valid JSON
		}
		b.Entries = append(b.Entries, text)
		upTo = e.revised
	}
	if at == nil {
		upTo = t.changes
	}
	return b, upTo, t.changed
}

// between returns the milliseconds between two times.
func between(start, end time.Time) float64 { return float64(end.Sub(start).Microseconds()) / 1000 }

package duplex

import (
	"sync/atomic"
	"time"
)

// A watch notices work that takes too long. It has one timer, which runs only while there is work.
// Resetting it each time would cost more than the rest of the work for a message.
type watch struct {
	limit time.Duration
	most  time.Duration // the longest that after may be
	tell  func()        // called when work takes longer than limit, or than after
	epoch time.Time
	begun atomic.Int64 // when the work in progress began, since epoch; 0 while there is none
	armed atomic.Bool  // the timer runs
	after atomic.Int64 // how long after the beginning of work the timer fires: limit, and twice as long each time it finds none that takes as long
	timer *time.Timer  // nil if there is no limit
}

// start sets the limit. If most is larger, work may take up to most before tell is called, as long as
// the work before it took less than limit.
func (w *watch) start(limit, most time.Duration, tell func()) {
	w.limit, w.most, w.tell = limit, most, tell
	w.epoch = time.Now().Add(-1) // so that nothing begins at 0
	w.after.Store(int64(limit))
	if limit > 0 {
		w.timer = time.AfterFunc(limit, w.check)
		w.timer.Stop()
	}
}

// begin begins to watch work that begins now.
func (w *watch) begin(now int64) {
	if w.timer == nil {
		return
	}
	w.begun.Store(now)
	if !w.armed.Load() && w.armed.CompareAndSwap(false, true) {
		w.timer.Reset(time.Duration(w.after.Load()))
	}
}

// end ends the work that began then. It returns false if tell was, or is about to be, called for
// it.
func (w *watch) end(begun int64) (inTime bool) { return w.begun.CompareAndSwap(begun, 0) }

// now is the time since epoch.
func (w *watch) now() int64 { return int64(time.Since(w.epoch)) }

// expire calls tell for the work that began then, as if it had taken too long, unless it was called
// or the work has ended.
func (w *watch) expire(begun int64) {
	if w.end(begun) {
		w.tell()
	}
}

// check runs when the timer fires.
func (w *watch) check() {
	begun := w.begun.Load()
	took := time.Duration(w.now() - begun)
	if begun != 0 && took >= w.limit {
		w.after.Store(int64(w.limit))
		w.expire(begun)
	} else {
		after := min(2*time.Duration(w.after.Load()), w.most)
		w.after.Store(int64(after))
		if begun != 0 {
			w.timer.Reset(after - took)
			return
		}
	}
	w.armed.Store(false)
	// Work that has begun meanwhile may have found the timer running.
	if w.begun.Load() != 0 && w.armed.CompareAndSwap(false, true) {
		w.timer.Reset(w.limit)
	}
}

// stop stops the timer. A concurrent check may reset it once more, and then finds no work.
func (w *watch) stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

package duplex

import (
	"time"

	"github.com/mcpkit/mcpkit-go/protocol"
)

const (
	// patience is how long the leader runs a request before another goroutine reads on. On an idle
	// machine, timers are not more precise. It grows to longPatience while no request takes as long,
	// since a timer that fires wakes a thread.
	patience     = time.Millisecond
	longPatience = 4 * patience

	// quick is how long a request may take so that the leader also runs the next one.
	quick = 100 * time.Microsecond

	// holdFor is how long responses of the leader may wait for those behind them.
	holdFor = 500 * time.Microsecond

	// afterSlow and mostAfterSlow are how many requests the leader starts on other goroutines after
	// one that was not quick: twice as many each time, until one that it runs is quick. One slow
	// request may only have lost its processor for a moment.
	afterSlow     = 1
	mostAfterSlow = 64
)

// A leader is the role of reading, which one goroutine at a time has (the pattern is called
// Leader/Followers). The leader runs quick requests itself, since waking another goroutine takes
// longer than most of them. If one takes too long, another goroutine becomes the leader and reads
// on. The next requests may be slow as well, so they start on other goroutines and run side by side.
//
// Order does not depend on the clock: the next message is never read before the request has begun.
type leader struct {
	link      *Link
	watch     watch
	elsewhere int // how many requests to start on other goroutines; used only by the leader
	slow      int // the last value that elsewhere began with; 0 after a quick request
}

func (d *leader) start(l *Link) {
	d.link = l
	d.watch.start(patience, longPatience, d.replace)
}

// replace makes another goroutine the leader. The caller has ended the watch.
func (d *leader) replace() {
	d.wasSlow()
	d.link.workers.run(d.link.read)
}

// runs reports whether the leader should run c itself. Each call that it sends elsewhere after a
// slow one counts elsewhere down.
func (d *leader) runs(c *call) bool {
	if !leads || c.entry.Request.Method == protocol.MethodSubscriptionsListen {
		return false
	}
	if d.elsewhere > 0 {
		d.elsewhere--
		return false
	}
	return true
}

// run runs c. more means that another message can be read at once. It returns false if the caller
// is no longer the leader.
func (d *leader) run(c *call, more bool) (leading bool) {
	began := d.watch.now()
	c.began = began
	d.link.out.hold(more, time.Duration(began)) // first, since the caller may soon not be the leader
	d.watch.begin(began)
	returned := false
	defer func() {
		if !returned { // the handler ended this goroutine
			d.watch.expire(began)
		}
	}()
	c.serve()
	returned = true
	if !d.watch.end(began) {
		return false
	}
	// The time to write the response does not count: the peer that it wakes may get this processor.
	if c.took > int64(quick) {
		d.wasSlow()
	} else {
		d.slow = 0
	}
	return true
}

// wasSlow notes that a request of the leader was not quick. The caller is the leader, or replaces it.
func (d *leader) wasSlow() {
	d.slow = min(max(2*d.slow, afterSlow), mostAfterSlow)
	d.elsewhere = d.slow
}

package conn

import "sync"

// A turn makes messages wait for the notifications and initialize before them. The message that
// holds it passes it on when it has been handled, or when its handler is about to wait for the peer:
// the peer may need the response to one of its own requests first.
type turn struct {
	before <-chan struct{} // closed when the message may begin; nil if nothing is before it
	done   chan struct{}   // closed by pass; nil if no message waits for this one
	once   sync.Once
}

// wait waits until the message may begin.
func (t *turn) wait() {
	if t.before != nil {
		<-t.before
	}
}

// pass lets the next messages begin.
func (t *turn) pass() {
	if t.done != nil {
		t.once.Do(func() { close(t.done) })
	}
}

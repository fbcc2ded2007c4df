package duplex

import (
	"fmt"
	"sync/atomic"
	"time"
)

// A StalledError is returned if the connection was closed because the peer did not read for
// Timeout.
type StalledError struct{ Timeout time.Duration }

// Error names the timeout.
func (e *StalledError) Error() string {
	return fmt.Sprintf("closed, since the peer read nothing for %v", e.Timeout)
}

// write writes lines, or a part of one. The caller has set writing and does not hold mu.
func (o *output) write(lines []byte) error {
	for len(lines) > chunkSize {
		if err := o.writePart(lines[:chunkSize]); err != nil {
			return err
		}
		lines = lines[chunkSize:]
	}
	return o.writePart(lines)
}

func (o *output) writePart(part []byte) error {
	o.stall.beginWrite()
	_, err := o.wire.Write(part)
	o.stall.endWrite()
	return err
}

// stalled closes the connection, so that goroutines that wait for room or for a Write continue.
func (o *output) stalled(timeout time.Duration) {
	o.mu.Lock()
	o.fail(&StalledError{timeout})
	o.mu.Unlock()
	_ = o.wire.Close()
}

// A stall detects writes that take too long. It has one timer, which runs only while there are
// writes. Resetting it for each write would cost more than the rest of the work for a message.
type stall struct {
	timeout time.Duration
	tell    func(time.Duration)
	epoch   time.Time
	begun   atomic.Int64 // when the write in progress began, since epoch; 0 while there is none
	armed   atomic.Bool  // the timer runs
	timer   *time.Timer
}

func (s *stall) start(timeout time.Duration, tell func(time.Duration)) {
	s.timeout, s.tell = timeout, tell
	s.epoch = time.Now().Add(-1) // so that nothing begins at 0
	if timeout > 0 {
		s.timer = time.AfterFunc(timeout, s.check)
		s.timer.Stop()
	}
}

func (s *stall) beginWrite() {
	if s.timer == nil {
		return
	}
	s.begun.Store(int64(time.Since(s.epoch)))
	if !s.armed.Load() && s.armed.CompareAndSwap(false, true) {
		s.timer.Reset(s.timeout)
	}
}

func (s *stall) endWrite() { s.begun.Store(0) }

// check runs when the timer fires.
func (s *stall) check() {
	begun := s.begun.Load()
	if begun == 0 {
		s.armed.Store(false)
		// A write may have found the timer running just before.
		if begun = s.begun.Load(); begun == 0 || !s.armed.CompareAndSwap(false, true) {
			return
		}
	}
	left := s.timeout - (time.Since(s.epoch) - time.Duration(begun))
	if left > 0 {
		s.timer.Reset(left)
		return
	}
	s.tell(s.timeout)
}

// stop stops the timer. A concurrent check may reset it once more, and then finds no write.
func (s *stall) stop() {
	if s.timer != nil {
		s.timer.Stop()
	}
}

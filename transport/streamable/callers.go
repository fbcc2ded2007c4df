package streamable

import "sync"

// callerStreams counts the open streams of each caller. Set max before it is used. It is safe for
// concurrent use.
type callerStreams struct {
	max int // of one caller

	mu   sync.Mutex
	open map[string]int // by caller; guarded by mu
}

// begin counts one more stream of a caller until end. It returns false if the caller has max.
func (s *callerStreams) begin(caller string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[caller] >= s.max {
		return false
	}
	if s.open == nil {
		s.open = map[string]int{}
	}
	s.open[caller]++
	return true
}

// end undoes begin.
func (s *callerStreams) end(caller string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[caller]--; s.open[caller] == 0 {
		delete(s.open, caller)
	}
}

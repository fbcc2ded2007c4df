package conn

import "sync/atomic"

// Memory limits the bytes in memory that all requests or connections of a server together have as
// a [Share]. Set Max before it is used. It is safe for concurrent use.
type Memory struct {
	Max  int64
	held atomic.Int64
}

// full reports whether nothing is left.
func (m *Memory) full() bool { return m.held.Load() >= m.Max }

// A Share is what one request or connection has taken of All. It is not safe for concurrent use.
type Share struct {
	All   *Memory
	Free  int64 // bytes that do not count
	taken int64
}

// Add counts n more bytes until Close, or gives -n back. It returns false if that is too much; a
// single request or connection may take more than Max.
func (s *Share) Add(n int64) (fits bool) {
	before := max(s.taken-s.Free, 0)
	s.taken += n
	now := max(s.taken-s.Free, 0)
	all := s.All.held.Add(now - before)
	return now == 0 || all <= max(s.All.Max, now)
}

// Take is like Add, but counts nothing if that is too much.
func (s *Share) Take(n int64) (fits bool) {
	if fits = s.Add(n) || n <= 0; !fits {
		s.Add(-n)
	}
	return fits
}

// Close gives back everything.
func (s *Share) Close() { s.Add(-s.taken) }

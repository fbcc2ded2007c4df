// Package buffers keeps byte slices for reuse.
package buffers

import "sync"

const (
	// large is the capacity from which buffers are kept apart, so that small messages do not take
	// them.
	large = 64 << 10
	// maxKept is the largest capacity that is kept, until the garbage collector has run twice.
	maxKept = 4 << 20
)

var smallOnes, largeOnes = sync.Pool{New: fresh}, sync.Pool{New: fresh}

func fresh() any { return new([]byte) }

// Get returns an empty buffer for about size bytes, whose capacity may be less.
func Get(size int) *[]byte {
	if size >= large {
		return largeOnes.Get().(*[]byte)
	}
	return smallOnes.Get().(*[]byte)
}

// Put keeps b for reuse. The caller must no longer use it.
func Put(b *[]byte) {
	*b = (*b)[:0]
	switch n := cap(*b); {
	case n >= large && n <= maxKept:
		largeOnes.Put(b)
	case n < large:
		smallOnes.Put(b)
	}
}

package buffers

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBuffersAreEmptyAndOfTheirClass(t *testing.T) {
	for range 100 {
		big, huge, small := make([]byte, large), make([]byte, maxKept+1), []byte("text")
		for _, b := range []*[]byte{&big, &huge, &small} {
			Put(b)
		}
		b := Get(large - 1)
		require.Empty(t, *b)
		require.Less(t, cap(*b), large, "a small message does not hold a large buffer")
		b = Get(large)
		require.Empty(t, *b)
		require.LessOrEqual(t, cap(*b), maxKept)
	}
}

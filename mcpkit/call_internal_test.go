package mcpkit

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// A larger call would take 704 bytes of the heap instead of 640, of which the runtime needs 8.
func TestACallFitsItsSizeClass(t *testing.T) {
	require.LessOrEqual(t, unsafe.Sizeof(struct {
		Call
		request
	}{}), uintptr(632))
}

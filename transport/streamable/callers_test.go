package streamable

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEachCallerHasItsOwnStreams(t *testing.T) {
	s := callerStreams{max: 2}
	require.True(t, s.begin("ann"))
	require.True(t, s.begin("ann"))
	require.False(t, s.begin("ann"))
	require.True(t, s.begin("ben"))
	s.end("ann")
	require.True(t, s.begin("ann"))
	s.end("ann")
	s.end("ann")
	s.end("ben")
	require.Empty(t, s.open, "nothing is kept of callers without streams")
}

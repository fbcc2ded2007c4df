package conn_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/conn"
)

func TestBytesAreLimitedInAll(t *testing.T) {
	m := conn.Memory{Max: 10}
	one, two := conn.Share{All: &m}, conn.Share{All: &m, Free: 2}
	require.True(t, one.Take(6))
	require.False(t, two.Take(7))
	require.True(t, two.Take(6), "two of them are free")
	require.True(t, one.Take(-2))
	require.True(t, one.Take(2), "what was given back")
	one.Close()
	one.Close()
	require.False(t, one.Take(7))
	two.Close()
	require.True(t, one.Take(100) && one.Take(1), "one alone may be larger")
	require.False(t, two.Take(3))
	require.True(t, two.Take(2))
	two.Close()
	one.Close()
	require.True(t, two.Take(12) && !one.Take(1), "all was given back")
}

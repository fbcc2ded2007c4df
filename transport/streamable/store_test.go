package streamable

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMemoryStore(t *testing.T) {
	ctx := t.Context()
	m := newMemoryStore()
	m.sessionBytes, m.sessionEvents, m.totalBytes = 1000, 3, 1500
	add := func(session, stream string, seq uint64, size int) {
		t.Helper()
		require.NoError(t, m.append(ctx, session, stream, event{seq: seq, data: []byte(strings.Repeat("x", size))}))
	}
	seqs := func(session, stream string, after uint64) []uint64 {
		t.Helper()
		events, err := m.after(ctx, session, stream, after)
		require.NoError(t, err)
		var all []uint64
		for _, ev := range events {
			all = append(all, ev.seq)
		}
		return all
	}
	require.Empty(t, seqs("a", "1", 0), "an unknown stream has no messages")
	add("a", "1", 1, 10)
	add("a", "2", 1, 10)
	add("a", "1", 2, 10)
	require.Equal(t, []uint64{1, 2}, seqs("a", "1", 0))
	require.Equal(t, []uint64{2}, seqs("a", "1", 1))
	require.Equal(t, []uint64{1}, seqs("a", "2", 0))
	add("a", "2", 2, 10)
	require.Equal(t, []uint64{2}, seqs("a", "1", 0), "beyond the number of a session, the oldest is dropped")
	add("a", "1", 3, 800)
	require.Equal(t, []uint64{3}, seqs("a", "1", 0), "beyond the bytes of a session, the oldest are dropped")
	require.Empty(t, seqs("a", "2", 0))
	require.Equal(t, errTooLarge, m.append(ctx, "a", "1", event{seq: 4, data: make([]byte, 901)}))
	add("b", "1", 1, 800)
	require.Empty(t, seqs("a", "1", 0), "beyond the bytes of all, the session that was silent longest is dropped")
	m.forget("b")
	m.forget("never seen")
	require.Empty(t, seqs("b", "1", 0))
	require.Zero(t, m.bytes)
	require.Empty(t, m.sessions)
	require.Zero(t, m.order.Len())
}

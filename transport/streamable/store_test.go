package streamable

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMemoryStore(t *testing.T) {
	ctx := t.Context()
	m := &memoryStore{sessionBytes: 1000, sessionEvents: 3, totalBytes: 1500}
	sessions := map[string]*legacySession{"a": {}, "b": {}, "never seen": {}}
	add := func(session, stream string, seq uint64, size int) {
		t.Helper()
		require.NoError(t, m.append(ctx, sessions[session], event{stream: stream, seq: seq, data: []byte(strings.Repeat("x", size))}))
	}
	seqs := func(session, stream string, after uint64) []uint64 {
		t.Helper()
		events, err := m.after(ctx, sessions[session], stream, after)
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
	require.Equal(t, errTooLarge, m.append(ctx, sessions["a"], event{stream: "1", seq: 4, data: make([]byte, 901)}))
	add("b", "1", 1, 800)
	require.Empty(t, seqs("a", "1", 0), "beyond the bytes of all, the session that was silent longest is dropped")
	m.forget(sessions["b"])
	m.forget(sessions["never seen"])
	require.Empty(t, seqs("b", "1", 0))
	require.Zero(t, m.bytes)
	require.Zero(t, m.order.Len())
}

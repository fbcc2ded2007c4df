package streamable

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
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

func TestMemoryStoreStaysWithinItsLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMemoryStore()
		m.sessionBytes, m.sessionEvents, m.totalBytes = 1000, 5, 2500
		last := map[string]uint64{}
		for range rapid.IntRange(0, 100).Draw(t, "steps") {
			session := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "session")
			if rapid.IntRange(0, 9).Draw(t, "forget") == 0 {
				m.forget(session)
				continue
			}
			stream := rapid.SampledFrom([]string{"0", "1"}).Draw(t, "stream")
			key := session + stream
			last[key]++
			size := rapid.IntRange(0, 900).Draw(t, "size")
			require.NoError(t, m.append(t.Context(), session, stream, event{seq: last[key], data: make([]byte, size)}))
			events, err := m.after(t.Context(), session, stream, 0)
			require.NoError(t, err)
			require.NotEmpty(t, events, "the last message is stored")
			for i, ev := range events {
				require.Equal(t, last[key]-uint64(len(events)-1-i), ev.seq, "the stored messages have no gaps")
			}
			checkStore(t, m)
		}
	})
}

func checkStore(t *rapid.T, m *memoryStore) {
	total := 0
	for at := m.order.Front(); at != nil; at = at.Next() {
		s := at.Value.(*sessionEvents)
		bytes := 0
		for i := range s.events {
			bytes += s.events[i].size()
		}
		require.Equal(t, bytes, s.bytes)
		require.LessOrEqual(t, bytes, m.sessionBytes)
		require.LessOrEqual(t, len(s.events), m.sessionEvents)
		require.NotEmpty(t, s.events)
		require.Same(t, at, m.sessions[s.name], s.name)
		total += bytes
	}
	require.Len(t, m.sessions, m.order.Len())
	require.Equal(t, total, m.bytes)
	require.LessOrEqual(t, total, m.totalBytes)
}

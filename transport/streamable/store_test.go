package streamable

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestMemoryStore(t *testing.T) {
	ctx := t.Context()
	m := NewMemoryStore(MemoryLimits{SessionBytes: 1000, SessionEvents: 3, TotalBytes: 1500})
	add := func(session, stream string, seq uint64, size int) {
		t.Helper()
		require.NoError(t, m.Append(ctx, session, stream, Event{Seq: seq, Data: []byte(strings.Repeat("x", size))}))
	}
	seqs := func(session, stream string, after uint64) []uint64 {
		t.Helper()
		events, err := m.After(ctx, session, stream, after)
		require.NoError(t, err)
		var all []uint64
		for _, ev := range events {
			all = append(all, ev.Seq)
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
	require.Equal(t, []uint64{2}, seqs("a", "1", 0), "beyond SessionEvents, the oldest is dropped")
	add("a", "1", 3, 800)
	require.Equal(t, []uint64{3}, seqs("a", "1", 0), "beyond SessionBytes, the oldest are dropped")
	require.Empty(t, seqs("a", "2", 0))
	require.Equal(t, ErrTooLarge, m.Append(ctx, "a", "1", Event{Seq: 4, Data: make([]byte, 901)}))
	add("b", "1", 1, 800)
	require.Empty(t, seqs("a", "1", 0), "beyond TotalBytes, the session that was silent longest is dropped")
	require.NoError(t, m.Forget(ctx, "b"))
	require.NoError(t, m.Forget(ctx, "never seen"))
	require.Empty(t, seqs("b", "1", 0))
	require.Zero(t, m.(*memoryStore).bytes)
	require.Empty(t, m.(*memoryStore).sessions)
	require.Zero(t, m.(*memoryStore).order.Len())
}

func TestMemoryStoreStaysWithinItsLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := MemoryLimits{SessionBytes: 1000, SessionEvents: 5, TotalBytes: 2500}
		m := NewMemoryStore(limits).(*memoryStore)
		last := map[string]uint64{}
		for range rapid.IntRange(0, 100).Draw(t, "steps") {
			session := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "session")
			if rapid.IntRange(0, 9).Draw(t, "forget") == 0 {
				require.NoError(t, m.Forget(t.Context(), session))
				continue
			}
			stream := rapid.SampledFrom([]string{"0", "1"}).Draw(t, "stream")
			key := session + stream
			last[key]++
			size := rapid.IntRange(0, 900).Draw(t, "size")
			require.NoError(t, m.Append(t.Context(), session, stream, Event{Seq: last[key], Data: make([]byte, size)}))
			events, err := m.After(t.Context(), session, stream, 0)
			require.NoError(t, err)
			require.NotEmpty(t, events, "the last message is stored")
			for i, ev := range events {
				require.Equal(t, last[key]-uint64(len(events)-1-i), ev.Seq, "the stored messages have no gaps")
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
		require.LessOrEqual(t, bytes, m.limits.SessionBytes)
		require.LessOrEqual(t, len(s.events), m.limits.SessionEvents)
		require.NotEmpty(t, s.events)
		require.Same(t, at, m.sessions[s.name], s.name)
		total += bytes
	}
	require.Len(t, m.sessions, m.order.Len())
	require.Equal(t, total, m.bytes)
	require.LessOrEqual(t, total, m.limits.TotalBytes)
}

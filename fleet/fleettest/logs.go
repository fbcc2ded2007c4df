package fleettest

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/fleet"
)

// hour keeps a log of any size that the tests use.
var hour = fleet.Keep{Entries: 1000, Bytes: 100 << 20, TTL: time.Hour}

func add(t testing.TB, e fleet.Engine, log string, seq uint64, data string) {
	t.Helper()
	require.NoError(t, e.Append(t.Context(), "group", log, fleet.Entry{Seq: seq, Data: []byte(data)}, hour))
}

// after returns numbers and data of entries: "1:a 2:b ".
func after(t testing.TB, e fleet.Engine, log string, seq uint64, limit int) string {
	t.Helper()
	all, err := e.After(t.Context(), "group", log, seq, limit)
	require.NoError(t, err)
	var text strings.Builder
	for _, entry := range all {
		fmt.Fprintf(&text, "%d:%s ", entry.Seq, entry.Data)
	}
	return text.String()
}

func last(t testing.TB, e fleet.Engine, log string) uint64 {
	t.Helper()
	seq, err := e.Last(t.Context(), "group", log)
	require.NoError(t, err)
	return seq
}

func appended(t *testing.T, s store) {
	const largest = 1<<64 - 1
	at := s.replicas(t)
	require.Zero(t, last(t, at(0), "log"))
	require.Equal(t, "", after(t, at(0), "log", 0, 9))
	var want strings.Builder
	// Numbers may be left out. Some are no whole numbers of floating point.
	for i, seq := range []uint64{1, 2, 3, 10, 11, 100, 1 << 32, 1<<53 + 1, 1<<53 + 2, 1 << 62, 1<<63 - 1, 1 << 63, largest - 1, largest} {
		add(t, at(i), "log", seq, "x")
		fmt.Fprintf(&want, "%d:x ", seq)
		require.Equal(t, seq, last(t, at(i+1), "log"))
		require.Equal(t, want.String(), after(t, at(i+2), "log", 0, 99))
	}
	require.Equal(t, fmt.Sprintf("%d:x ", uint64(largest)), after(t, at(0), "log", largest-1, 9))
	require.Equal(t, "", after(t, at(0), "log", largest, 9))
}

func separateLogs(t *testing.T, s store) {
	e := s.open(t)
	places := []string{"a b", "a c", "b a", "A b", "ab b", "a bb", "a -", "a-b c", "-a b"}
	for i, place := range places {
		group, log, _ := strings.Cut(place, " ")
		require.NoError(t, e.Append(t.Context(), group, log, fleet.Entry{Seq: uint64(i + 1), Data: []byte(place)}, hour))
	}
	for i, place := range places {
		group, log, _ := strings.Cut(place, " ")
		entries, err := e.After(t.Context(), group, log, 0, 9)
		require.NoError(t, err)
		require.Equal(t, []fleet.Entry{{Seq: uint64(i + 1), Data: []byte(place)}}, entries)
		seq, err := e.Last(t.Context(), group, log)
		require.NoError(t, err)
		require.EqualValues(t, i+1, seq)
	}
}

func appendedOnce(t *testing.T, s store) {
	at := s.replicas(t)
	add(t, at(0), "log", 2, "two")
	add(t, at(1), "log", 2, "two") // does nothing
	add(t, at(0), "log", 4, "four")
	add(t, at(2), "log", 2, "two") // does nothing
	add(t, at(2), "log", 4, "four")
	for seq, data := range map[uint64]string{1: "one", 2: "other", 3: "three", 4: "other"} {
		err := at(int(seq)).Append(t.Context(), "group", "log", fleet.Entry{Seq: seq, Data: []byte(data)}, hour)
		require.ErrorIs(t, err, fleet.ErrConflict, seq)
	}
	require.Equal(t, "2:two 4:four ", after(t, at(0), "log", 0, 9))
	add(t, at(1), "log", 5, "five")
	require.Equal(t, "2:two 4:four 5:five ", after(t, at(0), "log", 0, 9))
}

func appendedByMany(t *testing.T, s store) {
	at := s.replicas(t)
	for seq := uint64(1); seq <= 5; seq++ {
		var mu sync.Mutex
		winner := ""
		won(t, together(9, func(i int) error {
			data := fmt.Sprint("by ", i)
			err := at(i).Append(t.Context(), "group", "log", fleet.Entry{Seq: seq, Data: []byte(data)}, hour)
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				winner = data
			}
			return err
		}), fleet.ErrConflict)
		require.Equal(t, fmt.Sprintf("%d:%s ", seq, winner), after(t, at(1), "log", seq-1, 9))
		allSucceed(t, 9, func(i int) error {
			return at(i).Append(t.Context(), "group", "same", fleet.Entry{Seq: seq, Data: []byte("same")}, hour)
		})
	}
	require.Equal(t, "1:same 2:same 3:same 4:same 5:same ", after(t, at(2), "same", 0, 9))

	// Logs of one group do not hinder each other.
	allSucceed(t, 9, func(i int) error {
		for seq := uint64(1); seq <= 10; seq++ {
			if err := at(i).Append(t.Context(), "group", fmt.Sprint("own", i), fleet.Entry{Seq: seq}, hour); err != nil {
				return err
			}
		}
		return nil
	})
	for i := range 9 {
		require.EqualValues(t, 10, last(t, at(i), fmt.Sprint("own", i)))
	}
}

func keptEntries(t *testing.T, s store) {
	const count, entries = 100, 10
	at := s.replicas(t)
	keep := fleet.Keep{Entries: entries, Bytes: 1 << 20, TTL: time.Hour}
	for seq := uint64(1); seq <= count; seq++ {
		require.NoError(t, at(int(seq)).Append(t.Context(), "group", "log", fleet.Entry{Seq: 2 * seq, Data: fmt.Append(nil, seq)}, keep))
		add(t, at(0), "other", seq, "x")
	}
	all, err := at(0).After(t.Context(), "group", "log", 0, 2*count)
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(all), entries)
	require.LessOrEqual(t, len(all), 2*entries, "somewhat more, at most")
	for i, e := range all {
		require.EqualValues(t, 2*(count-len(all)+i+1), e.Seq, "the newest are kept")
		require.Equal(t, fmt.Sprint(e.Seq/2), string(e.Data))
	}
	require.EqualValues(t, 2*count, last(t, at(1), "log"))
	keep.Entries = 1
	require.NoError(t, at(1).Append(t.Context(), "group", "log", fleet.Entry{Seq: 300, Data: []byte("newest")}, keep))
	all, err = at(0).After(t.Context(), "group", "log", 2*count, 9)
	require.NoError(t, err)
	require.Equal(t, []fleet.Entry{{Seq: 300, Data: []byte("newest")}}, all)
	others, err := at(0).After(t.Context(), "group", "other", 0, 2*count)
	require.NoError(t, err)
	require.Len(t, others, count, "other logs keep their entries")
	err = at(1).Append(t.Context(), "group", "log", fleet.Entry{Seq: 2, Data: []byte("other")}, keep)
	require.ErrorIs(t, err, fleet.ErrConflict, "the number was used before")
}

func keptBytes(t *testing.T, s store) {
	const count, size, limit = 60, 1000, 10_500
	at := s.replicas(t)
	keep := fleet.Keep{Entries: 1000, Bytes: limit, TTL: time.Hour}
	data := random(size)
	for seq := uint64(1); seq <= count; seq++ {
		require.NoError(t, at(int(seq)).Append(t.Context(), "group", "log", fleet.Entry{Seq: seq, Data: data}, keep))
	}
	all, err := at(0).After(t.Context(), "group", "log", 0, 2*count)
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(all), limit/size)
	require.LessOrEqual(t, len(all), 2*limit/size, "somewhat more, at most")
	for i, e := range all {
		require.EqualValues(t, count-len(all)+i+1, e.Seq, "the newest are kept")
		require.Equal(t, data, e.Data)
	}
	large := random(3 * limit)
	require.NoError(t, at(1).Append(t.Context(), "group", "log", fleet.Entry{Seq: 100, Data: large}, keep))
	all, err = at(2).After(t.Context(), "group", "log", count, 9)
	require.NoError(t, err)
	require.Equal(t, []fleet.Entry{{Seq: 100, Data: large}}, all, "the newest stays in any case")
	for seq := uint64(101); seq <= 103; seq++ {
		require.NoError(t, at(1).Append(t.Context(), "group", "log", fleet.Entry{Seq: seq, Data: []byte("small")}, keep))
	}
	require.Equal(t, "101:small 102:small 103:small ", after(t, at(0), "log", 100, 9))
	keep.Bytes = 0
	require.NoError(t, at(1).Append(t.Context(), "group", "log", fleet.Entry{Seq: 104, Data: []byte("last")}, keep))
	require.Equal(t, "104:last ", after(t, at(0), "log", 103, 9))
}

func paged(t *testing.T, s store) {
	e := s.open(t)
	for _, seq := range []uint64{2, 3, 5, 8, 9} {
		add(t, e, "log", seq, "x")
	}
	require.Equal(t, "2:x 3:x ", after(t, e, "log", 0, 2))
	require.Equal(t, "3:x 5:x ", after(t, e, "log", 2, 2))
	require.Equal(t, "5:x 8:x ", after(t, e, "log", 4, 2), "the number need not exist")
	require.Equal(t, "9:x ", after(t, e, "log", 8, 2))
	require.Equal(t, "", after(t, e, "log", 9, 2))
	require.Equal(t, "", after(t, e, "log", 99, 2))
	require.Equal(t, "2:x 3:x 5:x 8:x 9:x ", after(t, e, "log", 0, 5))
	require.Equal(t, "", after(t, e, "unknown", 0, 5))
}

func dropped(t *testing.T, s store) {
	at := s.replicas(t)
	for i := range 20 {
		add(t, at(i), fmt.Sprint("log", i), 5, "x")
	}
	others := []string{"other", "group-", "grou", "Group"}
	for _, group := range others {
		require.NoError(t, at(0).Append(t.Context(), group, "log1", fleet.Entry{Seq: 1, Data: []byte(group)}, hour))
	}
	create(t, at(0), record("group", "a record"))
	require.NoError(t, at(1).Drop(t.Context(), "group"))
	require.NoError(t, at(2).Drop(t.Context(), "group"), "there are none")
	require.NoError(t, at(2).Drop(t.Context(), "unknown"))
	for i := range 20 {
		require.Zero(t, last(t, at(i), fmt.Sprint("log", i)))
		require.Equal(t, "", after(t, at(i), fmt.Sprint("log", i), 0, 9))
	}
	for _, group := range others {
		entries, err := at(1).After(t.Context(), group, "log1", 0, 9)
		require.NoError(t, err)
		require.Equal(t, []fleet.Entry{{Seq: 1, Data: []byte(group)}}, entries)
	}
	require.Equal(t, "a record", string(get(t, at(0), "group").Data))
	add(t, at(1), "log1", 1, "from the beginning")
	require.Equal(t, "1:from the beginning ", after(t, at(2), "log1", 0, 9))
	require.NoError(t, at(0).Drop(t.Context(), "group"))
	require.Zero(t, last(t, at(1), "log1"))
}

func expiredLogs(t *testing.T, s store) {
	e := s.open(t)
	short := hour
	short.TTL = fleet.MinTTL
	add(t, e, "long", 1, "x")
	require.NoError(t, e.Append(t.Context(), "group", "short", fleet.Entry{Seq: 7, Data: []byte("x")}, short))
	// The TTL is that of the last entry.
	add(t, e, "shorter", 1, "x")
	require.NoError(t, e.Append(t.Context(), "group", "shorter", fleet.Entry{Seq: 2, Data: []byte("x")}, short))
	short.TTL = 2 * time.Second
	longer := ""
	for i := 0; longer == ""; i++ { // a busy machine may need longer than the TTL
		begun := time.Now()
		log := fmt.Sprint("longer", i)
		require.NoError(t, e.Append(t.Context(), "group", log, fleet.Entry{Seq: 1, Data: []byte("x")}, short))
		add(t, e, log, 2, "x")
		if time.Since(begun) < 2*time.Second {
			longer = log
		}
	}
	for _, log := range []string{"short", "shorter"} {
		s.until(t, func() bool { return last(t, e, log) == 0 }, "they expire")
		require.Equal(t, "", after(t, e, log, 0, 9))
	}
	s.wait(t, 2*time.Second)
	require.Equal(t, "1:x 2:x ", after(t, e, longer, 0, 9))
	require.Equal(t, "1:x ", after(t, e, "long", 0, 9))
	add(t, e, "short", 1, "again")
	require.Equal(t, "1:again ", after(t, e, "short", 0, 9))
	require.NoError(t, e.Drop(t.Context(), "group"))
	require.Zero(t, last(t, e, "long"))
	require.Zero(t, last(t, e, "short"))
}

func anyEntries(t *testing.T, s store) {
	at := s.replicas(t)
	for i, data := range samples {
		seq := uint64(i + 1)
		add(t, at(i), "log", seq, data)
		add(t, at(i+1), "log", seq, data) // does nothing
		err := at(i).Append(t.Context(), "group", "log", fleet.Entry{Seq: seq, Data: []byte(data + "\x00")}, hour)
		require.ErrorIs(t, err, fleet.ErrConflict)
	}
	all, err := at(0).After(t.Context(), "group", "log", 0, 100)
	require.NoError(t, err)
	require.Len(t, all, len(samples))
	for i, e := range all {
		require.Equal(t, samples[i], string(e.Data))
	}
}

func largeEntries(t *testing.T, s store) {
	at := s.replicas(t)
	for i, size := range sizes {
		log := fmt.Sprint("log", i)
		add(t, at(0), log, 1, "small")
		data := random(size)
		err := at(1).Append(t.Context(), "group", log, fleet.Entry{Seq: 2, Data: data}, hour)
		if i > 0 && is(err, fleet.ErrTooLarge) {
			require.EqualValues(t, 1, last(t, at(0), log))
			continue
		}
		require.NoError(t, err)
		require.Equal(t, random(size), data, "the engine does not change it")
		require.NoError(t, at(1).Append(t.Context(), "group", log, fleet.Entry{Seq: 2, Data: data}, hour), "it does nothing")
		add(t, at(2), log, 3, "small")
		all, err := at(2).After(t.Context(), "group", log, 0, 9)
		require.NoError(t, err)
		require.Len(t, all, 3)
		require.Equal(t, data, all[1].Data)
		require.Equal(t, "small", string(all[2].Data))
	}
}

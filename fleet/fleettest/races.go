package fleettest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/fleet"
)

// races are tests of callers that do the same at the same time, and of data of any kind and size.
var races = []test{
	{"operations do nothing when their context has ended", func(t *testing.T, s store) {
		e := s.replicas(t)(0)
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
		defer cancel()
		for name, operation := range operations {
			require.ErrorIs(t, operation(cancelled, e), context.Canceled, name)
			require.ErrorIs(t, operation(late, e), context.DeadlineExceeded, name)
		}
		require.Equal(t, "missing", outcome(operations["Get"](t.Context(), e)))
	}},
	{"engines are closed one by one", func(t *testing.T, s store) {
		first, other := s.Open(t), s.replicas(t)(0)
		_, err := first.Create(t.Context(), "set", record("a", "stays"))
		require.NoError(t, err)
		listen(t, first, "topic")
		got := listen(t, other, "topic")
		require.NoError(t, first.Close(), "it ends the subscription")
		require.NoError(t, first.Close(), "again")
		for name, operation := range operations {
			require.Error(t, operation(t.Context(), first), name)
		}
		r, err := other.Get(t.Context(), "set", "a")
		require.NoError(t, err)
		require.Equal(t, "stays", string(r.Data))
		publish(t, other, "topic", "hello")
		require.Equal(t, "topic:hello", receive(t, got))
	}},
	{"one of many creations succeeds", func(t *testing.T, s store) {
		at := s.replicas(t)
		for round := range 5 {
			winner(t, 16, "exists", func(i int) error {
				_, err := at(i).Create(t.Context(), "set", record(fmt.Sprint("k", round), ""))
				return err
			})
		}
	}},
	{"one of many updates of a revision succeeds", func(t *testing.T, s store) {
		at := s.replicas(t)
		revision, err := at(0).Create(t.Context(), "set", record("a", ""))
		require.NoError(t, err)
		for range 5 {
			revisions := [16]uint64{}
			i := winner(t, 16, "conflict", func(i int) (err error) {
				r := record("a", fmt.Sprint(i))
				r.Revision = revision
				revisions[i], err = at(i).Update(t.Context(), "set", r)
				return err
			})
			revision = revisions[i]
			got, err := at(1).Get(t.Context(), "set", "a")
			require.NoError(t, err)
			want := record("a", fmt.Sprint(i))
			want.Revision = revision
			same(t, want, got)
		}
	}},
	{"one of an update and a deletion succeeds", func(t *testing.T, s store) {
		at := s.replicas(t)
		for round := range 5 {
			r := record(fmt.Sprint("k", round), "")
			var err error
			r.Revision, err = at(0).Create(t.Context(), "set", r)
			require.NoError(t, err)
			updates, deletions := 0, 0
			for i, outcome := range together(8, func(i int) error {
				if i%2 == 1 {
					return at(i).Delete(t.Context(), "set", r.Key, r.Revision)
				}
				_, err := at(i).Update(t.Context(), "set", r)
				return err
			}) {
				switch {
				case outcome == "ok" && i%2 == 0:
					updates++
				case outcome == "ok":
					deletions++ // also those of a record that is gone
				default:
					require.Contains(t, []string{"conflict", "missing"}[:2-i%2], outcome)
				}
			}
			require.LessOrEqual(t, updates, 1)
			require.Equal(t, updates == 0, deletions > 0, "one of both")
			_, err = at(0).Get(t.Context(), "set", r.Key)
			require.Equal(t, []string{"missing", "ok"}[updates], outcome(err))
		}
	}},
	{"no increment is lost", func(t *testing.T, s store) {
		const callers, each = 6, 10
		at := s.replicas(t)
		_, err := at(0).Create(t.Context(), "set", record("a", "0"))
		require.NoError(t, err)
		allSucceed(t, callers, func(i int) error {
			last := uint64(0)
			for done := 0; done < each; {
				r, err := at(i).Get(t.Context(), "set", "a")
				if err != nil || r.Revision < last {
					return fmt.Errorf("revision %d after %d: %w", r.Revision, last, err)
				}
				n, _ := strconv.Atoi(string(r.Data))
				r.Data, r.TTL = fmt.Append(nil, n+1), time.Hour
				switch last, err = at(i).Update(t.Context(), "set", r); outcome(err) {
				case "ok":
					done++
				case "conflict":
					last = r.Revision
				default:
					return err
				}
			}
			return nil
		})
		r, err := at(1).Get(t.Context(), "set", "a")
		require.NoError(t, err)
		require.Equal(t, strconv.Itoa(callers*each), string(r.Data))
	}},
	// Workers claim each record once: they move the time at which it is due.
	{"one of many workers claims a record", func(t *testing.T, s store) {
		const count = 20
		at := s.replicas(t)
		for i := range count {
			r := record(fmt.Sprint("k", i), "")
			r.Due = fleet.AtOnce
			_, err := at(0).Create(t.Context(), "set", r)
			require.NoError(t, err)
		}
		var mu sync.Mutex
		claims := map[string]int{}
		allSucceed(t, 6, func(i int) error {
			for {
				all, err := at(i).Due(t.Context(), "set", 0, 3)
				if err != nil || len(all) == 0 {
					return err
				}
				for _, r := range all {
					r.TTL, r.Due = time.Hour, time.Hour
					switch _, err := at(i).Update(t.Context(), "set", r); outcome(err) {
					case "ok":
						mu.Lock()
						claims[r.Key]++
						mu.Unlock()
					case "conflict":
					default:
						return err
					}
				}
			}
		})
		require.Len(t, claims, count)
		for key, n := range claims {
			require.Equal(t, 1, n, key)
		}
	}},
	{"many records are listed and counted", func(t *testing.T, s store) {
		const count, page = 1000, 70
		at := s.replicas(t)
		var want, got []string
		for i := range count {
			want = append(want, fmt.Sprintf("k%04d", i))
		}
		allSucceed(t, 10, func(i int) error {
			for n := i; n < count; n += 10 {
				r := record(want[n*7%count], "")
				r.Group = "g"
				if _, err := at(i).Create(t.Context(), "set", r); err != nil {
					return err
				}
			}
			return nil
		})
		for after, more := "", true; more; after = got[len(got)-1] {
			all, err := at(len(got)).List(t.Context(), "set", "g", after, page)
			require.NoError(t, err)
			for _, r := range all {
				got = append(got, r.Key)
			}
			more = len(all) == page
		}
		require.Equal(t, want, got)
		for _, group := range []string{"g", ""} {
			require.True(t, s.until(t, func() bool {
				n, err := at(0).Count(t.Context(), "set", group)
				require.NoError(t, err)
				return n == count
			}), "all are counted")
		}
	}},
	{"one of many entries with a number is appended", func(t *testing.T, s store) {
		at := s.replicas(t)
		add := func(i int, log string, seq uint64, data string) error {
			return at(i).Append(t.Context(), "group", log, fleet.Entry{Seq: seq, Data: []byte(data)}, hour)
		}
		for seq := uint64(1); seq <= 5; seq++ {
			i := winner(t, 9, "conflict", func(i int) error { return add(i, "log", seq, fmt.Sprint(i)) })
			require.Equal(t, fmt.Sprintf("%d:%d", seq, i), entries(at(1).After(t.Context(), "group", "log", seq-1, 9)))
			allSucceed(t, 9, func(i int) error { return add(i, "same", seq, "same") })
		}
		require.Equal(t, "1:same 2:same 3:same 4:same 5:same", entries(at(2).After(t.Context(), "group", "same", 0, 9)))
		// Logs of one group do not hinder each other.
		allSucceed(t, 9, func(i int) error {
			for seq := uint64(1); seq <= 10; seq++ {
				if err := add(i, fmt.Sprint("own", i), seq, ""); err != nil {
					return err
				}
			}
			return nil
		})
	}},
	{"logs keep the newest, and somewhat more at most", func(t *testing.T, s store) {
		const count, limit, size = 100, 10, 1000
		at := s.replicas(t)
		for log, keep := range map[string]fleet.Keep{
			"entries": {Entries: limit, Bytes: 1 << 20, TTL: time.Hour}, "bytes": {Entries: 1000, Bytes: limit*size + 1, TTL: time.Hour},
		} {
			for i := range count {
				require.NoError(t, at(i).Append(t.Context(), "group", log, fleet.Entry{Seq: uint64(2*i + 2), Data: random(size)}, keep))
			}
			all, err := at(0).After(t.Context(), "group", log, 0, 2*count)
			require.NoError(t, err)
			require.GreaterOrEqual(t, len(all), limit)
			require.LessOrEqual(t, len(all), 2*limit)
			for i, e := range all {
				require.Equal(t, fleet.Entry{Seq: uint64(2 * (count - len(all) + i + 1)), Data: random(size)}, e, "the newest are kept")
			}
		}
	}},
	{"data has any bytes and sizes", func(t *testing.T, s store) {
		at := s.replicas(t)
		for i, data := range samples() {
			r := record(fmt.Sprint("k", i), "before")
			r.Group, r.Due = "g", fleet.AtOnce
			var err error
			r.Revision, err = at(i).Create(t.Context(), "set", r)
			require.NoError(t, err)
			small := r
			r.Data = slices.Clone(data)
			r.Revision, err = at(i+1).Update(t.Context(), "set", r)
			add := func(i int, seq uint64) error {
				return at(i).Append(t.Context(), "group", r.Key, fleet.Entry{Seq: seq, Data: r.Data}, hour)
			}
			appended := add(i, 1)
			if len(data) > mayRefuse && outcome(err) == "large" {
				got, err := at(i).Get(t.Context(), "set", r.Key)
				require.NoError(t, err)
				same(t, small, got)
				require.Equal(t, "large", outcome(appended))
				continue
			}
			require.NoError(t, err)
			require.NoError(t, appended)
			require.True(t, slices.Equal(data, r.Data), "the engine does not change it")
			got, err := at(i+2).Get(t.Context(), "set", r.Key)
			require.NoError(t, err)
			same(t, r, got)
			list, err := at(i).List(t.Context(), "set", "g", "", 100)
			require.NoError(t, err)
			found := slices.IndexFunc(list, func(l fleet.Record) bool { return l.Key == r.Key })
			require.GreaterOrEqual(t, found, 0)
			same(t, r, list[found])

			require.NoError(t, add(i+1, 1), "it does nothing")
			require.NoError(t, add(i+1, 2))
			all, err := at(i).After(t.Context(), "group", r.Key, 0, 9)
			require.NoError(t, err)
			require.Len(t, all, 2)
			require.True(t, slices.Equal(data, all[0].Data) && slices.Equal(data, all[1].Data))
			require.Equal(t, "conflict", outcome(at(i).Append(t.Context(), "group", r.Key, fleet.Entry{Seq: 2, Data: []byte("\x00x")}, hour)))
		}
	}},
}

// mayRefuse is the size of data beyond which an engine may refuse it.
const mayRefuse = 512_000

// samples returns data that text protocols get wrong, and the largest that there is.
func samples() (all [][]byte) {
	every := ""
	for i := range 256 {
		every += string(rune(i)) + string([]byte{byte(i)})
	}
	for _, text := range []string{"", "\x00", "\r\n", "\x00\xff\xfe", "nil", "false", "0", "-1", `"`, "ä€😀", "{}", every} {
		all = append(all, []byte(text))
	}
	return append(all, random(1000), random(mayRefuse), random(fleet.MaxData))
}

// random returns bytes that do not compress, always the same ones.
func random(n int) []byte {
	data := make([]byte, n)
	for i, x := 0, uint32(2463534242); i < n; i++ {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		data[i] = byte(x)
	}
	return data
}

// together calls f at the same time and returns the outcomes.
func together(n int, f func(i int) error) []string {
	outcomes := make([]string, n)
	var begin, all sync.WaitGroup
	begin.Add(n)
	for i := range n {
		all.Go(func() {
			begin.Done()
			begin.Wait()
			outcomes[i] = outcome(f(i))
		})
	}
	all.Wait()
	return outcomes
}

// allSucceed calls f at the same time, and requires that it never fails.
func allSucceed(t testing.TB, n int, f func(i int) error) {
	t.Helper()
	require.Equal(t, slices.Repeat([]string{"ok"}, n), together(n, f))
}

// winner calls f at the same time. It requires that one call succeeds and that the others have
// another outcome, and returns the number of the one.
func winner(t testing.TB, n int, others string, f func(i int) error) int {
	t.Helper()
	outcomes := together(n, f)
	i := slices.Index(outcomes, "ok")
	require.GreaterOrEqual(t, i, 0, outcomes)
	require.Equal(t, slices.Repeat([]string{others}, n-1), slices.Delete(slices.Clone(outcomes), i, i+1))
	return i
}

package fleettest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/fleet"
)

func is(err, target error) bool { return errors.Is(err, target) }

func created(t *testing.T, s store) {
	at := s.replicas(t)
	r := record("a", "data of a")
	r.Group, r.Due = "g", time.Minute
	r = create(t, at(0), r)
	for i := range 3 {
		same(t, r, get(t, at(i), "a"))
		require.True(t, gone(t, at(i), "b"))
	}
}

func separate(t *testing.T, s store) {
	e := s.open(t)
	all := []string{"a", "A", "aa", "a-", "-a", "_", "-", "0", "a_b"}
	revisions := map[string]uint64{}
	for _, set := range []string{"set", "Set", "set-", "a"} {
		for _, key := range all {
			r := record(key, set+" "+key)
			revision, err := e.Create(t.Context(), set, r)
			require.NoError(t, err, "%s %s", set, key)
			revisions[set+" "+key] = revision
		}
	}
	require.NoError(t, e.Delete(t.Context(), "set", "a", 0))
	for _, set := range []string{"set", "Set", "set-", "a"} {
		for _, key := range all {
			r, err := e.Get(t.Context(), set, key)
			if set == "set" && key == "a" {
				require.ErrorIs(t, err, fleet.ErrNotFound)
				continue
			}
			require.NoError(t, err)
			want := record(key, set+" "+key)
			want.Revision = revisions[set+" "+key]
			same(t, want, r)
		}
	}
}

func createdOnce(t *testing.T, s store) {
	at := s.replicas(t)
	r := create(t, at(0), record("a", "first"))
	for i := range 3 {
		other := record("a", "second")
		other.Group, other.Due = "g", fleet.AtOnce
		_, err := at(i).Create(t.Context(), "set", other)
		require.ErrorIs(t, err, fleet.ErrExists)
	}
	same(t, r, get(t, at(1), "a"))
	require.Equal(t, "", keys(at(0).Due(t.Context(), "set", 1)))
	require.Equal(t, "", keys(at(0).List(t.Context(), "set", "g", "", 1)))
}

func updated(t *testing.T, s store) {
	at := s.replicas(t)
	first := create(t, at(0), record("a", "first"))
	r := first
	for i := range 10 {
		r.Data = fmt.Appendf(nil, "change %d", i)
		revision, err := at(i).Update(t.Context(), "set", r)
		require.NoError(t, err)
		require.Greater(t, revision, r.Revision, "it grows")
		r.Revision = revision
		same(t, r, get(t, at(i+1), "a"))
	}
	for _, revision := range []uint64{first.Revision, r.Revision - 1, r.Revision + 1, 0, 1<<64 - 1} {
		stale := r
		stale.Revision, stale.Data = revision, []byte("stale")
		_, err := at(1).Update(t.Context(), "set", stale)
		require.ErrorIs(t, err, fleet.ErrConflict, revision)
	}
	same(t, r, get(t, at(0), "a"))
	for _, revision := range []uint64{0, r.Revision} {
		unknown := record("b", "")
		unknown.Revision = revision
		_, err := at(0).Update(t.Context(), "set", unknown)
		require.ErrorIs(t, err, fleet.ErrNotFound)
	}
	got := get(t, at(2), "a")
	got.Data, got.TTL = []byte("again"), time.Hour
	_, err := at(2).Update(t.Context(), "set", got)
	require.NoError(t, err, "the revision of Get is current")
}

func grouped(t *testing.T, s store) {
	e := s.open(t)
	r := record("a", "")
	r.Group = "g"
	r = create(t, e, r)
	alone := create(t, e, record("b", ""))
	var err error
	for _, group := range []string{"", "other", "g"} {
		r.Group, alone.Group = group, group
		r.Revision, err = e.Update(t.Context(), "set", r)
		require.NoError(t, err)
		alone.Revision, err = e.Update(t.Context(), "set", alone)
		require.NoError(t, err)
		require.Equal(t, "g", get(t, e, "a").Group)
		require.Equal(t, "", get(t, e, "b").Group)
		require.Equal(t, "a ", keys(e.List(t.Context(), "set", "g", "", 9)))
		require.Equal(t, "", keys(e.List(t.Context(), "set", "other", "", 9)))
	}
}

func deleted(t *testing.T, s store) {
	at := s.replicas(t)
	r := record("a", "")
	r.Group, r.Due = "g", fleet.AtOnce
	r = create(t, at(0), r)
	for _, revision := range []uint64{r.Revision - 1, r.Revision + 1, 1<<64 - 1} {
		if revision != 0 { // which deletes any
			require.ErrorIs(t, at(1).Delete(t.Context(), "set", "a", revision), fleet.ErrConflict)
		}
	}
	same(t, r, get(t, at(2), "a"))
	require.NoError(t, at(1).Delete(t.Context(), "set", "a", r.Revision))
	for i := range 3 {
		require.True(t, gone(t, at(i), "a"))
		require.NoError(t, at(i).Delete(t.Context(), "set", "a", 0), "there is none")
		require.NoError(t, at(i).Delete(t.Context(), "set", "a", r.Revision), "there is none")
		_, err := at(i).Update(t.Context(), "set", r)
		require.ErrorIs(t, err, fleet.ErrNotFound)
		require.Equal(t, "", keys(at(i).Due(t.Context(), "set", 1)))
		require.Equal(t, "", keys(at(i).List(t.Context(), "set", "g", "", 1)))
	}
	create(t, at(0), record("a", ""))
	require.NoError(t, at(1).Delete(t.Context(), "set", "a", 0), "0 deletes any revision")
	require.True(t, gone(t, at(0), "a"))
}

func recreated(t *testing.T, s store) {
	at := s.replicas(t)
	seen := map[uint64]bool{}
	for i := range 20 {
		r := create(t, at(i), record("a", ""))
		require.False(t, seen[r.Revision])
		seen[r.Revision] = true
		for old := range seen {
			if old == r.Revision {
				continue
			}
			stale := r
			stale.Revision = old
			_, err := at(i).Update(t.Context(), "set", stale)
			require.ErrorIs(t, err, fleet.ErrConflict)
			require.ErrorIs(t, at(i).Delete(t.Context(), "set", "a", old), fleet.ErrConflict)
		}
		revision, err := at(i).Update(t.Context(), "set", r)
		require.NoError(t, err)
		require.False(t, seen[revision])
		seen[revision] = true
		require.NoError(t, at(i).Delete(t.Context(), "set", "a", revision))
	}
}

func createdByMany(t *testing.T, s store) {
	at := s.replicas(t)
	for round := range 5 {
		key := fmt.Sprint("k", round)
		won(t, together(16, func(i int) error {
			_, err := at(i).Create(t.Context(), "set", record(key, fmt.Sprint(i)))
			return err
		}), fleet.ErrExists)
	}
}

func updatedByMany(t *testing.T, s store) {
	at := s.replicas(t)
	r := create(t, at(0), record("a", ""))
	for range 5 {
		var mu sync.Mutex
		var winner fleet.Record
		won(t, together(16, func(i int) error {
			mine := r
			mine.Data = fmt.Append(nil, i)
			var err error
			if mine.Revision, err = at(i).Update(t.Context(), "set", mine); err == nil {
				mu.Lock()
				defer mu.Unlock()
				winner = mine
			}
			return err
		}), fleet.ErrConflict)
		r = get(t, at(1), "a")
		same(t, winner, r)
		r.TTL = time.Hour
	}
}

func updatedOrDeleted(t *testing.T, s store) {
	at := s.replicas(t)
	for round := range 5 {
		r := create(t, at(0), record(fmt.Sprint("k", round), ""))
		errs := together(8, func(i int) error {
			if i%2 == 0 {
				_, err := at(i).Update(t.Context(), "set", r)
				return err
			}
			return at(i).Delete(t.Context(), "set", r.Key, r.Revision)
		})
		updates, deletes := 0, 0
		for i, err := range errs {
			switch {
			case err == nil && i%2 == 0:
				updates++
			case err == nil:
				deletes++ // also those of a record that is gone
			case i%2 == 0:
				require.True(t, is(err, fleet.ErrConflict) || is(err, fleet.ErrNotFound), "%v", err)
			default:
				require.ErrorIs(t, err, fleet.ErrConflict)
			}
		}
		require.LessOrEqual(t, updates, 1)
		require.Equal(t, updates == 0, deletes > 0, "one of both")
		require.Equal(t, updates == 0, gone(t, at(0), r.Key))
	}
}

func incremented(t *testing.T, s store) {
	const callers, each = 6, 10
	at := s.replicas(t)
	create(t, at(0), record("a", "0"))
	allSucceed(t, callers, func(i int) error {
		last := uint64(0)
		for done := 0; done < each; {
			r, err := at(i).Get(t.Context(), "set", "a")
			if err != nil {
				return err
			}
			if r.Revision < last {
				return fmt.Errorf("revision %d after %d", r.Revision, last)
			}
			n, err := strconv.Atoi(string(r.Data))
			if err != nil {
				return err
			}
			r.Data, r.TTL = fmt.Append(nil, n+1), time.Hour
			revision, err := at(i).Update(t.Context(), "set", r)
			switch {
			case err == nil && revision <= r.Revision:
				return fmt.Errorf("revision %d after %d", revision, r.Revision)
			case err == nil:
				done, last = done+1, revision
			case !is(err, fleet.ErrConflict):
				return err
			}
		}
		return nil
	})
	require.Equal(t, strconv.Itoa(callers*each), string(get(t, at(1), "a").Data))
}

func expired(t *testing.T, s store) {
	e := s.open(t)
	for _, key := range []string{"short", "grouped"} {
		r := record(key, "")
		r.TTL = fleet.MinTTL
		if key == "grouped" {
			r.Group, r.Due = "g", fleet.AtOnce
		}
		create(t, e, r)
	}
	long := record("long", "")
	long.Group, long.Due = "g", fleet.AtOnce
	long = create(t, e, long)
	s.until(t, func() bool { return gone(t, e, "short") && gone(t, e, "grouped") }, "they expire")
	require.Equal(t, "long ", keys(e.Due(t.Context(), "set", 9)))
	require.Equal(t, "long ", keys(e.List(t.Context(), "set", "g", "", 9)))
	for group, want := range map[string]int{"": 1, "g": 1} {
		s.until(t, func() bool {
			n, err := e.Count(t.Context(), "set", group)
			require.NoError(t, err)
			return n == want
		}, "what has expired is not counted")
	}
	_, err := e.Update(t.Context(), "set", fleet.Record{Key: "short", TTL: time.Hour, Revision: 1})
	require.ErrorIs(t, err, fleet.ErrNotFound)
	require.NoError(t, e.Delete(t.Context(), "set", "short", 1))
	same(t, long, get(t, e, "long"))
}

func renewed(t *testing.T, s store) {
	e := s.open(t)
	// A busy machine may need longer than the TTL.
	var longer fleet.Record
	for i := 0; ; i++ {
		begun := time.Now()
		longer = record(fmt.Sprint("longer", i), "")
		longer.TTL = 2 * time.Second
		longer = create(t, e, longer)
		longer.TTL = time.Hour
		var err error
		longer.Revision, err = e.Update(t.Context(), "set", longer)
		if err == nil || time.Since(begun) < 2*time.Second {
			require.NoError(t, err)
			break
		}
	}
	shorter := create(t, e, record("shorter", ""))
	shorter.TTL = 2 * time.Second
	_, err := e.Update(t.Context(), "set", shorter)
	require.NoError(t, err)
	s.until(t, func() bool { return gone(t, e, "shorter") }, "its TTL is shorter now")
	same(t, longer, get(t, e, longer.Key))
}

func reused(t *testing.T, s store) {
	e := s.open(t)
	old := record("a", "old")
	old.Group, old.TTL, old.Due = "before", fleet.MinTTL, fleet.AtOnce
	old = create(t, e, old)
	s.until(t, func() bool { return gone(t, e, "a") }, "it expires")
	r := record("a", "new")
	r.Group = "after"
	r = create(t, e, r)
	require.NotEqual(t, old.Revision, r.Revision)
	_, err := e.Update(t.Context(), "set", old)
	require.ErrorIs(t, err, fleet.ErrConflict)
	require.Equal(t, "", keys(e.List(t.Context(), "set", "before", "", 9)))
	require.Equal(t, "a ", keys(e.List(t.Context(), "set", "after", "", 9)))
	require.Equal(t, "", keys(e.Due(t.Context(), "set", 9)))
	// What is left of the old record is removed without harm to the new one.
	s.wait(t, 2*time.Second)
	r.Due = fleet.AtOnce
	r.Revision, err = e.Update(t.Context(), "set", r)
	require.NoError(t, err)
	create(t, e, record("b", ""))
	n, err := e.Count(t.Context(), "set", "")
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.Equal(t, "a ", keys(e.Due(t.Context(), "set", 9)))
	require.Equal(t, "a ", keys(e.List(t.Context(), "set", "after", "", 9)))
	n, err = e.Count(t.Context(), "set", "after")
	require.NoError(t, err)
	require.Equal(t, 1, n)
	n, err = e.Count(t.Context(), "set", "before")
	require.NoError(t, err)
	require.Zero(t, n)
}

func dueInOrder(t *testing.T, s store) {
	at := s.replicas(t)
	var want []string
	for i, key := range []string{"c", "a", "d", "b"} {
		r := record(key, "data of "+key)
		r.Due, r.Group = fleet.AtOnce, "g"
		r = create(t, at(i), r)
		all, err := at(i).Due(t.Context(), "set", 9)
		require.NoError(t, err)
		require.Len(t, all, i+1, "it is due at once")
		same(t, r, all[i])
		want = append(want, key)
		s.wait(t, 20*time.Millisecond) // engines may measure in milliseconds
	}
	later, never := record("later", ""), record("never", "")
	later.Due = 30 * time.Minute
	create(t, at(0), later)
	create(t, at(0), never)
	require.Equal(t, strings.Join(want, " ")+" ", keys(at(1).Due(t.Context(), "set", 9)))
	require.Equal(t, "c a ", keys(at(2).Due(t.Context(), "set", 2)))
	require.Equal(t, "", keys(at(2).Due(t.Context(), "other", 2)))
}

func dueLater(t *testing.T, s store) {
	e := s.open(t)
	begun := time.Now()
	soon := record("soon", "x")
	soon.Due = time.Second
	soon = create(t, e, soon)
	all, err := e.Due(t.Context(), "set", 9)
	require.NoError(t, err)
	if time.Since(begun) < time.Second {
		require.Empty(t, all)
	}
	s.until(t, func() bool {
		all, err = e.Due(t.Context(), "set", 9)
		require.NoError(t, err)
		return len(all) > 0
	}, "it becomes due")
	require.Equal(t, "soon ", keys(all, nil))
	same(t, soon, all[0])
	if s.Advance == nil {
		require.Greater(t, time.Since(begun), 900*time.Millisecond, "not before its time")
	}
}

func dueNoMore(t *testing.T, s store) {
	at := s.replicas(t)
	revisions := map[string]uint64{}
	for _, key := range []string{"never", "later", "again", "gone"} {
		r := record(key, "")
		r.Due = fleet.AtOnce
		revisions[key] = create(t, at(0), r).Revision
		s.wait(t, 20*time.Millisecond)
	}
	late := create(t, at(0), record("late", ""))
	revisions["late"] = late.Revision
	require.Equal(t, "never later again gone ", keys(at(1).Due(t.Context(), "set", 9)))
	require.NoError(t, at(0).Delete(t.Context(), "set", "gone", 0))
	for _, change := range []struct {
		key string
		due time.Duration
	}{{"never", 0}, {"later", time.Hour}, {"late", fleet.AtOnce}, {"again", fleet.AtOnce}} {
		r := record(change.key, "")
		r.Due, r.Revision = change.due, revisions[change.key]
		_, err := at(0).Update(t.Context(), "set", r)
		require.NoError(t, err)
		s.wait(t, 20*time.Millisecond)
	}
	require.Equal(t, "late again ", keys(at(1).Due(t.Context(), "set", 9)), "it is due since its last change")
}

// claimed lets workers of three replicas claim each record once: they move the time at which it is
// due.
func claimed(t *testing.T, s store) {
	const count = 20
	at := s.replicas(t)
	for i := range count {
		r := record(fmt.Sprintf("k%02d", i), "")
		r.Due = fleet.AtOnce
		create(t, at(0), r)
	}
	var mu sync.Mutex
	claims := map[string]int{}
	allSucceed(t, 6, func(i int) error {
		for {
			all, err := at(i).Due(t.Context(), "set", 3)
			if err != nil || len(all) == 0 {
				return err
			}
			for _, r := range all {
				r.TTL, r.Due = time.Hour, time.Hour
				_, err := at(i).Update(t.Context(), "set", r)
				switch {
				case err == nil:
					mu.Lock()
					claims[r.Key]++
					mu.Unlock()
				case !is(err, fleet.ErrConflict):
					return err
				}
			}
		}
	})
	require.Len(t, claims, count)
	for key, n := range claims {
		require.Equal(t, 1, n, key)
	}
}

func listed(t *testing.T, s store) {
	at := s.replicas(t)
	for i, place := range []string{"g c", "g a", "gg x", "g B", "g b", "G y", "g -", "g-a z", "g _", "g 1", "g 10"} {
		r := record("", place)
		r.Group, r.Key, _ = strings.Cut(place, " ")
		create(t, at(i), r)
	}
	create(t, at(0), record("alone", ""))
	_, err := at(0).Create(t.Context(), "other", fleet.Record{Key: "aa", Group: "g", TTL: time.Hour})
	require.NoError(t, err)
	list := func(after string, limit int) string {
		return keys(at(limit).List(t.Context(), "set", "g", after, limit))
	}
	require.Equal(t, "- 1 10 B _ a b c ", list("", 100))
	require.Equal(t, "- 1 10 B _ a b c ", list("", 8))
	require.Equal(t, "- 1 10 ", list("", 3))
	require.Equal(t, "B _ a ", list("10", 3))
	require.Equal(t, "b c ", list("a", 3))
	require.Equal(t, "b c ", list("aa", 3), "the key need not exist")
	require.Equal(t, "", list("c", 3))
	require.Equal(t, "", list("zz", 3))
	require.Equal(t, "x ", keys(at(0).List(t.Context(), "set", "gg", "", 9)))
	require.Equal(t, "z ", keys(at(0).List(t.Context(), "set", "g-a", "", 9)))
	require.Equal(t, "", keys(at(0).List(t.Context(), "set", "unknown", "", 9)))
	require.Equal(t, "", keys(at(0).List(t.Context(), "unknown", "g", "", 9)))

	all, err := at(1).List(t.Context(), "set", "g", "", 2)
	require.NoError(t, err)
	for _, r := range all {
		same(t, get(t, at(2), r.Key), r)
		require.Equal(t, "g "+r.Key, string(r.Data))
	}
}

func counted(t *testing.T, s store) {
	at := s.replicas(t)
	count := func(group string, want int) {
		t.Helper()
		for i := range 3 {
			s.until(t, func() bool {
				n, err := at(i).Count(t.Context(), "set", group)
				require.NoError(t, err)
				return n == want
			}, fmt.Sprintf("%d of group %q", want, group))
		}
	}
	count("", 0)
	count("g", 0)
	for _, place := range []string{"g a", "g b", "h c", " d", "gg e"} {
		group, key, _ := strings.Cut(place, " ")
		r := record(key, "")
		r.Group = group
		create(t, at(0), r)
	}
	count("", 5)
	count("g", 2)
	count("h", 1)
	require.NoError(t, at(1).Delete(t.Context(), "set", "a", 0))
	b := get(t, at(2), "b")
	b.TTL = time.Hour
	_, err := at(2).Update(t.Context(), "set", b)
	require.NoError(t, err)
	count("", 4)
	count("g", 1)
	n, err := at(0).Count(t.Context(), "other", "")
	require.NoError(t, err)
	require.Zero(t, n)
}

func many(t *testing.T, s store) {
	const count, page = 1000, 70
	at := s.replicas(t)
	var want []string
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
	var got []string
	for after := ""; ; after = got[len(got)-1] {
		all, err := at(len(got)).List(t.Context(), "set", "g", after, page)
		require.NoError(t, err)
		for _, r := range all {
			got = append(got, r.Key)
		}
		if len(all) < page {
			break
		}
	}
	require.Equal(t, want, got)
	require.True(t, slices.IsSorted(got))
	for _, group := range []string{"g", ""} {
		s.until(t, func() bool {
			n, err := at(0).Count(t.Context(), "set", group)
			require.NoError(t, err)
			return n == count
		}, "all are counted")
	}
}

// samples is data that text protocols get wrong.
var samples = []string{"", "\x00", "\r\n", "\x00\xff\xfe", "nil", "false", "0", "-1", `"`, "ä€😀", "{}", string(random(1000))}

func anyBytes(t *testing.T, s store) {
	at := s.replicas(t)
	all := ""
	for i := range 256 {
		all += string(rune(i)) + string([]byte{byte(i)})
	}
	for i, data := range append(slices.Clone(samples), all) {
		r := record(fmt.Sprint(i), data)
		r.Group = "g"
		r = create(t, at(i), r)
		same(t, r, get(t, at(i+1), r.Key))
		var err error
		r.Data = []byte("x")
		r.Revision, err = at(i+1).Update(t.Context(), "set", r)
		require.NoError(t, err)
		r.Data = []byte(data)
		r.Revision, err = at(i+1).Update(t.Context(), "set", r)
		require.NoError(t, err)
		list, err := at(i).List(t.Context(), "set", "g", "", 100)
		require.NoError(t, err)
		found := slices.IndexFunc(list, func(l fleet.Record) bool { return l.Key == r.Key })
		require.GreaterOrEqual(t, found, 0)
		same(t, r, list[found])
	}
}

// sizes are those that each engine takes, and that it may refuse.
var sizes = []int{512_000, fleet.MaxData}

func largeRecords(t *testing.T, s store) {
	at := s.replicas(t)
	for i, size := range sizes {
		r := record(fmt.Sprint("k", i), "small")
		r.Due, r.Group = fleet.AtOnce, "g"
		r = create(t, at(0), r)
		data := random(size)
		r.Data = data
		revision, err := at(1).Update(t.Context(), "set", r)
		if i > 0 && is(err, fleet.ErrTooLarge) {
			require.Equal(t, "small", string(get(t, at(0), r.Key).Data))
			continue
		}
		require.NoError(t, err)
		require.Equal(t, random(size), data, "the engine does not change it")
		r.Revision = revision
		same(t, r, get(t, at(2), r.Key))
		list, err := at(0).List(t.Context(), "set", "g", "", 9)
		require.NoError(t, err)
		same(t, r, list[i])
		r.Key = fmt.Sprint("new", i)
		r = create(t, at(0), r)
		same(t, r, get(t, at(1), r.Key))
		require.NoError(t, at(0).Delete(t.Context(), "set", r.Key, 0))
	}
}

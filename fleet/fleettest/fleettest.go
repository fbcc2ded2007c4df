// Package fleettest tests implementations of [fleet.Engine].
package fleettest

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/fleet"
)

// A Store is what the engines of a test share: an empty database.
type Store struct {
	// Open returns another engine of the store, with a connection of its own: that of another
	// replica. The test closes it.
	Open func(t testing.TB) fleet.Engine

	// Advance moves the clock of the store. If it is nil, tests wait for what expires.
	Advance func(d time.Duration)
}

// Run tests an engine. open returns an empty store for each test, which it removes with t.Cleanup.
// The tests run in parallel. Limits of time are generous, so they may run on a busy machine.
func Run(t *testing.T, open func(t testing.TB) Store) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, s store)
	}{
		{"an engine that was opened can be reached", pinged},
		{"engines are closed one by one", closed},
		{"names have 64 characters", longNames},
		{"a context that has ended is an error", ended},

		{"all replicas see a record as it was created", created},
		{"keys and sets are different ones", separate},
		{"a key is created once", createdOnce},
		{"updates compare the revision", updated},
		{"updates keep the group", grouped},
		{"deletions compare the revision", deleted},
		{"a record that is created again has another revision", recreated},
		{"one of many creations succeeds", createdByMany},
		{"one of many updates of a revision succeeds", updatedByMany},
		{"one of an update and a deletion succeeds", updatedOrDeleted},
		{"no increment is lost", incremented},
		{"records expire", expired},
		{"updates change the TTL", renewed},
		{"expired keys are free", reused},
		{"due records come in order", dueInOrder},
		{"records become due", dueLater},
		{"updates and deletions change what is due", dueNoMore},
		{"one of many workers claims a record", claimed},
		{"lists have pages", listed},
		{"counts are those of a group or a set", counted},
		{"many records are listed and counted", many},
		{"data has any bytes", anyBytes},
		{"data is large", largeRecords},

		{"entries are returned in order", appended},
		{"logs and groups are different ones", separateLogs},
		{"an entry is appended once", appendedOnce},
		{"one of many entries with a number is appended", appendedByMany},
		{"logs keep the newest entries", keptEntries},
		{"logs keep so many bytes", keptBytes},
		{"entries have pages", paged},
		{"the logs of a group are dropped", dropped},
		{"logs expire", expiredLogs},
		{"entries have any bytes", anyEntries},
		{"entries are large", largeEntries},

		{"messages reach all replicas", published},
		{"messages come in the order of their publisher", ordered},
		{"messages of a topic reach its subscribers", topics},
		{"messages are delivered one at a time", oneAtATime},
		{"subscriptions end with their context", unsubscribed},
		{"subscribers may use the engine", reentered},
		{"messages have any bytes", anyMessages},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t, store{open(t)})
		})
	}
}

// patience is how long tests wait for what happens soon.
const patience = time.Minute

type store struct{ Store }

// open opens an engine and closes it when the test ends.
func (s store) open(t testing.TB) fleet.Engine {
	t.Helper()
	e := s.Open(t)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

// wait lets time pass.
func (s store) wait(t *testing.T, d time.Duration) {
	if s.Advance != nil {
		s.Advance(d)
		return
	}
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}

// until waits until the condition holds.
func (s store) until(t *testing.T, condition func() bool, what string) {
	t.Helper()
	for end := time.Now().Add(patience); !condition(); {
		require.True(t, time.Now().Before(end), what)
		s.wait(t, 100*time.Millisecond)
	}
}

// record returns a record that lives for an hour.
func record(key, data string) fleet.Record {
	return fleet.Record{Key: key, Data: []byte(data), TTL: time.Hour}
}

func create(t testing.TB, e fleet.Engine, r fleet.Record) fleet.Record {
	t.Helper()
	revision, err := e.Create(t.Context(), "set", r)
	require.NoError(t, err)
	require.NotZero(t, revision)
	r.Revision = revision
	return r
}

func get(t testing.TB, e fleet.Engine, key string) fleet.Record {
	t.Helper()
	r, err := e.Get(t.Context(), "set", key)
	require.NoError(t, err)
	return r
}

func gone(t testing.TB, e fleet.Engine, key string) bool {
	t.Helper()
	_, err := e.Get(t.Context(), "set", key)
	if err != nil {
		require.ErrorIs(t, err, fleet.ErrNotFound)
	}
	return err != nil
}

// same requires that got is what was stored as want.
func same(t testing.TB, want, got fleet.Record) {
	t.Helper()
	require.Equal(t, want.Key, got.Key)
	require.Equal(t, want.Group, got.Group)
	require.Equal(t, want.Revision, got.Revision)
	require.True(t, bytes.Equal(want.Data, got.Data), "%d and %d bytes", len(want.Data), len(got.Data))
	require.Positive(t, got.TTL)
	require.LessOrEqual(t, got.TTL, want.TTL+2*time.Second)
	require.Zero(t, got.Due)
}

// keys returns the keys of records, each followed by a space.
func keys(all []fleet.Record, err error) string {
	if err != nil {
		return err.Error()
	}
	var text strings.Builder
	for _, r := range all {
		text.WriteString(r.Key + " ")
	}
	return text.String()
}

// together calls f at the same time and returns the errors.
func together(n int, f func(i int) error) []error {
	errs := make([]error, n)
	var begin, all sync.WaitGroup
	begin.Add(n)
	for i := range n {
		all.Go(func() {
			begin.Done()
			begin.Wait()
			errs[i] = f(i)
		})
	}
	all.Wait()
	return errs
}

// allSucceed calls f at the same time, and requires that it never fails.
func allSucceed(t testing.TB, n int, f func(i int) error) {
	t.Helper()
	for _, err := range together(n, f) {
		require.NoError(t, err)
	}
}

// won requires that one has no error, and the others have one of those given.
func won(t testing.TB, errs []error, others ...error) {
	t.Helper()
	count := 0
next:
	for _, err := range errs {
		if err == nil {
			count++
			continue
		}
		for _, other := range others {
			if is(err, other) {
				continue next
			}
		}
		require.NoError(t, err)
	}
	require.Equal(t, 1, count)
}

// replicas opens three engines and returns one for each number.
func (s store) replicas(t testing.TB) func(i int) fleet.Engine {
	engines := []fleet.Engine{s.open(t), s.open(t), s.open(t)}
	return func(i int) fleet.Engine { return engines[i%len(engines)] }
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

func pinged(t *testing.T, s store) {
	require.NoError(t, s.open(t).Ping(t.Context()))
}

func closed(t *testing.T, s store) {
	first, other := s.Open(t), s.open(t)
	create(t, first, record("a", "stays"))
	deliver, missed := func(string, []byte) {}, func() {}
	require.NoError(t, first.Subscribe(t.Context(), []string{"topic"}, deliver, missed), "Close ends it")
	got := make(chan string, 1)
	require.NoError(t, other.Subscribe(t.Context(), []string{"topic"}, func(_ string, data []byte) { got <- string(data) }, missed))
	require.NoError(t, first.Close())
	require.NoError(t, other.Ping(t.Context()))
	require.Equal(t, "stays", string(get(t, other, "a").Data))
	require.NoError(t, other.Publish(t.Context(), "topic", []byte("hello")))
	require.Equal(t, "hello", receive(t, got))
	_, err := first.Get(t.Context(), "set", "a")
	require.Error(t, err)
}

// longNames uses the longest name everywhere. It has all characters.
func longNames(t *testing.T, s store) {
	const all = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
	e := s.open(t)
	ctx := t.Context()
	r := fleet.Record{Key: all, Group: all, Data: []byte("data"), TTL: time.Hour, Due: fleet.AtOnce}
	var err error
	r.Revision, err = e.Create(ctx, all, r)
	require.NoError(t, err)
	got, err := e.Get(ctx, all, all)
	require.NoError(t, err)
	same(t, r, got)
	r.Revision, err = e.Update(ctx, all, r)
	require.NoError(t, err)
	require.Equal(t, all+" ", keys(e.Due(ctx, all, 2)))
	require.Equal(t, all+" ", keys(e.List(ctx, all, all, "", 2)))
	require.Equal(t, "", keys(e.List(ctx, all, all, all, 2)))
	n, err := e.Count(ctx, all, all)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.NoError(t, e.Delete(ctx, all, all, r.Revision))

	require.NoError(t, e.Append(ctx, all, all, fleet.Entry{Seq: 1, Data: []byte("x")}, fleet.Keep{Entries: 1, Bytes: 1, TTL: time.Hour}))
	entries, err := e.After(ctx, all, all, 0, 2)
	require.NoError(t, err)
	require.Equal(t, []fleet.Entry{{Seq: 1, Data: []byte("x")}}, entries)
	require.NoError(t, e.Drop(ctx, all))

	got2 := make(chan string, 1)
	require.NoError(t, e.Subscribe(ctx, []string{all}, func(topic string, _ []byte) { got2 <- topic }, func() {}))
	require.NoError(t, e.Publish(ctx, all, nil))
	require.Equal(t, all, receive(t, got2))
}

func ended(t *testing.T, s store) {
	e := s.open(t)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	for what, operation := range map[string]func(ctx context.Context) error{
		"Get":     func(ctx context.Context) error { _, err := e.Get(ctx, "set", "a"); return err },
		"Create":  func(ctx context.Context) error { _, err := e.Create(ctx, "set", record("a", "")); return err },
		"Update":  func(ctx context.Context) error { _, err := e.Update(ctx, "set", record("a", "")); return err },
		"Delete":  func(ctx context.Context) error { return e.Delete(ctx, "set", "a", 0) },
		"Due":     func(ctx context.Context) error { _, err := e.Due(ctx, "set", 1); return err },
		"List":    func(ctx context.Context) error { _, err := e.List(ctx, "set", "g", "", 1); return err },
		"Count":   func(ctx context.Context) error { _, err := e.Count(ctx, "set", ""); return err },
		"Append":  func(ctx context.Context) error { return e.Append(ctx, "g", "l", fleet.Entry{Seq: 1}, hour) },
		"After":   func(ctx context.Context) error { _, err := e.After(ctx, "g", "l", 0, 1); return err },
		"Last":    func(ctx context.Context) error { _, err := e.Last(ctx, "g", "l"); return err },
		"Drop":    func(ctx context.Context) error { return e.Drop(ctx, "g") },
		"Publish": func(ctx context.Context) error { return e.Publish(ctx, "topic", nil) },
		"Subscribe": func(ctx context.Context) error {
			return e.Subscribe(ctx, []string{"topic"}, func(string, []byte) {}, func() {})
		},
		"Ping": e.Ping,
	} {
		require.ErrorIs(t, operation(cancelled), context.Canceled, what)
		require.ErrorIs(t, operation(late), context.DeadlineExceeded, what)
	}
	require.NoError(t, e.Ping(t.Context()))
	create(t, e, record("later", ""))
}

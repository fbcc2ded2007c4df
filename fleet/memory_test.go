package fleet_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/fleet/fleettest"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
)

func TestMain(m *testing.M) { testkit.VerifyTestMain(m) }

func TestMemory(t *testing.T) {
	fleettest.Run(t, func(testing.TB) fleettest.Store {
		m := fleet.NewMemory(fleet.MemoryOptions{})
		return fleettest.Store{Open: func(testing.TB) fleet.Engine { return m.Open() }, Advance: m.Advance}
	})
}

func TestAFullMemoryRefusesWhatIsNew(t *testing.T) {
	m := fleet.NewMemory(fleet.MemoryOptions{MaxBytes: 10_000})
	ctx := t.Context()
	keep := fleet.Keep{Entries: 2, Bytes: 3000, TTL: time.Hour}
	create := func(key string, size int) error {
		_, err := m.Create(ctx, "set", fleet.Record{Key: key, Data: make([]byte, size), TTL: time.Minute})
		return err
	}
	add := func(seq uint64, size int) error {
		return m.Append(ctx, "g", "l", fleet.Entry{Seq: seq, Data: make([]byte, size)}, keep)
	}
	require.NoError(t, create("a", 100))
	require.ErrorIs(t, create("b", 9500), fleet.ErrFull)
	_, err := m.Get(ctx, "set", "b")
	require.ErrorIs(t, err, fleet.ErrNotFound, "nothing of it is left")
	n, err := m.Count(ctx, "set", "")
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.NoError(t, add(1, 3000))
	require.ErrorContains(t, create("d", 6500), "full")
	keep.Entries = 1
	require.NoError(t, add(2, 3000), "it replaces the first")

	r, err := m.Get(ctx, "set", "a")
	require.NoError(t, err)
	r.Data = make([]byte, 8000)
	_, err = m.Update(ctx, "set", r)
	require.ErrorContains(t, err, "full")
	r.Data = make([]byte, 50)
	r.Revision, err = m.Update(ctx, "set", r)
	require.NoError(t, err)

	require.NoError(t, m.Delete(ctx, "set", "a", 0))
	require.NoError(t, create("e", 5000))
	m.Advance(time.Minute)
	require.NoError(t, create("f", 5000), "e has expired")
	m.Advance(2 * time.Hour)
	require.NoError(t, create("g", 9000), "the log has expired")
}

// Whatever is done, nothing is left of what was deleted, dropped or has expired.
func TestMemoryForgetsWhatIsGone(t *testing.T) {
	m := fleet.NewMemory(fleet.MemoryOptions{})
	ctx := t.Context()
	for i := range 2000 {
		set, group, key := fmt.Sprint("s", i%3), fmt.Sprint("g", i%5), fmt.Sprint("k", i)
		r := fleet.Record{Key: key, Data: make([]byte, i), TTL: time.Duration(i%7+1) * time.Hour, Due: time.Duration(i % 4)}
		if i%2 == 0 {
			r.Group = group
		}
		var err error
		r.Revision, err = m.Create(ctx, set, r)
		require.NoError(t, err)
		if i%3 == 0 {
			r.Data, r.Due, r.TTL = make([]byte, 2000-i), time.Duration(i%2), 2*time.Hour
			_, err = m.Update(ctx, set, r)
			require.NoError(t, err)
		}
		if i%11 == 0 {
			require.NoError(t, m.Delete(ctx, set, key, 0))
		}
		keep := fleet.Keep{Entries: i%9 + 1, Bytes: 2000, TTL: time.Duration(i%7+1) * time.Hour}
		e := fleet.Entry{Seq: uint64(i + 1), Data: make([]byte, i)}
		require.NoError(t, m.Append(ctx, group, fmt.Sprint("l", i%4), e, keep))
		if i%50 == 0 {
			require.NoError(t, m.Drop(ctx, group))
		}
		m.Advance(time.Second)
	}
	require.Greater(t, len(m.Keys()), 1000)
	require.True(t, slices.IsSorted(m.Keys()))
	m.Advance(9 * time.Hour)
	n, err := m.Count(ctx, "s0", "")
	require.NoError(t, err)
	require.Zero(t, n)
	require.Equal(t, []string{"s"}, m.Keys(), "the last revision")
}

func TestASlowSubscriberMissesMessagesAndIsTold(t *testing.T) {
	m := fleet.NewMemory(fleet.MemoryOptions{})
	defer m.Close()
	begun, proceed, missed := make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	slow := 0
	err := m.Subscribe(t.Context(), []string{"topic"}, func(string, []byte) {
		select {
		case begun <- struct{}{}:
		default:
		}
		<-proceed
		slow++
	}, func() { close(missed) })
	require.NoError(t, err)
	fast := make(chan byte, 5000)
	err = m.Subscribe(t.Context(), []string{"topic"}, func(_ string, data []byte) { fast <- data[0] }, func() { t.Error("missed") })
	require.NoError(t, err)
	require.NoError(t, m.Publish(t.Context(), "topic", []byte{0}))
	<-begun
	for i := range 3000 {
		require.NoError(t, m.Publish(t.Context(), "topic", []byte{byte(i)}))
		<-fast // the other one does not wait for it
	}
	close(proceed)
	<-missed
	require.Equal(t, 1+1024, slow, "what was queued before messages were dropped")
}

func TestSubscriptionsThatWaitKeepSoManyBytes(t *testing.T) {
	m := fleet.NewMemory(fleet.MemoryOptions{})
	defer m.Close()
	begun, proceed, missed := make(chan struct{}, 100), make(chan struct{}), make(chan struct{})
	got := 0
	err := m.Subscribe(t.Context(), []string{"topic"}, func(string, []byte) {
		begun <- struct{}{}
		<-proceed
		got++
	}, func() { close(missed) })
	require.NoError(t, err)
	require.NoError(t, m.Publish(t.Context(), "topic", nil))
	<-begun
	data := make([]byte, fleet.MaxData)
	for range 10 {
		require.NoError(t, m.Publish(t.Context(), "topic", data))
	}
	close(proceed)
	<-missed
	require.Equal(t, 1+4, got)
}

func TestCloseWaitsForSubscribers(t *testing.T) {
	m := fleet.NewMemory(fleet.MemoryOptions{})
	begun, ended := make(chan struct{}), false
	err := m.Subscribe(context.Background(), []string{"topic"}, func(string, []byte) {
		close(begun)
		for range 1000 {
			_, _ = m.Count(t.Context(), "set", "") // it may be closed
		}
		ended = true
	}, func() {})
	require.NoError(t, err)
	require.NoError(t, m.Publish(t.Context(), "topic", nil))
	<-begun
	require.NoError(t, m.Close())
	require.True(t, ended)
	require.NoError(t, m.Close(), "again")
	require.Error(t, m.Subscribe(t.Context(), []string{"topic"}, func(string, []byte) {}, func() {}))
}

func ExampleNewMemory() {
	ctx := context.Background()
	m := fleet.NewMemory(fleet.MemoryOptions{})
	defer m.Close()
	revision, err := m.Create(ctx, "carts", fleet.Record{Key: "ann", Data: []byte("apples"), TTL: time.Hour})
	fmt.Println(revision, err)

	other := m.Open() // what another server of the process uses
	defer other.Close()
	r, err := other.Get(ctx, "carts", "ann")
	fmt.Printf("%s %v\n", r.Data, err)
	// Output:
	// 1 <nil>
	// apples <nil>
}

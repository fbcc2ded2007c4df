package fleettest

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/fleet"
)

// receive waits for a message.
func receive[T any](t testing.TB, from <-chan T) T {
	t.Helper()
	select {
	case m := <-from:
		return m
	case <-time.After(patience):
		require.Fail(t, "no message came")
	}
	panic("unreachable")
}

// subscribe returns a channel with the messages of topics, as "topic:data". None may be missed.
func subscribe(t testing.TB, e fleet.Engine, topics ...string) <-chan string {
	t.Helper()
	got := make(chan string, 10_000)
	err := e.Subscribe(t.Context(), topics,
		func(topic string, data []byte) { got <- topic + ":" + string(data) },
		func() { t.Error("messages were missed") })
	require.NoError(t, err)
	return got
}

func publish(t testing.TB, e fleet.Engine, topic, data string) {
	t.Helper()
	require.NoError(t, e.Publish(t.Context(), topic, []byte(data)))
}

func published(t *testing.T, s store) {
	at := s.replicas(t)
	publish(t, at(0), "topic", "nobody listens")
	var subscriptions []<-chan string
	for i := range 6 { // two of each replica
		subscriptions = append(subscriptions, subscribe(t, at(i), "topic"))
	}
	for i := range 3 {
		publish(t, at(i), "topic", fmt.Sprint(i))
		for _, got := range subscriptions {
			require.Equal(t, fmt.Sprint("topic:", i), receive(t, got))
		}
	}
	for _, got := range subscriptions {
		require.Empty(t, got, "each is delivered once")
	}
}

// ordered sends from several publishers at once. The messages of each come in order.
func ordered(t *testing.T, s store) {
	const publishers, each = 3, 100
	at := s.replicas(t)
	subscriptions := []<-chan string{subscribe(t, at(0), "a", "b"), subscribe(t, at(1), "b", "a")}
	allSucceed(t, publishers, func(i int) error {
		for n := range each {
			if err := at(i).Publish(t.Context(), string("ab"[n%2]), fmt.Appendf(nil, "%d %d", i, n)); err != nil {
				return err
			}
		}
		return nil
	})
	for _, got := range subscriptions {
		next := [publishers]int{}
		for range publishers * each {
			var publisher, n int
			topic, data, _ := strings.Cut(receive(t, got), ":")
			_, err := fmt.Sscan(data, &publisher, &n)
			require.NoError(t, err)
			require.Equal(t, next[publisher], n, "messages of publisher %d", publisher)
			require.Equal(t, string("ab"[n%2]), topic)
			next[publisher]++
		}
	}
}

func topics(t *testing.T, s store) {
	at := s.replicas(t)
	names := []string{"a", "A", "aa", "a-", "-a", "a_a"}
	var each []<-chan string
	for i, name := range names {
		each = append(each, subscribe(t, at(i), name))
	}
	both := subscribe(t, at(1), "a", "aa", "a")
	for i, name := range names {
		publish(t, at(i+1), name, "x")
		publish(t, at(i+1), "nobody", "x")
	}
	for i, name := range names {
		require.Equal(t, name+":x", receive(t, each[i]))
	}
	got := []string{receive(t, both), receive(t, both)} // of two publishers, in any order
	require.ElementsMatch(t, []string{"a:x", "aa:x"}, got)
	// What comes last shows that nothing else came before.
	for i, name := range names {
		publish(t, at(i+1), name, "end")
		require.Equal(t, name+":end", receive(t, each[i]))
	}
	got = []string{receive(t, both), receive(t, both)}
	require.ElementsMatch(t, []string{"a:end", "aa:end"}, got)
	require.Empty(t, both)
}

func oneAtATime(t *testing.T, s store) {
	const count = 200
	at := s.replicas(t)
	var inside, seen atomic.Int32
	done := make(chan struct{})
	err := at(0).Subscribe(t.Context(), []string{"a", "b"}, func(string, []byte) {
		if inside.Add(1) != 1 {
			t.Error("deliver is called twice at the same time")
		}
		for range 100 {
			_ = fmt.Sprint(inside.Load())
		}
		inside.Add(-1)
		if seen.Add(1) == count {
			close(done)
		}
	}, func() { t.Error("messages were missed") })
	require.NoError(t, err)
	allSucceed(t, 4, func(i int) error {
		for range count / 4 {
			if err := at(i).Publish(t.Context(), string("ab"[i%2]), nil); err != nil {
				return err
			}
		}
		return nil
	})
	receive(t, done)
	require.Zero(t, inside.Load())
}

func unsubscribed(t *testing.T, s store) {
	at := s.replicas(t)
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan string, 100)
	err := at(0).Subscribe(ctx, []string{"topic"}, func(_ string, data []byte) { got <- string(data) }, func() {})
	require.NoError(t, err)
	other, remote := subscribe(t, at(0), "topic"), subscribe(t, at(1), "topic")
	publish(t, at(1), "topic", "before")
	require.Equal(t, "before", receive(t, got))
	cancel()
	for i := range 50 {
		publish(t, at(i), "topic", fmt.Sprint(i))
	}
	for i := range 50 {
		if i == 0 {
			require.Equal(t, "topic:before", receive(t, other))
			require.Equal(t, "topic:before", receive(t, remote))
		}
		receive(t, other)
		receive(t, remote)
	}
	require.Empty(t, got, "its context has ended")
	again := subscribe(t, at(0), "topic")
	publish(t, at(2), "topic", "again")
	require.Equal(t, "topic:again", receive(t, again))
	require.Equal(t, "topic:again", receive(t, other))
	require.Empty(t, got)
}

// reentered calls methods of the engine in deliver.
func reentered(t *testing.T, s store) {
	at := s.replicas(t)
	got := subscribe(t, at(1), "pong")
	inner, returned := t.Context(), make(chan error, 10)
	err := at(0).Subscribe(t.Context(), []string{"ping"}, func(_ string, data []byte) {
		_, err := at(0).Create(inner, "set", fleet.Record{Key: string(data), TTL: time.Hour})
		if err == nil {
			err = at(0).Subscribe(inner, []string{"other"}, func(string, []byte) {}, func() {})
		}
		if err == nil {
			err = at(0).Publish(inner, "pong", data)
		}
		returned <- err
	}, func() {})
	require.NoError(t, err)
	for i := range 5 {
		publish(t, at(2), "ping", fmt.Sprint(i))
		require.NoError(t, receive(t, returned))
		require.Equal(t, fmt.Sprint("pong:", i), receive(t, got))
		get(t, at(2), fmt.Sprint(i))
	}
}

func anyMessages(t *testing.T, s store) {
	at := s.replicas(t)
	got := subscribe(t, at(0), "topic")
	all := append([]string{string(random(sizes[0]))}, samples...)
	for i, data := range all {
		publish(t, at(i), "topic", data)
		require.Equal(t, "topic:"+data, receive(t, got))
	}
}

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

// listen returns a channel with the messages of topics, as "topic:data". None may be missed.
func listen(t testing.TB, e fleet.Engine, topics ...string) <-chan string {
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

// buses are tests of messages.
var buses = []test{
	{"messages reach all replicas", func(t *testing.T, s store) {
		at := s.replicas(t)
		publish(t, at(0), "topic", "nobody listens")
		var all []<-chan string
		for i := range 6 { // two of each replica
			all = append(all, listen(t, at(i), "topic"))
		}
		for i := range 3 {
			publish(t, at(i), "topic", fmt.Sprint(i))
			for _, got := range all {
				require.Equal(t, fmt.Sprint("topic:", i), receive(t, got))
			}
		}
		for _, got := range all {
			require.Empty(t, got, "each is delivered once")
		}
	}},
	// Several publish at once. The messages of each come in order.
	{"messages come in the order of their publisher", func(t *testing.T, s store) {
		const publishers, each = 3, 100
		at := s.replicas(t)
		all := []<-chan string{listen(t, at(0), "a", "b"), listen(t, at(1), "b", "a")}
		allSucceed(t, publishers, func(i int) error {
			for n := range each {
				if err := at(i).Publish(t.Context(), string("ab"[n%2]), fmt.Appendf(nil, "%d %d", i, n)); err != nil {
					return err
				}
			}
			return nil
		})
		for _, got := range all {
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
	}},
	{"messages of a topic reach its subscribers", func(t *testing.T, s store) {
		at := s.replicas(t)
		names := []string{"a", "A", "aa", "a-", "-a", "a_a", longName}
		var each []<-chan string
		for i, name := range names {
			each = append(each, listen(t, at(i), name))
		}
		both := listen(t, at(1), "a", "aa", "a")
		// What comes last shows that nothing else came before.
		for _, data := range []string{"x", "end"} {
			for i, name := range names {
				publish(t, at(i+1), name, data)
				publish(t, at(i+1), "nobody", data)
				require.Equal(t, name+":"+data, receive(t, each[i]))
			}
			got := []string{receive(t, both), receive(t, both)} // of two publishers, in any order
			require.ElementsMatch(t, []string{"a:" + data, "aa:" + data}, got)
		}
		require.Empty(t, both)
	}},
	{"messages are delivered one at a time", func(t *testing.T, s store) {
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
	}},
	{"subscriptions end with their context", func(t *testing.T, s store) {
		at := s.replicas(t)
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan string, 100)
		err := at(0).Subscribe(ctx, []string{"topic"}, func(_ string, data []byte) { got <- string(data) }, func() {})
		require.NoError(t, err)
		other, remote := listen(t, at(0), "topic"), listen(t, at(1), "topic")
		publish(t, at(1), "topic", "before")
		require.Equal(t, "before", receive(t, got))
		cancel()
		for i := range 50 {
			publish(t, at(i), "topic", fmt.Sprint(i))
		}
		for range 51 {
			receive(t, other)
			receive(t, remote)
		}
		require.Empty(t, got, "its context has ended")
		again := listen(t, at(0), "topic")
		publish(t, at(2), "topic", "again")
		require.Equal(t, "topic:again", receive(t, again))
		require.Equal(t, "topic:again", receive(t, other))
		require.Empty(t, got)
	}},
	{"subscribers may use the engine", func(t *testing.T, s store) {
		at := s.replicas(t)
		got := listen(t, at(1), "pong")
		inner, returned := t.Context(), make(chan error, 10)
		err := at(0).Subscribe(t.Context(), []string{"ping"}, func(_ string, data []byte) {
			_, err := at(0).Create(inner, "set", record(string(data), ""))
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
			_, err := at(2).Get(t.Context(), "set", fmt.Sprint(i))
			require.NoError(t, err)
		}
	}},
	{"messages have any bytes and sizes", func(t *testing.T, s store) {
		at := s.replicas(t)
		got := listen(t, at(0), "topic")
		for i, data := range samples() {
			if len(data) > mayRefuse {
				break
			}
			publish(t, at(i), "topic", string(data))
			require.True(t, "topic:"+string(data) == receive(t, got))
		}
	}},
}

package redisfleet_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/fleet/redisfleet"
)

const patience = time.Minute

// receive waits for a message.
func receive[T any](t testing.TB, from <-chan T) T {
	t.Helper()
	select {
	case m := <-from:
		return m
	case <-time.After(patience):
		require.Fail(t, "nothing came")
	}
	panic("unreachable")
}

// through returns an engine behind a proxy, and one without.
func through(t testing.TB, s *server, change ...func(o *redis.Options)) (behind, direct *redisfleet.Engine, p *proxy) {
	p = newProxy(t, s)
	prefix := &redisfleet.Options{Prefix: fmt.Sprint("test", prefixes.Add(1))}
	open := func(client *redis.Client) *redisfleet.Engine {
		e, err := redisfleet.New(client, prefix)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, e.Close()) })
		return e
	}
	change = append([]func(o *redis.Options){func(o *redis.Options) { o.Addr = p.addr() }}, change...)
	return open(s.client(change...)), open(s.client()), p
}

func record(key, data string) fleet.Record {
	return fleet.Record{Key: key, Data: []byte(data), TTL: time.Hour}
}

var keep = fleet.Keep{Entries: 1000, Bytes: 1 << 20, TTL: time.Hour}

// The client repeats a command whose reply was lost. The caller sees one success.
func TestChangesWhoseReplyWasLostSucceed(t *testing.T) {
	behind, direct, p := through(t, start(t))
	ctx := t.Context()
	_, err := behind.Create(ctx, "set", record("warm", "")) // loads the scripts
	require.NoError(t, err)
	warm, err := behind.Get(ctx, "set", "warm")
	require.NoError(t, err)
	_, err = behind.Update(ctx, "set", warm)
	require.NoError(t, err)

	p.cut.Store(1)
	revision, err := behind.Create(ctx, "set", record("a", "first"))
	require.NoError(t, err)
	require.EqualValues(t, 1, p.cuts.Load())
	r, err := direct.Get(ctx, "set", "a")
	require.NoError(t, err)
	require.Equal(t, revision, r.Revision)

	r.Data = []byte("second")
	p.cut.Store(1)
	revision, err = behind.Update(ctx, "set", r)
	require.NoError(t, err)
	require.EqualValues(t, 2, p.cuts.Load())
	got, err := direct.Get(ctx, "set", "a")
	require.NoError(t, err)
	require.Equal(t, revision, got.Revision)
	require.Equal(t, "second", string(got.Data))

	p.cut.Store(1)
	require.NoError(t, behind.Delete(ctx, "set", "a", revision))
	require.EqualValues(t, 3, p.cuts.Load())
	_, err = direct.Get(ctx, "set", "a")
	require.ErrorIs(t, err, fleet.ErrNotFound)

	require.NoError(t, behind.Append(ctx, "group", "log", fleet.Entry{Seq: 1}, keep))
	p.cut.Store(1)
	require.NoError(t, behind.Append(ctx, "group", "log", fleet.Entry{Seq: 2}, keep))
	require.EqualValues(t, 4, p.cuts.Load())
	entries, err := direct.After(ctx, "group", "log", 0, 9)
	require.NoError(t, err)
	require.Len(t, entries, 2)
}

// Subscribers are told when their connection failed, and get what is published after that.
func TestSubscribersAreToldWhatTheyMayHaveMissed(t *testing.T) {
	s := start(t)
	behind, direct, p := through(t, s)
	got, missed := make(chan string, 1000), make(chan struct{}, 1000)
	subscribe := func(topics ...string) {
		require.NoError(t, behind.Subscribe(t.Context(), topics, func(topic string, data []byte) { got <- topic + string(data) }, func() { missed <- struct{}{} }))
	}
	subscribe("a", "b")
	for _, topic := range []string{"a", "b"} {
		require.NoError(t, direct.Publish(t.Context(), topic, []byte("0")))
		require.Equal(t, topic+"0", receive(t, got))
	}
	// A failure may be noticed twice, so messages may be lost after the first notice.
	again := func(data string) {
		receive(t, missed)
		came := map[string]bool{}
		require.Eventually(t, func() bool {
			_ = direct.Publish(t.Context(), "a", []byte(data))
			_ = direct.Publish(t.Context(), "b", []byte(data))
			for len(got) > 0 {
				came[<-got] = true
			}
			return came["a"+data] && came["b"+data]
		}, patience, 10*time.Millisecond)
	}
	for i := range 3 {
		p.cutAll()
		again(fmt.Sprint("after cut ", i))
	}

	s.kill()
	require.Error(t, behind.Subscribe(contextOf(t, 100*time.Millisecond), []string{"c"}, func(string, []byte) {}, func() {}))
	s.run()
	again("after a restart")
	subscribe("d")
	require.NoError(t, direct.Publish(t.Context(), "d", []byte("1")))
	for receive(t, got) != "d1" {
	}
}

func ping(t testing.TB, e fleet.Engine) error {
	_, err := e.After(t.Context(), "group", "log", 0, 1)
	return err
}

func contextOf(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestAServerThatHangsEndsNoOperationLate(t *testing.T) {
	behind, direct, p := through(t, start(t), func(o *redis.Options) { o.ReadTimeout = 200 * time.Millisecond; o.MaxRetries = -1 })
	ctx := t.Context()
	_, err := direct.Create(ctx, "set", record("a", ""))
	require.NoError(t, err)
	_, err = behind.Get(ctx, "set", "a")
	require.NoError(t, err)
	p.stop()
	for name, operation := range map[string]func(ctx context.Context) error{
		"Get":     func(ctx context.Context) error { _, err := behind.Get(ctx, "set", "a"); return err },
		"Create":  func(ctx context.Context) error { _, err := behind.Create(ctx, "set", record("b", "")); return err },
		"Due":     func(ctx context.Context) error { _, err := behind.Due(ctx, "set", 0, 1); return err },
		"After":   func(ctx context.Context) error { _, err := behind.After(ctx, "g", "l", 0, 1); return err },
		"Publish": func(ctx context.Context) error { return behind.Publish(ctx, "topic", nil) },
		"Subscribe": func(ctx context.Context) error {
			return behind.Subscribe(ctx, []string{"t"}, func(string, []byte) {}, func() {})
		},
	} {
		begun := time.Now()
		require.ErrorIs(t, operation(contextOf(t, 20*time.Millisecond)), context.DeadlineExceeded, name)
		require.Less(t, time.Since(begun), 2*time.Second, name)
	}
	_, err = direct.Get(ctx, "set", "a")
	require.NoError(t, err, "others do not wait")
	p.proceed()
	require.Eventually(t, func() bool { _, err := behind.Get(ctx, "set", "a"); return err == nil }, patience, time.Millisecond)
}

// A server that was restarted, or that was told to, has forgotten the scripts.
func TestScriptsAreLoadedAgain(t *testing.T) {
	s := start(t)
	client := s.client()
	e := s.engine(client)
	ctx := t.Context()
	for i := range 3 {
		_, err := e.Create(ctx, "set", record(fmt.Sprint("k", i), ""))
		require.NoError(t, err)
		require.NoError(t, client.ScriptFlush(ctx).Err())
		_, err = e.Get(ctx, "set", fmt.Sprint("k", i))
		require.NoError(t, err)
		require.NoError(t, e.Append(ctx, "g", "l", fleet.Entry{Seq: uint64(i + 1)}, keep))
		require.NoError(t, client.ScriptFlush(ctx).Err())
		require.NoError(t, e.Append(ctx, "g", "l", fleet.Entry{Seq: uint64(i + 1)}, keep))
	}
	n, err := e.Count(ctx, "set", "")
	require.NoError(t, err)
	require.Equal(t, 3, n)
}

func TestAFullServerRefusesWrites(t *testing.T) {
	s := start(t, "--maxmemory", "3mb", "--maxmemory-policy", "noeviction")
	e := s.engine(s.client())
	ctx := t.Context()
	_, err := e.Create(ctx, "set", record("first", "stays"))
	require.NoError(t, err)
	for i := 0; err == nil; i++ {
		_, err = e.Create(ctx, "set", record(fmt.Sprint("k", i), string(make([]byte, 100_000))))
	}
	require.ErrorIs(t, err, fleet.ErrFull)
	r, err := e.Get(ctx, "set", "first")
	require.NoError(t, err)
	require.Equal(t, "stays", string(r.Data))
	require.ErrorContains(t, e.Append(ctx, "g", "l", fleet.Entry{Seq: 1, Data: make([]byte, 100_000)}, keep), "full")
	require.NoError(t, e.Delete(ctx, "set", "k0", 0), "what makes room is done")
	require.NoError(t, e.Delete(ctx, "set", "k1", 0))
	require.Eventually(t, func() bool { _, err = e.Create(ctx, "set", record("again", "")); return err == nil }, patience, 10*time.Millisecond)
}

package redisfleet_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/fleet/fleettest"
	"github.com/mcpkit/mcpkit-go/fleet/redisfleet"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
)

// cluster starts three servers as a cluster and returns their addresses. Ports are those that were
// free a moment before.
func cluster(t testing.TB) []string {
	var addrs []string
	var ports []string
	for range 3 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer l.Close()
		addrs = append(addrs, l.Addr().String())
		_, port, err := net.SplitHostPort(l.Addr().String())
		require.NoError(t, err)
		ports = append(ports, port)
		bus, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer bus.Close()
		_, port, err = net.SplitHostPort(bus.Addr().String())
		require.NoError(t, err)
		ports = append(ports, port)
		require.NoError(t, l.Close())
		require.NoError(t, bus.Close())
		start(t, "--port", ports[len(ports)-2], "--bind", "127.0.0.1", "--cluster-enabled", "yes", "--cluster-port", ports[len(ports)-1], "--appendfsync", "everysec")
	}
	out, err := exec.CommandContext(t.Context(), "redis-cli", append(append([]string{"--cluster", "create"}, addrs...), "--cluster-yes")...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return addrs
}

func TestEngineInACluster(t *testing.T) {
	testkit.MarkLong(t, "starts a cluster")
	addrs := cluster(t)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, ContextTimeoutEnabled: true})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	require.Eventually(t, func() bool {
		info, err := client.ClusterInfo(t.Context()).Result()
		return err == nil && strings.Contains(info, "cluster_state:ok") && client.Set(t.Context(), "ready", "", time.Second).Err() == nil
	}, patience, 10*time.Millisecond)
	fleettest.Run(t, func(testing.TB) fleettest.Store {
		prefix := fmt.Sprint("kit", prefixes.Add(1))
		return fleettest.Store{Open: func(t testing.TB) fleet.Engine {
			e, err := redisfleet.New(client, &redisfleet.Options{Prefix: prefix})
			require.NoError(t, err)
			return e
		}}
	})
	t.Run("all nodes have keys", func(t *testing.T) {
		e, err := redisfleet.New(client, nil)
		require.NoError(t, err)
		defer e.Close()
		for i := range 200 {
			_, err := e.Create(t.Context(), fmt.Sprint("set", i), record("key", ""))
			require.NoError(t, err)
		}
		var mu sync.Mutex
		nodes := 0
		require.NoError(t, client.ForEachMaster(t.Context(), func(ctx context.Context, node *redis.Client) error {
			all, err := node.Keys(ctx, "mcpkit:*:r:*").Result()
			mu.Lock()
			defer mu.Unlock()
			if len(all) > 20 {
				nodes++
			}
			return err
		}))
		require.Equal(t, 3, nodes)
	})
	t.Run("by its URL", func(t *testing.T) {
		e, err := fleet.Open(t.Context(), fmt.Sprintf("redis://%s?addr=%s&addr=%s&prefix=url", addrs[0], addrs[1], addrs[2]))
		require.NoError(t, err)
		defer e.Close()
		for i := range 10 {
			_, err := e.Create(t.Context(), "set", record(fmt.Sprint("k", i), ""))
			require.NoError(t, err)
		}
		n, err := e.Count(t.Context(), "set", "")
		require.NoError(t, err)
		require.Equal(t, 10, n)
	})
}

// Indexes have nothing of records and logs that are gone.
func TestNothingIsLeftOfWhatIsGone(t *testing.T) {
	s := start(t)
	client := s.client()
	e := s.engine(client)
	ctx := t.Context()
	for i := range 200 {
		r := record(fmt.Sprint("k", i), "data")
		r.TTL, r.Due = fleet.MinTTL, fleet.AtOnce
		if i%2 == 0 {
			r.Group = fmt.Sprint("g", i%7)
		}
		revision, err := e.Create(ctx, "set", r)
		require.NoError(t, err)
		if i%10 == 0 {
			require.NoError(t, e.Delete(ctx, "set", r.Key, revision))
		}
		short := keep
		short.TTL = fleet.MinTTL
		require.NoError(t, e.Append(ctx, "group", fmt.Sprint("log", i), fleet.Entry{Seq: 1}, short))
		if i%20 == 0 {
			require.NoError(t, e.Append(ctx, "other", "log", fleet.Entry{Seq: uint64(i + 1)}, keep))
		}
	}
	require.NoError(t, e.Drop(ctx, "other"))
	all, err := client.Keys(ctx, "*").Result()
	require.NoError(t, err)
	for _, key := range all {
		ttl, err := client.PTTL(ctx, key).Result()
		require.NoError(t, err)
		require.NotEqual(t, time.Duration(-1), ttl, "%s never expires", key)
	}
	// The indexes live on with a record that stays. Whatever looks at them removes what has expired.
	long, err := e.Create(ctx, "set", fleet.Record{Key: "long", Group: "g2", TTL: time.Hour, Due: fleet.AtOnce})
	require.NoError(t, err)
	require.NoError(t, e.Append(ctx, "group", "long", fleet.Entry{Seq: 1}, keep))
	sizes := func(pattern string) (sum int64) {
		keys, err := client.Keys(ctx, pattern).Result()
		require.NoError(t, err)
		for _, key := range keys {
			n, err := client.ZCard(ctx, key).Result()
			require.NoError(t, err)
			sum += n
		}
		return sum
	}
	require.Eventually(t, func() bool {
		_, err := e.Count(ctx, "set", "g2")
		require.NoError(t, err)
		return sizes("*:expires") == 1 && sizes("*:due") == 1 && sizes("*:groups") == 1
	}, patience, 50*time.Millisecond)
	require.Eventually(t, func() bool {
		require.NoError(t, e.Append(ctx, "group", "long", fleet.Entry{Seq: 1}, keep)) // does nothing
		all, err := e.After(ctx, "group", "long", 0, 1000)
		require.NoError(t, err)
		last := all[len(all)-1].Seq
		require.NoError(t, e.Append(ctx, "group", "long", fleet.Entry{Seq: last + 1}, keep))
		require.NoError(t, e.Append(ctx, "group", "long", fleet.Entry{Seq: last + 2}, keep))
		return sizes("*:logs") == 1
	}, patience, 50*time.Millisecond)
	require.NoError(t, e.Drop(ctx, "group"))
	require.NoError(t, e.Delete(ctx, "set", "long", long))
	all, err = client.Keys(ctx, "*").Result()
	require.NoError(t, err)
	require.Empty(t, all)
}

// A record in the index of what is due, which expired by itself, is met before it is swept.
func TestDueAndListPassWhatHasExpired(t *testing.T) {
	s := start(t)
	client := s.client()
	e, err := redisfleet.New(client, nil)
	require.NoError(t, err)
	defer e.Close()
	ctx := t.Context()
	for i := range 30 {
		_, err := e.Create(ctx, "set", fleet.Record{Key: fmt.Sprintf("k%02d", i), Group: "g", TTL: time.Hour, Due: fleet.AtOnce})
		require.NoError(t, err)
	}
	for i := range 30 {
		if i%3 != 0 {
			require.NoError(t, client.Del(ctx, fmt.Sprintf("mcpkit:{set}:r:k%02d", i)).Err())
		}
	}
	keys := func(all []fleet.Record, err error) (text string) {
		require.NoError(t, err)
		for _, r := range all {
			text += r.Key + " "
		}
		return text
	}
	require.Equal(t, "k00 k03 k06 k09 ", keys(e.List(ctx, "set", "g", "", 4)))
	require.Equal(t, "k12 k15 k18 k21 k24 k27 ", keys(e.List(ctx, "set", "g", "k09", 10)))
	require.Equal(t, "k00 k03 k06 k09 ", keys(e.Due(ctx, "set", 0, 4)))
	require.Equal(t, "k00 k03 k06 k09 k12 k15 k18 k21 k24 k27 ", keys(e.Due(ctx, "set", 0, 40)))
	n, err := client.ZCard(ctx, "mcpkit:{set}:due").Result()
	require.NoError(t, err)
	require.EqualValues(t, 10, n, "it removes what it passes")
}

func TestNewRefusesClientsAndPrefixesThatDoNotWork(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "localhost:1", ContextTimeoutEnabled: true})
	defer client.Close()
	for _, prefix := range []string{"{a}", "{", "a}"} {
		_, err := redisfleet.New(client, &redisfleet.Options{Prefix: prefix})
		require.ErrorContains(t, err, "has braces")
	}
	plain, cluster := redis.NewClient(&redis.Options{Addr: "localhost:1"}), redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"localhost:1"}})
	defer plain.Close()
	defer cluster.Close()
	for _, client := range []redis.UniversalClient{plain, cluster} {
		_, err := redisfleet.New(client, nil)
		require.EqualError(t, err, "redisfleet: the client ignores deadlines; set ContextTimeoutEnabled in its options")
	}
}

func TestReportsOfTheClientGoToTheLogger(t *testing.T) {
	s := start(t)
	var log testkit.Buffer
	client := s.client(func(o *redis.Options) { o.MaxRetries = -1; o.DialerRetries = 1 })
	e, err := redisfleet.New(client, &redisfleet.Options{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	require.NoError(t, err)
	defer e.Close()
	s.kill()
	require.Error(t, ping(t, e))
	require.Contains(t, log.String(), `level=DEBUG msg="redisfleet: `)
	require.Contains(t, log.String(), "connection refused")
}

func TestOpenReportsURLsThatAreWrong(t *testing.T) {
	for url, want := range map[string]string{
		"redis://:secret@host:port":       "invalid port",
		"redis://:secret@host/x":          "invalid database number",
		"redis://:secret@host?no_such=1":  "unexpected option: no_such",
		"redis://:secret@host?prefix={a}": "has braces",
		"rediss://:secret@host?addr=x":    "unable to parse addr param: x",
	} {
		_, err := fleet.Open(t.Context(), url)
		require.ErrorContains(t, err, want, url)
		require.NotContains(t, err.Error(), "secret")
	}
	e, err := fleet.Open(t.Context(), "redis://localhost:1/3?prefix=p")
	require.NoError(t, err, "it does not connect yet")
	require.Error(t, ping(t, e))
	require.NoError(t, e.Close())
	require.NoError(t, e.Close())
	require.Error(t, ping(t, e))
	e, err = fleet.Open(t.Context(), "rediss://localhost:1")
	require.NoError(t, err)
	require.NoError(t, e.Close())
}

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

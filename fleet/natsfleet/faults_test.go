package natsfleet_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/fleet/natsfleet"
	"github.com/mcpkit/mcpkit-go/fleet/natsfleet/natsserver"
	"github.com/mcpkit/mcpkit-go/internal/longtest"
)

const patience = 90 * time.Second

// A proxy forwards connections to a server. It can be slow, hang, and cut them.
type proxy struct {
	listener net.Listener
	target   string
	delay    atomic.Int64 // nanoseconds, in each direction

	mu    sync.Mutex
	conns map[net.Conn]struct{} // guarded by mu
	hang  chan struct{}         // closed when bytes pass; guarded by mu
}

func newProxy(t testing.TB, url string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{listener: l, target: strings.TrimPrefix(url, "nats://"), conns: map[net.Conn]struct{}{}, hang: make(chan struct{})}
	close(p.hang)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", p.target)
			if err != nil {
				_ = near.Close()
				continue
			}
			p.mu.Lock()
			p.conns[near], p.conns[far] = struct{}{}, struct{}{}
			p.mu.Unlock()
			running.Go(func() { p.forward(near, far) })
			running.Go(func() { p.forward(far, near) })
		}
	})
	t.Cleanup(func() {
		p.resume()
		_ = l.Close()
		p.cut()
		running.Wait()
	})
	return p
}

type chunk struct {
	data []byte
	at   time.Time
}

// forward delays each chunk, and not the ones after it.
func (p *proxy) forward(from, to net.Conn) {
	chunks := make(chan chunk, 1000)
	var writer sync.WaitGroup
	writer.Go(func() {
		defer to.Close()
		for c := range chunks {
			<-time.After(time.Until(c.at))
			p.mu.Lock()
			hang := p.hang
			p.mu.Unlock()
			<-hang
			if _, err := to.Write(c.data); err != nil {
				_ = from.Close()
			}
		}
	})
	for {
		b := make([]byte, 32<<10)
		n, err := from.Read(b)
		if n > 0 {
			chunks <- chunk{b[:n], time.Now().Add(time.Duration(p.delay.Load()))}
		}
		if err != nil {
			break
		}
	}
	close(chunks)
	writer.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, from)
	_ = from.Close()
}

func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}

func (p *proxy) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hang = make(chan struct{})
}

func (p *proxy) resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.hang:
	default:
		close(p.hang)
	}
}

func dial(t testing.TB, urls ...string) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(strings.Join(urls, ","), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond), nats.ReconnectJitter(0, 0),
		nats.RetryOnFailedConnect(true), nats.Timeout(10*time.Second))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	return nc
}

// throughProxy returns a proxy, and the address of it, of a server with files.
func throughProxy(t testing.TB) (p *proxy, near, direct string) {
	s := newServer(t, natsserver.Options{Dir: t.TempDir(), Listen: "127.0.0.1:0"})
	p = newProxy(t, s.URL())
	return p, "nats://" + p.listener.Addr().String(), s.URL()
}

// eventually repeats an operation until it succeeds or fails with an error of package fleet.
func eventually(t testing.TB, f func(ctx context.Context) error) error {
	for end := time.Now().Add(patience); ; {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		err := f(ctx)
		cancel()
		for _, known := range []error{nil, fleet.ErrNotFound, fleet.ErrExists, fleet.ErrConflict} {
			if errors.Is(err, known) {
				return err
			}
		}
		if time.Now().After(end) {
			return fmt.Errorf("the engine does not recover: %w", err)
		}
	}
}

func TestSlowServersDelayNobodyElse(t *testing.T) {
	p, near, _ := throughProxy(t)
	e := newEngine(t, dial(t, near), natsfleet.Options{})
	_, err := e.Create(t.Context(), "set", fleet.Record{Key: "k", Group: "g", TTL: time.Hour, Due: fleet.AtOnce})
	require.NoError(t, err)
	p.delay.Store(int64(100 * time.Millisecond))
	const callers = 50
	begun := time.Now()
	errs := make(chan error, callers)
	for range callers {
		go func() {
			_, err := e.Get(t.Context(), "set", "k")
			errs <- err
		}()
	}
	for range callers {
		require.NoError(t, <-errs)
	}
	require.Less(t, time.Since(begun), callers*200*time.Millisecond/2, "they wait at the same time")

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	list, err := e.List(ctx, "set", "g", "", 10)
	require.NoError(t, err)
	require.Len(t, list, 1)
	due, err := e.Due(ctx, "set", 10)
	require.NoError(t, err)
	require.Len(t, due, 1)
	keep := fleet.Keep{Entries: 9, Bytes: 999, TTL: time.Hour}
	require.NoError(t, e.Append(ctx, "g", "l", fleet.Entry{Seq: 1, Data: []byte("x")}, keep))
	entries, err := e.After(ctx, "g", "l", 0, 9)
	require.NoError(t, err)
	require.Equal(t, []fleet.Entry{{Seq: 1, Data: []byte("x")}}, entries)
}

func TestHangingServersHoldNobodyBeyondTheDeadline(t *testing.T) {
	p, near, direct := throughProxy(t)
	e := newEngine(t, dial(t, near), natsfleet.Options{})
	other := newEngine(t, dial(t, direct), natsfleet.Options{})
	r := fleet.Record{Key: "k", Group: "g", TTL: time.Hour}
	var err error
	r.Revision, err = e.Create(t.Context(), "set", r)
	require.NoError(t, err)
	keep := fleet.Keep{Entries: 9, Bytes: 999, TTL: time.Hour}
	require.NoError(t, e.Append(t.Context(), "g", "l", fleet.Entry{Seq: 1}, keep))
	p.stop()
	for name, f := range map[string]func(context.Context) error{
		"Get": func(ctx context.Context) error { _, err := e.Get(ctx, "set", "k"); return err },
		"Create": func(ctx context.Context) error {
			_, err := e.Create(ctx, "set", fleet.Record{Key: "n", TTL: time.Hour})
			return err
		},
		"Delete": func(ctx context.Context) error { return e.Delete(ctx, "set", "k", r.Revision) },
		"List":   func(ctx context.Context) error { _, err := e.List(ctx, "set", "g", "", 9); return err },
		"Due":    func(ctx context.Context) error { _, err := e.Due(ctx, "set", 9); return err },
		"Count":  func(ctx context.Context) error { _, err := e.Count(ctx, "set", ""); return err },
		"After":  func(ctx context.Context) error { _, err := e.After(ctx, "g", "l", 0, 9); return err },
		"Last":   func(ctx context.Context) error { _, err := e.Last(ctx, "g", "l"); return err },
		"Append": func(ctx context.Context) error { return e.Append(ctx, "g", "other", fleet.Entry{Seq: 1}, keep) },
		"Drop":   func(ctx context.Context) error { return e.Drop(ctx, "g2") },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		begun := time.Now()
		require.ErrorIs(t, f(ctx), context.DeadlineExceeded, name)
		require.Less(t, time.Since(begun), 5*time.Second, name)
		cancel()
	}
	_, err = other.Get(t.Context(), "set", "k")
	require.NoError(t, err, "another connection")
	p.resume()
	require.NoError(t, eventually(t, func(ctx context.Context) error { _, err := e.Count(ctx, "set", ""); return err }))
}

// work writes until stopped, and returns what was acknowledged: increments of a counter, entries of
// a log, and records.
type work struct {
	e     *natsfleet.Engine
	count atomic.Int64 // acknowledged increments
	tried atomic.Int64 // increments that may have happened
	log   atomic.Uint64
	keys  sync.Map
	stop  chan struct{}
	done  sync.WaitGroup
	err   atomic.Pointer[error]
}

var keepAll = fleet.Keep{Entries: 1 << 20, Bytes: 1 << 30, TTL: time.Hour}

func startWork(t testing.TB, e *natsfleet.Engine) *work {
	w := &work{e: e, stop: make(chan struct{})}
	loop := func(f func(n uint64) error) {
		w.done.Go(func() {
			for n := uint64(1); ; n++ {
				select {
				case <-w.stop:
					return
				default:
				}
				if err := f(n); err != nil {
					w.err.Store(&err)
					return
				}
			}
		})
	}
	for i := range 2 {
		loop(func(uint64) error {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			r, err := e.Get(ctx, "work", "counter")
			if errors.Is(err, fleet.ErrNotFound) {
				_, _ = e.Create(ctx, "work", fleet.Record{Key: "counter", TTL: time.Hour})
				return nil
			}
			if err != nil {
				return nil // away
			}
			var n int64
			_, _ = fmt.Sscan(string(r.Data), &n)
			r.Data, r.TTL = fmt.Append(nil, n+1), time.Hour
			w.tried.Add(1)
			if _, err = e.Update(ctx, "work", r); err == nil {
				w.count.Add(1)
			} else if errors.Is(err, fleet.ErrConflict) {
				w.tried.Add(-1)
			}
			return nil
		})
		loop(func(n uint64) error {
			key := fmt.Sprintf("k-%d-%d", i, n)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			if _, err := e.Create(ctx, "work", fleet.Record{Key: key, Group: "g", Data: []byte(key), TTL: time.Hour}); err == nil {
				w.keys.Store(key, true)
			}
			return nil
		})
	}
	loop(func(n uint64) error {
		err := eventually(t, func(ctx context.Context) error {
			return e.Append(ctx, "work", "log", fleet.Entry{Seq: n, Data: fmt.Append(nil, n)}, keepAll)
		})
		if err == nil {
			w.log.Store(n)
		}
		return err
	})
	return w
}

// progress waits until more is acknowledged.
func (w *work) progress(t testing.TB) {
	t.Helper()
	count, log := w.count.Load()+5, w.log.Load()+5
	require.Eventually(t, func() bool { return w.count.Load() >= count && w.log.Load() >= log }, patience, 5*time.Millisecond)
}

// check ends the work and compares what is there with what was acknowledged.
func (w *work) check(t testing.TB, e *natsfleet.Engine) {
	t.Helper()
	close(w.stop)
	w.done.Wait()
	if err := w.err.Load(); err != nil {
		require.NoError(t, *err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var r fleet.Record
	require.NoError(t, eventually(t, func(ctx context.Context) (err error) { r, err = e.Get(ctx, "work", "counter"); return err }))
	var n int64
	_, err := fmt.Sscan(string(r.Data), &n)
	require.NoError(t, err)
	require.GreaterOrEqual(t, n, w.count.Load(), "no increment is lost")
	require.LessOrEqual(t, n, w.tried.Load(), "none happens twice")
	entries, err := e.After(ctx, "work", "log", 0, 1<<20)
	require.NoError(t, err)
	require.Len(t, entries, int(w.log.Load()))
	for i, entry := range entries {
		require.Equal(t, fleet.Entry{Seq: uint64(i + 1), Data: fmt.Append(nil, i+1)}, entry)
	}
	list, err := e.List(ctx, "work", "g", "", 1<<20)
	require.NoError(t, err)
	listed := map[string]bool{}
	for _, r := range list {
		require.Equal(t, r.Key, string(r.Data))
		listed[r.Key] = true
	}
	acknowledged := 0
	w.keys.Range(func(key, _ any) bool {
		acknowledged++
		require.True(t, listed[key.(string)], "%s was acknowledged", key)
		return true
	})
	require.NotZero(t, acknowledged)
	t.Logf("acknowledged: %d increments, %d entries, %d records", w.count.Load(), w.log.Load(), acknowledged)
}

func TestNothingAcknowledgedIsLostWhenConnectionsAreCut(t *testing.T) {
	p, near, direct := throughProxy(t)
	e := newEngine(t, dial(t, near), natsfleet.Options{})
	missed := make(chan struct{}, 1000)
	require.NoError(t, e.Subscribe(t.Context(), []string{"topic"}, func(string, []byte) {}, func() { missed <- struct{}{} }))
	w := startWork(t, e)
	for range 10 {
		w.progress(t)
		p.cut()
		select {
		case <-missed:
		case <-time.After(patience):
			require.Fail(t, "the subscription was not told")
		}
	}
	w.progress(t)
	w.check(t, newEngine(t, dial(t, direct), natsfleet.Options{}))
}

func TestOtherReplicasAreToldOfCuts(t *testing.T) {
	p, near, direct := throughProxy(t)
	e := newEngine(t, dial(t, near), natsfleet.Options{})
	require.NoError(t, e.Publish(t.Context(), "topic", nil))
	other := newEngine(t, dial(t, direct), natsfleet.Options{})
	missed := make(chan struct{}, 1000)
	got := make(chan string, 1000)
	require.NoError(t, other.Subscribe(t.Context(), []string{"topic"}, func(_ string, data []byte) { got <- string(data) }, func() { missed <- struct{}{} }))
	p.cut()
	select {
	case <-missed:
	case <-time.After(patience):
		require.Fail(t, "the other replica was not told that messages may be lost")
	}
	require.NoError(t, eventually(t, func(ctx context.Context) error { return e.Publish(ctx, "topic", []byte("again")) }))
	require.Equal(t, "again", <-got)
}

func TestSlowSubscribersAreToldWhatTheyMissed(t *testing.T) {
	s := newServer(t, natsserver.Options{})
	e := newEngine(t, connect(t, s), natsfleet.Options{})
	other := newEngine(t, connect(t, s), natsfleet.Options{})
	release, missed := make(chan struct{}), make(chan struct{}, 1)
	var delivered atomic.Int64
	require.NoError(t, e.Subscribe(t.Context(), []string{"topic"}, func(string, []byte) { <-release; delivered.Add(1) }, func() { missed <- struct{}{} }))
	const count = 20_000
	for range count {
		require.NoError(t, other.Publish(t.Context(), "topic", []byte("x")))
	}
	close(release)
	select {
	case <-missed:
	case <-time.After(patience):
		require.Fail(t, "the subscription was not told")
	}
	require.Less(t, delivered.Load(), int64(count))
}

func TestNothingAcknowledgedIsLostWhenTheServerIsKilled(t *testing.T) {
	longtest.Mark(t, "starts processes")
	address := freeAddress(t)
	p := startProcess(t, natsserver.Options{Dir: t.TempDir(), Listen: address})
	e := newEngine(t, dial(t, "nats://"+address), natsfleet.Options{})
	w := startWork(t, e)
	for range 3 {
		w.progress(t)
		p = p.restart()
	}
	w.progress(t)
	w.check(t, newEngine(t, dial(t, "nats://"+address), natsfleet.Options{}))
}

// freeAddress returns an address at which nothing listens.
func freeAddress(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// The streams of a server in memory are gone after a restart. The engine makes them again, and what
// it knew of them is void.
func TestServersInMemoryLoseAllAndServeAgain(t *testing.T) {
	address := freeAddress(t)
	opts := natsserver.Options{Listen: address}
	s, err := natsserver.Start(t.Context(), opts)
	require.NoError(t, err)
	e := newEngine(t, dial(t, "nats://"+address), natsfleet.Options{Memory: true})
	for i := range 5 {
		_, err = e.Create(t.Context(), "set", fleet.Record{Key: fmt.Sprint(i), Group: "g", TTL: time.Hour})
		require.NoError(t, err)
		require.NoError(t, e.Append(t.Context(), "g", "l", fleet.Entry{Seq: uint64(i + 1)}, keepAll))
	}
	n, err := e.Count(t.Context(), "set", "g")
	require.NoError(t, err)
	require.Equal(t, 5, n)
	s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.Error(t, e.Ping(ctx))
	s, err = natsserver.Start(t.Context(), opts)
	require.NoError(t, err)
	defer s.Close()
	require.NoError(t, eventually(t, func(ctx context.Context) (err error) { n, err = e.Count(ctx, "set", "g"); return err }))
	require.Zero(t, n)
	_, err = e.Create(t.Context(), "set", fleet.Record{Key: "0", Group: "g", TTL: time.Hour})
	require.NoError(t, err)
	require.NoError(t, e.Append(t.Context(), "g", "l", fleet.Entry{Seq: 1}, keepAll))
	n, err = e.Count(t.Context(), "set", "g")
	require.NoError(t, err)
	require.Equal(t, 1, n)
}

// Three servers, each in a process of its own. One after the other is killed and starts again.
func TestNothingAcknowledgedIsLostInACluster(t *testing.T) {
	longtest.Mark(t, "starts processes")
	var routes, urls []string
	for range 3 {
		routes = append(routes, freeAddress(t))
	}
	servers := make([]*process, 3)
	var starting sync.WaitGroup
	for i := range servers {
		address := freeAddress(t)
		urls = append(urls, "nats://"+address)
		opts := natsserver.Options{
			Dir: t.TempDir(), Listen: address, Name: fmt.Sprint("server", i), Cluster: "test", ClusterListen: routes[i], Routes: routes, Secret: "secret",
			NoSync: true, // the others have it
		}
		starting.Go(func() { servers[i] = startProcess(t, opts) })
	}
	starting.Wait()
	open := func() *natsfleet.Engine {
		nc, err := nats.Connect(strings.Join(urls, ","), nats.Token("secret"), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond), nats.ReconnectJitter(0, 0))
		require.NoError(t, err)
		t.Cleanup(nc.Close)
		return newEngine(t, nc, natsfleet.Options{Replicas: 3})
	}
	e := open()
	require.NoError(t, eventually(t, e.Ping))
	w := startWork(t, e)
	for i := range servers {
		w.progress(t)
		servers[i].kill()
		begun := time.Now()
		w.progress(t)
		t.Logf("work went on after %s", time.Since(begun).Round(time.Millisecond))
		servers[i] = startProcess(t, servers[i].opts)
		w.progress(t)
	}
	w.check(t, open())
}

func TestStreamsThatWereDeletedAreMadeAgain(t *testing.T) {
	s := newServer(t, natsserver.Options{})
	nc := connect(t, s)
	e := newEngine(t, nc, natsfleet.Options{Memory: true})
	_, err := e.Create(t.Context(), "set", fleet.Record{Key: "k", Group: "g", TTL: time.Hour})
	require.NoError(t, err)
	n, err := e.Count(t.Context(), "set", "")
	require.NoError(t, err)
	require.Equal(t, 1, n)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	require.NoError(t, js.DeleteStream(t.Context(), "mcpkit-records"))
	require.NoError(t, eventually(t, func(ctx context.Context) (err error) {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		n, err = e.Count(ctx, "set", "")
		return err
	}))
	require.Zero(t, n)
}

// The streams of another program are left alone.
func TestStreamsWithOtherSettingsAreReported(t *testing.T) {
	s := newServer(t, natsserver.Options{})
	nc := connect(t, s)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "mcpkit-logs", Subjects: []string{"other"}, Storage: jetstream.MemoryStorage})
	require.NoError(t, err)
	e := newEngine(t, nc, natsfleet.Options{Memory: true})
	_, err = e.Last(t.Context(), "g", "l")
	require.ErrorContains(t, err, "natsfleet: stream mcpkit-logs: it has other settings than the engine needs")
}

func TestOptionsThatAreWrongAreReported(t *testing.T) {
	s := newServer(t, natsserver.Options{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	e := newEngine(t, connect(t, s), natsfleet.Options{Prefix: "a.b"})
	require.ErrorIs(t, e.Ping(t.Context()), fleet.ErrInvalid)
	_, err := e.Get(t.Context(), "set", "key")
	require.ErrorContains(t, err, `natsfleet: Options.Prefix`)
	e = newEngine(t, connect(t, s), natsfleet.Options{Replicas: 3, Memory: true})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.ErrorContains(t, e.Ping(ctx), "natsfleet: stream mcpkit-records: ")
}

package fleet_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/fleet/fleettest"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
)

// seal is a toy: it binds data to its id.
func seal(id string, plain []byte) []byte { return append([]byte(id+"|"), plain...) }

func open(id string, sealed []byte) ([]byte, error) {
	plain, ok := bytes.CutPrefix(sealed, []byte(id+"|"))
	if !ok {
		return nil, errors.New("not sealed for this id")
	}
	return plain, nil
}

func newFleet(t *testing.T, engine fleet.Engine, change ...fleet.Option) *fleet.Fleet {
	t.Helper()
	opts := fleet.Options{Seal: seal, Open: open, Logger: slog.New(slog.DiscardHandler)}
	for _, c := range change {
		c(&opts)
	}
	f := fleet.New(engine, opts)
	require.NoError(t, f.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f
}

func TestRecordsAreBoundToTheirKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := fleet.NewMemory(fleet.MemoryOptions{})
		f := newFleet(t, engine)
		ctx := t.Context()
		set := f.Set("things", 1)
		_, err := set.Create(ctx, fleet.Record{Key: "a", Data: []byte("x"), TTL: time.Hour})
		require.NoError(t, err)
		got, err := set.Get(ctx, "a")
		require.NoError(t, err)
		require.Equal(t, "x", string(got.Data))

		stolen, err := engine.Get(ctx, "things", "a")
		require.NoError(t, err)
		stolen.Key, stolen.TTL = "b", time.Hour
		_, err = engine.Create(ctx, "things", stolen)
		require.NoError(t, err)
		_, err = set.Get(ctx, "b")
		require.ErrorContains(t, err, "not sealed for this id")
	})
}

func TestChangesOfARecordAreNotLost(t *testing.T) {
	set := newFleet(t, fleet.NewMemory(fleet.MemoryOptions{})).Set("things", 1)
	refused := errors.New("refused")
	var changing sync.WaitGroup
	for range 8 {
		changing.Go(func() {
			_, err := set.Change(t.Context(), "a", func(r *fleet.Record) error {
				r.Data, r.TTL = []byte(string(r.Data)+"x"), time.Hour
				return nil
			})
			require.NoError(t, err)
			_, err = set.Change(t.Context(), "a", func(r *fleet.Record) error { r.Data = nil; return refused })
			require.Equal(t, refused, err)
		})
	}
	changing.Wait()
	r, err := set.Get(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, "xxxxxxxx", string(r.Data))
}

func TestNewerRecordsAreLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		f := newFleet(t, fleet.NewMemory(fleet.MemoryOptions{}), func(o *fleet.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		ctx := t.Context()
		older, newer := f.Set("things", 1), f.Set("things", 2)
		r := fleet.Record{Key: "a", Group: "g", Data: []byte("x"), TTL: 3 * time.Hour, Due: fleet.AtOnce}
		_, err := newer.Create(ctx, r)
		require.NoError(t, err)
		_, err = older.Get(ctx, "a")
		require.ErrorIs(t, err, fleet.ErrNewer)
		all, err := older.List(ctx, "g", "", 9)
		require.NoError(t, err)
		require.Empty(t, all)
		for minutes := range 120 {
			all, err = older.Due(ctx, 0, 9)
			require.NoError(t, err)
			require.Empty(t, all)
			require.Equal(t, 1+minutes/60, strings.Count(log.String(), "a record was left out"), "one line an hour")
			time.Sleep(time.Minute)
		}

		r.Key = "b"
		_, err = older.Create(ctx, r)
		require.NoError(t, err)
		all, err = newer.List(ctx, "g", "", 9)
		require.NoError(t, err)
		require.Len(t, all, 2, "newer programs read older records")
	})
}

func TestEntriesAreBoundToTheirLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := fleet.NewMemory(fleet.MemoryOptions{})
		f := newFleet(t, engine)
		ctx := t.Context()
		keep := fleet.Keep{Entries: 9, Bytes: 999, TTL: time.Hour}
		require.NoError(t, f.Append(ctx, "one", "log", fleet.Entry{Seq: 1, Data: []byte("secret")}, keep))
		stolen, err := engine.After(ctx, "one", "log", 0, 9)
		require.NoError(t, err)
		require.NoError(t, engine.Append(ctx, "two", "log", stolen[0], keep))
		all, err := f.After(ctx, "two", "log", 0, 9)
		require.ErrorContains(t, err, "not sealed for this id")
		require.Empty(t, all)
		require.NoError(t, f.Drop(ctx, "one"))
		all, err = f.After(ctx, "one", "log", 0, 9)
		require.NoError(t, err)
		require.Empty(t, all)
	})
}

// heard collects messages.
type heard struct {
	mu  sync.Mutex
	all []string
}

func (h *heard) add(from string, payload []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, string(payload))
}

func (h *heard) take() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.all
	h.all = nil
	return all
}

func TestReplicasTellEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := fleet.NewMemory(fleet.MemoryOptions{})
		defer engine.Close()
		a, b, c := newFleet(t, engine.Open()), newFleet(t, engine.Open()), newFleet(t, engine.Open())
		synctest.Wait()
		var atA, atB, atC heard
		a.On("news", atA.add)
		off := b.On("news", atB.add)
		c.On("news", atC.add)

		a.Tell("", "news", 1)
		a.Tell(c.Replica(), "news", 2)
		a.Tell(a.Replica(), "news", 3)
		a.Tell("", "other", 4)
		a.Tell("gone", "news", 5)
		synctest.Wait()
		require.Equal(t, []string{"3"}, atA.take(), "what it tells all does not come back")
		require.Equal(t, []string{"1"}, atB.take())
		require.Equal(t, []string{"1", "2"}, atC.take())
		off()
		a.Tell("", "news", 6)
		synctest.Wait()
		require.Empty(t, atB.take())
	})
}

func TestForgedMessagesAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := fleet.NewMemory(fleet.MemoryOptions{})
		f := newFleet(t, engine)
		synctest.Wait()
		var all heard
		f.On("news", all.add)
		for _, forged := range []string{"", "x", `{"from":"x","kind":"news"}`, "bus/r-1|{}", "bus/all|not json"} {
			require.NoError(t, engine.Publish(t.Context(), "all", []byte(forged)))
		}
		require.NoError(t, engine.Publish(t.Context(), "all", seal("bus/all", []byte(`{"from":"x","kind":"news","payload":7}`))))
		synctest.Wait()
		require.Equal(t, []string{"7"}, all.take())
	})
}

// TestTooManyMessagesAreReplacedByAHint tells more than the queue holds: the others are told that
// they missed some.
func TestTooManyMessagesAreReplacedByAHint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := fleet.NewMemory(fleet.MemoryOptions{})
		defer engine.Close()
		a, b := newFleet(t, engine.Open()), newFleet(t, engine.Open())
		synctest.Wait()
		missed := make(chan struct{}, 9999)
		b.OnMissed(func() { missed <- struct{}{} })
		for range 5000 {
			a.Tell("", "news", 1)
		}
		synctest.Wait()
		require.NotEmpty(t, missed)
	})
}

// A fullBus publishes nothing before its time is over.
type fullBus struct{ fleet.Engine }

func (fullBus) Publish(ctx context.Context, _ string, _ []byte) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestTheBytesThatWaitForTheBusAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := fleet.NewMemory(fleet.MemoryOptions{})
		defer engine.Close()
		f := newFleet(t, fullBus{engine.Open()})
		large := strings.Repeat("x", fleet.MaxData/2-2) // with its quotes, an eighth of what may wait
		for range 8 {
			require.True(t, f.Tell("", "news", large))
		}
		require.False(t, f.Tell("", "news", 1))
		time.Sleep(time.Minute)
		require.True(t, f.Tell("", "news", large))
	})
}

func TestDeadReplicasAreNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := fleet.NewMemory(fleet.MemoryOptions{})
		a, b := newFleet(t, &mortal{Engine: engine}), newFleet(t, &mortal{Engine: engine.Open()})
		synctest.Wait()
		alive, err := a.Alive(t.Context(), b.Replica())
		require.NoError(t, err)
		require.True(t, alive)
		time.Sleep(time.Minute)
		alive, err = a.Alive(t.Context(), b.Replica())
		require.NoError(t, err)
		require.True(t, alive, "it goes on showing that it is alive")

		require.NoError(t, b.Close()) // Delete fails: as if it had been killed
		time.Sleep(2 * time.Second)
		alive, err = a.Alive(t.Context(), b.Replica())
		require.NoError(t, err)
		require.True(t, alive)
		time.Sleep(12 * time.Second)
		alive, err = a.Alive(t.Context(), b.Replica())
		require.NoError(t, err)
		require.False(t, alive)
	})
}

// A mortal engine deletes nothing.
type mortal struct{ fleet.Engine }

func (*mortal) Delete(context.Context, string, string, uint64) error { return errors.New("killed") }

// A hanging engine answers when its context ends.
type hanging struct {
	fleet.Engine
	mu    sync.Mutex
	hangs bool
	calls int
}

func (h *hanging) Get(ctx context.Context, set, key string) (fleet.Record, error) {
	h.mu.Lock()
	hangs := h.hangs && set == "things"
	if set == "things" {
		h.calls++
	}
	h.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return fleet.Record{}, ctx.Err()
	}
	return h.Engine.Get(ctx, set, key)
}

func (h *hanging) hang(hangs bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hangs = hangs
}

// TestAnEngineThatHangsIsNotAskedForLong shows that an operation ends in time, that after three
// failures the others fail at once, and that the engine is used again once it is back.
func TestAnEngineThatHangsIsNotAskedForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := &hanging{Engine: fleet.NewMemory(fleet.MemoryOptions{}), hangs: true}
		// Without Start: its signs of life would succeed meanwhile.
		f := fleet.New(engine, fleet.Options{Seal: seal, Open: open, Timeout: 100 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
		set := f.Set("things", 1)
		begin := time.Now()
		for range 3 {
			_, err := set.Get(t.Context(), "a")
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		require.Equal(t, 300*time.Millisecond, time.Since(begin))
		require.Error(t, f.Health())
		for range 100 {
			_, err := set.Get(t.Context(), "a")
			unavailable, ok := errors.AsType[*fleet.UnavailableError](err)
			require.True(t, ok)
			require.Equal(t, time.Second, unavailable.RetryAfter())
			require.NotContains(t, unavailable.UserMessage(), "deadline")
		}
		require.Equal(t, 300*time.Millisecond, time.Since(begin), "they fail at once")
		require.Equal(t, 3, engine.calls)

		engine.hang(false)
		time.Sleep(time.Second)
		_, err := set.Get(t.Context(), "a")
		require.ErrorIs(t, err, fleet.ErrNotFound)
		require.NoError(t, f.Health())
		require.NoError(t, f.Close())
	})
}

// TestCallersThatLeaveSayNothingAboutTheEngine cancels operations: the engine is not at fault.
func TestCallersThatLeaveSayNothingAboutTheEngine(t *testing.T) {
	for name, leaving := range map[string]func(context.Context) (context.Context, context.CancelFunc){
		"cancelled": func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Millisecond, cancel)
			return ctx, cancel
		},
		"cancelled with a cause": func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			leave := func() { cancel(errors.New("the client has cancelled the call")) }
			time.AfterFunc(time.Millisecond, leave)
			return ctx, leave
		},
		"out of time": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Millisecond)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := &hanging{Engine: fleet.NewMemory(fleet.MemoryOptions{}), hangs: true}
				f := fleet.New(engine, fleet.Options{Seal: seal, Open: open})
				for range 10 {
					ctx, cancel := leaving(t.Context())
					_, err := f.Set("things", 1).Get(ctx, "a")
					require.Error(t, ctx.Err())
					require.ErrorIs(t, err, ctx.Err())
					cancel()
				}
				require.NoError(t, f.Health())
				require.NoError(t, f.Close())
			})
		})
	}
}

// TestAFleetWithoutItsEngineStarts shows that a replica that starts before its engine joins the
// others later.
func TestAFleetWithoutItsEngineStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := fleet.NewMemory(fleet.MemoryOptions{})
		defer store.Close()
		late := &lateEngine{Engine: store.Open(), from: time.Now().Add(10 * time.Second)}
		a, b := newFleet(t, late), newFleet(t, store.Open())
		var all heard
		a.On("news", all.add)
		synctest.Wait()
		b.Tell("", "news", 1)
		synctest.Wait()
		require.Empty(t, all.take())
		time.Sleep(15 * time.Second)
		b.Tell("", "news", 2)
		synctest.Wait()
		require.Equal(t, []string{"2"}, all.take())
	})
}

type lateEngine struct {
	fleet.Engine
	from time.Time
}

func (e *lateEngine) Subscribe(ctx context.Context, topics []string, deliver func(string, []byte), missed func()) error {
	if time.Now().Before(e.from) {
		return errors.New("connection refused")
	}
	return e.Engine.Subscribe(ctx, topics, deliver, missed)
}

func TestDigestsAreNames(t *testing.T) {
	require.NoError(t, fleet.CheckNames(fleet.Digest(""), fleet.Digest("https://issuer.example/ann")))
	require.NotEqual(t, fleet.Digest("a"), fleet.Digest("b"))
}

// TestAReplicaIsAliveWhenItHasStarted asks at once, since a replica serves at once.
func TestAReplicaIsAliveWhenItHasStarted(t *testing.T) {
	store := fleet.NewMemory(fleet.MemoryOptions{})
	defer store.Close()
	for range 100 {
		a, b := newFleet(t, store), newFleet(t, store)
		alive, err := b.Alive(t.Context(), a.Replica())
		require.NoError(t, err)
		require.True(t, alive)
	}
}

// TestAReplicaHearsTheOthersWhenItHasStarted starts one on an engine that subscribes slowly.
func TestAReplicaHearsTheOthersWhenItHasStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := fleet.NewMemory(fleet.MemoryOptions{})
		defer store.Close()
		a, b := newFleet(t, store.Open()), newFleet(t, slowToListen{store.Open()})
		var atB heard
		b.On("news", atB.add)
		a.Tell("", "news", 1)
		synctest.Wait()
		require.Equal(t, []string{"1"}, atB.take())
	})
}

type slowToListen struct{ fleet.Engine }

func (e slowToListen) Subscribe(ctx context.Context, topics []string, deliver func(string, []byte), missed func()) error {
	time.Sleep(100 * time.Millisecond)
	return e.Engine.Subscribe(ctx, topics, deliver, missed)
}

func TestOpenNamesTheImportThatIsMissing(t *testing.T) {
	for url, want := range map[string]string{
		"redis://user:secret@host": `fleet: the program has no engine for redis: import _ "github.com/mcpkit/mcpkit-go/fleet/redisfleet"`,
		"REDISS://host":            `fleet: the program has no engine for rediss: import _ "github.com/mcpkit/mcpkit-go/fleet/redisfleet"`,
		"bolt:/var/fleet.db":       `fleet: the program has no engine for bolt: import _ "github.com/mcpkit/mcpkit-go/fleet/boltfleet"`,
		"localhost":                `fleet: the address of the engine has no scheme; write one like redis://localhost:6379`,
		"":                         `fleet: the address of the engine has no scheme; write one like redis://localhost:6379`,
	} {
		_, err := fleet.Open(t.Context(), url)
		require.EqualError(t, err, want)
	}
	_, err := fleet.Open(t.Context(), "mysql://user:secret@host")
	require.ErrorContains(t, err, `the program has no engine for "mysql"`)
	require.NotContains(t, err.Error(), "secret")
}

func TestOpenUsesWhatIsRegistered(t *testing.T) {
	refused := errors.New("refused")
	defer fleet.Unregister("test")
	fleet.Register("test", func(_ context.Context, u *url.URL) (fleet.Engine, error) {
		if u.Host != "memory" {
			return nil, refused
		}
		return fleet.NewMemory(fleet.MemoryOptions{}), nil
	})
	e, err := fleet.Open(t.Context(), "test://memory")
	require.NoError(t, err)
	require.NoError(t, e.Close())
	_, err = fleet.Open(t.Context(), "TEST://disk")
	require.ErrorIs(t, err, refused)
	_, err = fleet.Open(t.Context(), "test://user:secret@host:port")
	require.EqualError(t, err, `fleet: the URL of the engine: invalid port ":port" after host`)
	_, err = fleet.Open(t.Context(), "mysql://host")
	require.EqualError(t, err, `fleet: the program has no engine for "mysql"; it has those for test`)

	require.PanicsWithValue(t, "fleet: the scheme test is registered already", func() {
		fleet.Register("test", func(context.Context, *url.URL) (fleet.Engine, error) { return nil, nil })
	})
	require.Panics(t, func() { fleet.Register[fleet.Engine]("other", nil) })
	require.Panics(t, func() { fleet.Register("", func(context.Context, *url.URL) (fleet.Engine, error) { return nil, nil }) })
}

// unreached returns a fleet whose engine panics when it is called.
func unreached() *fleet.Fleet {
	return fleet.New(struct{ fleet.Engine }{}, fleet.Options{Seal: seal, Open: open, Logger: slog.New(slog.DiscardHandler)})
}

// failure returns the error of an operation that has a result.
func failure[T any](_ T, err error) error { return err }

func TestNamesThatAreNotAllowedDoNotReachTheEngine(t *testing.T) {
	f := unreached()
	keep := fleet.Keep{Entries: 1, Bytes: 1, TTL: time.Hour}
	record := func(key, group string) fleet.Record { return fleet.Record{Key: key, Group: group, TTL: time.Hour} }
	type operation func(ctx context.Context, name string) error
	required := map[string]operation{
		"Get, set":      func(ctx context.Context, n string) error { return failure(f.Set(n, 1).Get(ctx, "a")) },
		"Get, key":      func(ctx context.Context, n string) error { return failure(f.Set("set", 1).Get(ctx, n)) },
		"Create, set":   func(ctx context.Context, n string) error { return failure(f.Set(n, 1).Create(ctx, record("a", ""))) },
		"Create, key":   func(ctx context.Context, n string) error { return failure(f.Set("set", 1).Create(ctx, record(n, ""))) },
		"Update, set":   func(ctx context.Context, n string) error { return failure(f.Set(n, 1).Update(ctx, record("a", ""))) },
		"Update, key":   func(ctx context.Context, n string) error { return failure(f.Set("set", 1).Update(ctx, record(n, ""))) },
		"Delete, set":   func(ctx context.Context, n string) error { return f.Set(n, 1).Delete(ctx, "a", 0) },
		"Delete, key":   func(ctx context.Context, n string) error { return f.Set("set", 1).Delete(ctx, n, 0) },
		"Due":           func(ctx context.Context, n string) error { return failure(f.Set(n, 1).Due(ctx, 0, 1)) },
		"List, set":     func(ctx context.Context, n string) error { return failure(f.Set(n, 1).List(ctx, "g", "", 1)) },
		"List, group":   func(ctx context.Context, n string) error { return failure(f.Set("set", 1).List(ctx, n, "", 1)) },
		"Count":         func(ctx context.Context, n string) error { return failure(f.Set(n, 1).Count(ctx, "")) },
		"Append, group": func(ctx context.Context, n string) error { return f.Append(ctx, n, "l", fleet.Entry{Seq: 1}, keep) },
		"Append, log":   func(ctx context.Context, n string) error { return f.Append(ctx, "g", n, fleet.Entry{Seq: 1}, keep) },
		"After, group":  func(ctx context.Context, n string) error { return failure(f.After(ctx, n, "l", 0, 1)) },
		"After, log":    func(ctx context.Context, n string) error { return failure(f.After(ctx, "g", n, 0, 1)) },
		"Drop":          func(ctx context.Context, n string) error { return f.Drop(ctx, n) },
	}
	optional := map[string]operation{
		"Create, group": func(ctx context.Context, n string) error { return failure(f.Set("set", 1).Create(ctx, record("a", n))) },
		"List, after":   func(ctx context.Context, n string) error { return failure(f.Set("set", 1).List(ctx, "g", n, 1)) },
		"Count, group":  func(ctx context.Context, n string) error { return failure(f.Set("set", 1).Count(ctx, n)) },
	}
	names := []string{"", " ", "a b", "a.b", "a:b", "a/b", "a*", "a>", "{a}", "ä", "a\x00", "a\n", strings.Repeat("x", 65), "\xff"}
	for i, name := range names {
		for what, operation := range required {
			require.ErrorIs(t, operation(t.Context(), name), fleet.ErrInvalid, "%s %q", what, name)
		}
		if i == 0 {
			continue // "" is allowed
		}
		for what, operation := range optional {
			require.ErrorIs(t, operation(t.Context(), name), fleet.ErrInvalid, "%s %q", what, name)
		}
	}
}

func TestValuesThatAreNotAllowedDoNotReachTheEngine(t *testing.T) {
	f, ctx := unreached(), t.Context()
	set := f.Set("set", 1)
	for _, r := range []fleet.Record{{}, {TTL: -time.Hour}, {TTL: fleet.MinTTL - 1}, {TTL: time.Hour, Due: -1}} {
		r.Key = "a"
		_, err := set.Create(ctx, r)
		require.ErrorIs(t, err, fleet.ErrInvalid, "%+v", r)
		_, err = set.Update(ctx, r)
		require.ErrorIs(t, err, fleet.ErrInvalid, "%+v", r)
	}
	keep := fleet.Keep{Entries: 1, Bytes: 100, TTL: time.Hour}
	require.ErrorIs(t, f.Append(ctx, "g", "l", fleet.Entry{}, keep), fleet.ErrInvalid)
	for _, keep := range []fleet.Keep{{Bytes: 1, TTL: time.Hour}, {Entries: 1, Bytes: -1, TTL: time.Hour}, {Entries: 1, Bytes: 1, TTL: fleet.MinTTL - 1}} {
		require.ErrorIs(t, f.Append(ctx, "g", "l", fleet.Entry{Seq: 1}, keep), fleet.ErrInvalid, "%+v", keep)
	}
	for _, limit := range []int{0, -1} {
		_, err := set.Due(ctx, 0, limit)
		require.ErrorIs(t, err, fleet.ErrInvalid)
		_, err = set.List(ctx, "g", "", limit)
		require.ErrorIs(t, err, fleet.ErrInvalid)
		_, err = f.After(ctx, "g", "l", 0, limit)
		require.ErrorIs(t, err, fleet.ErrInvalid)
	}
	large := make([]byte, fleet.MaxData+1)
	r := fleet.Record{Key: "large", Data: large, TTL: time.Hour}
	_, err := set.Create(ctx, r)
	require.ErrorIs(t, err, fleet.ErrTooLarge)
	_, err = set.Update(ctx, r)
	require.ErrorIs(t, err, fleet.ErrTooLarge)
	require.ErrorIs(t, f.Append(ctx, "g", "l", fleet.Entry{Seq: 1, Data: large}, keep), fleet.ErrTooLarge)
}

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

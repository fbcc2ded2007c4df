// Package fleettest tests implementations of [fleet.Engine].
package fleettest

import (
	"context"
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
// The tests run in parallel. Limits of time are generous, so they may run on a busy machine. The
// engine in memory is tested by
//
//	fleettest.Run(t, func(t testing.TB) fleettest.Store {
//		m := fleet.NewMemory(fleet.MemoryOptions{})
//		return fleettest.Store{Open: func(t testing.TB) fleet.Engine { return m.Open() }}
//	})
func Run(t *testing.T, open func(t testing.TB) Store) {
	for _, test := range append(races, buses...) {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t, store{open(t)})
		})
	}
	for name, lines := range scripts() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store{open(t)}.play(t, lines)
		})
	}
}

// A test is one that a script cannot tell.
type test struct {
	name string
	run  func(t *testing.T, s store)
}

// patience is how long tests wait for what happens soon.
const patience = time.Minute

type store struct{ Store }

// replicas opens three engines, which are closed when the test ends, and returns one for each
// number.
func (s store) replicas(t testing.TB) func(i int) fleet.Engine {
	var engines [3]fleet.Engine
	for i := range engines {
		engines[i] = s.Open(t)
		t.Cleanup(func() { require.NoError(t, engines[i].Close()) })
	}
	return func(i int) fleet.Engine { return engines[i%len(engines)] }
}

// wait lets time pass.
func (s store) wait(t testing.TB, d time.Duration) {
	if s.Advance != nil {
		s.Advance(d)
		return
	}
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}

// until waits until the condition holds, and returns false if it does not.
func (s store) until(t testing.TB, condition func() bool) bool {
	for end := time.Now().Add(patience); !condition(); s.wait(t, 100*time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// record returns a record that lives for an hour.
func record(key, data string) fleet.Record {
	return fleet.Record{Key: key, Data: []byte(data), TTL: time.Hour}
}

// hour keeps a log of any size that the tests use.
var hour = fleet.Keep{Entries: 1000, Bytes: 100 << 20, TTL: time.Hour}

// operations are all methods that may fail.
var operations = map[string]func(ctx context.Context, e fleet.Engine) error{
	"Get": func(ctx context.Context, e fleet.Engine) error { _, err := e.Get(ctx, "set", "a"); return err },
	"Create": func(ctx context.Context, e fleet.Engine) error {
		_, err := e.Create(ctx, "set", record("a", ""))
		return err
	},
	"Update": func(ctx context.Context, e fleet.Engine) error {
		_, err := e.Update(ctx, "set", record("a", ""))
		return err
	},
	"Delete": func(ctx context.Context, e fleet.Engine) error { return e.Delete(ctx, "set", "a", 0) },
	"Due":    func(ctx context.Context, e fleet.Engine) error { _, err := e.Due(ctx, "set", 0, 1); return err },
	"List":   func(ctx context.Context, e fleet.Engine) error { _, err := e.List(ctx, "set", "g", "", 1); return err },
	"Count":  func(ctx context.Context, e fleet.Engine) error { _, err := e.Count(ctx, "set", ""); return err },
	"Append": func(ctx context.Context, e fleet.Engine) error {
		return e.Append(ctx, "g", "l", fleet.Entry{Seq: 1}, hour)
	},
	"After":   func(ctx context.Context, e fleet.Engine) error { _, err := e.After(ctx, "g", "l", 0, 1); return err },
	"Drop":    func(ctx context.Context, e fleet.Engine) error { return e.Drop(ctx, "g") },
	"Publish": func(ctx context.Context, e fleet.Engine) error { return e.Publish(ctx, "topic", nil) },
	"Subscribe": func(ctx context.Context, e fleet.Engine) error {
		return e.Subscribe(ctx, []string{"topic"}, func(string, []byte) {}, func() {})
	},
}

// Package boltfleet is an engine of package fleet in a file, with bbolt. The file belongs to one
// process at a time. So it is for a server with one replica, whose sessions, tasks and used proofs
// survive restarts; its bus does not leave the process.
//
// The URL of fleet.Open names a file by its absolute path: bolt:///var/lib/shop/fleet.db.
//
// Each change is on the disk when its method returns. When the process is killed, or the machine
// loses power, nothing is lost that a method has acknowledged. Writes of concurrent callers share a
// transaction, and so a sync of the disk: about 1 ms each when there is one caller, and less when
// there are many.
//
// When the disk is full, writes fail and lose nothing. The file keeps 2 MB of space with which records
// can be deleted even then. New data may fail until the disk has space again, also after deletions.
//
// The file grows in steps of 16 MB and never shrinks: what is deleted makes room for what comes.
// Records and entries take their data and about 250 bytes. Pages of 4 kB hold many small ones, but
// one with more than 1 kB takes whole pages.
package boltfleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/mcpkit/mcpkit-go/fleet"
)

// Options configures an [Engine]. The zero value is valid.
type Options struct {
	// MaxBytes is how much of the file may be in use. Beyond it, what is new is refused with an
	// error until something expires or is deleted. Zero means [DefaultMaxBytes].
	MaxBytes int64

	// Logger receives reports of damaged records, which are treated as if they were not there. Nil
	// means slog.Default.
	Logger *slog.Logger
}

const (
	// DefaultMaxBytes is how much of the file may be in use by default.
	DefaultMaxBytes = 4 << 30

	maxBatch = 128 // writes to a fleet's file that share a transaction

	// What the file may grow by beyond its limit, so that deletions find space.
	reserve = 64 << 20

	headroom = 2 << 20 // space in the file that is only for deletions

	sweepEvery = 10 * time.Second
	sweepBatch = 200 // records and logs that expired, in a transaction
	sweepAlong = 8   // of those, together with other writes
)

var (
	errClosed = errors.New("boltfleet: the engine is closed")
	errFull   = errors.New("boltfleet: the file is full")
)

// An Engine is a [fleet.Engine] in a file. Make one with [Open].
type Engine struct {
	s   *store
	hub fleet.Hub

	close func() error
}

var _ fleet.Engine = (*Engine)(nil)

// store is what engines of a file share.
type store struct {
	db       *bolt.DB
	log      *slog.Logger
	maxBytes int64
	writes   chan *write
	stopped  chan struct{} // closed after the last write
	end      context.CancelFunc
	ended    sync.WaitGroup
	ballast  bool // the file has it; only the goroutine of write uses this

	mu    sync.Mutex
	hubs  map[*fleet.Hub]struct{} // of the open engines; guarded by mu
	clock clock                   // guarded by mu
}

// Open opens the file, or creates it for the user alone. The error says so if another process has
// it open for more than 5 seconds, and if the file has lost its end. Nil options mean the defaults.
func Open(path string, opts *Options) (*Engine, error) {
	if opts == nil {
		opts = &Options{}
	}
	if err := checkSize(path); err != nil {
		return nil, fmt.Errorf("boltfleet: %w", err)
	}
	limit := cmp.Or(max(opts.MaxBytes, 0), DefaultMaxBytes)
	db, err := openFile(path, limit)
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, fmt.Errorf("boltfleet: another process has %s open", path)
	}
	if err != nil {
		return nil, fmt.Errorf("boltfleet: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &store{
		db: db, log: cmp.Or(opts.Logger, slog.Default()), maxBytes: limit,
		writes: make(chan *write, maxBatch), stopped: make(chan struct{}), end: cancel, hubs: map[*fleet.Hub]struct{}{},
	}
	if err := s.prepare(); err != nil {
		cancel()
		_ = db.Close()
		return nil, fmt.Errorf("boltfleet: %s: %w", path, err)
	}
	// Both end when the last engine is closed.
	s.ended.Go(func() { s.write(ctx) })
	s.ended.Go(func() { s.sweep(ctx) })
	return s.open(), nil
}

// openFile opens the database. bbolt panics at some damage.
func openFile(path string, limit int64) (db *bolt.DB, err error) {
	defer caught(&err)()
	return bolt.Open(path, 0o600, &bolt.Options{Timeout: 5 * time.Second, MaxSize: int(min(limit, 1<<50)) + reserve})
}

// caught returns a function to defer, which turns a panic of bbolt, or a fault in its mapping, into
// an error: both mean that the file is damaged.
func caught(err *error) func() {
	old := debug.SetPanicOnFault(true)
	return func() {
		debug.SetPanicOnFault(old)
		if cause := recover(); cause != nil {
			*err = fmt.Errorf("boltfleet: the file is damaged: %v", cause)
		}
	}
}

// checkSize returns an error if the file has lost its end. A file that cannot be opened is left to
// Open.
func checkSize(path string) (err error) {
	if info, err := os.Stat(path); err != nil || info.Size() == 0 {
		return nil
	}
	defer caught(&err)()
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: time.Second, ReadOnly: true})
	if err != nil {
		return nil
	}
	defer func() { _ = db.Close() }()
	return db.View(func(tx *bolt.Tx) error {
		info, err := os.Stat(path) // nobody writes now
		if err == nil && info.Size() < tx.Size() {
			err = fmt.Errorf("%s is damaged: it has %d bytes of %d; restore it, or remove it and lose what is in it", path, info.Size(), tx.Size())
		}
		return err
	})
}

// prepare makes the buckets and reads the time of the last write.
func (s *store) prepare() (err error) {
	defer caught(&err)()
	return s.db.Update(func(t *bolt.Tx) error {
		for _, name := range buckets {
			if _, err := t.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		format := t.Bucket(metaBucket).Get(formatKey)
		if format != nil && string(format) != currentFormat {
			return fmt.Errorf("the file has format %q; this version of the program reads %q", format, currentFormat)
		}
		s.ballast = t.Bucket(metaBucket).Bucket(ballastKey) != nil
		s.clock.reached(timeOf(t.Bucket(metaBucket).Get(nowKey)))
		return t.Bucket(metaBucket).Put(formatKey, []byte(currentFormat))
	})
}

func (s *store) open() *Engine {
	e := &Engine{s: s}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hubs[&e.hub] = struct{}{}
	e.close = sync.OnceValue(func() error {
		e.hub.Close()
		s.mu.Lock()
		delete(s.hubs, &e.hub)
		last := len(s.hubs) == 0
		s.mu.Unlock()
		if !last {
			return nil
		}
		s.end()
		s.ended.Wait()
		return s.db.Close()
	})
	return e
}

// Open returns another engine of the same file, for another server of this process. Each is closed
// by itself. It fails if e is closed.
func (e *Engine) Open() (*Engine, error) {
	if err := e.begin(context.Background()); err != nil {
		return nil, err
	}
	return e.s.open(), nil
}

// Close ends the subscriptions of the engine. The last engine closes the file.
func (e *Engine) Close() error { return e.close() }

// begin returns an error if ctx has ended or the engine is closed.
func (e *Engine) begin(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	e.s.mu.Lock()
	defer e.s.mu.Unlock()
	if _, open := e.s.hubs[&e.hub]; !open {
		return errClosed
	}
	return nil
}

// Ping implements [fleet.Engine].
func (e *Engine) Ping(ctx context.Context) error {
	_, err := view(ctx, e, func(*tx) (any, error) { return nil, nil })
	return err
}

// A clock is that of the machine, but it never goes backwards, also not after a restart: then it
// goes on from where it was, as fast as time passes.
type clock struct {
	last time.Time
	at   time.Time // when last was read, with a monotonic part
}

func (c *clock) reached(t time.Time) {
	if t.After(c.last) {
		c.last, c.at = t, time.Now()
	}
}

func (c *clock) now() time.Time {
	at := time.Now()
	now := c.last.Add(at.Sub(c.at))
	if wall := at.Round(0); wall.After(now) {
		now = wall
	}
	c.last, c.at = now, at
	return now
}

func (s *store) now() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clock.now().UnixNano()
}

// A write is a change that waits for the disk.
type write struct {
	f       func(*tx) error // which does not change anything if it returns an error
	deletes bool            // it adds nothing
	err     error
	done    chan struct{}
}

// update runs f in a transaction, perhaps more than once, and returns when the disk has it. If ctx
// ends before, the change may happen or not.
func (e *Engine) update(ctx context.Context, deletes bool, f func(*tx) error) error {
	if err := e.begin(ctx); err != nil {
		return err
	}
	return e.s.update(ctx, deletes, f)
}

func (s *store) update(ctx context.Context, deletes bool, f func(*tx) error) error {
	w := &write{f: f, deletes: deletes, done: make(chan struct{})}
	select {
	case s.writes <- w:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-w.done:
		return w.err
	case <-s.stopped:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-w.done: // it was the last one
		return w.err
	default:
		return errClosed
	}
}

// write makes transactions of what callers want to write.
func (s *store) write(ctx context.Context) {
	for {
		var batch []*write
		select {
		case w := <-s.writes:
			batch = append(batch, w)
		case <-ctx.Done():
			close(s.stopped)
			return
		}
		for more := true; more && len(batch) < maxBatch; {
			select {
			case w := <-s.writes:
				batch = append(batch, w)
			default:
				more = false
			}
		}
		s.run(batch)
		for _, w := range batch {
			close(w.done)
		}
	}
}

// run commits a batch.
func (s *store) run(batch []*write) {
	if s.commit(batch) == nil {
		return
	}
	for _, w := range batch { // one of them may be the cause
		err := s.commit([]*write{w})
		if err != nil && w.deletes && s.ballast {
			// The disk is full, and bbolt writes what it changes to free pages. That of the ballast
			// takes few of them, and leaves many.
			if err = s.setBallast(nil); err == nil {
				err = s.commit([]*write{w})
			}
		}
		if err != nil {
			w.err = err
		}
	}
}

// setBallast writes a value that has no other use than to be deleted, or deletes it.
func (s *store) setBallast(value []byte) (err error) {
	defer caught(&err)()
	err = s.db.Update(func(t *bolt.Tx) error {
		if value == nil {
			return t.Bucket(metaBucket).DeleteBucket(ballastKey)
		}
		b, err := t.Bucket(metaBucket).CreateBucketIfNotExists(ballastKey)
		if err != nil {
			return err
		}
		return b.Put(ballastKey, value)
	})
	if err == nil {
		s.ballast = value != nil
	}
	return fileError(err)
}

// free returns how many bytes of the file are free.
func (s *store) free() int {
	stats := s.db.Stats()
	return (stats.FreePageN + stats.PendingPageN) * s.db.Info().PageSize
}

func fileError(err error) error {
	if errors.Is(err, bolterrors.ErrMaxSizeReached) {
		return errFull
	}
	if err != nil {
		return fmt.Errorf("boltfleet: %w", err)
	}
	return nil
}

var errNothing = errors.New("nothing was written")

// commit runs a transaction. After an error, nothing has changed.
func (s *store) commit(batch []*write) (err error) {
	if !s.ballast && slices.ContainsFunc(batch, func(w *write) bool { return !w.deletes }) {
		if err := s.setBallast(make([]byte, headroom)); err != nil {
			return err
		}
	}
	defer caught(&err)()
	err = s.db.Update(func(bt *bolt.Tx) error {
		t := &tx{Tx: bt, s: s, now: s.now()}
		t.expire(sweepAlong)
		for _, w := range batch {
			w.err = w.f(t)
		}
		if t.failed != nil {
			return t.failed
		}
		if !t.dirty {
			return errNothing
		}
		return t.Bucket(metaBucket).Put(nowKey, number(t.now))
	})
	if errors.Is(err, errNothing) {
		return nil
	}
	return fileError(err)
}

// view runs f in a transaction that only reads.
func view[T any](ctx context.Context, e *Engine, f func(*tx) (T, error)) (result T, err error) {
	if err := e.begin(ctx); err != nil {
		return result, err
	}
	defer caught(&err)()
	err = e.s.db.View(func(bt *bolt.Tx) (err error) {
		result, err = f(&tx{Tx: bt, s: e.s, now: e.s.now()})
		return err
	})
	return result, err
}

// sweep removes what has expired, until ctx ends.
func (s *store) sweep(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		for s.hasExpired() && ctx.Err() == nil {
			err := s.update(ctx, true, func(t *tx) error {
				t.expire(sweepBatch)
				return nil
			})
			if err != nil && ctx.Err() == nil {
				s.log.Error("boltfleet: what has expired was not removed", "error", err)
				break
			}
		}
	}
}

func (s *store) hasExpired() (found bool) {
	var err error
	defer caught(&err)()
	_ = s.db.View(func(bt *bolt.Tx) error {
		key, _ := bt.Bucket(expiryBucket).Cursor().First()
		found = key != nil && int64Of(key) <= s.now()
		return nil
	})
	return found
}

// Publish implements [fleet.Bus].
func (e *Engine) Publish(ctx context.Context, topic string, data []byte) error {
	if err := e.begin(ctx); err != nil {
		return err
	}
	e.s.mu.Lock()
	defer e.s.mu.Unlock()
	for hub := range e.s.hubs {
		hub.Deliver(topic, data)
	}
	return nil
}

// Subscribe implements [fleet.Bus].
func (e *Engine) Subscribe(ctx context.Context, topics []string, deliver func(topic string, data []byte), missed func()) error {
	if err := e.begin(ctx); err != nil {
		return err
	}
	return e.hub.Subscribe(ctx, topics, deliver, missed, nil)
}

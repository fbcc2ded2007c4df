package fleet

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// Options configures a [Fleet].
type Options struct {
	// Seal encrypts and authenticates what the engine stores, bound to an id; Open is its inverse.
	// All replicas seal alike. If they are nil, data is stored as it is, which is for engines in the
	// memory of the process.
	Seal func(id string, plain []byte) []byte
	Open func(id string, sealed []byte) ([]byte, error)

	// Timeout is how long one operation of the engine may take. Zero means 2 seconds.
	Timeout time.Duration

	// Logger receives warnings for the operator. Nil means slog.Default.
	Logger *slog.Logger

	// Observe is called at the beginning of each operation of the engine, and what it returns at
	// the end. op is the name of the method, and set that of the set; "" for logs and the bus. It
	// may be called concurrently.
	Observe func(ctx context.Context, op, set string) (context.Context, func(error))
}

// An Option changes the [Options] that a server chooses.
type Option func(*Options)

// Timeout sets how long one operation of the engine may take. Zero and less mean 2 seconds.
func Timeout(d time.Duration) Option { return func(o *Options) { o.Timeout = d } }

// Observe sets [Options].Observe. Nil observes nothing.
func Observe(f func(ctx context.Context, op, set string) (context.Context, func(error))) Option {
	return func(o *Options) { o.Observe = f }
}

const (
	defaultTimeout = 2 * time.Second // of one operation of the engine

	// Retry is how soon a client may try again after an [UnavailableError].
	Retry = time.Second

	beat     = 3 * time.Second // between signs of life of a replica
	presence = 12 * time.Second
	aliveFor = time.Second // how long an answer of Alive is kept

	maxLeftOut = 10_000 // records that are remembered as logged

	// After this many failures in a row, one operation a second is tried; the others fail at once.
	failuresInARow = 3

	replicaSet = "replicas"
	everyone   = "all"
)

// An UnavailableError means that the engine did not do an operation. It may be tried again.
type UnavailableError struct {
	Op  string // the method of the engine
	Err error
}

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("fleet: %s: the store of the fleet is not available: %v", e.Op, e.Err)
}

func (e *UnavailableError) Unwrap() error { return e.Err }

// UserMessage returns a text for models and users, without details.
func (e *UnavailableError) UserMessage() string {
	return "the server cannot reach its store at the moment; try again"
}

// RetryAfter returns [Retry].
func (e *UnavailableError) RetryAfter() time.Duration { return Retry }

// ErrNewer means that a newer version of the program wrote the record. It stays as it is.
var ErrNewer = errors.New("fleet: the record was written by a newer version of the program")

// A Fleet is one replica's view of an [Engine]: it checks arguments, seals what the engine stores,
// limits the time of each operation, and knows which replicas are alive. Create one with New. All
// methods are safe for concurrent use. Those with a context return the errors of [Engine],
// [ErrInvalid] for arguments that are not allowed, and an [*UnavailableError] if the engine failed,
// took longer than [Options].Timeout, or failed three times in a row and less than a second ago.
//
// Messages may be lost, so code that waits for one also polls the store.
type Fleet struct {
	engine  Engine
	opts    Options
	replica string
	members membership // nil unless all replicas are in this process

	mu       sync.Mutex
	handlers map[string][]*handler // by kind; guarded by mu
	alive    map[string]liveness   // guarded by mu
	failures int                   // in a row; guarded by mu
	tried    time.Time             // the last attempt after failuresInARow; guarded by mu
	leftOut  map[string]time.Time  // when a record was last logged as left out; guarded by mu
	lost     error                 // of the last failure; nil if the engine is available; guarded by mu
	waiting  int                   // bytes of messages that are not yet sent; guarded by mu
	overflow bool                  // messages were dropped; guarded by mu
	started  bool                  // guarded by mu
	closed   bool                  // guarded by mu

	queue chan message
	end   context.CancelFunc
	ended sync.WaitGroup
}

// membership is what a [Local] knows by itself of the replicas of its process. Other engines have a
// record for each replica.
type membership interface {
	join(replica string) (leave func())
	joined(replica string) bool
}

type handler func(from string, payload []byte)

type liveness struct {
	is bool
	at time.Time
}

// A message is what replicas send to each other.
type message struct {
	From    string          `json:"from"`
	Kind    string          `json:"kind"`
	Payload json.RawMessage `json:"payload,omitempty"`
	to      string
}

// New returns the view of a new replica, whose name is random. Until Start it neither announces the
// replica nor receives messages. engine must not be nil.
func New(engine Engine, opts Options) *Fleet {
	if opts.Seal == nil {
		opts.Seal = func(_ string, plain []byte) []byte { return plain }
		opts.Open = func(_ string, sealed []byte) ([]byte, error) { return sealed, nil }
	}
	opts.Timeout = cmp.Or(max(opts.Timeout, 0), defaultTimeout)
	opts.Logger = cmp.Or(opts.Logger, slog.Default())
	name := strings.ToLower(rand.Text()[:12])
	opts.Logger = opts.Logger.With("replica", name)
	members, _ := engine.(membership)
	return &Fleet{
		engine: engine, opts: opts, replica: name, members: members,
		handlers: map[string][]*handler{}, alive: map[string]liveness{}, leftOut: map[string]time.Time{}, queue: make(chan message, maxWaiting),
	}
}

// Replica returns the name of this replica: 12 characters of a-z and 2-7. A process that starts
// again has another name.
func (f *Fleet) Replica() string { return f.replica }

// Engine returns the engine, for another Fleet that seals with keys of its own. Do not close it.
func (f *Fleet) Engine() Engine { return f.engine }

// Logger returns a logger whose lines name the replica.
func (f *Fleet) Logger() *slog.Logger { return f.opts.Logger }

// Start announces the replica and listens to the others until Close. It returns after the first
// attempt, or when ctx ends; the error is always nil. If the engine is not available yet, the replica
// logs that and goes on trying. Further calls do nothing.
func (f *Fleet) Start(ctx context.Context) error {
	f.mu.Lock()
	if f.started || f.closed {
		f.mu.Unlock()
		return nil
	}
	f.started = true
	var running context.Context
	running, f.end = context.WithCancel(context.Background())
	first := make(chan struct{})
	// Both end with Close.
	f.ended.Go(func() { f.beat(running, sync.OnceFunc(func() { close(first) })) })
	f.ended.Go(func() { f.send(running) })
	f.mu.Unlock()
	select {
	// Otherwise others would take what this replica begins now for that of a dead one, and it would
	// not notice that they end it.
	case <-first:
	case <-ctx.Done():
	}
	return nil
}

// Close withdraws the replica and closes the engine, whose error it returns. Records and logs stay.
// Further calls do nothing.
func (f *Fleet) Close() error {
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return nil
	}
	f.closed = true
	started := f.started
	f.mu.Unlock()
	if started {
		f.end()
		f.ended.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), f.opts.Timeout)
		defer cancel()
		if f.members == nil {
			_ = f.engine.Delete(ctx, replicaSet, f.replica, 0) // the record expires soon
		}
	}
	return f.engine.Close()
}

// beat shows that the replica is alive, and listens to the bus as soon as that is possible.
func (f *Fleet) beat(ctx context.Context, ready func()) {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	if f.members != nil {
		defer f.members.join(f.replica)()
	}
	listening := false
	for {
		if f.members == nil {
			f.show(ctx)
		}
		if !listening {
			listening = f.listen(ctx)
		}
		ready()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (f *Fleet) listen(ctx context.Context) bool {
	// The subscription outlives the operation, which is limited by the engine.
	err := f.engine.Subscribe(ctx, []string{everyone, "r-" + f.replica}, f.deliver, f.tellMissed)
	if err != nil && ctx.Err() == nil {
		f.opts.Logger.Warn("fleet: this replica does not hear the others; trying again", "error", err)
	}
	if err == nil {
		f.tellMissed() // what came before
	}
	return err == nil
}

func (f *Fleet) show(ctx context.Context) {
	_, err := f.Set(replicaSet, 1).Change(ctx, f.replica, func(r *Record) error { r.TTL = presence; return nil })
	if err != nil && ctx.Err() == nil {
		f.opts.Logger.Warn("fleet: the store is not available", "error", err)
	}
}

// Health returns the error of the last operation if the engine was not available, and nil otherwise.
// It does not call the engine.
func (f *Fleet) Health() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lost
}

// Alive reports whether a replica is running. A replica that died is noticed within 13 seconds, and
// at once if the engine is that of a single process.
func (f *Fleet) Alive(ctx context.Context, replica string) (bool, error) {
	switch {
	case replica == f.replica:
		return true, nil
	case f.members != nil:
		return f.members.joined(replica), nil
	}
	f.mu.Lock()
	known := f.alive[replica]
	if len(f.alive) > 1000 {
		clear(f.alive)
	}
	f.mu.Unlock()
	if time.Since(known.at) < aliveFor {
		return known.is, nil
	}
	_, err := f.Set(replicaSet, 1).Get(ctx, replica)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return false, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.alive[replica] = liveness{err == nil, time.Now()}
	return err == nil, nil
}

// do runs one operation of the engine, within its time. invalid is what is wrong with the arguments;
// then the engine is not called.
func (f *Fleet) do(caller context.Context, op, set string, invalid error, run func(ctx context.Context) error) error {
	if err := f.refuse(); err != nil {
		return &UnavailableError{op, err}
	}
	ctx, cancel := context.WithTimeout(caller, f.opts.Timeout)
	defer cancel()
	end := func(error) {}
	if f.opts.Observe != nil {
		ctx, end = f.opts.Observe(ctx, op, set)
	}
	if invalid != nil {
		end(invalid)
		return invalid
	}
	err := run(ctx)
	end(err)
	if err == nil || expected(err) {
		f.outcome(nil)
		return err
	}
	if caller.Err() == nil { // otherwise the caller left, which says nothing about the engine
		f.outcome(err)
	}
	return &UnavailableError{op, err}
}

// get is do for operations with a result.
func get[T any](ctx context.Context, f *Fleet, op, set string, invalid error, run func(ctx context.Context) (T, error)) (result T, err error) {
	err = f.do(ctx, op, set, invalid, func(ctx context.Context) (err error) {
		result, err = run(ctx)
		return err
	})
	return result, err
}

func expected(err error) bool {
	return errors.Is(err, ErrNotFound) || errors.Is(err, ErrExists) || errors.Is(err, ErrConflict) ||
		errors.Is(err, ErrTooLarge) || errors.Is(err, ErrFull)
}

// refuse returns an error if the engine failed too often to be tried again already.
func (f *Fleet) refuse() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failures < failuresInARow {
		return nil
	}
	if time.Since(f.tried) < Retry {
		return f.lost
	}
	f.tried = time.Now()
	return nil
}

func (f *Fleet) outcome(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lost = err; err == nil {
		f.failures = 0
		return
	}
	f.failures++
	f.tried = time.Now()
}

// On passes the messages of a kind to call, until off is called: the name of the replica that sent
// it, and the payload as JSON. Messages of other replicas come one at a time; one that this replica
// sends to itself comes within Tell. call must not block.
func (f *Fleet) On(kind string, call func(from string, payload []byte)) (off func()) {
	h := (*handler)(&call)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.handlers[kind] = append(slices.Clip(f.handlers[kind]), h) // a copy: others may be calling the handlers
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.handlers[kind] = slices.DeleteFunc(slices.Clone(f.handlers[kind]), func(other *handler) bool { return other == h })
	}
}

// OnMissed calls call when messages of other replicas may have been lost, until off is called. It
// must not block.
func (f *Fleet) OnMissed(call func()) (off func()) {
	return f.On(kindMissed, func(string, []byte) { call() })
}

// Tell sends a message to a replica, or to all others if to is "". It does not wait, and the message
// may be lost. It returns false if the message is not sent: before Start, after Close, if too many
// others wait, and if the payload does not encode to JSON, which is logged.
func (f *Fleet) Tell(to, kind string, payload any) (sent bool) {
	text, err := json.Marshal(payload)
	if err != nil {
		f.opts.Logger.Error("fleet: a message was not encoded", "kind", kind, "error", err)
		return false
	}
	if to == f.replica {
		f.dispatch(message{From: f.replica, Kind: kind, Payload: text})
		return true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.started || f.closed {
		return false
	}
	if len(f.queue) == maxWaiting || f.waiting+len(text) > maxWaitingBytes {
		f.overflow = true
		return false
	}
	f.waiting += len(text)
	f.queue <- message{f.replica, kind, text, to} // there is room: mu is held wherever one is added
	return true
}

const kindMissed = "missed" // of messages that say that others were lost

// send publishes what Tell left.
func (f *Fleet) send(ctx context.Context) {
	for {
		var m message
		select {
		case m = <-f.queue:
		case <-ctx.Done():
			return
		}
		topic := everyone
		if m.to != "" {
			topic = "r-" + m.to
		}
		err := f.publish(ctx, topic, m)
		f.mu.Lock()
		f.waiting -= len(m.Payload)
		f.overflow = f.overflow || err != nil
		if f.overflow && err == nil && len(f.queue) == 0 {
			f.overflow = false
			f.queue <- message{From: f.replica, Kind: kindMissed}
		}
		f.mu.Unlock()
	}
}

func (f *Fleet) publish(ctx context.Context, topic string, m message) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	data := f.opts.Seal("bus/"+topic, text)
	return f.do(ctx, "Publish", "", checkMessage(topic, data), func(ctx context.Context) error { return f.engine.Publish(ctx, topic, data) })
}

// deliver takes a message of the bus.
func (f *Fleet) deliver(topic string, data []byte) {
	text, err := f.opts.Open("bus/"+topic, data)
	var m message
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	switch {
	case err != nil:
		f.opts.Logger.Warn("fleet: a message of another replica cannot be read; do all replicas have the same StateKeys?", "error", err)
	case m.From == f.replica:
	default:
		f.dispatch(m)
	}
}

func (f *Fleet) dispatch(m message) {
	f.mu.Lock()
	handlers := f.handlers[m.Kind]
	f.mu.Unlock()
	for _, h := range handlers {
		(*h)(m.From, m.Payload)
	}
}

func (f *Fleet) tellMissed() { f.dispatch(message{Kind: kindMissed}) }

// Digest returns a name for keys and groups that does not tell what it stands for: 43 characters.
// Session IDs and principals are never stored as such.
func Digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// A Set is a named set of sealed records. Its methods are those of [Records]; besides the errors
// there, they return an [*UnavailableError], and [ErrNewer]. They are safe for concurrent use.
type Set struct {
	f      *Fleet
	name   string
	format byte
}

// Set returns the set with the name. The format is the version of what its data means: records of a
// higher format are left alone. Extensions name their sets after themselves: "x-example-board".
func (f *Fleet) Set(name string, format byte) *Set { return &Set{f, name, format} }

func (s *Set) seal(r Record) Record {
	r.Data = s.f.opts.Seal("set/"+s.name+"/"+r.Key, append([]byte{s.format}, r.Data...))
	return r
}

func (s *Set) open(r Record) (Record, error) {
	plain, err := s.f.opts.Open("set/"+s.name+"/"+r.Key, r.Data)
	switch {
	case err != nil || len(plain) == 0:
		return Record{}, fmt.Errorf("fleet: set %s: %w", s.name, cmp.Or(err, errors.New("the record is empty")))
	case plain[0] > s.format:
		return Record{}, ErrNewer
	}
	r.Data = plain[1:]
	return r, nil
}

// Get returns a record. A record that was not sealed by this server is an error.
func (s *Set) Get(ctx context.Context, key string) (Record, error) {
	r, err := get(ctx, s.f, "Get", s.name, CheckNames(s.name, key), func(ctx context.Context) (Record, error) {
		return s.f.engine.Get(ctx, s.name, key)
	})
	if err != nil {
		return Record{}, err
	}
	return s.open(r)
}

// Create adds a record.
func (s *Set) Create(ctx context.Context, r Record) (revision uint64, err error) {
	r = s.seal(r)
	return get(ctx, s.f, "Create", s.name, checkRecord(s.name, r), func(ctx context.Context) (uint64, error) {
		return s.f.engine.Create(ctx, s.name, r)
	})
}

// Update replaces a record whose revision is r.Revision.
func (s *Set) Update(ctx context.Context, r Record) (revision uint64, err error) {
	r = s.seal(r)
	return get(ctx, s.f, "Update", s.name, checkRecord(s.name, r), func(ctx context.Context) (uint64, error) {
		return s.f.engine.Update(ctx, s.name, r)
	})
}

// Change creates or replaces the record of a key, again and again until nobody else has changed it
// meanwhile. edit completes what it becomes, with TTL and Due; Revision is 0 if there is none yet. If
// edit returns an error, Change returns it, and the record stays as it is.
func (s *Set) Change(ctx context.Context, key string, edit func(r *Record) error) (revision uint64, err error) {
	for {
		r, err := s.Get(ctx, key)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return 0, err
		}
		r.Key = key
		if err := edit(&r); err != nil {
			return 0, err
		}
		write := s.Update
		if r.Revision == 0 {
			write = s.Create
		}
		revision, err = write(ctx, r)
		if !errors.Is(err, ErrConflict) && !errors.Is(err, ErrExists) && !errors.Is(err, ErrNotFound) {
			return revision, err
		}
	}
}

// Delete deletes a record.
func (s *Set) Delete(ctx context.Context, key string, revision uint64) error {
	return s.f.do(ctx, "Delete", s.name, CheckNames(s.name, key), func(ctx context.Context) error {
		return s.f.engine.Delete(ctx, s.name, key, revision)
	})
}

// Due returns records that are due. Records that cannot be opened are left out and logged.
func (s *Set) Due(ctx context.Context, within time.Duration, limit int) ([]Record, error) {
	all, err := get(ctx, s.f, "Due", s.name, cmp.Or(CheckNames(s.name), checkLimit(limit)), func(ctx context.Context) ([]Record, error) {
		return s.f.engine.Due(ctx, s.name, max(within, 0), limit)
	})
	return s.openAll(all), err
}

// List returns records of a group. Records that cannot be opened are left out and logged.
func (s *Set) List(ctx context.Context, group, after string, limit int) ([]Record, error) {
	invalid := cmp.Or(CheckNames(s.name, group), checkOptional(after), checkLimit(limit))
	all, err := get(ctx, s.f, "List", s.name, invalid, func(ctx context.Context) ([]Record, error) {
		return s.f.engine.List(ctx, s.name, group, after, limit)
	})
	return s.openAll(all), err
}

func (s *Set) openAll(all []Record) []Record {
	opened := all[:0]
	for _, r := range all {
		plain, err := s.open(r)
		if err != nil {
			s.LeaveOut(r.Key, err)
			continue
		}
		opened = append(opened, plain)
	}
	return opened
}

// LeaveOut logs that a record was left out because it is damaged, once an hour for each record. It
// shows only the beginning of the key, which may be a secret.
func (s *Set) LeaveOut(key string, err error) {
	f, id := s.f, s.name+"/"+key
	f.mu.Lock()
	known := time.Since(f.leftOut[id]) < time.Hour
	if len(f.leftOut) >= maxLeftOut {
		clear(f.leftOut)
	}
	if !known {
		f.leftOut[id] = time.Now()
	}
	f.mu.Unlock()
	if !known {
		f.opts.Logger.Warn("fleet: a record was left out", "set", s.name, "key", key[:min(len(key), 8)], "error", err)
	}
}

// Count returns how many records a group has, or the set if group is "".
func (s *Set) Count(ctx context.Context, group string) (int, error) {
	return get(ctx, s.f, "Count", s.name, cmp.Or(CheckNames(s.name), checkOptional(group)), func(ctx context.Context) (int, error) {
		return s.f.engine.Count(ctx, s.name, group)
	})
}

func entryID(group, log string, seq uint64) string {
	return fmt.Sprintf("log/%s/%s/%d", group, log, seq)
}

// Append adds an entry to a log, as [Logs] says.
func (f *Fleet) Append(ctx context.Context, group, log string, e Entry, keep Keep) error {
	e.Data = f.opts.Seal(entryID(group, log, e.Seq), e.Data)
	return f.do(ctx, "Append", "", checkEntry(group, log, e, keep), func(ctx context.Context) error {
		return f.engine.Append(ctx, group, log, e, keep)
	})
}

// After returns entries of a log, as [Logs] says. It ends before an entry that cannot be opened.
func (f *Fleet) After(ctx context.Context, group, log string, seq uint64, limit int) ([]Entry, error) {
	all, err := get(ctx, f, "After", "", cmp.Or(CheckNames(group, log), checkLimit(limit)), func(ctx context.Context) ([]Entry, error) {
		return f.engine.After(ctx, group, log, seq, limit)
	})
	for i := range all {
		plain, bad := f.opts.Open(entryID(group, log, all[i].Seq), all[i].Data)
		if bad != nil {
			return all[:i], fmt.Errorf("fleet: an entry of a log: %w", bad)
		}
		all[i].Data = plain
	}
	return all, err
}

// Drop deletes the logs of a group.
func (f *Fleet) Drop(ctx context.Context, group string) error {
	return f.do(ctx, "Drop", "", CheckNames(group), func(ctx context.Context) error { return f.engine.Drop(ctx, group) })
}

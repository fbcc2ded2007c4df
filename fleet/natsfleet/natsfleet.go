// Package natsfleet is an engine of package fleet on NATS JetStream, version 2.12 or newer. Any
// number of replicas share it. Package natsserver runs the server inside of the replicas.
//
// The URLs of fleet.Open are those of a server, such as nats://user:password@host:4222. The parameters
// prefix, replicas, memory (true or false), maxbytes and domain are those of [Options]. The connection
// is made in the background, and again whenever it breaks.
//
// Records and logs are messages of two streams, which the engine makes at their first use. What a
// method has written is where the server keeps acknowledged messages: on the disks of a majority of
// Options.Replicas servers. A server writes to its disk at once, but it syncs the file only every
// two minutes unless it is configured with "sync_interval: always". So a single server without that
// setting loses up to two minutes when its machine loses power, and nothing when its process is
// killed. Messages of the bus are not stored.
//
// Due, List and Count use an index in memory. It has an entry for each record of the sets that they
// were called for, in each replica. To keep it up to date, a call reads the records of the set that
// changed since the call before.
//
// When a server of a cluster is killed, those that it led elect another leader, which takes up to 10
// seconds. Until then, operations on their streams fail.
package natsfleet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mcpkit/mcpkit-go/fleet"
)

// Options configures an [Engine]. The zero value is valid.
type Options struct {
	// Prefix is the first token of all subjects, and how the names of the streams begin: 1 to 64
	// characters of A-Z, a-z, 0-9, "_" and "-". Servers that share nothing have different ones. The
	// default is "mcpkit".
	Prefix string

	// Replicas is how many servers keep a copy of each stream: 1, 3 or 5. The default is 1. It is
	// used when the streams are made; change those that exist with the tools of NATS, and then
	// restart all replicas.
	Replicas int

	// Memory keeps the streams in the memory of the servers instead of in files.
	Memory bool

	// MaxBytes limits the size of each of the two streams. Writes beyond it are refused. Zero means
	// the limits of the account.
	MaxBytes int64

	// Domain is the JetStream domain of the streams; "" for that of the connection.
	Domain string
}

const (
	// maxOperation limits operations whose context does not end earlier.
	//
	//limit:server time that an operation on NATS may take | an error
	maxOperation = 10 * time.Second

	// Reads are sent again after this time, which then doubles: while a cluster elects a leader, no
	// server answers.
	patience = 400 * time.Millisecond

	clockAge = 30 * time.Second // after which the clock of the server is read again
)

// An Engine is a [fleet.Engine] on NATS JetStream. Make one with [New].
type Engine struct {
	nc   *nats.Conn
	js   jetstream.JetStream // nil if broken is set
	opts Options
	api  string // how the subjects of JetStream requests begin

	broken error         // the options are invalid
	skew   time.Duration // in tests, by which the clock of the server is ahead

	mu      sync.Mutex
	streams map[string]*stream // by kind; guarded by mu
	indexes map[string]*index  // by set; guarded by mu
	bus     *bus               // guarded by mu
	janitor bool               // it runs; guarded by mu
	clock   clock              // guarded by mu

	gone  atomic.Uint64     // how often nobody answered
	facts *recent[fact]     // what is known of revisions, by set and key
	tails *recent[*logTail] // of logs, by group and log

	ctx   context.Context // ends with Close
	end   context.CancelFunc
	ended sync.WaitGroup
	close func() // the connection of fleet.Open; nil otherwise
}

var _ fleet.Engine = (*Engine)(nil)

// New returns an engine that uses the connection, which the caller closes after the engine. It does
// not use the network. Nil options mean the defaults. If an option is invalid, all methods return an
// error that says so.
//
// The connection should be made with nats.MaxReconnects(-1), so that it never gives up.
func New(nc *nats.Conn, opts *Options) *Engine {
	e := &Engine{
		nc: nc, streams: map[string]*stream{}, indexes: map[string]*index{},
		facts: newRecent[fact](maxFacts), tails: newRecent[*logTail](maxTails), api: "$JS.API.",
	}
	if opts != nil {
		e.opts = *opts
	}
	e.opts.Prefix = cmp.Or(e.opts.Prefix, "mcpkit")
	e.opts.Replicas = cmp.Or(e.opts.Replicas, 1)
	e.ctx, e.end = context.WithCancel(context.Background())
	if err := fleet.CheckNames(e.opts.Prefix); err != nil {
		e.broken = fmt.Errorf("natsfleet: Options.Prefix: %w", err)
		return e
	}
	if e.opts.Domain != "" {
		e.api = "$JS." + e.opts.Domain + ".API."
		e.js, e.broken = jetstream.NewWithDomain(nc, e.opts.Domain)
	} else {
		e.js, e.broken = jetstream.New(nc)
	}
	return e
}

// Close ends the subscriptions of the engine. The connection stays open.
func (e *Engine) Close() error {
	e.mu.Lock()
	e.end()
	e.mu.Unlock() // no operation starts after this
	e.ended.Wait()
	if e.close != nil {
		e.close()
	}
	return nil
}

// Ping reports whether JetStream answers.
func (e *Engine) Ping(ctx context.Context) error {
	ctx, cancel, err := e.begin(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	s, err := e.open(ctx, records)
	if err != nil {
		return err
	}
	return e.call(ctx, "STREAM.INFO."+s.name, struct{}{}, nil)
}

// errClosed is what methods return after Close.
var errClosed = errors.New("natsfleet: the engine is closed")

// begin returns the context of an operation.
func (e *Engine) begin(ctx context.Context) (context.Context, context.CancelFunc, error) {
	if e.broken != nil {
		return nil, nil, e.broken
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	if e.ctx.Err() != nil {
		return nil, nil, errClosed
	}
	ctx, cancel := context.WithTimeout(ctx, maxOperation)
	return ctx, cancel, nil
}

// connected waits for the connection. Requests that are sent without one would wait in a buffer, and
// have their effect long after their caller got an error.
func (e *Engine) connected(ctx context.Context) error {
	if e.nc.IsConnected() {
		return nil
	}
	changes := e.nc.StatusChanged(nats.CONNECTED, nats.CLOSED)
	defer e.nc.RemoveStatusListener(changes)
	for !e.nc.IsConnected() {
		if e.nc.IsClosed() {
			return nats.ErrConnectionClosed
		}
		select {
		case <-changes:
		case <-ctx.Done():
			return fmt.Errorf("natsfleet: %w: %w", nats.ErrDisconnected, context.Cause(ctx))
		}
	}
	return nil
}

// An apiError is what JetStream says of a request that it refused.
type apiError struct {
	Code        int    `json:"code"`
	ErrCode     int    `json:"err_code"`
	Description string `json:"description"`
}

func (e *apiError) Error() string {
	return fmt.Sprintf("natsfleet: %s (%d)", e.Description, e.ErrCode)
}

// Codes of errors of JetStream.
const (
	codeUnavailable    = 10008
	codeNoMessage      = 10037
	codeTooLarge       = 10054
	codeNoStream       = 10059
	codeWrongLast      = 10071
	codeWrongLastBusy  = 10164 // another message with this condition is on its way
	codeStreamOffline  = 10118
	codeTooManyPending = 10167
)

func isCode(err error, codes ...int) bool {
	if refused, ok := errors.AsType[*apiError](err); ok {
		return slices.Contains(codes, refused.ErrCode)
	}
	refused, ok := errors.AsType[*jetstream.APIError](err) // of the client of JetStream
	return ok && slices.Contains(codes, int(refused.ErrorCode))
}

// again reports whether the server did nothing, and will soon.
func again(err error) bool {
	return errors.Is(err, nats.ErrNoResponders) || isCode(err, codeUnavailable, codeStreamOffline, codeTooManyPending)
}

// retry calls f until it succeeds, fails for good, or ctx ends.
func retry(ctx context.Context, f func() error) error {
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, 200*time.Millisecond) {
		err := f()
		if err == nil || !again(err) || !pause(ctx, wait) {
			return err
		}
	}
}

// retryLate is retry for requests that may be repeated. Each may take patience, which doubles when
// that was not enough.
func retryLate(ctx context.Context, request func(ctx context.Context) error) error {
	patience := patience
	return retry(ctx, func() error {
		for ; ; patience *= 2 {
			try, cancel := context.WithTimeout(ctx, patience)
			err := request(try)
			late := try.Err() != nil
			cancel()
			if err == nil || !late || ctx.Err() != nil {
				return err
			}
		}
	})
}

// pause waits, and returns false if ctx ends before.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// request sends a request once, and decodes its response.
func (e *Engine) request(ctx context.Context, m *nats.Msg, result any) error {
	if err := e.connected(ctx); err != nil {
		return err
	}
	resp, err := e.nc.RequestMsgWithContext(ctx, m)
	if errors.Is(err, nats.ErrMaxPayload) {
		return fleet.ErrTooLarge
	}
	if err != nil {
		if errors.Is(err, nats.ErrNoResponders) {
			e.gone.Add(1)
		}
		return fmt.Errorf("natsfleet: %w", err)
	}
	var refused struct{ Error *apiError }
	if err := json.Unmarshal(resp.Data, &refused); err != nil {
		return fmt.Errorf("natsfleet: the response of the server: %w", err)
	}
	if refused.Error != nil {
		return refused.Error
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(resp.Data, result)
}

// call sends a request to the API of JetStream, again and again, since it may be repeated without
// harm.
func (e *Engine) call(ctx context.Context, subject string, body, result any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return retryLate(ctx, func(ctx context.Context) error {
		return e.request(ctx, &nats.Msg{Subject: e.api + subject, Data: data}, result)
	})
}

// publish adds a message to a stream if the last one of a subject is still the given one, 0 for none.
// The error is a codeWrongLast or codeWrongLastBusy if it is not. If the answer is late, publish
// sends the message again, and looks whether the first one arrived: when a server is killed, it takes
// the answers with it.
func (e *Engine) publish(ctx context.Context, s *stream, m *nats.Msg, lastOf string, last uint64) (seq uint64, err error) {
	id := nats.NewInbox() // unique
	m.Header.Set(headerID, id)
	m.Header.Set(headerAfter, strconv.FormatUint(last, 10))
	m.Header.Set("Nats-Expected-Last-Subject-Sequence", strconv.FormatUint(last, 10))
	if lastOf != m.Subject {
		m.Header.Set("Nats-Expected-Last-Subject-Sequence-Subject", lastOf)
	}
	var ack struct{ Seq uint64 }
	late := false
	err = retryLate(ctx, func(ctx context.Context) error {
		err := e.request(ctx, m, &ack)
		late = late || ctx.Err() != nil
		return err
	})
	if late && isCode(err, codeWrongLast) {
		there, lastErr := e.last(ctx, s, m.Subject)
		if lastErr != nil {
			return 0, lastErr
		}
		switch {
		case there == nil:
			return 0, errUncertain
		case there.header.Get(headerID) == id:
			return there.seq, nil
		case there.header.Get(headerAfter) != m.Header.Get(headerAfter):
			return 0, errUncertain // the message may have been there in between
		}
	}
	if isCode(err, codeTooLarge) {
		err = fleet.ErrTooLarge
	}
	return ack.Seq, err
}

// errUncertain is returned if a reply was lost and others have written since, so that nobody knows
// whether the message was stored.
var errUncertain = errors.New("natsfleet: a reply was lost; the change may have been made before another one")

// A stored message is one that a stream has.
type stored struct {
	subject string
	seq     uint64
	at      time.Time // by the clock of the server
	header  nats.Header
	data    []byte
}

// last returns the last message of a subject, which may have wildcards, or nil.
func (e *Engine) last(ctx context.Context, s *stream, subject string) (*stored, error) {
	return e.newest(ctx, s, getRequest{LastFor: subject})
}

// newest returns one message, or nil. It asks the leader of the stream: other servers may not have
// the newest messages yet.
func (e *Engine) newest(ctx context.Context, s *stream, req getRequest) (*stored, error) {
	if s.replicas == 1 {
		all, _, err := e.direct(ctx, s, req)
		if err != nil || len(all) == 0 {
			return nil, err
		}
		return all[0], nil
	}
	var got struct {
		Message struct {
			Subject string    `json:"subject"`
			Seq     uint64    `json:"seq"`
			Hdrs    []byte    `json:"hdrs"`
			Data    []byte    `json:"data"`
			Time    time.Time `json:"time"`
		} `json:"message"`
	}
	err := e.call(ctx, "STREAM.MSG.GET."+s.name, req, &got)
	if isCode(err, codeNoMessage) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m := &stored{subject: got.Message.Subject, seq: got.Message.Seq, at: got.Message.Time, data: got.Message.Data}
	if len(got.Message.Hdrs) > 0 {
		m.header, err = nats.DecodeHeadersMsg(got.Message.Hdrs)
	}
	e.see(m.at)
	return m, err
}

// A getRequest asks for messages of a stream.
type getRequest struct {
	Seq      uint64   `json:"seq,omitempty"`
	LastFor  string   `json:"last_by_subj,omitempty"`
	NextFor  string   `json:"next_by_subj,omitempty"`
	MultiFor []string `json:"multi_last,omitempty"`
	Batch    int      `json:"batch,omitempty"`
	MaxBytes int      `json:"max_bytes,omitempty"`
}

// direct asks any server that has the stream, which may not have the newest messages yet. more says
// that it has more of them.
func (e *Engine) direct(ctx context.Context, s *stream, req getRequest) (all []*stored, more bool, err error) {
	body, err := json.Marshal(req)
	if err != nil {
		return nil, false, err
	}
	patience := patience
	err = retry(ctx, func() error {
		for ; ; patience *= 2 {
			err := e.connected(ctx)
			if err != nil {
				return err
			}
			all, more, err = e.tryDirect(ctx, s, body, req.Batch == 0 && req.MultiFor == nil, patience)
			if !errors.Is(err, errLate) || ctx.Err() != nil {
				return err
			}
		}
	})
	return all, more, err
}

var errLate = errors.New("natsfleet: the server does not answer")

func (e *Engine) tryDirect(ctx context.Context, s *stream, body []byte, one bool, patience time.Duration) (all []*stored, more bool, err error) {
	sub, err := e.nc.SubscribeSync(e.nc.NewInbox())
	if err != nil {
		return nil, false, fmt.Errorf("natsfleet: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := e.nc.PublishRequest(e.api+"DIRECT.GET."+s.name, sub.Subject, body); err != nil {
		return nil, false, fmt.Errorf("natsfleet: %w", err)
	}
	for {
		wait, cancel := context.WithTimeout(ctx, patience)
		msg, err := sub.NextMsgWithContext(wait)
		cancel()
		if errors.Is(err, nats.ErrNoResponders) {
			e.gone.Add(1)
			return nil, false, err
		}
		if err != nil {
			return nil, false, cmp.Or(ctx.Err(), fmt.Errorf("%w: %w", errLate, err))
		}
		switch status := msg.Header.Get("Status"); status {
		case "":
			m := &stored{subject: msg.Header.Get("Nats-Subject"), header: msg.Header, data: msg.Data}
			m.seq, err = strconv.ParseUint(msg.Header.Get("Nats-Sequence"), 10, 64)
			if err == nil {
				m.at, err = time.Parse(time.RFC3339Nano, msg.Header.Get("Nats-Time-Stamp"))
			}
			if err != nil {
				return nil, false, fmt.Errorf("natsfleet: the response of the server: %w", err)
			}
			e.see(m.at)
			if all = append(all, m); one {
				return all, false, nil
			}
		case "204":
			pending, _ := strconv.Atoi(msg.Header.Get("Nats-Num-Pending"))
			return all, pending > 0, nil
		case "404":
			return nil, false, nil
		default:
			return nil, false, fmt.Errorf("natsfleet: the server says %s %s", status, msg.Header.Get("Description"))
		}
	}
}

// The kinds of streams.
const (
	records = "records"
	logs    = "logs"
)

// A stream is one that exists.
type stream struct {
	name     string
	created  time.Time
	replicas int
	state    uint64 // of the connection, when the stream was looked up
}

// open returns a stream, which it makes if it does not exist. After a reconnect, and when
// nobody has answered, it looks the stream up again: it may be another one.
func (e *Engine) open(ctx context.Context, kind string) (*stream, error) {
	state := e.nc.Stats().Reconnects + e.gone.Load()
	e.mu.Lock()
	s := e.streams[kind]
	e.mu.Unlock()
	if s != nil && s.state == state {
		return s, nil
	}
	if err := e.connected(ctx); err != nil {
		return nil, err
	}
	info, err := e.makeStream(ctx, kind)
	if err != nil {
		return nil, fmt.Errorf("natsfleet: stream %s: %w", e.streamName(kind), err)
	}
	found := &stream{name: info.Config.Name, created: info.Created, replicas: info.Config.Replicas, state: state}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.streams[kind] = found
	if s != nil && !s.created.Equal(found.created) { // it is another stream, with other numbers
		clear(e.indexes)
		e.facts.clear()
		e.tails.clear()
	}
	e.clock = clock{}
	return found, nil
}

func (e *Engine) streamName(kind string) string { return e.opts.Prefix + "-" + kind }

func (e *Engine) makeStream(ctx context.Context, kind string) (*jetstream.StreamInfo, error) {
	var found jetstream.Stream
	err := retryLate(ctx, func(ctx context.Context) (err error) {
		found, err = e.js.Stream(ctx, e.streamName(kind))
		return err
	})
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		config := jetstream.StreamConfig{
			Name: e.streamName(kind), Description: "state that replicas of an MCP server share",
			Subjects: []string{e.opts.Prefix + "." + kind + ".>"}, Replicas: e.opts.Replicas, MaxBytes: cmp.Or(e.opts.MaxBytes, -1),
			MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew, AllowMsgTTL: true, AllowDirect: true,
			Duplicates: time.Second, // which the engine does not use
		}
		if e.opts.Memory {
			config.Storage = jetstream.MemoryStorage
		}
		err = retryLate(ctx, func(ctx context.Context) (err error) {
			if found, err = e.js.CreateStream(ctx, config); errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
				found, err = e.js.Stream(ctx, e.streamName(kind)) // another replica was faster, with other options
			}
			return err
		})
	}
	if err != nil {
		return nil, err
	}
	info := found.CachedInfo()
	if c := info.Config; c.MaxMsgsPerSubject != 1 || !c.AllowMsgTTL || !c.AllowDirect || c.MaxAge != 0 {
		return nil, errors.New("it has other settings than the engine needs; remove it, or use another Options.Prefix")
	}
	return info, nil
}

// A clock is the difference between the clock of the server and that of this machine.
type clock struct {
	server time.Time // at the time read
	read   time.Time // with a monotonic part
	asked  time.Time // when the server was last asked
}

func (c clock) now() time.Time { return c.server.Add(time.Since(c.read)) }

// now returns the time of the server, within half of the time of a round trip.
func (e *Engine) now(ctx context.Context, s *stream) (time.Time, error) {
	e.mu.Lock()
	c := e.clock
	e.mu.Unlock()
	if !c.read.IsZero() && time.Since(c.asked) < clockAge {
		return c.now().Add(e.skew), nil
	}
	var info struct {
		TS time.Time `json:"ts"`
	}
	var begun, ended time.Time
	err := retryLate(ctx, func(ctx context.Context) error {
		begun = time.Now()
		err := e.request(ctx, &nats.Msg{Subject: e.api + "STREAM.INFO." + s.name}, &info)
		ended = time.Now()
		return err
	})
	if err == nil && info.TS.IsZero() {
		err = errors.New("natsfleet: the server does not say its time")
	}
	if err != nil {
		return time.Time{}, err
	}
	c = clock{server: info.TS, read: begun.Add(ended.Sub(begun) / 2), asked: ended}
	e.mu.Lock()
	e.clock = c
	e.mu.Unlock()
	return c.now().Add(e.skew), nil
}

// see sets the clock forward if the server made a message later than the clock says.
func (e *Engine) see(at time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if c := &e.clock; !c.read.IsZero() && c.now().Before(at) {
		c.server, c.read = at, time.Now()
	}
}

// A recent map keeps at least the last limit entries that were used, and at most twice as many.
type recent[V any] struct {
	mu       sync.Mutex
	limit    int
	now, old map[string]V // guarded by mu
}

func newRecent[V any](limit int) *recent[V] { return &recent[V]{limit: limit, now: map[string]V{}} }

func (r *recent[V]) get(key string) (v V, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if v, ok = r.now[key]; ok {
		return v, ok
	}
	if v, ok = r.old[key]; ok {
		r.put(key, v)
	}
	return v, ok
}

func (r *recent[V]) set(key string, v V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.put(key, v)
}

func (r *recent[V]) put(key string, v V) {
	if len(r.now) >= r.limit {
		r.old, r.now = r.now, map[string]V{}
	}
	r.now[key] = v
}

func (r *recent[V]) remove(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.now, key)
	delete(r.old, key)
}

func (r *recent[V]) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.now)
	clear(r.old)
}

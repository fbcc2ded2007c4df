// Package redisfleet is a [fleet.Engine] in Redis, version 6 or newer, or in Valkey: one server, a
// pair with Sentinel, or a cluster.
//
// # Durability
//
// An operation that returned without an error is as durable as a write to this Redis:
//
//   - With "appendonly yes" and "appendfsync always", nothing is lost when the server or its
//     machine stops.
//   - With "appendfsync everysec", the default of an append-only file, up to two seconds are lost
//     when the machine stops, and nothing when only the server stops.
//   - Without an append-only file, everything since the last snapshot is lost.
//   - Redis copies to its replicas asynchronously. A failover loses what the former primary had not
//     sent yet. Revisions are times, so a lost revision does not come back with other content.
//
// A session that is lost is gone for its client, which starts a new one; a task is gone, too.
// Messages of the bus are never stored.
//
// The option maxmemory-policy must be noeviction. With another one, Redis deletes sessions and
// tasks when its memory is full. With noeviction, writes fail then, and clients get a retryable
// error.
//
// # URLs
//
// The URLs of fleet.Open are those of redis.ParseURL, such as
// rediss://user:password@host:6379/0?pool_size=50. With at least one parameter addr=host:port it is
// the URL of a cluster. The parameter prefix is that of [Options].
//
// # Size
//
// In the memory of Redis, a record takes its data and about 450 bytes, or 950 if it has a group and
// a time when it is due; an entry of a log takes its data and about 120 bytes. So 100,000 sessions
// with records of 1 kB and 50 events of 1 kB each need about 6 GB. Each operation is one round trip
// and one script, for which Redis uses its only thread for 10 to 50 µs.
//
// # Clusters
//
// All keys of a script have the same hash tag: those of a set of records, and those of a group of
// logs. So a set is on one node. Messages of the bus all go through one node, so that they keep
// their order.
package redisfleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mcpkit/mcpkit-go/fleet"
)

// Options configures an [Engine]. The zero value and nil are ready to use. All replicas have the
// same prefix.
type Options struct {
	// Prefix begins all keys and channels. It has no braces. Empty means "mcpkit".
	Prefix string

	// Logger receives what go-redis reports, at level debug. go-redis has one logger for all clients
	// of the process. Nil leaves it as it is; for an engine of fleet.Open it is slog.Default.
	Logger *slog.Logger
}

// An Engine is a [fleet.Engine] in Redis. Create one with [New].
type Engine struct {
	client redis.UniversalClient
	prefix string
	close  func() error
	closed atomic.Bool
	bus    bus
}

var _ fleet.Engine = (*Engine)(nil)

var errClosed = errors.New("redisfleet: the engine was closed")

// New returns an engine with a client of the application, which closes it after the engine. The
// client needs the option ContextTimeoutEnabled: without it, go-redis ignores the deadlines of
// contexts. New does not connect.
func New(client redis.UniversalClient, opts *Options) (*Engine, error) {
	e := &Engine{client: client, prefix: "mcpkit", close: func() error { return nil }}
	if opts != nil {
		e.prefix = cmp.Or(opts.Prefix, e.prefix)
		if opts.Logger != nil {
			redis.SetLogger(logger{opts.Logger})
		}
	}
	if strings.ContainsAny(e.prefix, "{}") {
		return nil, fmt.Errorf("redisfleet: the prefix %q has braces", e.prefix)
	}
	single, _ := client.(*redis.Client)
	cluster, _ := client.(*redis.ClusterClient)
	if single != nil && !single.Options().ContextTimeoutEnabled || cluster != nil && !cluster.Options().ContextTimeoutEnabled {
		return nil, errors.New("redisfleet: the client ignores deadlines; set ContextTimeoutEnabled in its options")
	}
	e.bus.init(client, e.prefix+":{bus}:")
	return e, nil
}

// logger is the logger of go-redis.
type logger struct{ *slog.Logger }

// Printf logs a line, which an operation that fails has in its error, too.
func (l logger) Printf(ctx context.Context, format string, args ...any) {
	l.DebugContext(ctx, "redisfleet: "+fmt.Sprintf(format, args...))
}

func init() {
	fleet.Register("redis", open)
	fleet.Register("rediss", open)
}

// open returns an engine with a client of its own, which Close closes. It does not connect yet.
func open(_ context.Context, u *url.URL) (*Engine, error) {
	query := u.Query()
	opts := Options{Prefix: query.Get("prefix"), Logger: slog.Default()}
	query.Del("prefix")
	u.RawQuery = query.Encode()

	var client redis.UniversalClient
	if query.Has("addr") {
		cluster, err := redis.ParseClusterURL(u.String())
		if err != nil {
			return nil, fmt.Errorf("redisfleet: the URL: %w", err)
		}
		cluster.ContextTimeoutEnabled = true
		client = redis.NewClusterClient(cluster)
	} else {
		single, err := redis.ParseURL(u.String())
		if err != nil {
			return nil, fmt.Errorf("redisfleet: the URL: %w", err)
		}
		single.ContextTimeoutEnabled = true
		client = redis.NewClient(single)
	}
	e, err := New(client, &opts)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	e.close = client.Close
	return e, nil
}

// Close implements [fleet.Engine]. It ends the subscriptions.
func (e *Engine) Close() error {
	if e.closed.Swap(true) {
		return nil
	}
	e.bus.close()
	return e.close()
}

// begin returns an error if ctx has ended or the engine is closed.
func (e *Engine) begin(ctx context.Context) error {
	if e.closed.Load() {
		return errClosed
	}
	return ctx.Err()
}

// failure returns an error of the client for callers.
func failure(err error) error {
	switch {
	case err == nil:
		return nil
	case redis.HasErrorPrefix(err, "OOM"):
		err = fleet.ErrFull
	case errors.Is(err, os.ErrDeadlineExceeded): // of the connection, a moment before that of the context
		err = context.DeadlineExceeded
	}
	return fmt.Errorf("redisfleet: %w", err)
}

func (e *Engine) eval(ctx context.Context, script *redis.Script, keys []string, args ...any) (any, error) {
	if err := e.begin(ctx); err != nil {
		return nil, err
	}
	reply, err := script.Run(ctx, e.client, keys, args...).Result()
	return reply, failure(err)
}

// set returns what the keys of a set of records, or of a group of logs, begin with.
func (e *Engine) set(name string) string { return e.prefix + ":{" + name + "}:" }

// keys returns the keys of a record and of the indexes of its set.
func (e *Engine) keys(set, key string) []string {
	begin := e.set(set)
	return append([]string{begin + "r:" + key}, indexes(begin)...)
}

func indexes(begin string) []string {
	return []string{begin + "expires", begin + "due", begin + "groups"}
}

// What scripts return instead of a revision.
const (
	notFound = "-1"
	conflict = "-2"
)

// A nonce identifies a change, which the client sends again when a connection fails. The script
// recognizes the change if it was the last one of the record. If not, the reply tells nothing.
type nonce struct {
	text string
	sent int // how often it was sent
}

// MarshalBinary is called whenever the client sends the command.
func (n *nonce) MarshalBinary() ([]byte, error) {
	n.sent++
	return []byte(n.text), nil
}

var errUncertain = errors.New("redisfleet: the connection failed, and whether the change was made is not known")

// change runs a script that changes something. Its last argument is the nonce.
func (e *Engine) change(ctx context.Context, script *redis.Script, conflicts error, keys []string, args ...any) (revision uint64, err error) {
	if err := e.begin(ctx); err != nil {
		return 0, err
	}
	n := &nonce{text: strconv.FormatUint(rand.Uint64(), 36)}
	args = append(args, n)
	reply, err := script.EvalSha(ctx, e.client, keys, args...).Text()
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		n.sent = 0
		reply, err = script.Eval(ctx, e.client, keys, args...).Text()
	}
	refused := reply == notFound || reply == conflict
	switch {
	case err != nil:
		return 0, failure(err)
	case refused && n.sent > 1:
		return 0, errUncertain
	case reply == notFound:
		return 0, fleet.ErrNotFound
	case reply == conflict:
		return 0, conflicts
	}
	return strconv.ParseUint(reply, 10, 64)
}

func milliseconds(d time.Duration) int64 { return (d + time.Millisecond - 1).Milliseconds() }

// microseconds returns when a record is due; -1 for never.
func microseconds(due time.Duration) int64 {
	if due == 0 {
		return -1
	}
	return (due - fleet.AtOnce).Microseconds()
}

// Get implements [fleet.Records].
func (e *Engine) Get(ctx context.Context, set, key string) (fleet.Record, error) {
	reply, err := e.eval(ctx, getScript, e.keys(set, key)[:1], key)
	if err != nil {
		return fleet.Record{}, err
	}
	all, err := records(reply)
	if err == nil && len(all) == 0 {
		err = fleet.ErrNotFound
	}
	if err != nil {
		return fleet.Record{}, err
	}
	return all[0], nil
}

// Create implements [fleet.Records].
func (e *Engine) Create(ctx context.Context, set string, r fleet.Record) (uint64, error) {
	return e.change(ctx, createScript, fleet.ErrExists, e.keys(set, r.Key), r.Key, r.Data, milliseconds(r.TTL), microseconds(r.Due), r.Group)
}

// Update implements [fleet.Records].
func (e *Engine) Update(ctx context.Context, set string, r fleet.Record) (uint64, error) {
	return e.change(ctx, updateScript, fleet.ErrConflict, e.keys(set, r.Key), r.Key, r.Data, milliseconds(r.TTL), microseconds(r.Due), r.Revision)
}

// Delete implements [fleet.Records].
func (e *Engine) Delete(ctx context.Context, set, key string, revision uint64) error {
	_, err := e.change(ctx, deleteScript, fleet.ErrConflict, e.keys(set, key), key, revision)
	return err
}

// records decodes the reply of a script.
func records(reply any) ([]fleet.Record, error) {
	rows, ok := reply.([]any)
	if !ok {
		return nil, fmt.Errorf("redisfleet: the reply is %T", reply)
	}
	all := make([]fleet.Record, 0, len(rows))
	for _, row := range rows {
		fields, _ := row.([]any)
		if len(fields) != 5 {
			return nil, fmt.Errorf("redisfleet: a record has %d fields", len(fields))
		}
		text := func(i int) string { s, _ := fields[i].(string); return s }
		ttl, _ := fields[4].(int64)
		revision, err := strconv.ParseUint(text(2), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("redisfleet: a record: %w", err)
		}
		all = append(all, fleet.Record{
			Key: text(0), Data: []byte(text(1)), Group: text(3), Revision: revision, TTL: time.Duration(max(ttl, 1)) * time.Millisecond,
		})
	}
	return all, nil
}

// evalSet runs a script with the indexes of a set.
func (e *Engine) evalSet(ctx context.Context, set string, script *redis.Script, args ...any) (any, error) {
	begin := e.set(set)
	return e.eval(ctx, script, indexes(begin), append([]any{begin + "r:"}, args...)...)
}

// Due implements [fleet.Records].
func (e *Engine) Due(ctx context.Context, set string, within time.Duration, limit int) ([]fleet.Record, error) {
	reply, err := e.evalSet(ctx, set, dueScript, limit, within.Microseconds())
	if err != nil {
		return nil, err
	}
	return records(reply)
}

// List implements [fleet.Records].
func (e *Engine) List(ctx context.Context, set, group, after string, limit int) ([]fleet.Record, error) {
	reply, err := e.evalSet(ctx, set, listScript, limit, group, after)
	if err != nil {
		return nil, err
	}
	return records(reply)
}

// Count implements [fleet.Records].
func (e *Engine) Count(ctx context.Context, set, group string) (int, error) {
	reply, err := e.evalSet(ctx, set, countScript, group)
	n, _ := reply.(int64)
	return int(n), err
}

// Append implements [fleet.Logs].
func (e *Engine) Append(ctx context.Context, group, log string, entry fleet.Entry, keep fleet.Keep) error {
	g := e.set(group)
	keys := []string{g + "l:" + log, g + "logs"}
	_, err := e.change(ctx, appendScript, fleet.ErrConflict, keys, log, entry.Seq, entry.Data, keep.Entries, keep.Bytes, milliseconds(keep.TTL))
	return err
}

// After implements [fleet.Logs].
func (e *Engine) After(ctx context.Context, group, log string, seq uint64, limit int) ([]fleet.Entry, error) {
	reply, err := e.eval(ctx, afterScript, []string{e.set(group) + "l:" + log}, seq, limit)
	if err != nil {
		return nil, err
	}
	rows, _ := reply.([]any)
	all := make([]fleet.Entry, 0, len(rows)/2)
	for i := 0; i+1 < len(rows); i += 2 {
		id, _ := rows[i].(string)
		data, _ := rows[i+1].(string)
		seq, err := sequence(id)
		if err != nil {
			return nil, err
		}
		all = append(all, fleet.Entry{Seq: seq, Data: []byte(data)})
	}
	return all, nil
}

// sequence decodes the ID of an entry of a stream: "7-0".
func sequence(id string) (uint64, error) {
	number, _, _ := strings.Cut(id, "-")
	seq, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("redisfleet: the entry %q: %w", id, err)
	}
	return seq, nil
}

// Drop implements [fleet.Logs].
func (e *Engine) Drop(ctx context.Context, group string) error {
	for {
		g := e.set(group)
		reply, err := e.eval(ctx, dropScript, []string{g + "logs"}, g+"l:", dropped)
		if err != nil {
			return err
		}
		if n, _ := reply.(int64); n < dropped {
			return nil
		}
	}
}

// dropped is how many logs one script deletes at most.
const dropped = 500

// Publish implements [fleet.Bus].
func (e *Engine) Publish(ctx context.Context, topic string, data []byte) error {
	if err := e.begin(ctx); err != nil {
		return err
	}
	return failure(e.bus.publish(ctx, topic, data))
}

// Subscribe implements [fleet.Bus]. All subscriptions of an engine share one connection. If Redis
// does not confirm the subscription within five seconds, that is an error.
func (e *Engine) Subscribe(ctx context.Context, topics []string, deliver func(topic string, data []byte), missed func()) error {
	if err := e.begin(ctx); err != nil {
		return err
	}
	return e.bus.subscribe(ctx, topics, deliver, missed)
}

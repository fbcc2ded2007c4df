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
// the URL of a cluster. The parameters prefix and shards are those of [Options].
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
// logs. So a set is on one node unless Options.Shards spreads it. Due, List and Count then ask all
// shards. Messages of the bus all go through one node, so that they keep their order.
package redisfleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mcpkit/mcpkit-go/fleet"
)

// Options configures an [Engine]. The zero value and nil are ready to use. All replicas have the
// same options.
type Options struct {
	// Prefix begins all keys and channels. It has no braces. Empty means "mcpkit".
	Prefix string

	// Shards is the number of parts of each set of records, which a cluster may put on different
	// nodes. Due, List and Count ask all parts. Records are not found by replicas with another
	// number. Zero means 1.
	Shards int
}

// An Engine is a [fleet.Engine] in Redis. Create one with [New].
//
// Its methods return when their context ends. The command may go on for as long as the timeouts of
// the client allow, so a client for many callers should have a ReadTimeout of a few seconds, which
// is the default.
type Engine struct {
	client redis.UniversalClient
	prefix string
	shards int
	fault  error // of the options
	close  func() error
	closed atomic.Bool
	bus    bus
}

var _ fleet.Engine = (*Engine)(nil)

var errClosed = errors.New("redisfleet: the engine was closed")

// New returns an engine with a client of the application, which closes it after the engine. It does
// not connect yet. A prefix that is not allowed is the error of all methods.
func New(client redis.UniversalClient, opts *Options) *Engine {
	e := &Engine{client: client, prefix: "mcpkit", shards: 1, close: func() error { return nil }}
	if opts != nil {
		e.prefix, e.shards = cmp.Or(opts.Prefix, e.prefix), max(opts.Shards, 1)
	}
	if strings.ContainsAny(e.prefix, "{}") {
		e.fault = fmt.Errorf("redisfleet: the prefix %q has braces", e.prefix)
	}
	e.bus.init(client, e.prefix+":{bus}:")
	return e
}

// Ping implements [fleet.Engine].
func (e *Engine) Ping(ctx context.Context) error {
	_, err := e.do(ctx, func(ctx context.Context) (any, error) { return nil, e.client.Ping(ctx).Err() })
	return err
}

// Close implements [fleet.Engine]. It ends the subscriptions.
func (e *Engine) Close() error {
	if e.closed.Swap(true) {
		return nil
	}
	e.bus.close()
	return e.close()
}

// do runs a command until ctx ends. Clients of Redis do not return when a context is cancelled, and
// by default they ignore its deadline.
func (e *Engine) do(ctx context.Context, run func(ctx context.Context) (any, error)) (any, error) {
	if err := cmp.Or(e.fault, ctx.Err()); err != nil {
		return nil, err
	}
	if e.closed.Load() {
		return nil, errClosed
	}
	type result struct {
		value any
		err   error
	}
	done := make(chan result, 1)
	// Ends with the timeouts of the client.
	go func() {
		value, err := run(ctx)
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		if r.err != nil {
			r.err = fmt.Errorf("redisfleet: %w", r.err)
		}
		return r.value, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (e *Engine) eval(ctx context.Context, script *redis.Script, keys []string, args ...any) (any, error) {
	return e.do(ctx, func(ctx context.Context) (any, error) { return script.Run(ctx, e.client, keys, args...).Result() })
}

// A shard is a part of a set: the beginning of its keys.
func (e *Engine) shard(set string, n int) string { return fmt.Sprintf("%s:{%s:%d}:", e.prefix, set, n) }

// keys returns the keys of the scripts that change a record.
func (e *Engine) keys(set, key string) []string {
	n := 0
	if e.shards > 1 {
		h := fnv.New32a()
		_, _ = h.Write([]byte(key))
		n = int(h.Sum32() % uint32(e.shards))
	}
	shard := e.shard(set, n)
	return append([]string{shard + "r:" + key}, indexes(shard)...)
}

// indexes returns the keys of the sorted sets of a shard.
func indexes(shard string) []string {
	return []string{shard + "expires", shard + "due", shard + "groups"}
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

func newNonce() *nonce { return &nonce{text: strconv.FormatUint(rand.Uint64(), 36)} }

// MarshalBinary is called whenever the client sends the command.
func (n *nonce) MarshalBinary() ([]byte, error) {
	n.sent++
	return []byte(n.text), nil
}

var errUncertain = errors.New("redisfleet: the connection failed, and whether the change was made is not known")

// change runs a script that changes something. Its last argument is the nonce.
func (e *Engine) change(ctx context.Context, script *redis.Script, conflicts error, keys []string, args ...any) (revision uint64, err error) {
	n := newNonce()
	args = append(args, n)
	reply, err := e.do(ctx, func(ctx context.Context) (any, error) {
		reply, err := script.EvalSha(ctx, e.client, keys, args...).Result()
		if redis.HasErrorPrefix(err, "NOSCRIPT") {
			n.sent = 0
			reply, err = script.Eval(ctx, e.client, keys, args...).Result()
		}
		text, _ := reply.(string)
		if err == nil && n.sent > 1 && (text == notFound || text == conflict) {
			err = errUncertain
		}
		return reply, err
	})
	if err != nil {
		return 0, err
	}
	switch text, _ := reply.(string); text {
	case notFound:
		return 0, fleet.ErrNotFound
	case conflict:
		return 0, conflicts
	default:
		return strconv.ParseUint(text, 10, 64)
	}
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
	return all[0].Record, nil
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

// A found record has a place in the order of its list.
type found struct {
	fleet.Record
	due float64 // since when, in microseconds
}

// records decodes the reply of a script.
func records(reply any) ([]found, error) {
	rows, ok := reply.([]any)
	if !ok {
		return nil, fmt.Errorf("redisfleet: the reply is %T", reply)
	}
	all := make([]found, 0, len(rows))
	for _, row := range rows {
		fields, _ := row.([]any)
		if len(fields) != 6 {
			return nil, fmt.Errorf("redisfleet: a record has %d fields", len(fields))
		}
		text := func(i int) string { s, _ := fields[i].(string); return s }
		var r found
		var err error
		r.Key, r.Data, r.Group = text(0), []byte(text(1)), text(3)
		ttl, _ := fields[4].(int64)
		r.TTL = time.Duration(max(ttl, 1)) * time.Millisecond
		if r.Revision, err = strconv.ParseUint(text(2), 10, 64); err == nil {
			r.due, err = strconv.ParseFloat(text(5), 64)
		}
		if err != nil {
			return nil, fmt.Errorf("redisfleet: a record: %w", err)
		}
		all = append(all, r)
	}
	return all, nil
}

// each runs a script for each shard of a set, at the same time, and returns the replies.
func (e *Engine) each(ctx context.Context, set string, script *redis.Script, args ...any) ([]any, error) {
	replies, errs := make([]any, e.shards), make([]error, e.shards)
	var all sync.WaitGroup
	for n := range e.shards {
		ask := func() {
			shard := e.shard(set, n)
			replies[n], errs[n] = e.eval(ctx, script, indexes(shard), append([]any{shard + "r:"}, args...)...)
		}
		if e.shards == 1 {
			ask()
		} else {
			all.Go(ask)
		}
	}
	all.Wait()
	return replies, cmp.Or(errs...)
}

// merge returns the first records of all shards.
func merge(replies []any, err error, limit int, order func(a, b found) int) ([]fleet.Record, error) {
	var all []found
	for _, reply := range replies {
		if err != nil {
			return nil, err
		}
		var some []found
		some, err = records(reply)
		all = append(all, some...)
	}
	if len(replies) > 1 {
		slices.SortStableFunc(all, order)
	}
	list := make([]fleet.Record, min(limit, len(all)))
	for i := range list {
		list[i] = all[i].Record
	}
	return list, err
}

// Due implements [fleet.Records].
func (e *Engine) Due(ctx context.Context, set string, limit int) ([]fleet.Record, error) {
	replies, err := e.each(ctx, set, dueScript, limit)
	return merge(replies, err, limit, func(a, b found) int { return cmp.Compare(a.due, b.due) })
}

// List implements [fleet.Records].
func (e *Engine) List(ctx context.Context, set, group, after string, limit int) ([]fleet.Record, error) {
	replies, err := e.each(ctx, set, listScript, limit, group, after)
	return merge(replies, err, limit, func(a, b found) int { return strings.Compare(a.Key, b.Key) })
}

// Count implements [fleet.Records].
func (e *Engine) Count(ctx context.Context, set, group string) (int, error) {
	replies, err := e.each(ctx, set, countScript, group)
	sum := 0
	for _, reply := range replies {
		n, _ := reply.(int64)
		sum += int(n)
	}
	return sum, err
}

// logs returns the beginning of the keys of a group of logs.
func (e *Engine) logs(group string) string { return e.prefix + ":{" + group + "}:" }

// Append implements [fleet.Logs].
func (e *Engine) Append(ctx context.Context, group, log string, entry fleet.Entry, keep fleet.Keep) error {
	g := e.logs(group)
	keys := []string{g + "l:" + log, g + "logs"}
	_, err := e.change(ctx, appendScript, fleet.ErrConflict, keys, log, entry.Seq, entry.Data, keep.Entries, keep.Bytes, milliseconds(keep.TTL))
	return err
}

// After implements [fleet.Logs].
func (e *Engine) After(ctx context.Context, group, log string, seq uint64, limit int) ([]fleet.Entry, error) {
	reply, err := e.eval(ctx, afterScript, []string{e.logs(group) + "l:" + log}, seq, limit)
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

// Last implements [fleet.Logs].
func (e *Engine) Last(ctx context.Context, group, log string) (uint64, error) {
	reply, err := e.eval(ctx, lastScript, []string{e.logs(group) + "l:" + log})
	if err != nil {
		return 0, err
	}
	id, _ := reply.(string)
	return sequence(id)
}

// Drop implements [fleet.Logs].
func (e *Engine) Drop(ctx context.Context, group string) error {
	for {
		g := e.logs(group)
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
	_, err := e.do(ctx, func(ctx context.Context) (any, error) {
		return nil, e.bus.publish(ctx, topic, data)
	})
	return err
}

// Subscribe implements [fleet.Bus]. All subscriptions of an engine share one connection. If Redis
// does not confirm the subscription within five seconds, that is an error.
func (e *Engine) Subscribe(ctx context.Context, topics []string, deliver func(topic string, data []byte), missed func()) error {
	if err := cmp.Or(e.fault, ctx.Err()); err != nil {
		return err
	}
	if e.closed.Load() {
		return errClosed
	}
	return e.bus.subscribe(ctx, topics, deliver, missed)
}

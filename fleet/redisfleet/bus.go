package redisfleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mcpkit/mcpkit-go/fleet"
)

const (
	confirmTimeout = 5 * time.Second // for a subscription
	pingInterval   = 5 * time.Second // a connection is dead if nothing comes for twice as long
	minBackoff     = 20 * time.Millisecond
	maxBackoff     = time.Second
)

// A bus has one connection for all subscriptions, which begins with the first of them. Two
// goroutines use a connection: one reads; the other one subscribes to what the hub wants, and
// pings.
type bus struct {
	client redis.UniversalClient
	prefix string
	hub    fleet.Hub
	kick   chan struct{} // the topics of the hub changed; has space for one
	ctx    context.Context
	end    context.CancelFunc
	ended  sync.WaitGroup

	mu      sync.Mutex
	started bool            // guarded by mu
	asked   map[string]bool // topics of the connection, and whether Redis confirmed them; guarded by mu
	lost    bool            // messages may have been, and the subscriptions were not told; guarded by mu
	changed chan struct{}   // closed when a confirmation comes; guarded by mu
}

func (b *bus) init(client redis.UniversalClient, prefix string) {
	b.client, b.prefix = client, prefix
	b.kick, b.changed = make(chan struct{}, 1), make(chan struct{})
	b.ctx, b.end = context.WithCancel(context.Background())
	b.asked = map[string]bool{}
}

func (b *bus) close() {
	b.end()
	b.hub.Close()
	b.ended.Wait()
}

func (b *bus) wake() {
	select {
	case b.kick <- struct{}{}:
	default: // it will look anyway
	}
}

// publish sends a message. In a cluster, nodes pass messages on to each other. Those that different
// nodes got from one publisher may come in any order, so all are sent to one node: the one that has
// the slot of all channels, to which the subscriptions of all replicas connect, too.
func (b *bus) publish(ctx context.Context, topic string, data []byte) error {
	type publisher interface {
		Publish(ctx context.Context, channel string, message any) *redis.IntCmd
	}
	to := publisher(b.client)
	if cluster, ok := b.client.(*redis.ClusterClient); ok {
		node, err := cluster.MasterForKey(ctx, b.prefix)
		if err != nil {
			return err
		}
		to = node
	}
	return to.Publish(ctx, b.prefix+topic, data).Err()
}

func (b *bus) subscribe(ctx context.Context, topics []string, deliver func(string, []byte), missed func()) error {
	ctx, cancel := context.WithCancel(ctx)
	// The subscription outlives this call, and ends with ctx.
	if err := b.hub.Subscribe(ctx, topics, deliver, missed, func() { cancel(); b.wake() }); err != nil {
		cancel()
		return err
	}
	b.mu.Lock()
	if !b.started && b.ctx.Err() == nil {
		b.started = true
		b.ended.Go(b.run) // ends with b.ctx
	}
	b.mu.Unlock()
	b.wake()
	if err := b.confirmed(ctx, topics); err != nil {
		cancel()
		return err
	}
	return nil
}

// confirmed waits until Redis has confirmed the subscription to the topics.
func (b *bus) confirmed(ctx context.Context, topics []string) error {
	limit := time.NewTimer(confirmTimeout)
	defer limit.Stop()
	for {
		b.mu.Lock()
		done, changed := true, b.changed
		for _, topic := range topics {
			done = done && b.asked[topic]
		}
		b.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-limit.C:
			return fmt.Errorf("redisfleet: Redis did not confirm the subscription within %s", confirmTimeout)
		case <-b.ctx.Done():
			return errClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// run keeps a connection until the engine is closed.
func (b *bus) run() {
	backoff := minBackoff
	for b.ctx.Err() == nil {
		if b.connection() {
			backoff = minBackoff
		}
		select {
		case <-time.After(backoff):
		case <-b.ctx.Done():
		}
		backoff = min(2*backoff, maxBackoff)
	}
}

// connection uses one connection until it fails, and reports whether anything came.
func (b *bus) connection() (worked bool) {
	b.mu.Lock()
	b.asked[""] = false // a channel for no messages, which decides the node of a cluster
	b.mu.Unlock()
	ps := b.client.Subscribe(b.ctx, b.prefix)
	closePS := sync.OnceFunc(func() { _ = ps.Close() })
	ctx, cancel := context.WithCancel(b.ctx)
	var seen atomic.Bool
	var writer sync.WaitGroup
	writer.Go(func() { // ends with ctx
		if err := b.write(ctx, ps, &seen); err != nil {
			closePS() // Receive returns
		}
	})
	stop := context.AfterFunc(ctx, closePS)
	defer func() {
		cancel()
		stop()
		closePS()
		writer.Wait()
		b.mu.Lock()
		defer b.mu.Unlock()
		for topic, confirmed := range b.asked {
			b.lost = b.lost || confirmed && topic != ""
		}
		clear(b.asked)
	}()
	for {
		message, err := ps.Receive(ctx)
		if err != nil {
			return worked
		}
		worked = true
		seen.Store(true)
		switch m := message.(type) {
		case *redis.Message:
			b.hub.Deliver(strings.TrimPrefix(m.Channel, b.prefix), []byte(m.Payload))
		case *redis.Subscription:
			if m.Kind == "subscribe" && !b.confirm(strings.TrimPrefix(m.Channel, b.prefix)) {
				return worked // the client connected again by itself, and messages may have been lost
			}
		}
	}
}

// confirm notes that Redis has subscribed the connection to a topic. It returns false if Redis had
// done so already.
func (b *bus) confirm(topic string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if confirmed := b.asked[topic]; confirmed {
		return false
	}
	b.asked[topic] = true
	close(b.changed)
	b.changed = make(chan struct{})
	b.tellLost()
	b.wake() // the topic may no longer be wanted
	return true
}

// tellLost tells the subscriptions that messages may have been lost, once all topics are subscribed
// again. b.mu is locked.
func (b *bus) tellLost() {
	if !b.lost {
		return
	}
	for _, topic := range b.hub.Topics() {
		if !b.asked[topic] {
			return
		}
	}
	b.lost = false
	b.hub.Missed()
}

var errSilent = errors.New("redisfleet: the connection is silent")

// write subscribes to what the hub wants, whenever that changes, and pings.
func (b *bus) write(ctx context.Context, ps *redis.PubSub, seen *atomic.Bool) error {
	ping := time.NewTicker(pingInterval)
	defer ping.Stop()
	pinged := false
	for {
		if err := b.adjust(ctx, ps); err != nil {
			return err
		}
		select {
		case <-b.kick:
		case <-ping.C:
			if pinged && !seen.Swap(false) {
				return errSilent
			}
			if err := ps.Ping(ctx); err != nil {
				return err
			}
			pinged = true
		case <-ctx.Done():
			return nil
		}
	}
}

// adjust subscribes the connection to the topics of the hub, and to no others.
func (b *bus) adjust(ctx context.Context, ps *redis.PubSub) error {
	b.mu.Lock()
	wanted := b.hub.Topics()
	var more, fewer []string
	for _, topic := range wanted {
		if _, asked := b.asked[topic]; !asked {
			more = append(more, b.prefix+topic)
			b.asked[topic] = false
		}
	}
	for _, topic := range slices.Sorted(maps.Keys(b.asked)) {
		if _, found := slices.BinarySearch(wanted, topic); !found && topic != "" && b.asked[topic] {
			fewer = append(fewer, b.prefix+topic)
			delete(b.asked, topic)
		}
	}
	b.tellLost() // if what was not confirmed is no longer wanted
	b.mu.Unlock()
	if len(fewer) > 0 {
		if err := ps.Unsubscribe(ctx, fewer...); err != nil {
			return err
		}
	}
	if len(more) > 0 {
		return ps.Subscribe(ctx, more...)
	}
	return nil
}

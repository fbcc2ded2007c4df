package redisfleet

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mcpkit/mcpkit-go/fleet"
)

const (
	confirmTimeout = 5 * time.Second // for a subscription
	pingInterval   = 5 * time.Second // a connection is dead if nothing comes for twice as long
	reconnectPause = 100 * time.Millisecond
)

// A bus has one connection for all subscriptions, which begins with the first of them.
type bus struct {
	client redis.UniversalClient
	prefix string
	hub    fleet.Hub
	ctx    context.Context
	end    context.CancelFunc
	start  sync.Once
	ended  sync.WaitGroup

	turn sync.Mutex // held to change what the connection is subscribed to

	mu      sync.Mutex
	ps      *redis.PubSub   // the connection; nil before the first one; guarded by mu
	asked   map[string]bool // topics of the connection, and whether Redis confirmed them; guarded by mu
	lost    bool            // messages may have been, and the subscriptions were not told; guarded by mu
	changed chan struct{}   // closed when a confirmation comes; guarded by mu
}

func (b *bus) init(client redis.UniversalClient, prefix string) {
	b.client, b.prefix, b.changed = client, prefix, make(chan struct{})
	b.ctx, b.end = context.WithCancel(context.Background())
}

func (b *bus) close() {
	b.mu.Lock()
	b.end()
	b.mu.Unlock()
	b.hub.Close()
	b.ended.Wait()
}

// spawn runs f on a goroutine for which close waits.
func (b *bus) spawn(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ctx.Err() == nil {
		b.ended.Go(f)
	}
}

// publish sends a message. In a cluster, nodes pass messages on to each other. Those that different
// nodes got from one publisher may come in any order, so all are sent to one node: the one that has
// the slot of all channels.
func (b *bus) publish(ctx context.Context, topic string, data []byte) error {
	cluster, ok := b.client.(*redis.ClusterClient)
	if !ok {
		return b.client.Publish(ctx, b.prefix+topic, data).Err()
	}
	node, err := cluster.MasterForKey(ctx, b.prefix)
	if err != nil {
		return err
	}
	return node.Publish(ctx, b.prefix+topic, data).Err()
}

func (b *bus) subscribe(ctx context.Context, topics []string, deliver func(string, []byte), missed func()) error {
	ctx, cancel := context.WithCancel(ctx)
	adjust := func() { b.spawn(b.adjust) } // ends within the timeouts of the client
	// The subscription outlives this call, and ends with ctx.
	if err := b.hub.Subscribe(ctx, topics, deliver, missed, func() { cancel(); adjust() }); err != nil {
		cancel()
		return err
	}
	b.start.Do(func() { b.spawn(b.run) }) // ends with b.ctx
	adjust()
	err := b.confirmed(ctx, topics)
	if err != nil {
		cancel()
	}
	return err
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

// run has a connection until the engine is closed.
func (b *bus) run() {
	for b.ctx.Err() == nil {
		b.connection()
		select {
		case <-time.After(reconnectPause):
		case <-b.ctx.Done():
		}
	}
}

// connection receives messages until the connection fails.
func (b *bus) connection() {
	ctx, cancel := context.WithCancel(b.ctx)
	// The channel, on which nothing is published, decides the node of a cluster.
	ps := b.client.Subscribe(ctx, b.prefix)
	b.mu.Lock()
	b.ps, b.asked = ps, map[string]bool{}
	b.mu.Unlock()
	b.adjust()
	var pings sync.WaitGroup
	pings.Go(func() { // ends with ctx
		tick := time.NewTicker(pingInterval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				_ = ps.Ping(ctx) // the reader notices that nothing comes
			case <-ctx.Done():
				return
			}
		}
	})
	stop := context.AfterFunc(ctx, func() { _ = ps.Close() }) // Receive returns
	defer func() {
		cancel()
		if stop() {
			_ = ps.Close()
		}
		pings.Wait()
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, confirmed := range b.asked {
			b.lost = b.lost || confirmed
		}
		b.asked = nil
	}()
	for {
		message, err := ps.ReceiveTimeout(ctx, 2*pingInterval)
		if err != nil {
			return
		}
		switch m := message.(type) {
		case *redis.Message:
			b.hub.Deliver(strings.TrimPrefix(m.Channel, b.prefix), []byte(m.Payload))
		case *redis.Subscription:
			if m.Kind == "subscribe" && !b.confirm(strings.TrimPrefix(m.Channel, b.prefix)) {
				return // the client connected again by itself, and messages may have been lost
			}
		}
	}
}

// confirm notes that Redis has subscribed the connection to a topic. It returns false if Redis had
// done so already.
func (b *bus) confirm(topic string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	confirmed, asked := b.asked[topic]
	if !asked || confirmed {
		return !confirmed
	}
	b.asked[topic] = true
	close(b.changed)
	b.changed = make(chan struct{})
	b.tellLost()
	return true
}

// tellLost tells the subscriptions that messages may have been lost, once all topics are subscribed
// again. b.mu is locked.
func (b *bus) tellLost() {
	for _, topic := range b.hub.Topics() {
		if !b.asked[topic] {
			return
		}
	}
	if b.lost {
		b.lost = false
		b.hub.Missed()
	}
}

// adjust subscribes the connection to the topics of the hub, and to no others. If that fails, so does
// the connection.
func (b *bus) adjust() {
	b.turn.Lock()
	defer b.turn.Unlock()
	b.mu.Lock()
	ps, asked := b.ps, b.asked
	var more, fewer []string
	if asked != nil {
		wanted := map[string]bool{}
		for _, topic := range b.hub.Topics() {
			wanted[topic] = true
			if _, found := asked[topic]; !found {
				asked[topic] = false
				more = append(more, b.prefix+topic)
			}
		}
		for topic := range asked {
			if !wanted[topic] {
				delete(asked, topic)
				fewer = append(fewer, b.prefix+topic)
			}
		}
		b.tellLost() // if what was not confirmed is no longer wanted
	}
	b.mu.Unlock()
	if len(fewer) > 0 {
		_ = ps.Unsubscribe(b.ctx, fewer...)
	}
	if len(more) > 0 {
		_ = ps.Subscribe(b.ctx, more...)
	}
}

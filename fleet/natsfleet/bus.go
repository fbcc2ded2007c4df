package natsfleet

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/mcpkit/mcpkit-go/fleet"
)

//limit:server messages of the bus that NATS has delivered and the engine has not taken | they are dropped, and subscriptions are told
const maxArrived = 4096

// A bus takes messages from the connection and gives them to subscriptions.
type bus struct {
	nc      *nats.Conn
	prefix  string // of the subjects of topics
	lost    string // the subject on which replicas say that what they sent may have been lost
	hub     fleet.Hub
	arrived chan *nats.Msg

	mu     sync.Mutex
	topics map[string]*subscribed // guarded by mu
}

type subscribed struct {
	sub   *nats.Subscription
	users int
}

// startBus returns the bus, which runs until Close.
func (e *Engine) startBus() (*bus, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ctx.Err() != nil {
		return nil, errClosed
	}
	if e.bus != nil {
		return e.bus, nil
	}
	b := &bus{
		nc: e.nc, prefix: e.opts.Prefix + ".bus.", lost: e.opts.Prefix + ".lost",
		arrived: make(chan *nats.Msg, maxArrived), topics: map[string]*subscribed{},
	}
	lost, err := e.nc.ChanSubscribe(b.lost, b.arrived)
	if err != nil {
		return nil, fmt.Errorf("natsfleet: %w", err)
	}
	e.bus = b
	changes := e.nc.StatusChanged(nats.CONNECTED)
	e.ended.Go(func() {
		b.run(e.ctx, changes)
		e.nc.RemoveStatusListener(changes)
		b.hub.Close()
		_ = lost.Unsubscribe()
	})
	return b, nil
}

func (b *bus) run(ctx context.Context, changes <-chan nats.Status) {
	dropped := map[*nats.Subscription]int{} // of the subscriptions that dropped messages
	for {
		select {
		case m := <-b.arrived:
			// When messages are dropped, others wait here.
			if n, err := m.Sub.Dropped(); err == nil && n != dropped[m.Sub] {
				if len(dropped) > maxArrived {
					clear(dropped)
				}
				dropped[m.Sub] = n
				b.hub.Missed()
			}
			if m.Subject == b.lost {
				b.hub.Missed()
			} else {
				b.hub.Deliver(strings.TrimPrefix(m.Subject, b.prefix), m.Data)
			}
		case <-changes:
			// The connection is back. What was under way is lost in both directions.
			b.hub.Missed()
			_ = b.nc.Publish(b.lost, nil)
		case <-ctx.Done():
			return
		}
	}
}

// listen subscribes to a topic of NATS, if nothing has yet.
func (b *bus) listen(topic string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.topics[topic]; s != nil {
		s.users++
		return nil
	}
	sub, err := b.nc.ChanSubscribe(b.prefix+topic, b.arrived)
	if err != nil {
		return fmt.Errorf("natsfleet: %w", err)
	}
	b.topics[topic] = &subscribed{sub, 1}
	return nil
}

func (b *bus) release(topics []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, topic := range topics {
		s := b.topics[topic]
		if s.users--; s.users == 0 {
			delete(b.topics, topic)
			_ = s.sub.Unsubscribe() // fails if the connection was closed
		}
	}
}

// useBus begins an operation on the bus. Unless it returns an error, the caller calls cancel at the
// end.
func (e *Engine) useBus(ctx context.Context) (context.Context, context.CancelFunc, *bus, error) {
	ctx, cancel, err := e.begin(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	b, err := e.startBus()
	if err == nil {
		err = e.connected(ctx)
	}
	if err != nil {
		cancel()
		return nil, nil, nil, err
	}
	return ctx, cancel, b, nil
}

// Publish implements [fleet.Bus]. It returns before the server has the message.
func (e *Engine) Publish(ctx context.Context, topic string, data []byte) error {
	_, cancel, b, err := e.useBus(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	err = e.nc.Publish(b.prefix+topic, data)
	if errors.Is(err, nats.ErrMaxPayload) {
		return fleet.ErrTooLarge
	}
	if err != nil {
		return fmt.Errorf("natsfleet: %w", err)
	}
	return nil
}

// Subscribe implements [fleet.Bus]. In a cluster, the other servers know of the subscription some
// milliseconds after Subscribe has returned.
func (e *Engine) Subscribe(ctx context.Context, topics []string, deliver func(topic string, data []byte), missed func()) error {
	limited, cancel, b, err := e.useBus(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	for i, topic := range topics {
		if err := b.listen(topic); err != nil {
			b.release(topics[:i])
			return err
		}
	}
	ctx, end := context.WithCancel(ctx)
	release := func() {
		end()
		b.release(topics)
	}
	if err := b.hub.Subscribe(ctx, topics, deliver, missed, release); err != nil {
		release()
		return err
	}
	if err := e.nc.FlushWithContext(limited); err != nil {
		end()
		return fmt.Errorf("natsfleet: %w", err)
	}
	return nil
}

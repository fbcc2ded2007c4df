package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// Limits of sending a listen request again.
const (
	maxListenFailures = 10          // in a row
	steadyListen      = time.Second // a request that lasted longer was not a failure
)

// listenModern opens s with subscriptions/listen and returns when the server has acknowledged it.
func (c *Client) listenModern(ctx, base context.Context, s *Subscription) (*Subscription, error) {
	done := make(chan struct{})
	s.done = done
	if !c.background(func(context.Context) {
		defer close(done)
		c.keepListening(base, s)
	}) {
		return nil, explain(&request{method: protocol.MethodSubscriptionsListen}, transport.ErrClosed)
	}
	limited, d := withDeadline(ctx, c.cfg.timeout, &timeoutError{protocol.MethodSubscriptionsListen, "", c.cfg.timeout})
	defer d.stop()
	var err error
	select {
	case err = <-s.ready:
	case <-limited.Done():
		err = context.Cause(limited)
	}
	if err != nil {
		_ = s.Close()
		return nil, explain(&request{method: protocol.MethodSubscriptionsListen}, err)
	}
	return s, nil
}

// follow keeps a subscription for the handlers open.
func (c *Client) follow(f protocol.SubscriptionFilter) {
	s, base := c.newSubscription(f)
	c.keepListening(base, s)
	if err := <-s.ready; err != nil && c.base.Err() == nil {
		c.log.Warn("client: the server refuses to send changes; their handlers are not called", "error", err)
	}
}

// keepListening keeps a listen request open and sends it again if its stream breaks.
func (c *Client) keepListening(ctx context.Context, s *Subscription) {
	defer s.cancel(nil)
	c.changes.add(s)
	defer c.changes.remove(s)
	opened := false
	for failures := 0; ; failures++ {
		begun := time.Now()
		acknowledged, retry, err := c.listenOnce(ctx, s, opened)
		opened = opened || acknowledged
		if acknowledged && time.Since(begun) > steadyListen {
			failures = 0
		}
		if ctx.Err() != nil {
			err, retry = context.Cause(ctx), false
		}
		if again, _ := broken(err); !retry || failures == maxListenFailures || !opened && (!again || failures == maxRepeats) {
			s.end(err)
			return
		}
		_ = sleep(ctx, backoff(failures))
	}
}

// end stores why the subscription ended.
func (s *Subscription) end(err error) {
	s.c.changes.mu.Lock()
	s.err = err
	s.c.changes.mu.Unlock()
	select {
	case s.ready <- err:
	default:
	}
}

// listenOnce sends a listen request and waits until it ends. Again says that the subscription was
// open before. Retry reports whether to send another.
func (c *Client) listenOnce(ctx context.Context, s *Subscription, again bool) (acknowledged, retry bool, err error) {
	a, ch, id := c.agreed.Load(), &c.changes, c.nextID()
	filter, err := s.filterJSON()
	if err != nil {
		return false, false, err
	}
	params := jsonx.AppendMember([]byte{'{'}, []byte(`"notifications"`), filter)
	req, err := c.compose(a, id, protocol.MethodSubscriptionsListen, append(params, '}'), protocol.Inputs{}, &callConfig{}, "")
	if err != nil {
		return false, false, err
	}
	ch.mu.Lock()
	s.id, s.acked, s.again = id.String(), false, again
	ch.mu.Unlock()
	resp, err := c.conn.roundTrip(ctx, &exchange{req: req, version: a.version})
	ch.mu.Lock()
	acknowledged, s.acked = s.acked, false
	ch.mu.Unlock()
	switch {
	case err != nil:
		return acknowledged, !errors.Is(err, transport.ErrClosed), err
	case resp.Error != nil:
		return acknowledged, false, resp.Error
	}
	return acknowledged, true, errors.New("the server ended the subscription")
}

// acknowledged stores the filter that the server agreed to.
func (ch *changes) acknowledged(n *jsonrpc.Request) {
	id := subscriptionID(n)
	var p protocol.SubscriptionsAcknowledgedParams
	if err := jsonx.Unmarshal(orEmpty(n.Params), &p); err != nil {
		ch.c.warn("client: the server sent an invalid acknowledgement of a subscription", "error", fmt.Sprintf("%.200s", err))
		return
	}
	var reopened []Topic
	ch.mu.Lock()
	if i := slices.IndexFunc(ch.subs, func(s *Subscription) bool { return s.id == id && !s.acked }); i >= 0 {
		s := ch.subs[i]
		ch.subs = append(slices.Delete(ch.subs, i, i+1), s)
		s.filter, s.agreed, s.acked = p.Notifications, bytes.Clone(n.Param("notifications")), true
		select {
		case s.ready <- nil:
		default:
		}
		if s.again {
			ch.missed(s)
			reopened = s.topics
		}
	}
	ch.mu.Unlock()
	for _, t := range reopened {
		perform(ch.c.log, func() { t.Receive(nil) })
	}
}

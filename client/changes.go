package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// A ChangeKind says what changed.
type ChangeKind int

// The kinds of changes.
const (
	ToolsChanged ChangeKind = iota + 1
	PromptsChanged
	ResourcesChanged
	ResourceUpdated
)

// changeKinds maps notifications to kinds of change.
var changeKinds = map[string]ChangeKind{
	protocol.NotificationToolsListChanged:     ToolsChanged,
	protocol.NotificationPromptsListChanged:   PromptsChanged,
	protocol.NotificationResourcesListChanged: ResourcesChanged,
	protocol.NotificationResourcesUpdated:     ResourceUpdated,
}

// outdated maps kinds of change to the prefix of the cache keys that they invalidate. An updated
// resource invalidates all resources, since it may be part of one with another URI.
var outdated = map[ChangeKind]string{
	ToolsChanged:     protocol.MethodToolsList,
	PromptsChanged:   protocol.MethodPromptsList,
	ResourcesChanged: "resources/",
	ResourceUpdated:  protocol.MethodResourcesRead,
}

// A Change reports what changed at the server.
type Change struct {
	Kind ChangeKind
	URI  string // of the updated resource, which may be a sub-resource of the subscribed one
}

// Limits of pending changes.
const (
	maxChanges        = 1000    // updated resources that wait for one subscription
	maxChangeURIBytes = 8 << 10 // bytes of the URI of an updated resource
)

// A pending holds the changes that one reader has not taken yet, without duplicates. Create one
// with newPending.
type pending struct {
	wake chan struct{} // receives after a change was added; holds one

	mu      sync.Mutex
	lists   [3]bool             // guarded by mu
	updated map[string]struct{} // URIs; guarded by mu
}

func newPending() pending {
	return pending{wake: make(chan struct{}, 1), updated: map[string]struct{}{}}
}

// add returns false if it drops the change because too many are pending or its URI is too long.
func (p *pending) add(change Change) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if change.Kind != ResourceUpdated {
		p.lists[change.Kind-1] = true
	} else if _, waits := p.updated[change.URI]; !waits {
		if len(p.updated) == maxChanges || len(change.URI) > maxChangeURIBytes {
			return false
		}
		p.updated[change.URI] = struct{}{}
	}
	select {
	case p.wake <- struct{}{}:
	default:
	}
	return true
}

// take removes and returns a pending change.
func (p *pending) take() (Change, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, changed := range p.lists {
		if changed {
			p.lists[i] = false
			return Change{Kind: ChangeKind(i + 1)}, true
		}
	}
	for uri := range p.updated {
		delete(p.updated, uri)
		return Change{ResourceUpdated, uri}, true
	}
	return Change{}, false
}

// next waits for a change. It returns false if ctx is done or over is closed.
func (p *pending) next(ctx context.Context, over <-chan struct{}) (Change, bool) {
	for {
		if change, ok := p.take(); ok {
			return change, true
		}
		select {
		case <-p.wake:
		case <-ctx.Done():
			return Change{}, false
		case <-over:
			return p.take()
		}
	}
}

// A Subscription receives the changes that it was opened for. A change that repeats before Next
// returns it is received once. At most 1000 updated resources wait, with URIs of at most 8 KiB; the
// rest is dropped and logged. A Subscription is safe for concurrent use.
type Subscription struct {
	c       *Client
	pending pending
	cancel  context.CancelCauseFunc
	done    <-chan struct{} // closed when the subscription has ended
	ready   chan error      // receives the outcome of the first listen request; holds one
	legacy  bool            // set before the subscription starts
	topics  []Topic         // with encoded values; set before the subscription starts

	// Guarded by the mu of changes.
	filter protocol.SubscriptionFilter // what the server agreed to
	agreed json.RawMessage             // the same, with the members of extensions
	id     string                      // of the listen request, as JSON; "" on legacy versions
	acked  bool                        // the server acknowledged that request; always true on legacy versions
	again  bool                        // that request reopens the subscription
	err    error                       // why it ended
}

// Next waits for the next change. The error is that of ctx, [transport.ErrClosed] after Close or at
// the end of the connection, or the reason why the server ended the subscription.
func (s *Subscription) Next(ctx context.Context) (Change, error) {
	if change, ok := s.pending.next(ctx, s.done); ok {
		return change, nil
	}
	if ctx.Err() != nil {
		return Change{}, context.Cause(ctx)
	}
	s.c.changes.mu.Lock()
	defer s.c.changes.mu.Unlock()
	return Change{}, s.err
}

// All yields changes until ctx or the subscription ends; the last value is the error.
func (s *Subscription) All(ctx context.Context) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		for {
			change, err := s.Next(ctx)
			if !yield(change, err) || err != nil {
				return
			}
		}
	}
}

// Filter returns the changes that the server agreed to send: all that were requested, or fewer.
func (s *Subscription) Filter() protocol.SubscriptionFilter {
	s.c.changes.mu.Lock()
	defer s.c.changes.mu.Unlock()
	return s.filter
}

// Close ends the subscription. It returns nil, also when the subscription has ended already.
func (s *Subscription) Close() error {
	s.cancel(transport.ErrClosed)
	<-s.done
	return nil
}

// covers reports whether the server agreed to send change to s. The caller holds the mu of changes.
func (s *Subscription) covers(change Change) bool {
	if change.Kind != ResourceUpdated {
		return s.acked && *listsIn(&s.filter)[change.Kind-1]
	}
	return s.acked && slices.ContainsFunc(s.filter.ResourceSubscriptions, func(uri string) bool {
		rest, below := strings.CutPrefix(change.URI, strings.TrimSuffix(uri, "/"))
		return change.URI == uri || below && strings.HasPrefix(rest, "/")
	})
}

// listsIn returns the members of a filter for changed lists, in the order of their kinds.
func listsIn(f *protocol.SubscriptionFilter) [3]*bool {
	return [3]*bool{&f.ToolsListChanged, &f.PromptsListChanged, &f.ResourcesListChanged}
}

// changes passes changes to the subscriptions and to the handlers.
type changes struct {
	c       *Client
	pending pending // changes for the handlers
	telling sync.Once
	turn    chan struct{} // full while resources of a legacy session are subscribed or unsubscribed

	mu      sync.Mutex
	subs    []*Subscription // in the order of their acknowledgements, or of their start on legacy versions; guarded by mu
	over    error           // why the connection ended, nil while it is open; guarded by mu
	watched map[string]int  // subscriptions of each resource of a legacy session; guarded by mu
}

func (ch *changes) init(c *Client) {
	ch.c, ch.pending, ch.turn, ch.watched = c, newPending(), make(chan struct{}, 1), map[string]int{}
}

func (ch *changes) add(s *Subscription) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.subs = append(ch.subs, s)
}

// end ends the legacy subscriptions because their stream has ended. If forGood, new ones are
// refused too. Modern subscriptions end with their listen request.
func (ch *changes) end(why error, forGood bool) {
	ch.mu.Lock()
	if forGood {
		ch.over = why
	}
	subs := slices.Clone(ch.subs)
	ch.mu.Unlock()
	for _, s := range subs {
		if s.legacy {
			s.end(why)
			s.cancel(why)
		}
	}
}

func (ch *changes) remove(s *Subscription) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.subs = slices.DeleteFunc(ch.subs, func(other *Subscription) bool { return other == s })
}

// heard handles a notification. Unknown ones are for the topics and the handler Notification.
func (ch *changes) heard(n *jsonrpc.Request) {
	kind, known := changeKinds[n.Method]
	switch {
	case known:
		change := Change{Kind: kind}
		if kind == ResourceUpdated {
			change.URI = jsonx.String(n.Param("uri"))
		}
		ch.mu.Lock()
		defer ch.mu.Unlock()
		ch.deliver(change, subscriptionID(n))
	case n.Method == protocol.NotificationSubscriptionsAcknowledged:
		ch.acknowledged(n)
	case n.Method == protocol.NotificationElicitationComplete:
		if h := ch.c.cfg.handlers.elicitationComplete; h != nil {
			perform(ch.c.log, func() { h(ch.c.base, jsonx.String(n.Param("elicitationId"))) })
		}
	default:
		ch.notify(n.Method, subscriptionID(n), orEmpty(n.Params))
		if h := ch.c.cfg.handlers.notification; h != nil {
			perform(ch.c.log, func() { h(ch.c.base, n.Method, orEmpty(n.Params)) })
		}
	}
}

// subscriptionID returns the ID of the listen request that a notification belongs to, as JSON; ""
// if it has none.
func subscriptionID(n *jsonrpc.Request) string {
	return string(jsonx.Member(n.Param("_meta"), protocol.MetaSubscriptionID))
}

// deliver passes on a change that the server sent for the listen request id. The id is "" on legacy
// versions. Some modern servers on stdio omit it too, although it is required (2026-07-28,
// subscriptions/listen). Without an id, the change is for all subscriptions that cover it.
//
// The server sends a change once for each listen request that covers it. Handlers receive only that
// for the first such request that the server acknowledged: it sends no changes for the others from
// before it knew of them. The caller holds mu.
func (ch *changes) deliver(change Change, id string) {
	ch.c.cache.drop(outdated[change.Kind])
	var first *Subscription
	for _, s := range ch.subs {
		covered := s.covers(change)
		if covered && first == nil {
			first = s
		}
		// The URI of an updated resource may differ from the subscribed one.
		if id == "" && covered || id != "" && id == s.id && (covered || change.Kind == ResourceUpdated) {
			ch.report(s.pending.add(change), change)
		}
	}
	if ch.handled(change) && (id == "" || first == nil || first.id == id) {
		ch.report(ch.pending.add(change), change)
		ch.telling.Do(func() { ch.c.background(ch.tell) })
	}
}

func (ch *changes) report(taken bool, change Change) {
	if !taken {
		ch.c.warn("client: an update was dropped because too many are pending or its URI is too long", "uri", clip(change.URI))
	}
}

// handled reports whether a handler receives change.
func (ch *changes) handled(change Change) bool {
	h := ch.c.cfg.handlers
	if change.Kind == ResourceUpdated {
		return h.resourceUpdated != nil
	}
	return h.listChanged[change.Kind-1] != nil
}

// tell calls the handlers, one at a time, until ctx is done.
func (ch *changes) tell(ctx context.Context) {
	h := ch.c.cfg.handlers
	for ctx.Err() == nil {
		change, ok := ch.pending.next(ctx, nil)
		if !ok {
			return
		}
		perform(ch.c.log, func() {
			if change.Kind == ResourceUpdated {
				h.resourceUpdated(ctx, change.URI)
			} else {
				h.listChanged[change.Kind-1](ctx)
			}
		})
	}
}

// missed reports everything in s as changed, since s may have missed changes. The caller holds mu.
func (ch *changes) missed(s *Subscription) {
	for i, wanted := range listsIn(&s.filter) {
		if *wanted {
			ch.deliver(Change{Kind: ChangeKind(i + 1)}, s.id)
		}
	}
	for _, uri := range s.filter.ResourceSubscriptions {
		ch.deliver(Change{ResourceUpdated, uri}, s.id)
	}
}

// Subscribe opens a subscription to updates of resources. It is short for Listen with their URIs.
func (c *Client) Subscribe(ctx context.Context, uris ...string) (*Subscription, error) {
	return c.Listen(ctx, protocol.SubscriptionFilter{ResourceSubscriptions: uris})
}

// Listen opens a subscription to changes: with subscriptions/listen on modern servers, with
// resources/subscribe and the notifications of the session on legacy ones. It returns when the
// server has agreed. ctx ends only this wait; Close ends the subscription.
//
// A stream that breaks is opened again. Because changes may have been missed meanwhile, everything
// in the subscription is then reported as changed. When the connection itself is over, the
// subscription ends.
func (c *Client) Listen(ctx context.Context, filter protocol.SubscriptionFilter, topics ...Topic) (*Subscription, error) {
	s, base := c.newSubscription(filter)
	err := s.prepare(topics)
	switch {
	case err != nil:
	case c.modern():
		return c.listenModern(ctx, base, s)
	default:
		return c.listenLegacy(ctx, base, s)
	}
	s.cancel(err)
	return nil, err
}

// prepare adds the topics to s, and checks that there is something to listen to.
func (s *Subscription) prepare(topics []Topic) error {
	for _, t := range topics {
		raw, err := jsonx.Marshal(t.Value)
		if err != nil {
			return fmt.Errorf("client: Listen: the value of the member %q: %w", t.Member, err)
		}
		t.Value = json.RawMessage(raw)
		s.topics = append(s.topics, t)
	}
	switch {
	case len(s.topics) > 0 && !s.c.modern():
		return fmt.Errorf("client: Listen: version %s has no filter for the member %q; it needs a modern server", s.c.Version(), s.topics[0].Member)
	case len(s.topics) == 0 && isEmptyFilter(s.filter):
		return errors.New("client: Listen: the filter is empty; set what to listen to")
	}
	return nil
}

// newSubscription returns a subscription that is not open yet, and the context that its Close
// cancels.
func (c *Client) newSubscription(filter protocol.SubscriptionFilter) (*Subscription, context.Context) {
	base, cancel := context.WithCancelCause(c.base)
	return &Subscription{c: c, filter: filter, pending: newPending(), cancel: cancel, done: base.Done(), ready: make(chan error, 1), err: transport.ErrClosed}, base
}

func isEmptyFilter(f protocol.SubscriptionFilter) bool {
	return !f.ToolsListChanged && !f.PromptsListChanged && !f.ResourcesListChanged && len(f.ResourceSubscriptions) == 0
}

// listenLegacy subscribes to the resources of the filter.
func (c *Client) listenLegacy(ctx, base context.Context, s *Subscription) (*Subscription, error) {
	ch := &c.changes
	s.legacy, s.acked = true, true
	ch.add(s)
	ch.mu.Lock()
	over := ch.over
	ch.mu.Unlock()
	if over != nil {
		ch.remove(s)
		return nil, fmt.Errorf("client: Listen: %w", over)
	}
	c.listen(ctx)
	for i, uri := range s.filter.ResourceSubscriptions {
		if err := ch.watch(ctx, uri); err != nil {
			s.cancel(transport.ErrClosed)
			ch.remove(s)
			ch.unwatch(s.filter.ResourceSubscriptions[:i], -1)
			return nil, err
		}
	}
	context.AfterFunc(base, func() {
		ch.remove(s)
		ch.unwatch(s.filter.ResourceSubscriptions, -1)
	})
	return s, nil
}

// watch subscribes to uri, unless another subscription has.
func (ch *changes) watch(ctx context.Context, uri string) error {
	select {
	case ch.turn <- struct{}{}:
	case <-ctx.Done():
		return explain(&request{method: protocol.MethodResourcesSubscribe, name: uri}, context.Cause(ctx))
	}
	var err error
	if ch.count(uri, 0) == 0 {
		err = ch.c.askSubscribe(ctx, protocol.MethodResourcesSubscribe, uri)
	}
	if err == nil {
		ch.count(uri, 1)
	} else if ctx.Err() != nil {
		ch.unwatch([]string{uri}, 0) // the server may have agreed
	}
	<-ch.turn
	return err
}

// unwatch changes how many subscriptions the resources have, in the background. It unsubscribes from
// those without any.
func (ch *changes) unwatch(uris []string, change int) {
	ch.c.background(func(ctx context.Context) {
		for _, uri := range uris {
			select {
			case ch.turn <- struct{}{}:
			case <-ctx.Done():
				return
			}
			if ch.count(uri, change) == 0 {
				if err := ch.c.askSubscribe(ctx, protocol.MethodResourcesUnsubscribe, uri); err != nil {
					ch.c.log.Debug("client: unsubscribing failed", "uri", uri, "error", err)
				}
			}
			<-ch.turn
		}
	})
}

// count changes how many subscriptions a resource has, and returns it.
func (ch *changes) count(uri string, change int) int {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	n := ch.watched[uri] + change
	if ch.watched[uri] = n; n == 0 {
		delete(ch.watched, uri)
	}
	return n
}

func (c *Client) askSubscribe(ctx context.Context, method, uri string) error {
	_, err := c.do(ctx, request{method: method, name: uri, params: &protocol.SubscribeParams{URI: uri}, reads: true}, nil)
	return err
}

// restore subscribes again in a new legacy session, and reports everything in the subscriptions as
// changed.
func (ch *changes) restore(ctx context.Context) {
	ch.mu.Lock()
	uris := slices.Sorted(maps.Keys(ch.watched))
	ch.mu.Unlock()
	for _, uri := range uris {
		if err := ch.c.askSubscribe(ctx, protocol.MethodResourcesSubscribe, uri); err != nil {
			ch.c.log.Warn("client: subscribing again in a new session failed", "uri", uri, "error", err)
		}
	}
	ch.mu.Lock()
	defer ch.mu.Unlock()
	for _, s := range ch.subs {
		ch.missed(s)
	}
}

// listening reports whether there are subscriptions.
func (ch *changes) listening() bool {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	return len(ch.subs) > 0
}

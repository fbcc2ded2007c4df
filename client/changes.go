package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/jsonrpc"
	"github.com/mcpkit/mcpkit-go/protocol"
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

// A Change is something that changed at the server.
type Change struct {
	Kind ChangeKind
	URI  string // of the resource that was updated, or of one below it
}

// maxChanges bounds the URIs that one subscription holds for its user.
const maxChanges = 1000

// A Subscription hears of changes. What happens often before it is asked is told once, so that a server cannot fill the memory with
// notifications. It is safe for concurrent use.
type Subscription struct {
	c      *Client
	filter protocol.SubscriptionFilter // what the server tells of
	cancel context.CancelCauseFunc
	done   <-chan struct{}
	ready  chan error    // what became of the first attempt; holds one
	wake   chan struct{} // holds one token while something is owed

	mu      sync.Mutex
	id      string              // of the listen request, as JSON; guarded by mu
	acked   bool                // the server agreed to that request; guarded by mu
	again   bool                // it is not the first request; guarded by mu
	lists   [3]bool             // guarded by mu
	updated map[string]struct{} // guarded by mu
	err     error               // why it ended; guarded by mu
}

// changes hands what changed to the subscriptions and to the handlers.
type changes struct {
	c *Client

	mu   sync.Mutex
	subs map[*Subscription]struct{} // guarded by mu
	uris map[string]int             // legacy subscriptions, and how many want them; guarded by mu

	told    *Subscription // what the handlers are owed
	running sync.Once
}

func (ch *changes) init(c *Client) {
	ch.c = c
	ch.subs, ch.uris = map[*Subscription]struct{}{}, map[string]int{}
	ch.told = &Subscription{c: c, wake: make(chan struct{}, 1), updated: map[string]struct{}{}}
}

// heard takes a notification.
func (ch *changes) heard(n *jsonrpc.Request) {
	c := ch.c
	var change Change
	switch n.Method {
	case protocol.NotificationToolsListChanged:
		change.Kind = ToolsChanged
		c.cache.drop(protocol.MethodToolsList)
	case protocol.NotificationPromptsListChanged:
		change.Kind = PromptsChanged
		c.cache.drop(protocol.MethodPromptsList)
	case protocol.NotificationResourcesListChanged:
		change.Kind = ResourcesChanged
		c.cache.drop(protocol.MethodResourcesList)
		c.cache.drop(protocol.MethodResourcesTemplatesList)
	case protocol.NotificationResourcesUpdated:
		change = Change{ResourceUpdated, jsonx.String(n.Param("uri"))}
		// What was read may be the resource above the one that is named.
		c.cache.drop(protocol.MethodResourcesRead)
	case protocol.NotificationSubscriptionsAcknowledged:
		ch.acknowledged(n)
		return
	case protocol.NotificationElicitationComplete:
		c.visits.complete(jsonx.String(n.Param("elicitationId")))
		if h := c.cfg.handlers.elicitationComplete; h != nil {
			h(c.base, jsonx.String(n.Param("elicitationId")))
		}
		return
	default:
		return // the protocol wants what is unknown to be ignored
	}
	id := string(jsonx.Member(n.Param("_meta"), protocol.MetaSubscriptionID))
	ch.mu.Lock()
	defer ch.mu.Unlock()
	for s := range ch.subs {
		if s.wants(change, id) {
			s.owe(change)
		}
	}
	if ch.handled(change) {
		ch.told.owe(change)
		ch.running.Do(func() { c.background(ch.tell) })
	}
}

// handled reports whether there is a handler for change.
func (ch *changes) handled(change Change) bool {
	h := ch.c.cfg.handlers
	switch change.Kind {
	case ToolsChanged:
		return h.toolsChanged != nil
	case PromptsChanged:
		return h.promptsChanged != nil
	case ResourcesChanged:
		return h.resourcesChanged != nil
	default:
		return h.resourceUpdated != nil
	}
}

// tell runs the handlers, one after the other.
func (ch *changes) tell(ctx context.Context) {
	h := ch.c.cfg.handlers
	for {
		change, err := ch.told.next(ctx)
		if err != nil {
			return
		}
		switch change.Kind {
		case ToolsChanged:
			h.toolsChanged(ctx)
		case PromptsChanged:
			h.promptsChanged(ctx)
		case ResourcesChanged:
			h.resourcesChanged(ctx)
		default:
			h.resourceUpdated(ctx, change.URI)
		}
	}
}

// wants reports whether s asked for change, which came under a subscription id, "" on legacy revisions. Some modern servers leave the ID
// out on stdio, where it has to be (2026-07-28, subscriptions/listen): then it is for all who asked for such a change.
func (s *Subscription) wants(change Change, id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id != s.id && (id != "" || !s.acked) {
		return false
	}
	switch change.Kind {
	case ToolsChanged:
		return s.filter.ToolsListChanged
	case PromptsChanged:
		return s.filter.PromptsListChanged
	case ResourcesChanged:
		return s.filter.ResourcesListChanged
	default:
		return id != "" || slices.Contains(s.filter.ResourceSubscriptions, change.URI)
	}
}

// owe notes a change.
func (s *Subscription) owe(change Change) {
	s.mu.Lock()
	if change.Kind == ResourceUpdated {
		if len(s.updated) < maxChanges {
			s.updated[change.URI] = struct{}{}
		} else if _, ok := s.updated[change.URI]; !ok {
			s.c.warn("client: an update was dropped, since nobody takes those before it", "uri", clip(change.URI))
		}
	} else {
		s.lists[change.Kind-1] = true
	}
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// take returns something that is owed.
func (s *Subscription) take() (Change, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, changed := range s.lists {
		if changed {
			s.lists[i] = false
			return Change{Kind: ChangeKind(i + 1)}, true
		}
	}
	for uri := range s.updated {
		delete(s.updated, uri)
		return Change{ResourceUpdated, uri}, true
	}
	return Change{}, false
}

func (s *Subscription) next(ctx context.Context) (Change, error) {
	for {
		if change, ok := s.take(); ok {
			return change, nil
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			return Change{}, context.Cause(ctx)
		case <-s.done:
			if change, ok := s.take(); ok {
				return change, nil
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			return Change{}, s.err
		}
	}
}

// Next waits for the next change. The error is that of ctx, [transport.ErrClosed] after Close, or says why the server ended the subscription.
func (s *Subscription) Next(ctx context.Context) (Change, error) { return s.next(ctx) }

// All yields changes until ctx or the subscription ends; the last error is why.
func (s *Subscription) All(ctx context.Context) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		for {
			change, err := s.next(ctx)
			if !yield(change, err) || err != nil {
				return
			}
		}
	}
}

// Filter is what the server agreed to tell of: all that was asked for, or less.
func (s *Subscription) Filter() protocol.SubscriptionFilter {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.filter
}

// Close ends the subscription.
func (s *Subscription) Close() error {
	s.cancel(transport.ErrClosed)
	<-s.done
	return nil
}

// Subscribe hears of updates of the resources.
func (c *Client) Subscribe(ctx context.Context, uris ...string) (*Subscription, error) {
	return c.Listen(ctx, protocol.SubscriptionFilter{ResourceSubscriptions: uris})
}

// Listen hears of changes, by subscriptions/listen or, of a legacy server, by resources/subscribe and what it sends of itself. It returns when the
// server has agreed; ctx is for that alone, Close ends the subscription. A stream that breaks is opened again; since changes may have been
// missed then, everything that was subscribed to counts as changed.
func (c *Client) Listen(ctx context.Context, filter protocol.SubscriptionFilter) (*Subscription, error) {
	if isEmptyFilter(filter) {
		return nil, errors.New("client: Listen: the filter names nothing to listen to")
	}
	s := &Subscription{c: c, filter: filter, wake: make(chan struct{}, 1), ready: make(chan error, 1), updated: map[string]struct{}{}}
	var base context.Context
	base, s.cancel = context.WithCancelCause(c.base)
	if !c.modern() {
		return s, c.listenLegacy(ctx, base, s)
	}
	done := make(chan struct{})
	s.done = done
	c.background(func(context.Context) {
		defer close(done)
		defer s.cancel(nil)
		c.keepListening(base, s)
	})
	limited, d := withDeadline(ctx, c.cfg.timeout, &timeoutError{protocol.MethodSubscriptionsListen, "", c.cfg.timeout})
	defer d.stop()
	select {
	case err := <-s.ready:
		if err != nil {
			<-done
			return nil, fmt.Errorf("client: %s: %w", protocol.MethodSubscriptionsListen, err)
		}
		return s, nil
	case <-limited.Done():
		_ = s.Close()
		return nil, explain(&request{method: protocol.MethodSubscriptionsListen}, context.Cause(limited))
	}
}

func isEmptyFilter(f protocol.SubscriptionFilter) bool {
	return !f.ToolsListChanged && !f.PromptsListChanged && !f.ResourcesListChanged && len(f.ResourceSubscriptions) == 0
}

// follow listens on behalf of the handlers.
func (c *Client) follow(ctx context.Context, f protocol.SubscriptionFilter) {
	s := &Subscription{c: c, filter: f, wake: make(chan struct{}, 1), ready: make(chan error, 1), updated: map[string]struct{}{}}
	ctx, s.cancel = context.WithCancelCause(ctx)
	defer s.cancel(nil)
	c.keepListening(ctx, s)
	if err := <-s.ready; err != nil && ctx.Err() == nil {
		c.log.Warn("client: changes of the server are not heard of", "error", err)
	}
}

// maxListenFailures is how often in a row a stream may fail to open before it is given up.
const maxListenFailures = 10

// keepListening holds a listen request open, and opens it again when it breaks.
func (c *Client) keepListening(ctx context.Context, s *Subscription) {
	c.changes.mu.Lock()
	c.changes.subs[s] = struct{}{}
	c.changes.mu.Unlock()
	defer func() {
		c.changes.mu.Lock()
		delete(c.changes.subs, s)
		c.changes.mu.Unlock()
	}()
	opened := false
	for failures := 0; ; failures++ {
		begun := time.Now()
		acknowledged, retry, err := c.listenOnce(ctx, s, opened)
		opened = opened || acknowledged
		if acknowledged && time.Since(begun) > 10*time.Second {
			failures = 0
		}
		if ctx.Err() != nil {
			err, retry = context.Cause(ctx), false
		}
		if !retry || failures == maxListenFailures || !opened {
			s.end(err)
			return
		}
		_ = sleep(ctx, max(backoff(failures), 100*time.Millisecond))
	}
}

// end says why the subscription is over.
func (s *Subscription) end(err error) {
	if err == nil {
		err = transport.ErrClosed
	}
	s.mu.Lock()
	s.err = err
	s.mu.Unlock()
	select {
	case s.ready <- err:
	default:
	}
}

// listenOnce sends one listen request, again or for the first time, and waits for its end. Retry says that it may be worth another try.
func (c *Client) listenOnce(ctx context.Context, s *Subscription, again bool) (acknowledged, retry bool, err error) {
	a := c.agreed.Load()
	id := c.nextID()
	r := &request{method: protocol.MethodSubscriptionsListen, params: &protocol.SubscriptionsListenParams{Notifications: s.Filter()}}
	params, err := encodeParams(r)
	if err != nil {
		return false, false, err
	}
	req, err := c.newRequest(id, r, c.compose(a, r, params, protocol.Inputs{}, &callConfig{}, ""))
	if err != nil {
		return false, false, err
	}
	s.mu.Lock()
	s.id, s.acked, s.again = id.String(), false, again
	s.mu.Unlock()
	resp, err := c.conn.roundTrip(ctx, &exchange{req: req, version: a.version})
	s.mu.Lock()
	acknowledged = s.acked
	s.mu.Unlock()
	switch {
	case err != nil:
		return acknowledged, !errors.Is(err, transport.ErrClosed), err
	case resp.Error != nil:
		return acknowledged, false, resp.Error
	}
	return acknowledged, true, errors.New("the server ended the subscription")
}

// missed counts everything as changed: something may have, while nobody listened.
func (s *Subscription) missed() {
	f := s.Filter()
	for i, wanted := range [3]bool{f.ToolsListChanged, f.PromptsListChanged, f.ResourcesListChanged} {
		if wanted {
			s.c.changes.recall(Change{Kind: ChangeKind(i + 1)}, s)
		}
	}
	for _, uri := range f.ResourceSubscriptions {
		s.c.changes.recall(Change{ResourceUpdated, uri}, s)
	}
}

// recall lets s and the handlers know of a change that may have happened.
func (ch *changes) recall(change Change, s *Subscription) {
	prefix := map[ChangeKind]string{ToolsChanged: protocol.MethodToolsList, PromptsChanged: protocol.MethodPromptsList,
		ResourcesChanged: "resources/", ResourceUpdated: protocol.MethodResourcesRead}[change.Kind]
	ch.c.cache.drop(prefix)
	s.owe(change)
	if ch.handled(change) {
		ch.told.owe(change)
		ch.running.Do(func() { ch.c.background(ch.tell) })
	}
}

// acknowledged takes what the server agreed to.
func (ch *changes) acknowledged(n *jsonrpc.Request) {
	id := string(jsonx.Member(n.Param("_meta"), protocol.MetaSubscriptionID))
	var p protocol.SubscriptionsAcknowledgedParams
	if jsonx.Unmarshal(orEmpty(n.Params), &p) != nil {
		return
	}
	ch.mu.Lock()
	defer ch.mu.Unlock()
	for s := range ch.subs {
		s.mu.Lock()
		agreed := s.id == id && !s.acked
		if agreed {
			s.filter, s.acked = p.Notifications, true
			select {
			case s.ready <- nil:
			default:
			}
		}
		missed := agreed && s.again
		s.mu.Unlock()
		if missed {
			s.missed()
		}
	}
}

// listenLegacy subscribes to what the filter names.
func (c *Client) listenLegacy(ctx, base context.Context, s *Subscription) error {
	s.done = base.Done()
	s.err = transport.ErrClosed
	ch := &c.changes
	ch.mu.Lock()
	ch.subs[s] = struct{}{}
	ch.mu.Unlock()
	c.listen(ctx)
	for i, uri := range s.filter.ResourceSubscriptions {
		if err := ch.acquire(ctx, uri); err != nil {
			ch.release(s, s.filter.ResourceSubscriptions[:i])
			s.cancel(transport.ErrClosed)
			return err
		}
	}
	// Ends the subscription at the server, in the background, when it ends here.
	context.AfterFunc(base, func() {
		c.background(func(context.Context) { ch.release(s, s.filter.ResourceSubscriptions) })
	})
	return nil
}

// acquire subscribes to uri at the server, unless that is done already.
func (ch *changes) acquire(ctx context.Context, uri string) error {
	ch.mu.Lock()
	ch.uris[uri]++
	n := ch.uris[uri]
	ch.mu.Unlock()
	if n > 1 {
		return nil
	}
	err := ch.c.askSubscribe(ctx, protocol.MethodResourcesSubscribe, uri)
	if err != nil {
		ch.mu.Lock()
		delete(ch.uris, uri)
		ch.mu.Unlock()
	}
	return err
}

// release forgets s and ends what nobody else wants.
func (ch *changes) release(s *Subscription, uris []string) {
	var unwanted []string
	ch.mu.Lock()
	delete(ch.subs, s)
	for _, uri := range uris {
		if ch.uris[uri]--; ch.uris[uri] <= 0 {
			delete(ch.uris, uri)
			unwanted = append(unwanted, uri)
		}
	}
	ch.mu.Unlock()
	for _, uri := range unwanted {
		if ch.c.base.Err() != nil {
			return // the session ends anyway
		}
		if err := ch.c.askSubscribe(ch.c.base, protocol.MethodResourcesUnsubscribe, uri); err != nil {
			ch.c.log.Debug("client: a subscription was not ended", "uri", uri, "error", err)
		}
	}
}

// subscribed returns the URIs that are subscribed to at a legacy server.
func (ch *changes) subscribed() []string {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	return slices.Sorted(maps.Keys(ch.uris))
}

func (c *Client) askSubscribe(ctx context.Context, method, uri string) error {
	_, err := c.do(ctx, request{method: method, name: uri, params: &protocol.SubscribeParams{URI: uri}, reads: true}, nil)
	return err
}

package mcpkit

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// A listener is one subscriptions/listen request (2026-07-28). What it still has to send is a set,
// not a queue: a slow client is notified once of what changed often, and needs no more memory than
// its filter.
type listener struct {
	filter    protocol.SubscriptionFilter
	topics    map[*Topic]map[string]struct{} // keys by topic; nil if there are none
	principal *oauth.Principal
	wake      chan struct{}       // holds one token while something is owed
	meta      []byte              // the last member of the params of each notification, and their end
	sending   map[string]struct{} // URIs that are sent now

	mu      sync.Mutex
	lists   [3]bool                      // guarded by mu: tools, prompts, resources
	updated map[string]struct{}          // guarded by mu: URIs
	owed    map[topicKey]json.RawMessage // guarded by mu: params of topics
}

// owe notes what has to be sent.
func (l *listener) owe(note func()) {
	l.mu.Lock()
	note()
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// acknowledgedParams are like [protocol.SubscriptionsAcknowledgedParams], with topics of
// extensions.
type acknowledgedParams struct {
	Notifications json.RawMessage `json:"notifications"`
	Meta          protocol.Meta   `json:"_meta"`
}

type listenParams struct {
	Notifications *protocol.SubscriptionFilter `json:"notifications"`
}

// listen answers subscriptions/listen. It holds the request open and notifies the client until it
// disconnects, its authentication expires, or the server stops.
func listen(ctx context.Context, call *Call, p *listenParams) (Result, error) {
	l, err := newListener(ctx, call, p.Notifications)
	if err != nil {
		return nil, err
	}
	if err := l.takeTopics(ctx, call); err != nil {
		return nil, err
	}
	return l.run(ctx, call)
}

// run holds the request open.
func (l *listener) run(ctx context.Context, call *Call) (Result, error) {
	// The subscription ends when the authentication expires; the client then has to ask again.
	ctx, cancel := oauth.WithExpiry(ctx)
	defer cancel()
	id := call.req.ID.String()
	meta := protocol.Meta{protocol.MetaSubscriptionID: json.RawMessage(id)}
	l.meta = []byte(`"_meta":{"` + protocol.MetaSubscriptionID + `":` + id + "}}")
	call.server.listens.add(l)
	defer call.server.listens.remove(l)
	for t := range l.topics {
		t.listens.add(l)
		defer t.listens.remove(l)
	}
	filter, err := l.acknowledged()
	if err != nil {
		return nil, err
	}
	call.notify(protocol.NotificationSubscriptionsAcknowledged, &acknowledgedParams{filter, meta})
	for {
		select {
		case <-ctx.Done():
			return &protocol.SubscriptionsListenResult{Meta: meta}, nil
		case <-l.wake:
			l.deliver(call, meta)
		}
	}
}

// newListener returns a listener for the part of the filter that the server supports.
func newListener(ctx context.Context, call *Call, filter *protocol.SubscriptionFilter) (*listener, error) {
	if filter == nil {
		return nil, invalidParams("subscriptions/listen needs notifications, an object")
	}
	f := *filter
	if len(f.ResourceSubscriptions) > maxSubscriptions {
		return nil, invalidParams("resourceSubscriptions names %d URIs; at most %d are allowed", len(f.ResourceSubscriptions), maxSubscriptions)
	}
	c := call.catalog
	f.ToolsListChanged = f.ToolsListChanged && featureTools.has(c)
	f.PromptsListChanged = f.PromptsListChanged && featurePrompts.has(c)
	f.ResourcesListChanged = f.ResourcesListChanged && featureResources.has(c)
	f.ResourceSubscriptions = slices.DeleteFunc(f.ResourceSubscriptions, func(uri string) bool {
		r := call.findVisible(uri).resource
		return r == nil || call.follow(ctx, r, uri, func() error { return nil }) != nil
	})
	return &listener{
		filter: f, principal: call.principal, wake: make(chan struct{}, 1),
		updated: map[string]struct{}{}, sending: map[string]struct{}{},
	}, nil
}

// deliver sends what is owed.
func (l *listener) deliver(call *Call, meta protocol.Meta) {
	l.mu.Lock()
	lists, owed := l.lists, maps.Clone(l.owed)
	l.lists = [3]bool{}
	l.updated, l.sending = l.sending, l.updated
	clear(l.owed)
	l.mu.Unlock()
	for i, changed := range lists {
		if changed {
			call.sendNotification(&jsonrpc.Request{Method: listChanged[i], Params: slices.Concat([]byte("{"), l.meta)})
		}
	}
	for uri := range l.sending {
		params := append(make([]byte, 0, len(`{"uri":"",`)+len(uri)+len(l.meta)), `{"uri":`...)
		params = append(jsonx.AppendString(params, uri), ',')
		call.sendNotification(&jsonrpc.Request{Method: protocol.NotificationResourcesUpdated, Params: append(params, l.meta...)})
	}
	clear(l.sending)
	for t, params := range owed {
		params, _ = withMeta(params, meta) // meta is the id of the request, which is valid
		call.notify(t.topic.notification, params)
	}
}

// listChanged are the list-changed notifications, in the order of listener.lists.
var listChanged = [3]string{
	protocol.NotificationToolsListChanged, protocol.NotificationPromptsListChanged, protocol.NotificationResourcesListChanged,
}

// announce notifies subscribed clients of changed lists, on all replicas.
func (s *Server) announce(tools, prompts, resources bool) {
	changed := [3]bool{tools, prompts, resources}
	if changed == [3]bool{} {
		return
	}
	s.tellReplicas(kindLists, changed)
	s.announceHere(changed)
}

// announceHere notifies the clients of this replica.
func (s *Server) announceHere(changed [3]bool) {
	tools, prompts, resources := changed[0], changed[1], changed[2]
	for _, l := range s.listens.snapshot() {
		wanted := [3]bool{tools && l.filter.ToolsListChanged, prompts && l.filter.PromptsListChanged, resources && l.filter.ResourcesListChanged}
		if wanted != [3]bool{} {
			l.owe(func() {
				for i, w := range wanted {
					l.lists[i] = l.lists[i] || w
				}
			})
		}
	}
	s.changedLists.tell(changed, func(lists [3]bool) {
		sessions := s.sessions.snapshot()
		for i, c := range lists {
			if c {
				n := s.broadcast(listChanged[i], &protocol.EmptyParams{})
				for _, state := range sessions {
					if state.ready.Load() {
						s.tellSession(state, n)
					}
				}
			}
		}
	})
}

// listChanges are the changed lists of which sessions still have to be notified. A change that
// happens while others are notified does not wait, and many such changes cause one notification.
type listChanges struct {
	mu      sync.Mutex
	lists   [3]bool // guarded by mu
	telling bool    // guarded by mu: a goroutine notifies, and will look again
}

// tell adds changes and calls tell, unless another goroutine already does.
func (n *listChanges) tell(changed [3]bool, tell func(lists [3]bool)) {
	n.mu.Lock()
	for i, c := range changed {
		n.lists[i] = n.lists[i] || c
	}
	if n.telling {
		n.mu.Unlock()
		return
	}
	n.telling = true
	for n.lists != [3]bool{} {
		lists := n.lists
		n.lists = [3]bool{}
		n.mu.Unlock()
		tell(lists)
		n.mu.Lock()
	}
	n.telling = false
	n.mu.Unlock()
}

// ResourceUpdated notifies the clients that subscribed to the resource, including those of servers
// in which this one is mounted. It reports whether there were any; those of other replicas of a
// [Fleet] are notified, too, but not counted.
func (s *Server) ResourceUpdated(uri string) (notified bool) {
	s.tellReplicas(kindUpdated, uri)
	notified = s.updatedHere(uri)
	for _, p := range s.shownIn(uri) {
		notified = p.ResourceUpdated(uri) || notified
	}
	return notified
}

// shownIn returns the servers in which this one is mounted and answers for the URI.
func (s *Server) shownIn(uri string) (servers []*Server) {
	s.registering.Lock()
	parents := slices.Clip(s.parents)
	s.registering.Unlock()
	for _, m := range parents {
		if r := m.parent.catalog.Load().findResource(uri).resource; r != nil && r.from == m {
			servers = append(servers, m.parent)
		}
	}
	return servers
}

// Subscribed reports whether a client of this replica has subscribed to the resource, here or in a
// server in which this one is mounted.
func (s *Server) Subscribed(uri string) bool {
	for _, l := range s.listens.snapshot() {
		if slices.Contains(l.filter.ResourceSubscriptions, uri) {
			return true
		}
	}
	for _, state := range s.sessions.snapshot() {
		state.mu.Lock()
		_, subscribed := slices.BinarySearch(state.subscriptions, uri)
		state.mu.Unlock()
		if subscribed {
			return true
		}
	}
	return slices.ContainsFunc(s.shownIn(uri), func(p *Server) bool { return p.Subscribed(uri) })
}

// updatedHere notifies the clients of this replica.
func (s *Server) updatedHere(uri string) (notified bool) {
	// The scopes that it needs, and those of the client, may have changed.
	var scopes []string
	if match := s.catalog.Load().findResource(uri); match.resource != nil {
		scopes = match.resource.scopes
	}
	for _, l := range s.listens.snapshot() {
		if slices.Contains(l.filter.ResourceSubscriptions, uri) && l.principal.Has(scopes...) {
			notified = true
			l.owe(func() { l.updated[uri] = struct{}{} })
		}
	}
	var n *jsonrpc.Request // the same for all sessions
	for _, state := range s.sessions.snapshot() {
		state.mu.Lock()
		_, subscribed := slices.BinarySearch(state.subscriptions, uri)
		state.mu.Unlock()
		if subscribed && state.ready.Load() && state.principal.Load().Has(scopes...) {
			notified = true
			if n == nil {
				n = s.broadcast(protocol.NotificationResourcesUpdated, &protocol.ResourceUpdatedParams{URI: uri})
			}
			s.tellSession(state, n)
		}
	}
	return notified
}

// broadcast returns a notification for all sessions; nil if params do not encode.
func (s *Server) broadcast(method string, params any) *jsonrpc.Request {
	n, err := jsonrpc.NewNotification(method, params)
	if err != nil {
		s.config.logger.Debug("mcpkit: no session was notified", "method", method, "error", err)
	}
	return n
}

// tellSession sends a notification outside of any request.
func (s *Server) tellSession(state *session, n *jsonrpc.Request) {
	if n == nil {
		return
	}
	if err := state.link.Notify(context.Background(), n); err != nil {
		s.config.logger.Debug("mcpkit: a session was not notified", "method", n.Method, "error", err)
	}
}

// subscribe answers resources/subscribe (up to and including 2025-11-25).
func subscribe(ctx context.Context, call *Call, p *protocol.SubscribeParams) (Result, error) {
	uri := p.URI
	r := call.findVisible(uri).resource
	if r == nil {
		return nil, protocol.ResourceNotFound(call.version, uri)
	}
	return nil, call.follow(ctx, r, uri, func() error { return call.session.subscribe(ctx, uri) })
}

// errNotFollowed is the error of a subscription that middleware of a mounted server has answered.
var errNotFollowed = errors.New("mcpkit: middleware of a mounted server answered a subscription")

// follow makes a subscription to a resource, inside the middleware of the server that it is mounted
// from: it begins to watch the resource, and calls keep.
func (c *Call) follow(ctx context.Context, r *resource, uri string, keep func() error) error {
	err := errNotFollowed
	_, refused := r.through(func(ctx context.Context, _ *Call) (Result, error) {
		if err = nil; r.subscribe != nil {
			err = r.subscribe(ctx, uri)
		}
		if err == nil {
			err = keep()
		}
		return nil, err
	})(ctx, c)
	if refused != nil {
		return refused
	}
	return err
}

// subscribe adds a subscription.
func (state *session) subscribe(ctx context.Context, uri string) error {
	if state == nil {
		return nil // without a session the client cannot be notified, but it can read
	}
	full := false
	err := state.change(ctx, func() {
		state.mu.Lock()
		defer state.mu.Unlock()
		i, ok := slices.BinarySearch(state.subscriptions, uri)
		if full = !ok && len(state.subscriptions) >= maxSubscriptions; !ok && !full {
			state.subscriptions = slices.Insert(state.subscriptions, i, uri)
		}
	})
	if full {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "the session has %d subscriptions, which is the most it may have", maxSubscriptions)
	}
	return err
}

// unsubscribe answers resources/unsubscribe (up to and including 2025-11-25).
func unsubscribe(ctx context.Context, call *Call, p *protocol.SubscribeParams) (Result, error) {
	h := func(ctx context.Context, _ *Call) (Result, error) {
		state := call.session
		if state == nil {
			return nil, nil
		}
		return nil, state.change(ctx, func() {
			state.mu.Lock()
			defer state.mu.Unlock()
			if i, ok := slices.BinarySearch(state.subscriptions, p.URI); ok {
				state.subscriptions = slices.Delete(state.subscriptions, i, i+1)
			}
		})
	}
	if call.entry != nil {
		h = call.entry.through(h)
	}
	return h(ctx, call)
}

// decodeURI decodes the params of a request about a subscription to a resource.
func decodeURI(ctx context.Context, req *jsonrpc.Request, p *protocol.SubscribeParams) error {
	if err := decodeParams(ctx, req, p); err != nil {
		return err
	}
	if p.URI == "" {
		return invalidParams("%s needs uri, a string", req.Method)
	}
	return nil
}

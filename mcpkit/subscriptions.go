package mcpkit

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// A subject is what clients subscribe to and are notified of: a changed list, an updated resource, or
// a key of a topic.
type subject struct {
	notification string // the method
	topic        *Topic // nil for lists and resources
	key          string // the URI, or the key of the topic; "" for others
}

func resourceSubject(uri string) subject {
	return subject{notification: protocol.NotificationResourcesUpdated, key: uri}
}

// A listener is one subscriptions/listen request (2026-07-28). What it still has to send is a set,
// not a queue: a slow client is notified once of what changed often, and needs no more memory than
// its filter.
type listener struct {
	subjects  map[subject]bool // never changed while it listens
	principal *oauth.Principal
	wake      chan struct{} // holds one token while something is owed

	mu     sync.Mutex
	owed   []subject                   // guarded by mu
	params map[subject]json.RawMessage // guarded by mu: the newest of what is owed
}

// owe notes a notification that has to be sent. It returns false if the client did not subscribe to it.
func (l *listener) owe(s subject, params json.RawMessage) bool {
	if !l.subjects[s] {
		return false
	}
	l.mu.Lock()
	if _, known := l.params[s]; !known {
		l.owed = append(l.owed, s)
	}
	l.params[s] = params
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
	return true
}

// deliver sends what is owed.
func (l *listener) deliver(call *Call, meta protocol.Meta) {
	l.mu.Lock()
	owed, params := l.owed, l.params
	l.owed, l.params = nil, map[subject]json.RawMessage{}
	l.mu.Unlock()
	for _, s := range owed {
		text, _ := withMeta(params[s], meta) // meta is the id of the request, which is valid
		call.sendNotification(&jsonrpc.Request{Method: s.notification, Params: text})
	}
}

type listenParams struct {
	Notifications *protocol.SubscriptionFilter `json:"notifications"`
}

// acknowledgedParams are like [protocol.SubscriptionsAcknowledgedParams], with topics of
// extensions.
type acknowledgedParams struct {
	Notifications json.RawMessage `json:"notifications"`
	Meta          protocol.Meta   `json:"_meta"`
}

// An audience is the clients that are notified of changes.
type audience struct {
	sessions set[*session]
	listens  set[*listener]
}

// subscribed reports whether a client has subscribed to a resource.
func (a *audience) subscribed(uri string) bool {
	return slices.ContainsFunc(a.listens.snapshot(), func(l *listener) bool { return l.subjects[resourceSubject(uri)] }) ||
		slices.ContainsFunc(a.sessions.snapshot(), func(state *session) bool { return state.subscribed(uri) })
}

// uris returns the resources that clients have subscribed to.
func (a *audience) uris() map[string]bool {
	uris := map[string]bool{}
	for _, l := range a.listens.snapshot() {
		for s := range l.subjects {
			if s == resourceSubject(s.key) {
				uris[s.key] = true
			}
		}
	}
	for _, state := range a.sessions.snapshot() {
		for _, uri := range state.uris() {
			uris[uri] = true
		}
	}
	return uris
}

// listen answers subscriptions/listen. It holds the request open and notifies the client until it
// disconnects, its authentication expires, or the server stops.
func listen(ctx context.Context, call *Call, p *listenParams) (Result, error) {
	l := &listener{
		subjects: map[subject]bool{}, principal: call.principal, wake: make(chan struct{}, 1), params: map[subject]json.RawMessage{},
	}
	filter, err := l.subscribe(ctx, call, p.Notifications)
	if err != nil {
		return nil, err
	}
	// The subscription ends when the authentication expires; the client then has to ask again.
	ctx, cancel := oauth.WithExpiry(ctx)
	defer cancel()
	call.server.audience.listens.add(l)
	defer call.server.audience.listens.remove(l)
	for s := range l.subjects {
		if s.topic != nil {
			s.topic.listens.add(l)
			defer s.topic.listens.remove(l)
		}
	}
	meta := protocol.Meta{protocol.MetaSubscriptionID: json.RawMessage(call.req.ID.String())}
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

// subscribe subscribes to the part of the filter that the server supports and the caller may see, and
// returns that part.
func (l *listener) subscribe(ctx context.Context, call *Call, filter *protocol.SubscriptionFilter) (json.RawMessage, error) {
	if filter == nil {
		return nil, invalidParams("subscriptions/listen needs notifications, an object")
	}
	if n := len(filter.ResourceSubscriptions); n > maxSubscriptions {
		return nil, invalidParams("resourceSubscriptions names %d URIs; at most %d are allowed", n, maxSubscriptions)
	}
	for _, f := range listFeatures {
		if wanted := f.wanted(filter); *wanted && f.has(call.catalog) {
			l.subjects[subject{notification: f.listChanged}] = true
		} else {
			*wanted = false
		}
	}
	filter.ResourceSubscriptions = slices.DeleteFunc(filter.ResourceSubscriptions, func(uri string) bool {
		e, _ := call.findVisible(uri)
		return e == nil || call.follow(ctx, e, uri, func() error { return nil }) != nil
	})
	for _, uri := range filter.ResourceSubscriptions {
		l.subjects[resourceSubject(uri)] = true
	}
	accepted, err := jsonx.Marshal(filter)
	if err != nil {
		return nil, err
	}
	return l.subscribeToTopics(ctx, call, accepted)
}

// announce notifies subscribed clients of changed lists, given by their notifications, on all replicas.
func (s *Server) announce(lists []string) {
	if len(lists) > 0 {
		s.tellReplicas(kindLists, lists)
		s.announceHere(lists)
	}
}

// announceHere notifies the clients of this replica.
func (s *Server) announceHere(lists []string) {
	for _, l := range s.audience.listens.snapshot() {
		for _, notification := range lists {
			l.owe(subject{notification: notification}, json.RawMessage("{}"))
		}
	}
	for _, state := range s.audience.sessions.snapshot() {
		if !state.ready.Load() {
			continue
		}
		for _, notification := range lists {
			s.tellSession(state, notification, json.RawMessage("{}"))
		}
	}
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
		if e, _ := m.parent.catalog.Load().findResource(uri); e != nil && e.from == m {
			servers = append(servers, m.parent)
		}
	}
	return servers
}

// Subscribed reports whether a client of this replica has subscribed to the resource, here or in a
// server in which this one is mounted.
func (s *Server) Subscribed(uri string) bool {
	return s.audience.subscribed(uri) || slices.ContainsFunc(s.shownIn(uri), func(p *Server) bool { return p.Subscribed(uri) })
}

// updatedHere notifies the clients of this replica.
func (s *Server) updatedHere(uri string) (notified bool) {
	// The scopes that it needs, and those of the client, may have changed.
	var scopes []string
	if e, _ := s.catalog.Load().findResource(uri); e != nil {
		scopes = e.scopes
	}
	params, _ := jsonx.Marshal(&protocol.ResourceUpdatedParams{URI: uri}) // a string always encodes
	for _, l := range s.audience.listens.snapshot() {
		if l.principal.Has(scopes...) && l.owe(resourceSubject(uri), params) {
			notified = true
		}
	}
	for _, state := range s.audience.sessions.snapshot() {
		if state.subscribed(uri) && state.ready.Load() && state.principal.Load().Has(scopes...) {
			notified = true
			s.tellSession(state, protocol.NotificationResourcesUpdated, params)
		}
	}
	return notified
}

// tellSession sends a notification outside of any request.
func (s *Server) tellSession(state *session, method string, params json.RawMessage) {
	if err := state.link.Notify(context.Background(), &jsonrpc.Request{Method: method, Params: params}); err != nil {
		s.config.logger.Debug("mcpkit: a session was not notified", "method", method, "error", err)
	}
}

// subscribe answers resources/subscribe (up to and including 2025-11-25).
func subscribe(ctx context.Context, call *Call, p *protocol.SubscribeParams) (Result, error) {
	uri := p.URI
	e, _ := call.findVisible(uri)
	if e == nil {
		return nil, protocol.ResourceNotFound(call.version, uri)
	}
	return nil, call.follow(ctx, e, uri, func() error { return call.session.subscribe(ctx, uri) })
}

// errNotFollowed is the error of a subscription that middleware of its resource has answered.
var errNotFollowed = errors.New("mcpkit: middleware of a resource answered a subscription")

// follow makes a subscription to a resource, inside the middleware that its calls pass: it begins to
// watch the resource, and calls keep.
func (c *Call) follow(ctx context.Context, e *entry, uri string, keep func() error) error {
	err := errNotFollowed
	_, refused := e.through(func(ctx context.Context, _ *Call) (Result, error) {
		if err = nil; e.subscribe != nil {
			err = e.subscribe(ctx, uri)
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

// subscribed reports whether the session has subscribed to a resource.
func (state *session) subscribed(uri string) bool {
	state.mu.Lock()
	defer state.mu.Unlock()
	_, subscribed := slices.BinarySearch(state.subscriptions, uri)
	return subscribed
}

// uris returns the resources that the session has subscribed to.
func (state *session) uris() []string {
	state.mu.Lock()
	defer state.mu.Unlock()
	return slices.Clone(state.subscriptions)
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

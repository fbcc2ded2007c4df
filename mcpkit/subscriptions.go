package mcpkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/annotation"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// A subject is what clients subscribe to and are notified of: a topic, and one of its keys; "" if the
// topic has none.
type subject struct {
	topic *Topic
	key   string
}

// A subscriber is a client that is notified outside of its requests: a legacy session, or a request
// subscriptions/listen (2026-07-28).
type subscriber interface {
	wants(s subject) bool
	keys(t *Topic) []string // that it has subscribed to
	caller() *oauth.Principal
	notify(s subject, params json.RawMessage)
}

// subscriptions are what a subscriber has subscribed to.
type subscriptions struct {
	principal atomic.Pointer[oauth.Principal] // of the last request

	mu       sync.Mutex
	subjects map[subject]bool // guarded by mu
}

func (l *subscriptions) caller() *oauth.Principal { return l.principal.Load() }

func (l *subscriptions) wants(s subject) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.subjects[s]
}

func (l *subscriptions) keys(t *Topic) (keys []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for s := range l.subjects {
		if s.topic == t {
			keys = append(keys, s.key)
		}
	}
	return keys
}

func (l *subscriptions) edit(f func(subjects map[subject]bool)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(l.subjects)
}

// resourceTopic is the place in [Server.topics] of the topic of updated resources, whose keys are URIs.
// Those of changed lists stand before it.
const resourceTopic = 4

// newTopics returns the topics of the protocol, in the order in which clients are notified.
func newTopics() [resourceTopic + 1]*Topic {
	return [...]*Topic{
		{member: "toolsListChanged", notification: protocol.NotificationToolsListChanged, offered: hasTools},
		{member: "promptsListChanged", notification: protocol.NotificationPromptsListChanged, offered: hasPrompts},
		{member: "resourcesListChanged", notification: protocol.NotificationResourcesListChanged, offered: hasResources},
		{member: "eventsListChanged", notification: "notifications/events/list_changed", offered: hasEvents},
		NewTopic("resourceSubscriptions", protocol.NotificationResourcesUpdated, mayFollow),
	}
}

// updates returns the subject of a resource.
func (s *Server) updates(uri string) subject { return subject{s.topics[resourceTopic], uri} }

// allLists adds the subjects of changed lists.
func (s *Server) allLists(subjects map[subject]bool) {
	for _, t := range s.topics[:resourceTopic] {
		subjects[subject{topic: t}] = true
	}
}

// tell notifies those of the clients that have subscribed to a list or a resource.
func (s *Server) tell(about subject, clients []subscriber) (told bool) {
	params := json.RawMessage("{}")
	var scopes []string // those of the resource, and those of the client, may have changed since
	if about.key != "" {
		params, _ = jsonx.Marshal(&protocol.ResourceUpdatedParams{URI: about.key}) // a string always encodes
		if e, _ := s.catalog.Load().findResource(about.key); e != nil {
			scopes = e.Scopes
		}
	}
	for _, c := range clients {
		if s.config.fixed || !c.wants(about) || !c.caller().Has(scopes...) {
			continue
		}
		c.notify(about, params)
		told = true
	}
	return told
}

// ListsChanged notifies the subscribed clients of this replica that have the principal of the call, since
// what [Visible] shows them has changed.
func (c *Call) ListsChanged() {
	for _, t := range c.server.topics[:resourceTopic] {
		c.server.tell(subject{topic: t}, slices.DeleteFunc(t.clients(), func(client subscriber) bool {
			return client.caller().Key() != c.principal.Key()
		}))
	}
}

// missed notifies clients of all that may have changed while nobody could notify them: one, or all.
func (s *Server) missed(only ...subscriber) {
	for _, t := range s.topics {
		if !t.offered(s.catalog.Load()) {
			continue
		}
		clients := only
		if only == nil {
			clients = t.clients()
		}
		for _, client := range clients {
			for _, key := range client.keys(t) {
				s.tell(subject{t, key}, []subscriber{client})
			}
		}
	}
}

// ResourceUpdated notifies the clients that subscribed to the resource, including those of servers
// in which this one is mounted. It reports whether there were any; those of other replicas of a
// [Fleet] are notified, too, but not counted.
func (s *Server) ResourceUpdated(uri string) (notified bool) {
	e, _ := s.catalog.Load().findResource(uri)
	if remote := e != nil && e.subscribe != nil; !remote { // each replica watches remote resources for its own clients
		s.tellReplicas(s.updates(uri))
	}
	notified = s.tell(s.updates(uri), s.topics[resourceTopic].clients())
	for _, p := range s.shownIn(uri) {
		notified = p.ResourceUpdated(uri) || notified
	}
	return notified
}

// shownIn returns the servers in which this one is mounted and answers for the URI.
func (s *Server) shownIn(uri string) (servers []*Server) {
	for _, m := range s.catalog.Load().parents {
		if e, _ := m.parent.catalog.Load().findResource(uri); e != nil && e.from == m {
			servers = append(servers, m.parent)
		}
	}
	return servers
}

// Subscribed reports whether a client of this replica has subscribed to the resource, here or in a
// server in which this one is mounted.
func (s *Server) Subscribed(uri string) bool {
	return s.topics[resourceTopic].Subscribed(uri) || slices.ContainsFunc(s.shownIn(uri), func(p *Server) bool { return p.Subscribed(uri) })
}

// A listener is one subscriptions/listen request. What it still has to send is a set, not a queue: a
// slow client is notified once of what changed often, and needs no more memory than its filter.
type listener struct {
	subscriptions                             // the subjects do not change
	wake          chan struct{}               // holds one token while something is owed
	owed          []subject                   // guarded by mu
	params        map[subject]json.RawMessage // guarded by mu: the newest of what is owed
}

// notify notes a notification that has to be sent.
func (l *listener) notify(s subject, params json.RawMessage) {
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
}

// deliver sends what is owed.
func (l *listener) deliver(call *Call, meta json.RawMessage) {
	l.mu.Lock()
	owed, params := l.owed, l.params
	l.owed, l.params = nil, map[subject]json.RawMessage{}
	l.mu.Unlock()
	for _, s := range owed {
		call.sendNotification(&jsonrpc.Request{Method: s.topic.notification, Params: jsonx.With(params[s], "_meta", meta)})
	}
}

// findListened finds the resources of subscriptions/listen, and combines their tags and scopes for
// middleware.
func findListened(call *Call) error {
	filter := call.req.Param("notifications")
	if jsonx.Kind(filter) != '{' {
		return invalidParams("subscriptions/listen needs notifications, an object")
	}
	uris, err := call.server.topics[resourceTopic].wanted(filter)
	if err != nil {
		return err
	}
	all := &entry{Annotation: &annotation.Annotation{}}
	for _, uri := range uris {
		if e, _ := call.findVisible(uri); e != nil {
			all.Labels = append(all.Labels, e.Labels...)
			all.Scopes = append(all.Scopes, e.Scopes...)
		}
	}
	slices.Sort(all.Labels)
	slices.Sort(all.Scopes)
	all.Labels, all.Scopes = slices.Compact(all.Labels), slices.Compact(all.Scopes)
	call.entry = all
	return nil
}

// listen answers subscriptions/listen. It holds the request open and notifies the client until it
// disconnects, its authentication expires, or the server stops.
func listen(ctx context.Context, call *Call) (Result, error) {
	l := &listener{wake: make(chan struct{}, 1), params: map[subject]json.RawMessage{}}
	l.subjects = map[subject]bool{}
	l.principal.Store(call.principal)
	accepted, err := l.subscribe(ctx, call)
	if err != nil {
		return nil, err
	}
	// The subscription ends when the authentication expires; the client then has to ask again.
	ctx, cancel := oauth.WithExpiry(ctx)
	defer cancel()
	for s := range l.subjects {
		s.topic.subscribers.Store(l, nil)
		defer s.topic.subscribers.Delete(l)
	}
	meta := protocol.Meta{protocol.MetaSubscriptionID: json.RawMessage(call.req.ID.String())}
	rawMeta, _ := meta.AppendJSON(nil) // meta is the id of the request, which is valid
	params := jsonx.With(accepted, "_meta", rawMeta)
	call.sendNotification(&jsonrpc.Request{Method: protocol.NotificationSubscriptionsAcknowledged, Params: params})
	for {
		select {
		case <-ctx.Done():
			return &protocol.SubscriptionsListenResult{Meta: meta}, nil
		case <-l.wake:
			l.deliver(call, rawMeta)
		}
	}
}

// subscribe subscribes to the part of the filter that the server supports and the caller may see. It
// returns the params that say so.
func (l *listener) subscribe(ctx context.Context, call *Call) (accepted json.RawMessage, err error) {
	accepted = json.RawMessage(`{"notifications":{`)
	for _, e := range append([]*Extension{{Topics: call.server.topics[:]}}, call.catalog.extensions...) {
		for _, t := range e.Topics {
			keys, err := t.wanted(call.req.Param("notifications"))
			if err != nil {
				return nil, err
			}
			if keys == nil || !t.offered(call.catalog) || e.ID == "" && call.catalog.config.fixed {
				continue
			}
			if _, ok := call.Extension(e.ID); !ok && e.ID != "" {
				return nil, call.undeclared(e.ID, "the member "+t.member+" of the filter")
			}
			member := json.RawMessage("true")
			if t.maySubscribe != nil {
				keys = slices.DeleteFunc(keys, func(key string) bool { return !t.maySubscribe(ctx, key) })
				member, _ = jsonx.Marshal(keys) // strings always encode
			}
			accepted = jsonx.AppendMember(accepted, jsonx.AppendString(nil, t.member), member)
			for _, key := range keys {
				l.subjects[subject{t, key}] = true
			}
		}
	}
	return append(accepted, "}}"...), nil
}

// follow begins to watch a resource, inside the middleware that its calls pass.
func (c *Call) follow(ctx context.Context, e *entry, uri string) error {
	followed := false
	_, err := e.through(func(ctx context.Context, _ *Call) (Result, error) {
		followed = true
		if e.subscribe == nil {
			return nil, nil
		}
		return nil, e.subscribe(ctx, uri)
	})(ctx, c)
	if err == nil && !followed {
		return errors.New("mcpkit: middleware of a resource answered a subscription")
	}
	return err
}

// mayFollow begins to watch a resource, if the caller may.
func mayFollow(ctx context.Context, uri string) bool {
	call := CallFrom(ctx)
	e, _ := call.findVisible(uri)
	return e != nil && call.follow(ctx, e, uri) == nil
}

// subscribe answers resources/subscribe (up to and including 2025-11-25).
func subscribe(ctx context.Context, call *Call) (Result, error) {
	if err := call.follow(ctx, call.entry, call.name); err != nil {
		return nil, err
	}
	about, full := call.server.updates(call.name), false
	err := call.session.change(ctx, func(subjects map[subject]bool) {
		if full = !subjects[about] && len(subjects) >= maxSubscriptions+resourceTopic; !full { // lists do not count
			subjects[about] = true
		}
	})
	if full {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "the session has %d subscriptions, which is the most it may have", maxSubscriptions)
	}
	return nil, err
}

// unsubscribe answers resources/unsubscribe (up to and including 2025-11-25). The resource may be gone.
func unsubscribe(ctx context.Context, call *Call) (Result, error) {
	about := call.server.updates(call.name)
	return nil, call.session.change(ctx, func(subjects map[subject]bool) { delete(subjects, about) })
}

// A Topic is what clients of 2026-07-28 can subscribe to with a member of the filter of
// subscriptions/listen that an [Extension] defines. The client has to declare the extension. Make a
// Topic with [NewTopic]. It is safe for concurrent use.
type Topic struct {
	member, notification string
	maySubscribe         func(ctx context.Context, key string) bool // nil: the member is true or false
	offered              func(*catalog) bool                        // what a server has that offers it
	subscribers          sync.Map
}

// NewTopic returns the topic whose subscribers get the notification.
//
// If maySubscribe is nil, the filter's member is a boolean. Otherwise it is a list of strings, the
// keys: maySubscribe reports whether the caller, [Call.Principal] of [CallFrom], may subscribe to a
// key. The server leaves out the keys for which it returns false, as it does with unknown
// resources.
func NewTopic(member, notification string, maySubscribe func(ctx context.Context, key string) bool) *Topic {
	return &Topic{member: member, notification: notification, maySubscribe: maySubscribe, offered: func(*catalog) bool { return true }}
}

// Notify sends the notification to the clients of this replica that subscribed to key; "" if the
// topic has no keys. The params encode to a JSON object. A client that cannot keep up gets only the
// newest params of each key.
func (t *Topic) Notify(key string, params any) error {
	text, err := jsonx.Marshal(params)
	if err == nil && jsonx.Kind(text) != '{' {
		err = fmt.Errorf("params are a JSON object, not %.20s", text)
	}
	if err != nil {
		return fmt.Errorf("mcpkit: topic %q: %w", t.member, err)
	}
	for _, c := range t.clients() {
		if s := (subject{t, key}); c.wants(s) {
			c.notify(s, text)
		}
	}
	return nil
}

// clients returns the subscribers.
func (t *Topic) clients() (all []subscriber) {
	for client := range t.subscribers.Range {
		all = append(all, client.(subscriber))
	}
	return all
}

// Subscribed reports whether a client subscribed to key; "" if the topic has no keys.
func (t *Topic) Subscribed(key string) bool {
	return slices.ContainsFunc(t.clients(), func(c subscriber) bool { return c.wants(subject{t, key}) })
}

// Keys returns the keys that clients subscribed to, sorted.
func (t *Topic) Keys() (keys []string) {
	for _, c := range t.clients() {
		keys = append(keys, c.keys(t)...)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// wanted returns the keys that the filter has of the topic, sorted: one key "" if the topic has none, nil
// if the filter does not have the topic.
func (t *Topic) wanted(filter json.RawMessage) ([]string, error) {
	raw := jsonx.Member(filter, t.member)
	if raw == nil || string(raw) == "false" || string(raw) == "null" {
		return nil, nil
	}
	if t.maySubscribe == nil {
		if string(raw) != "true" {
			return nil, invalidParams("the member %s of the filter is true or false", t.member)
		}
		return []string{""}, nil
	}
	var keys []string
	if jsonx.Unmarshal(raw, &keys) != nil {
		return nil, invalidParams("the member %s of the filter is a list of strings", t.member)
	}
	if len(keys) > maxSubscriptions {
		return nil, invalidParams("%s names more than %d keys", t.member, maxSubscriptions)
	}
	slices.Sort(keys)
	return slices.Compact(keys), nil
}

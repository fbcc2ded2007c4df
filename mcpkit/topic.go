package mcpkit

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// A Topic is what clients of 2026-07-28 can subscribe to with a member of the filter of
// subscriptions/listen that an [Extension] defines. The client has to declare the extension. Make a
// Topic with [NewTopic]. It is safe for concurrent use.
type Topic struct {
	member, notification string
	maySubscribe         func(ctx context.Context, key string) bool // nil: the member is true or false
	listens              set[*listener]
}

// NewTopic returns the topic whose subscribers get the notification.
//
// If maySubscribe is nil, the filter's member is a boolean. Otherwise it is a list of strings, the
// keys: maySubscribe reports whether the caller, [Call.Principal] of [CallFrom], may subscribe to a
// key. The server leaves out the keys for which it returns false, as it does with unknown
// resources.
func NewTopic(member, notification string, maySubscribe func(ctx context.Context, key string) bool) *Topic {
	return &Topic{member: member, notification: notification, maySubscribe: maySubscribe}
}

// Notify sends the notification to the clients that subscribed to key; "" if the topic has no keys.
// The params encode to a JSON object. A client that cannot keep up gets only the newest params of
// each key. notified reports whether any client subscribed.
func (t *Topic) Notify(key string, params any) (notified bool, err error) {
	text, err := jsonx.Marshal(params)
	if err == nil && jsonx.Kind(text) != '{' {
		err = fmt.Errorf("params are a JSON object, not %.20s", text)
	}
	if err != nil {
		return false, fmt.Errorf("mcpkit: topic %q: %w", t.member, err)
	}
	for _, l := range t.listens.snapshot() {
		if _, ok := l.topics[t][key]; ok {
			notified = true
			l.owe(func() { l.owed[topicKey{t, key}] = text })
		}
	}
	return notified, nil
}

// Subscribed reports whether a client subscribed to key; "" if the topic has no keys.
func (t *Topic) Subscribed(key string) bool {
	for _, l := range t.listens.snapshot() {
		if _, ok := l.topics[t][key]; ok {
			return true
		}
	}
	return false
}

// Keys returns the keys that clients subscribed to, sorted.
func (t *Topic) Keys() []string {
	keys := map[string]struct{}{}
	for _, l := range t.listens.snapshot() {
		maps.Copy(keys, l.topics[t])
	}
	return slices.Sorted(maps.Keys(keys))
}

// A topicKey is what a listener is notified of.
type topicKey struct {
	topic *Topic
	key   string
}

// An offeredTopic is a topic of a server, with the extension that it belongs to.
type offeredTopic struct {
	*Topic
	extension string
	mounted   bool // it is that of a mounted server
}

// addTopic adds a topic to the catalog.
func (c *catalog) addTopic(t offeredTopic) error {
	switch t.member {
	case "", "toolsListChanged", "promptsListChanged", "resourcesListChanged", "resourceSubscriptions":
		return fmt.Errorf("a topic cannot have the member %q", t.member)
	}
	if c.topic(t.member) != nil {
		return fmt.Errorf("the server has a topic with the member %q already", t.member)
	}
	c.topics = append(slices.Clip(c.topics), t)
	return nil
}

// topic returns the topic with the member, or nil.
func (c *catalog) topic(member string) *offeredTopic {
	for i := range c.topics {
		if c.topics[i].member == member {
			return &c.topics[i]
		}
	}
	return nil
}

// takeTopics reads the members of the filter that belong to extensions, and notes in l what the
// caller may subscribe to.
func (l *listener) takeTopics(ctx context.Context, call *Call) *jsonrpc.Error {
	filter := call.req.Param("notifications")
	for _, t := range call.catalog.topics {
		raw := jsonx.Member(filter, t.member)
		if raw == nil || string(raw) == "false" || string(raw) == "null" {
			continue
		}
		if _, ok := call.Extension(t.extension); !ok {
			return call.undeclared(t.extension, "the member "+t.member+" of the filter")
		}
		keys, err := t.keys(ctx, raw)
		if err != nil {
			return err
		}
		if l.topics == nil {
			l.topics, l.owed = map[*Topic]map[string]struct{}{}, map[topicKey]json.RawMessage{}
		}
		l.topics[t.Topic] = keys
	}
	return nil
}

// keys returns the keys in the filter's member that the caller may subscribe to.
func (t *Topic) keys(ctx context.Context, raw []byte) (map[string]struct{}, *jsonrpc.Error) {
	if t.maySubscribe == nil {
		if string(raw) != "true" {
			return nil, invalidParams("the member %s of the filter is true or false", t.member)
		}
		return map[string]struct{}{"": {}}, nil
	}
	if jsonx.Kind(raw) != '[' {
		return nil, invalidParams("the member %s of the filter is a list of strings", t.member)
	}
	keys := map[string]struct{}{}
	n := 0
	for raw := range jsonx.Elements(raw) {
		if jsonx.Kind(raw) != '"' {
			return nil, invalidParams("the member %s of the filter is a list of strings", t.member)
		}
		if n++; n > maxSubscriptions {
			return nil, invalidParams("%s names more than %d keys", t.member, maxSubscriptions)
		}
		if key := jsonx.String(raw); t.maySubscribe(ctx, key) {
			keys[key] = struct{}{}
		}
	}
	return keys, nil
}

// acknowledged returns the filter with what the listener subscribed to.
func (l *listener) acknowledged() (json.RawMessage, error) {
	filter, err := jsonx.Marshal(l.filter)
	if err != nil || l.topics == nil {
		return filter, err
	}
	object := protocol.Object{}
	if err := jsonx.Unmarshal(filter, &object); err != nil {
		return nil, err
	}
	for t, keys := range l.topics {
		if t.maySubscribe == nil {
			object[t.member] = json.RawMessage("true")
			continue
		}
		if object[t.member], err = jsonx.Marshal(slices.Sorted(maps.Keys(keys))); err != nil {
			return nil, err
		}
	}
	return jsonx.Marshal(object)
}

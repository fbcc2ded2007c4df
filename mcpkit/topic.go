package mcpkit

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
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
		notified = l.owe(t.subject(key), text) || notified
	}
	return notified, nil
}

func (t *Topic) subject(key string) subject { return subject{t.notification, t, key} }

// Subscribed reports whether a client subscribed to key; "" if the topic has no keys.
func (t *Topic) Subscribed(key string) bool {
	return slices.ContainsFunc(t.listens.snapshot(), func(l *listener) bool { return l.subjects[t.subject(key)] })
}

// Keys returns the keys that clients subscribed to, sorted.
func (t *Topic) Keys() []string {
	keys := map[string]bool{}
	for _, l := range t.listens.snapshot() {
		for s := range l.subjects {
			if s.topic == t {
				keys[s.key] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(keys))
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

// subscribeToTopics subscribes to what the caller may of the members of the filter that belong to
// extensions, and returns accepted, the other members, with them.
func (l *listener) subscribeToTopics(ctx context.Context, call *Call, accepted json.RawMessage) (json.RawMessage, error) {
	filter := call.req.Param("notifications")
	for _, t := range call.catalog.topics {
		raw := jsonx.Member(filter, t.member)
		if raw == nil || string(raw) == "false" || string(raw) == "null" {
			continue
		}
		if _, ok := call.Extension(t.extension); !ok {
			return nil, call.undeclared(t.extension, "the member "+t.member+" of the filter")
		}
		keys, err := t.keys(ctx, raw)
		if err != nil {
			return nil, err
		}
		member := json.RawMessage("true")
		if t.maySubscribe != nil {
			member, _ = jsonx.Marshal(keys) // strings always encode
		}
		accepted = append(jsonx.AppendMember(accepted[:len(accepted)-1], jsonx.AppendString(nil, t.member), member), '}')
		for _, key := range keys {
			l.subjects[t.subject(key)] = true
		}
	}
	return accepted, nil
}

// keys returns the keys in the filter's member that the caller may subscribe to, sorted.
func (t *Topic) keys(ctx context.Context, raw []byte) ([]string, error) {
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
	return slices.DeleteFunc(slices.Compact(keys), func(key string) bool { return !t.maySubscribe(ctx, key) }), nil
}

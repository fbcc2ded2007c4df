package client

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// An extension is what the client declares of an extension.
type extension struct {
	settings protocol.Object
	since    protocol.Version
}

// An ExtensionOption adds to what the client supports of an [Extension].
type ExtensionOption interface{ extend(*config, *extension) }

type extensionOption func(*config, *extension)

func (f extensionOption) extend(c *config, e *extension) { f(c, e) }

// Extension declares that the client supports an extension: on each request of a modern version,
// and at the start of a legacy session. The settings encode to a JSON object; nil means {}. See
// [Client.Extension] for what the server declares.
//
// [OnResult] handles results of the extension, [Since] limits it to newer versions of the protocol.
// [Client.Request] calls its methods, [Client.Items] reads its lists, and a [Topic] receives its
// notifications, [OnNotification] those of one request.
func Extension(id string, settings any, opts ...ExtensionOption) DialOption {
	return dialOption(func(c *config) error {
		e := &extension{settings: protocol.Object{}}
		if settings != nil {
			raw, err := jsonx.Marshal(settings)
			if err == nil {
				err = jsonx.Unmarshal(raw, &e.settings)
			}
			if err != nil || e.settings == nil {
				return fmt.Errorf("client: Extension(%q): the settings do not encode to a JSON object", id)
			}
		}
		if c.extensions == nil {
			c.extensions = map[string]*extension{}
		}
		c.extensions[id] = e
		for _, o := range opts {
			o.extend(c, e)
		}
		return nil
	})
}

// Since says in which version of the protocol the extension begins. The client does not declare it
// in earlier versions.
func Since(v protocol.Version) ExtensionOption {
	return extensionOption(func(_ *config, e *extension) { e.since = v })
}

// A ResultFunc returns the result of a tool, a CallToolResult, for a result of tools/call that has
// a result type of an extension. ctx is that of the call.
type ResultFunc func(ctx context.Context, r *ExtensionResult) (json.RawMessage, error)

// A ResultOption is made by [OnResult].
type ResultOption interface {
	ExtensionOption
	CallOption
}

type resultOption struct {
	resultType string
	f          ResultFunc
}

func (o *resultOption) extend(c *config, _ *extension) {
	if c.onResult == nil {
		c.onResult = map[string]ResultFunc{}
	}
	c.onResult[o.resultType] = o.f
}

func (o *resultOption) call(c *callConfig) { c.onResult = o }

// OnResult sets the function for results of tools/call on modern servers that have the result type.
// Without one, such a result is an [*InvalidResponseError]. As an option of a call, it replaces the
// function for this call. Calls run f concurrently.
func OnResult(resultType string, f ResultFunc) ResultOption {
	return &resultOption{resultType, f}
}

// resultFunc returns the function for results of r with the result type, or nil.
func (c *Client) resultFunc(r *request, cc *callConfig, resultType string) ResultFunc {
	switch {
	case r.method != protocol.MethodToolsCall:
		return nil
	case cc.onResult != nil && cc.onResult.resultType == resultType:
		return cc.onResult.f
	}
	return c.cfg.onResult[resultType]
}

// An ExtensionResult is a result of tools/call with a result type of an extension; see [OnResult].
type ExtensionResult struct {
	Tool string          // its name
	Raw  json.RawMessage // the result, an object

	c  *Client
	cc *callConfig
}

// Client returns the client of the call.
func (r *ExtensionResult) Client() *Client { return r.c }

// Request is like [Client.Request], with the timeout and the _meta of the call. Its options come
// after those.
func (r *ExtensionResult) Request(ctx context.Context, method string, params, result any, opts ...CallOption) error {
	own := callOption(func(cc *callConfig) { *cc = r.cc.further() })
	return r.c.Request(ctx, method, params, result, append([]CallOption{own}, opts...)...)
}

// further returns the options for further requests of the same call.
func (cc *callConfig) further() callConfig {
	return callConfig{timeout: cc.timeout, taskTimeout: cc.taskTimeout, logLevel: cc.logLevel, meta: maps.Clone(cc.meta), uncheckedOutput: cc.uncheckedOutput}
}

// Respond returns what the [Handlers] of the client respond to a question of the server. The error
// is theirs, or says that the client did not declare the capability.
func (r *ExtensionResult) Respond(ctx context.Context, q protocol.InputRequest) (json.RawMessage, error) {
	return r.c.respondTo(ctx, q)
}

// Progress passes progress of the call to [OnProgress] and to the [Handlers]. Call it on the
// goroutine of the [ResultFunc].
func (r *ExtensionResult) Progress(p *protocol.ProgressParams) {
	perform(r.c.log, func() { r.c.progressed(r.cc.progress, p) })
}

// progressed passes p to the function of a call, unless it is nil, and to the handlers.
func (c *Client) progressed(f func(*protocol.ProgressParams), p *protocol.ProgressParams) {
	if f != nil {
		f(p)
	}
	if h := c.cfg.handlers.progress; h != nil {
		h(c.base, p)
	}
}

// A Topic subscribes to notifications of an extension. It needs a modern server and a client that
// declares the extension. [Subscription.Accepted] returns what the server agreed to.
type Topic struct {
	Member       string // of the filter, which the extension defines
	Value        any    // of the member
	Notification string // the method

	// Receive gets the params of the notification, or nil if notifications may have been missed, since
	// a stream broke and was opened again. It is called on the goroutine that receives messages, so it
	// must return soon, and must not close the subscription or the client.
	Receive func(params json.RawMessage)
}

// Accepted returns the value of an extension's member of the filter that the server agreed to, and
// nil if it did not agree.
func (s *Subscription) Accepted(member string) json.RawMessage {
	s.c.changes.mu.Lock()
	defer s.c.changes.mu.Unlock()
	return jsonx.Member(s.agreed, member)
}

// filterJSON returns the filter to ask for.
func (s *Subscription) filterJSON() ([]byte, error) {
	raw, err := jsonx.Marshal(s.Filter())
	if err != nil || len(s.topics) == 0 {
		return raw, err
	}
	raw = raw[:len(raw)-1]
	for _, t := range s.topics {
		raw = jsonx.AppendMember(raw, jsonx.AppendString(nil, t.Member), t.Value.(json.RawMessage))
	}
	return append(raw, '}'), nil
}

// notify passes the params of a notification to the subscriptions that were opened for it by the
// listen request id. As in deliver, "" means all of them.
func (ch *changes) notify(notification, id string, params json.RawMessage) {
	ch.mu.Lock()
	var fs []func(json.RawMessage)
	for _, s := range ch.subs {
		for _, t := range s.topics {
			if s.acked && (id == "" || id == s.id) && notification == t.Notification {
				fs = append(fs, t.Receive)
			}
		}
	}
	ch.mu.Unlock()
	for _, f := range fs {
		perform(ch.c.log, func() { f(params) })
	}
}

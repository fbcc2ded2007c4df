package events

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/limits"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

const (
	pageSize   = 100             // events of a list
	mostPolled = 100             // occurrences of a poll
	nextPoll   = 5 * time.Second // when there are no more
	feedByPoll = 5 * time.Minute // for how long a method of an event runs after a poll
	heartbeat  = 20 * time.Second
	maxMemory  = 64 << 20 // bytes of what is kept without a fleet
)

// An engine serves the events of one server.
type engine struct {
	options
	runner mcpkit.Runner
	store  func() *fleet.Fleet // of the server, or in memory

	verified *limits.Map[string, struct{}]  // receivers that wanted their webhooks, by principal and URL
	barred   *limits.Map[string, time.Time] // when principals were revoked
	attempts *limits.Table[string]          // to verify receivers, by principal and host

	stop context.CancelFunc // of what Start began
	done sync.WaitGroup     // the goroutines of Start, and the workers
	wake chan struct{}      // has space for one: something has changed

	mu      sync.Mutex
	logs    map[string]*log          // by event; guarded by mu
	base    context.Context          // of workers; nil before Start and after Close; guarded by mu
	workers map[string]*worker       // by watch; guarded by mu
	streams map[chan struct{}]string // that end when their principal is revoked; guarded by mu
	heard   map[string]struct{}      // logs that have changed elsewhere; guarded by mu
}

func newEngine(o options) *engine {
	e := &engine{
		options: o, wake: make(chan struct{}, 1), logs: map[string]*log{},
		workers: map[string]*worker{}, streams: map[chan struct{}]string{}, heard: map[string]struct{}{},
		verified: limits.NewMap[string, struct{}](10_000), barred: limits.NewMap[string, time.Time](10_000),
		attempts: limits.NewTable[string](0.2, 10),
	}
	e.store = sync.OnceValue(func() *fleet.Fleet {
		if f := e.runner.Fleet(); f != nil {
			return f
		}
		return fleet.New(fleet.NewMemory(fleet.MemoryOptions{MaxBytes: maxMemory}), fleet.Options{})
	})
	for _, j := range o.joined {
		j.join(e)
	}
	return e
}

func (e *engine) extension() mcpkit.Extension {
	return mcpkit.Extension{
		ID: ID, Settings: map[string]bool{"listChanged": true},
		Methods: []*mcpkit.Method{
			mcpkit.NewMethod(MethodList, e.list),
			mcpkit.NewMethod(MethodPoll, e.poll).Event(false).Versions(protocol.V20260728, ""),
			mcpkit.NewMethod(MethodStream, e.stream).Event(true).Versions(protocol.V20260728, ""),
			mcpkit.NewMethod(MethodSubscribe, e.subscribe).Event(false),
			mcpkit.NewMethod(MethodUnsubscribe, e.unsubscribe).Event(false),
		},
		Events: true, Runner: &e.runner, Service: e,
		Declare: func(caps *protocol.ServerCapabilities, _ protocol.Version) { caps.Events = protocol.Object{} },
	}
}

// log returns the log of an event.
func (e *engine) log(name string) *log {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.logs[name]
	if l == nil {
		l = newLog(e.store(), name)
		e.logs[name] = l
	}
	return l
}

// list answers events/list with the events that the caller may know of.
func (e *engine) list(ctx context.Context, p loose[ListParams]) (any, error) {
	result := struct {
		Events     []json.RawMessage `json:"events"`
		NextCursor string            `json:"nextCursor,omitzero"`
	}{Events: []json.RawMessage{}}
	after, last := "", ""
	if c := p.params.Cursor; c != nil {
		name, err := base64.RawURLEncoding.DecodeString(*c)
		if err != nil {
			return nil, invalid("the cursor is not one that this server gave")
		}
		after = string(name)
	}
	for entry := range mcpkit.CallFrom(ctx).Entries() {
		switch {
		case entry.Kind() != "event" || entry.Name() <= after:
		case len(result.Events) == pageSize:
			result.NextCursor = base64.RawURLEncoding.EncodeToString([]byte(last))
			return result, nil
		default:
			last = entry.Name()
			result.Events = append(result.Events, entry.Definition())
		}
	}
	return result, nil
}

// A filter is what one subscriber wants to know of.
type filter struct {
	name      string
	arguments json.RawMessage // canonical
	principal *oauth.Principal
	logger    func(v any)
	match     func(ctx context.Context, k *kept) bool // of a Type; nil: the event is a method
	feed      string                                  // of a method: the key of what it tells to this subscriber
	method    any                                     // the iterator of the method
}

// filterKey is the key of the filter in the context of a method of an event.
type filterKey struct{}

// wants reports whether the subscriber gets an occurrence.
func (f *filter) wants(ctx context.Context, k *kept) (yes bool) {
	if f.match == nil || k.Feed != "" {
		return k.Feed == f.feed
	}
	defer func() {
		if v := recover(); v != nil {
			f.logger(v)
			yes = false
		}
	}()
	return f.match(oauth.NewContext(ctx, f.principal), k)
}

// key names the filter.
func (f *filter) key(more ...string) string {
	text, _ := jsonx.Marshal(append([]string{fleet.Digest(f.principal.Key()), f.name, string(f.arguments)}, more...)) // strings always encode
	return fleet.Digest(string(text))
}

// filterOf returns what the caller of a request wants to know of, if it may.
func (e *engine) filterOf(ctx context.Context, s Subscription, mode string) (*filter, error) {
	call := mcpkit.CallFrom(ctx)
	entry, open, ok := call.Event()
	if !ok {
		return nil, e.profile.errorf(NotFound, map[string]any{"kind": "event"}, "there is no event %.64q", s.Name)
	}
	var d Descriptor
	if err := jsonx.Unmarshal(entry.Definition(), &d); err != nil {
		return nil, err
	}
	if !slices.Contains(d.Delivery, mode) && call.Run() == nil {
		return nil, e.profile.errorf(Unsupported, map[string]any{"feature": "deliveryMode", "value": mode},
			"the event %q is not delivered by %s", s.Name, mode)
	}
	f := &filter{name: s.Name, principal: call.Principal(), arguments: canonical(call.Arguments())}
	f.logger = func(v any) {
		e.runner.Logger().Error("events: a match panicked", "event", f.name, "panic", fmt.Sprint(v))
	}
	var err error
	if f.method, err = open(context.WithValue(ctx, filterKey{}, f)); err != nil {
		return nil, err
	}
	if f.match == nil {
		f.feed = f.key()
	}
	return f, nil
}

// canonical returns arguments as they are compared: absent ones are {}.
func canonical(arguments json.RawMessage) json.RawMessage {
	if arguments == nil {
		return json.RawMessage("{}")
	}
	text, _ := jsonx.Canonical(slices.Clone(arguments)) // they are valid
	return text
}

// occurrence returns what a client gets of an entry of a log.
func (f *filter) occurrence(k *kept) Occurrence {
	return Occurrence{EventID: k.ID, Name: f.name, Timestamp: k.Time, Data: k.Data}
}

// poll answers events/poll. The server keeps nothing of it.
func (e *engine) poll(ctx context.Context, p loose[PollParams]) (*PollResult, error) {
	f, err := e.filterOf(ctx, p.params.Subscription, Poll)
	if err != nil {
		return nil, err
	}
	l := e.log(f.name)
	if err := l.sync(ctx); err != nil {
		return nil, err
	}
	if err := e.feed(ctx, f, feedByPoll); err != nil {
		return nil, err
	}
	most := mostPolled
	if n := p.params.MaxEvents; n > 0 {
		most = min(n, mostPolled)
	}
	seq, truncated := l.start(p.params.Position)
	b := l.read(ctx, f, seq, most)
	result := &PollResult{
		Events: []Occurrence{}, Cursor: cursorOf(b.seq), Truncated: truncated || b.truncated, HasMore: b.more,
		NextPollMs: nextPoll.Milliseconds(),
	}
	for _, k := range b.kept {
		result.Events = append(result.Events, f.occurrence(k))
	}
	return result, nil
}

// stream answers events/stream. It stays open until the client leaves, the authentication of the caller
// expires, the caller may no longer know of the event, or the server stops.
func (e *engine) stream(ctx context.Context, p loose[StreamParams]) (*StreamResult, error) {
	call := mcpkit.CallFrom(ctx)
	revoked := make(chan struct{}, 1)
	e.mu.Lock()
	e.streams[revoked] = call.Principal().Key()
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.streams, revoked)
	}()
	f, err := e.filterOf(ctx, p.params.Subscription, Push)
	if err != nil {
		return nil, err
	}
	if call.Run() != nil {
		return &StreamResult{}, e.tell(ctx, f)
	}
	l := e.log(f.name)
	if err := l.sync(ctx); err != nil {
		return nil, err
	}
	if err := e.feed(ctx, f, 3*heartbeat); err != nil {
		return nil, err
	}
	ctx, cancel := oauth.WithExpiry(ctx)
	defer cancel()
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	meta := protocol.Meta{protocol.MetaSubscriptionID: json.RawMessage(call.RequestID())}
	seq, truncated := l.start(p.params.Position)
	call.Notify(NotificationActive, &ActiveParams{cursorOf(seq), truncated, meta})
	for {
		more := l.more()
		b := l.read(ctx, f, seq, mostPolled)
		if seq = b.seq; b.truncated {
			call.Notify(NotificationActive, &ActiveParams{cursorOf(seq), true, meta})
		}
		for _, k := range b.kept {
			o := f.occurrence(k)
			o.Cursor, o.Meta = cursorOf(k.Seq), meta
			call.Notify(NotificationEvent, &o)
		}
		if b.more {
			continue
		}
		var ended *jsonrpc.Error
		select {
		case <-ctx.Done():
			return &StreamResult{meta}, nil
		case <-more:
		case <-revoked:
			ended = e.forbidden("the access of the caller was revoked")
		case <-tick.C:
			if ended, err = e.beat(ctx, f, l); err != nil {
				call.Notify(NotificationError, &ErrorParams{jsonrpc.Errorf(jsonrpc.CodeInternalError, "something may be late"), meta})
				break
			}
			call.Notify(NotificationHeartbeat, &HeartbeatParams{cursorOf(seq), meta})
		}
		if ended != nil {
			call.Notify(NotificationTerminated, &ErrorParams{ended, meta})
			return &StreamResult{meta}, nil
		}
	}
}

// beat does what is due for a stream from time to time. It returns why the stream ends, or an error that
// does not end it.
func (e *engine) beat(ctx context.Context, f *filter, l *log) (ended *jsonrpc.Error, err error) {
	if _, ended, err = e.check(ctx, f.name, f.arguments, f.principal); ended != nil || err != nil {
		return ended, err
	}
	if err := e.feed(ctx, f, 3*heartbeat); err != nil {
		return nil, err
	}
	return nil, l.sync(ctx)
}

func (e *engine) forbidden(reason string) *jsonrpc.Error {
	return e.profile.errorf(Forbidden, map[string]any{"reason": reason}, "%s", reason)
}

// filterOut is the key of where a run of events/subscribe leaves its filter.
type filterOut struct{}

// check asks, outside of a request, whether a principal may still know of an event. The request passes
// all middleware. It returns why not, or an error that says nothing about that.
func (e *engine) check(ctx context.Context, name string, arguments json.RawMessage, p *oauth.Principal) (f *filter, ended *jsonrpc.Error, err error) {
	out := e.runner.Run(context.WithValue(ctx, filterOut{}, &f), e.run(MethodSubscribe, name, arguments, p))
	switch {
	case out.Err == nil:
		return f, nil, nil
	case out.Err.Code == jsonrpc.CodeInvalidParams:
		data := map[string]any{"feature": "inputSchema", "reason": "schema_changed"}
		return nil, e.profile.errorf(Unsupported, data, "the arguments no longer fit the event"), nil
	case out.Err.Code == mcpkit.CodeForbidden:
		return nil, e.forbidden("the caller may no longer know of the event"), nil
	}
	if fault, ok := FaultOf(out.Err); ok && (fault == NotFound || fault == Forbidden) {
		return nil, out.Err, nil
	}
	return nil, nil, out.Err
}

// run returns a request about an event that nobody sent.
func (e *engine) run(method, name string, arguments json.RawMessage, p *oauth.Principal) *mcpkit.Run {
	params, _ := jsonx.Marshal(map[string]any{ // valid JSON always encodes
		"name": name, "arguments": arguments, "_meta": map[string]any{
			protocol.MetaProtocolVersion: protocol.V20260728, protocol.MetaClientCapabilities: map[string]any{},
		},
	})
	return &mcpkit.Run{ID: MethodSubscribe, Method: method, Tool: name, Params: params, Principal: p, Version: protocol.V20260728}
}

// Start begins to deliver what others have left. The server calls it.
func (e *engine) Start(ctx context.Context) error {
	base, stop := context.WithCancel(context.WithoutCancel(ctx))
	f := e.store()
	leave := []func(){f.On(kindLog, e.hearLog), f.On(kindWatch, e.hearWatch), f.On(kindRevoked, e.hearRevoked), f.OnMissed(e.miss)}
	e.mu.Lock()
	e.base = base
	e.mu.Unlock()
	e.stop = func() {
		stop()
		for _, off := range leave {
			off()
		}
		for _, j := range e.joined {
			j.leave(e)
		}
	}
	e.tend(base)
	e.done.Go(func() { // ends with Close
		tick := time.NewTicker(lease / 3)
		defer tick.Stop()
		for {
			select {
			case <-base.Done():
				return
			case <-e.wake:
				e.followHeard(base)
			case <-tick.C:
				e.miss()
				e.tend(base)
			}
		}
	})
	return nil
}

// Close ends the workers, whose subscriptions other replicas take over.
func (e *engine) Close() error {
	e.mu.Lock()
	e.base = nil
	e.mu.Unlock()
	e.stop()
	e.done.Wait()
	return nil
}

// hearLog notes that another replica has added to a log.
func (e *engine) hearLog(_ string, text []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if name := jsonx.String(text); e.logs[name] != nil {
		e.heard[name] = struct{}{}
		e.wakeUp()
	}
}

// miss notes that others may have added to any log.
func (e *engine) miss() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for name := range e.logs {
		e.heard[name] = struct{}{}
	}
	e.wakeUp()
}

func (e *engine) wakeUp() {
	select {
	case e.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// followHeard reads the logs that have changed.
func (e *engine) followHeard(ctx context.Context) {
	e.mu.Lock()
	names := slices.Collect(maps.Keys(e.heard))
	clear(e.heard)
	e.mu.Unlock()
	for _, name := range names {
		if err := e.log(name).sync(ctx); err != nil && ctx.Err() == nil {
			e.runner.Logger().ErrorContext(ctx, "events: a log is not read", "event", name, "error", err)
		}
	}
}

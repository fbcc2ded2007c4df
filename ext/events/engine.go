package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	heartbeat  = 20 * time.Second
	maxMemory  = 64 << 20 // bytes of what is kept without a fleet
)

// An engine serves the events of one server.
type engine struct {
	options
	runner mcpkit.Runner
	store  func() *fleet.Fleet // of the server, or in memory

	verified *limits.Map[string, struct{}] // receivers that wanted their webhooks, by principal and URL
	revoked  *limits.Map[string, struct{}] // principals that were revoked just now, by digest
	attempts *limits.Table[string]         // to verify receivers, by principal and host

	base context.Context // ends with Close
	stop context.CancelFunc
	done sync.WaitGroup // the goroutines of Start, and the workers

	mu      sync.Mutex
	logs    map[string]*log    // by event; guarded by mu
	workers map[string]*worker // by watch; guarded by mu
}

func newEngine(o options) *engine {
	e := &engine{
		options: o, logs: map[string]*log{}, workers: map[string]*worker{},
		verified: limits.NewMap[string, struct{}](10_000), revoked: limits.NewMap[string, struct{}](10_000),
		attempts: limits.NewTable[string](0.2, 10),
	}
	e.base, e.stop = context.WithCancel(context.Background())
	e.store = sync.OnceValue(func() *fleet.Fleet {
		if f := e.runner.Fleet(); f != nil {
			return f
		}
		return fleet.New(fleet.NewMemory(fleet.MemoryOptions{MaxBytes: maxMemory}), fleet.Options{})
	})
	for _, j := range o.joined {
		j.Store(e, nil)
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

// list answers events/list with the events that the caller may know of. A cursor is the name of the last
// one.
func (e *engine) list(ctx context.Context, p loose[ListParams]) (any, error) {
	result := struct {
		Events     []json.RawMessage `json:"events"`
		NextCursor string            `json:"nextCursor,omitzero"`
	}{Events: []json.RawMessage{}}
	last := ""
	if p.params.Cursor != nil {
		last = *p.params.Cursor
	}
	for entry := range mcpkit.CallFrom(ctx).Entries() {
		if entry.Kind() != "event" || entry.Name() <= last {
			continue
		}
		if len(result.Events) == pageSize {
			result.NextCursor = last
			break
		}
		last = entry.Name()
		result.Events = append(result.Events, entry.Definition())
	}
	return result, nil
}

// An interest is what somebody wants to know of.
type interest struct {
	Name      string           `json:"name"`
	Arguments json.RawMessage  `json:"arguments"` // canonical; absent ones are {}
	Principal *oauth.Principal `json:"principal,omitempty"`
	Revoked   uint64           `json:"revoked,omitzero"` // the last revocation before
}

// interestOf returns the interest of a request.
func interestOf(call *mcpkit.Call, s Subscription) interest {
	i := interest{Name: s.Name, Arguments: json.RawMessage("{}")}
	if arguments := call.Arguments(); arguments != nil {
		i.Arguments, _ = jsonx.Canonical(slices.Clone(arguments)) // they are valid
	}
	if p := call.Principal(); p != nil { // without the time of its credential
		own := *p
		own.Expires = time.Time{}
		i.Principal = &own
	}
	return i
}

// owner names the principal.
func (i *interest) owner() string { return fleet.Digest(i.Principal.Key()) }

// key names the interest.
func (i *interest) key(more ...string) string {
	text, _ := jsonx.Marshal(append([]string{i.owner(), i.Name, string(i.Arguments)}, more...)) // strings always encode
	return fleet.Digest(string(text))
}

// run returns a request about an event that nobody sent.
func (i *interest) run(method string) *mcpkit.Run {
	params, _ := jsonx.Marshal(map[string]any{ // valid JSON always encodes
		"name": i.Name, "arguments": i.Arguments, "_meta": map[string]any{
			protocol.MetaProtocolVersion: protocol.V20260728, protocol.MetaClientCapabilities: map[string]any{},
		},
	})
	return &mcpkit.Run{ID: method, Method: method, Tool: i.Name, Params: params, Principal: i.Principal, Version: protocol.V20260728}
}

// A filter is an interest that the server has agreed to.
type filter struct {
	interest
	logger func(v any)
	match  func(ctx context.Context, k *kept) bool // of a Type; nil: the event is a method
	feed   string                                  // of a method: the key of what it tells to this subscriber
	method any                                     // the iterator of the method
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
	return f.match(oauth.NewContext(ctx, f.Principal), k)
}

// occurrence returns what a client gets of an entry of a log.
func (f *filter) occurrence(k *kept) Occurrence {
	return Occurrence{EventID: k.ID, Name: f.Name, Timestamp: k.Time, Data: k.Data}
}

// filterOf returns what the caller of a request wants to know of, if it may. If the event is a method, it
// runs for a while from now on.
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
	f := &filter{interest: interestOf(call, s)}
	f.logger = func(v any) {
		e.runner.Logger().Error("events: a match panicked", "event", f.Name, "panic", fmt.Sprint(v))
	}
	var err error
	if mode != Poll && call.Run() == nil {
		if f.Revoked, _, err = e.revocation(ctx, &f.interest); err != nil {
			return nil, err
		}
	}
	if f.method, err = open(context.WithValue(ctx, filterKey{}, f)); err != nil || f.match != nil {
		return f, err
	}
	f.feed = f.key()
	if run := call.Run(); run == nil || run.Method != MethodStream {
		err = e.feed(ctx, f)
	}
	return f, err
}

// filterOut is the key of where a run of events/subscribe leaves its filter.
type filterOut struct{}

// revocation returns a number that grows when the access of the principal is revoked, 0 if it was not,
// and what a subscriber is told if that was after the interest began.
func (e *engine) revocation(ctx context.Context, i *interest) (last uint64, ended *jsonrpc.Error, err error) {
	r, err := e.revocations().Get(ctx, i.owner())
	if errors.Is(err, fleet.ErrNotFound) {
		err = nil
	}
	if r.Revision > i.Revoked {
		ended = e.forbidden("the access of the caller was revoked")
	}
	return r.Revision, ended, err
}

// check asks, outside of a request, whether a principal may still know of an event. The request passes
// all middleware. It returns why not, or an error that says nothing about that.
func (e *engine) check(ctx context.Context, i interest) (f *filter, ended *jsonrpc.Error, err error) {
	if _, ended, err = e.revocation(ctx, &i); ended != nil || err != nil {
		return nil, ended, err
	}
	out := e.runner.Run(context.WithValue(ctx, filterOut{}, &f), i.run(MethodSubscribe))
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

func (e *engine) forbidden(reason string) *jsonrpc.Error {
	return e.profile.errorf(Forbidden, map[string]any{"reason": reason}, "%s", reason)
}

// poll answers events/poll. The server keeps nothing of it.
func (e *engine) poll(ctx context.Context, p loose[PollParams]) (*PollResult, error) {
	f, err := e.filterOf(ctx, p.params.Subscription, Poll)
	if err != nil {
		return nil, err
	}
	l := e.log(f.Name)
	seq, truncated, err := l.start(ctx, p.params.Position)
	if err != nil {
		return nil, err
	}
	most := mostPolled
	if n := p.params.MaxEvents; n > 0 {
		most = min(n, mostPolled)
	}
	b, err := l.read(ctx, f, seq, most)
	result := &PollResult{
		Events: []Occurrence{}, Cursor: cursorOf(b.seq), Truncated: truncated || b.truncated, HasMore: b.more,
		NextPollMs: nextPoll.Milliseconds(),
	}
	for _, k := range b.kept {
		result.Events = append(result.Events, f.occurrence(k))
	}
	return result, err
}

// stream answers events/stream. It stays open until the client leaves, the authentication of the caller
// expires, the caller may no longer know of the event, or the server stops.
func (e *engine) stream(ctx context.Context, p loose[StreamParams]) (*StreamResult, error) {
	call := mcpkit.CallFrom(ctx)
	f, err := e.filterOf(ctx, p.params.Subscription, Push)
	if err != nil {
		return nil, err
	}
	if call.Run() != nil {
		return &StreamResult{}, e.tellAll(ctx, f)
	}
	l := e.log(f.Name)
	seq, truncated, err := l.start(ctx, p.params.Position)
	if err != nil {
		return nil, err
	}
	ctx, cancel := oauth.WithExpiry(ctx)
	defer cancel()
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	meta := protocol.Meta{protocol.MetaSubscriptionID: json.RawMessage(call.RequestID())}
	call.Notify(NotificationActive, &ActiveParams{cursorOf(seq), truncated, meta})
	always := make(chan struct{})
	close(always)
	for ended := (*jsonrpc.Error)(nil); ctx.Err() == nil; {
		more := l.more()
		if _, now := e.revoked.Get(f.owner(), time.Now()); now && ended == nil {
			_, ended, _ = e.revocation(ctx, &f.interest) // asked again at each heartbeat
		}
		if ended != nil {
			call.Notify(NotificationTerminated, &ErrorParams{ended, meta})
			return &StreamResult{meta}, nil
		}
		b, failed := l.read(ctx, f, seq, mostPolled)
		if seq = b.seq; b.truncated {
			call.Notify(NotificationActive, &ActiveParams{cursorOf(seq), true, meta})
		}
		for _, k := range b.kept {
			o := f.occurrence(k)
			o.Cursor, o.Meta = cursorOf(k.Seq), meta
			call.Notify(NotificationEvent, &o)
		}
		if b.more {
			more = always
		}
		select {
		case <-ctx.Done():
		case <-more:
		case <-tick.C:
			if failed == nil {
				_, ended, failed = e.check(ctx, f.interest)
			}
			if failed != nil {
				call.Notify(NotificationError, &ErrorParams{jsonrpc.Errorf(jsonrpc.CodeInternalError, "something may be late"), meta})
			} else if ended == nil {
				call.Notify(NotificationHeartbeat, &HeartbeatParams{cursorOf(seq), meta})
			}
		}
	}
	return &StreamResult{meta}, nil
}

const kindNews = "events" // of messages between replicas

// news say what has changed: a log, a watch, or the access of a principal; the zero value says that
// something may have.
type news struct {
	Log     string `json:"log,omitzero"`
	Watch   string `json:"watch,omitzero"`
	Revoked string `json:"revoked,omitzero"`
}

// tell passes news to all replicas.
func (e *engine) tell(n news) {
	e.store().Tell("", kindNews, n)
	e.hear(n)
}

func (e *engine) hear(n news) {
	if n.Revoked != "" {
		e.revoked.Put(n.Revoked, struct{}{}, time.Now().Add(time.Minute))
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if x := e.workers[n.Watch]; x != nil {
		select {
		case x.poked <- struct{}{}:
		default: // it will look anyway
		}
	}
	for name, l := range e.logs {
		if name == n.Log || n.Log == "" && n.Watch == "" {
			l.touch() // streams look for revocations, too
		}
	}
}

// Start begins to deliver what others have left. The server calls it.
func (e *engine) Start(context.Context) error {
	f := e.store()
	e.done.Go(func() { // ends with Close
		defer f.On(kindNews, func(_ string, text []byte) {
			var n news
			_ = jsonx.Unmarshal(text, &n) // otherwise anything may have changed
			e.hear(n)
		})()
		defer f.OnMissed(func() { e.hear(news{}) })()
		for {
			e.hear(news{})
			e.tend(e.base)
			select {
			case <-e.base.Done():
				return
			case <-time.After(lease / 3):
			}
		}
	})
	return nil
}

// Close ends the workers, whose subscriptions other replicas take over.
func (e *engine) Close() error {
	for _, j := range e.joined {
		j.Delete(e)
	}
	e.mu.Lock()
	e.stop()
	e.mu.Unlock()
	e.done.Wait()
	return nil
}

package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/conn"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// A request is a request that a method of Client sends.
type request struct {
	method    string
	name      string          // of the tool or prompt, or the URI of the resource; "" for other methods
	params    any             // as for jsonrpc.NewRequest
	asks      bool            // the result may be that the server requires input
	reads     bool            // it can be sent twice without harm
	arguments json.RawMessage // of a tool
	key       string          // in the cache; "" if the result is not cached
}

// callConfig returns the configuration of a call with opts.
func (c *Client) callConfig(opts []CallOption) callConfig {
	cc := callConfig{timeout: c.cfg.timeout, taskTimeout: c.cfg.taskTimeout, logLevel: c.level(), uncheckedOutput: c.cfg.uncheckedOutput}
	for _, o := range opts {
		o.call(&cc)
	}
	return cc
}

// do sends r, responds to the server's input requests, and returns the result.
func (c *Client) do(ctx context.Context, r request, opts []CallOption) (json.RawMessage, error) {
	cc := c.callConfig(opts)
	return c.doAs(ctx, &r, &cc)
}

// doAs is like do, with the options combined in cc.
func (c *Client) doAs(ctx context.Context, r *request, cc *callConfig) (json.RawMessage, error) {
	params, err := encodeParams(r)
	if err != nil {
		return nil, err
	}
	key := r.key
	if !cc.cacheable() {
		key = ""
	}
	if key != "" && !cc.fresh {
		if raw, ok := c.cache.get(key); ok {
			return raw, nil
		}
	}
	mark := c.cache.mark()
	var in protocol.Inputs
	for round := 0; ; round++ {
		raw, modern, err := c.send(ctx, r, params, in, cc)
		if err != nil {
			return nil, err
		}
		if !modern {
			return raw, nil
		}
		switch kind, ok := resultType(raw); {
		case !ok:
			return nil, explain(r, invalid(r.method, "resultType is not a string"))
		case kind == "" || kind == protocol.ResultComplete:
			if key != "" && round == 0 {
				c.cache.put(key, raw, mark)
			}
			return raw, nil
		case kind != protocol.ResultInputRequired:
			return c.extended(ctx, r, cc, kind, raw)
		case !r.asks:
			return nil, explain(r, invalid(r.method, "this method cannot require input"))
		case round >= c.cfg.maxRounds:
			return nil, fmt.Errorf("%s: the server asked %d times for input and still wants more; raise MaxRounds", title(r.method, r.name), round)
		}
		if in, err = c.answer(ctx, r, raw, round); err != nil {
			return nil, explain(r, c.orClosed(err))
		}
	}
}

// extended returns the result of r for a result with the result type of an extension.
func (c *Client) extended(ctx context.Context, r *request, cc *callConfig, kind string, raw []byte) (json.RawMessage, error) {
	if kind == protocol.ResultTask && r.method == protocol.MethodTasksGet {
		return raw, nil // as in the examples of the specification, whose text demands "complete"
	}
	f := c.resultFunc(r, cc, kind)
	if f == nil {
		return nil, explain(r, invalid(r.method, "the resultType %.60q is unknown", kind))
	}
	raw, err := f(ctx, &ExtensionResult{Tool: r.name, Raw: raw, c: c, cc: cc})
	switch {
	case err != nil:
		return nil, explain(r, err)
	case !isFinal(raw):
		return nil, explain(r, invalid(r.method, "the result of a %.60q is not a complete one", kind))
	}
	return raw, nil
}

// resultType returns the resultType of a result; false if it is not a string.
func resultType(raw []byte) (string, bool) {
	member := jsonx.Member(raw, "resultType")
	return jsonx.String(member), member == nil || jsonx.Kind(member) == '"'
}

// send sends one request and returns the result. It retries only if that does no harm.
func (c *Client) send(ctx context.Context, r *request, params []byte, in protocol.Inputs, cc *callConfig) (raw []byte, modern bool, err error) {
	var renewed, refreshed bool
	var v visit
	may := func(err error) bool { return c.mayRepeat(r, cc, err) }
	for {
		a := c.agreed.Load()
		var resp *jsonrpc.Response
		err := repeat(ctx, may, func() (err error) {
			resp, err = c.once(ctx, a, r, params, in, cc)
			if err == nil && resp.Error != nil && conn.IsLost(resp.Error) {
				err = resp.Error
			}
			return err
		})
		switch {
		case errors.Is(err, errNoSession) && !renewed:
			renewed = true
			if err := c.renewSession(ctx, a); err != nil {
				return nil, false, fmt.Errorf("client: the server ended the session: %w", err)
			}
			continue
		case err != nil:
		case resp.Error == nil:
			return resp.Result, a.version.Modern(), nil
		case resp.Error.Code == protocol.CodeHeaderMismatch && r.method == protocol.MethodToolsCall && c.conn.mirrors() && !refreshed:
			// The headers follow an outdated schema of the tool, or the tool was not listed yet.
			refreshed = true
			if c.refreshTools(ctx) == nil {
				continue
			}
			err = resp.Error
		default:
			if err = v.goOn(ctx, c, a, resp.Error); err == nil {
				continue
			}
			err = c.orClosed(err)
		}
		return nil, false, explain(r, c.onlyAsTask(ctx, a, r, err))
	}
}

// mayRepeat reports whether r, which failed with err, may be sent again.
func (c *Client) mayRepeat(r *request, cc *callConfig, err error) bool {
	again, unsent := broken(err)
	if !again || strings.HasPrefix(r.method, "tasks/") { // what follows a task tries again for longer
		return false
	}
	return unsent || r.reads || cc.idempotent || c.tools.repeatable(r)
}

// orClosed returns err, or transport.ErrClosed if the client is closed.
func (c *Client) orClosed(err error) error {
	if c.base.Err() != nil {
		return transport.ErrClosed
	}
	return err
}

// explain adds the request r to err.
func explain(r *request, err error) error {
	if late, ok := err.(*timeoutError); ok {
		return fmt.Errorf("client: %w", late)
	}
	if bad, ok := err.(*InvalidResponseError); ok {
		bad.Name = r.name
		return fmt.Errorf("client: %w", bad)
	}
	return fmt.Errorf("%s: %w", title(r.method, r.name), err)
}

// once sends one request and waits for its response.
func (c *Client) once(ctx context.Context, a *agreement, r *request, params []byte, in protocol.Inputs, cc *callConfig) (*jsonrpc.Response, error) {
	ctx, d := withDeadline(ctx, cc.timeout, &timeoutError{r.method, r.name, cc.timeout})
	defer d.stop()
	id := c.nextID()
	f := &flight{id: id.String(), progress: cc.progress, log: cc.log, notify: cc.notify, deadline: d}
	if err := c.flights.add(f); err != nil {
		return nil, err
	}
	defer c.flights.remove(f)
	token := ""
	if c.reports(f) {
		token = f.id
	}
	req, err := c.compose(a, id, r.method, params, in, cc, token)
	if err != nil {
		return nil, err
	}
	x := &exchange{req: req, version: a.version, name: cmp.Or(r.name, cc.name), flight: f}
	if r.method == protocol.MethodToolsCall && a.version.Modern() && c.conn.mirrors() {
		if x.mirror, err = c.tools.mirror(r.name, r.arguments); err != nil {
			return nil, err
		}
	}
	resp, err := c.conn.roundTrip(ctx, x)
	f.inbox.close(ctx) // handlers receive the notifications sent before the response first
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return resp, err
}

// encodeParams returns the params of r as an object.
func encodeParams(r *request) ([]byte, error) {
	req, err := jsonrpc.NewRequest(jsonrpc.ID{}, r.method, r.params)
	if err != nil {
		return nil, fmt.Errorf("client: %s: %w", r.method, err)
	}
	if req.Params == nil {
		return []byte("{}"), nil
	}
	return req.Params, nil
}

// compose returns a request with the params, the input responses of this round, and _meta.
func (c *Client) compose(
	a *agreement, id jsonrpc.ID, method string, params []byte, in protocol.Inputs, cc *callConfig, token string,
) (*jsonrpc.Request, error) {
	b, meta := []byte{'{'}, protocol.Meta{}
	for name, value := range jsonx.Members(params) {
		if !jsonx.IsString(name, "_meta") {
			b = jsonx.AppendMember(b, name, value)
			continue
		}
		for key, value := range jsonx.Members(value) {
			meta[jsonx.String(key)] = value
		}
	}
	inputs, err := jsonx.Marshal(in)
	if err != nil {
		return nil, err
	}
	for name, value := range jsonx.Members(inputs) {
		b = jsonx.AppendMember(b, name, value)
	}
	maps.Copy(meta, cc.meta)
	for _, key := range reserved {
		delete(meta, key)
	}
	maps.Copy(meta, a.meta)
	if token != "" {
		meta[protocol.MetaProgressToken] = rawObject(token)
	}
	if a.version.Modern() && cc.logLevel != "" {
		_ = meta.Set(protocol.MetaLogLevel, cc.logLevel)
	}
	if len(meta) > 0 {
		raw, err := meta.AppendJSON(nil)
		if err != nil {
			return nil, err
		}
		b = jsonx.AppendMember(b, []byte(`"_meta"`), raw)
	}
	return jsonrpc.NewRequest(id, method, rawObject(append(b, '}')))
}

// reserved are the members of _meta that only the client sets.
var reserved = []string{
	protocol.MetaProgressToken, protocol.MetaProtocolVersion, protocol.MetaClientCapabilities, protocol.MetaClientInfo,
	protocol.MetaLogLevel, protocol.MetaSubscriptionID,
}

// sleep waits for d, or until ctx is done.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// A flight is a request that waits for its response.
type flight struct {
	id       string // of the request, as JSON; also its progressToken
	progress func(*protocol.ProgressParams)
	log      func(*protocol.LoggingMessageParams)
	notify   func(method string, params json.RawMessage)
	deadline *deadline
	inbox    inbox
}

// flights are the requests in flight.
type flights struct {
	mu     sync.Mutex
	all    map[string]*flight // by ID; guarded by mu
	closed bool               // guarded by mu
	work   sync.WaitGroup     // the flights; begun with mu held
}

func (fs *flights) add(f *flight) error {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.closed {
		return transport.ErrClosed
	}
	if fs.all == nil {
		fs.all = map[string]*flight{}
	}
	fs.all[f.id] = f
	fs.work.Add(1)
	return nil
}

func (fs *flights) remove(f *flight) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	delete(fs.all, f.id)
	fs.work.Done()
}

// byID returns the flight of the request with this ID, nil if there is none.
func (fs *flights) byID(id string) *flight {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return fs.all[id]
}

// listening returns the flights that have a handler of log messages, to receive one that does not say
// which call it belongs to. Calls that do not share a connection must not see those of others.
func (fs *flights) listening(shared bool) []*flight {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if !shared && len(fs.all) > 1 {
		return nil
	}
	var found []*flight
	for _, f := range fs.all {
		if f.log != nil {
			found = append(found, f)
		}
	}
	return found
}

// hold pauses the timeout of f, or of all flights if f is nil, until release is called.
func (fs *flights) hold(f *flight) (release func()) {
	var held []*flight
	if f != nil {
		held = []*flight{f}
	} else {
		fs.mu.Lock()
		held = slices.Collect(maps.Values(fs.all))
		fs.mu.Unlock()
	}
	for _, f := range held {
		f.deadline.hold()
	}
	return func() {
		for _, f := range held {
			f.deadline.release()
		}
	}
}

// closeAll cancels all flights and refuses new ones. It waits until they have returned, so that the
// server is told, or until ctx is done.
func (fs *flights) closeAll(ctx context.Context) {
	fs.mu.Lock()
	fs.closed = true
	for _, f := range fs.all {
		f.deadline.cancel(transport.ErrClosed)
	}
	fs.mu.Unlock()
	await(ctx, fs.work.Wait)
}

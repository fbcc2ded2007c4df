package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// maxQuestions limits the input requests of one result.
const maxQuestions = 100

// answer returns the input responses to a result that requires input (2026-07-28,
// basic/patterns/mrtr). They are for one retry of the request.
func (c *Client) answer(ctx context.Context, r *request, raw []byte, round int) (protocol.Inputs, error) {
	var result protocol.InputRequiredResult
	if err := jsonx.Unmarshal(raw, &result); err != nil {
		return protocol.Inputs{}, invalid(r.method, "%v", err)
	}
	ctx, stop := c.untilClose(ctx)
	defer stop()
	in := protocol.Inputs{RequestState: result.RequestState}
	switch {
	case len(result.InputRequests) == 0 && result.RequestState == nil:
		return in, invalid(r.method, "it requires input but contains no input requests")
	case len(result.InputRequests) > maxQuestions:
		return in, invalid(r.method, "it contains %d input requests; at most %d are allowed", len(result.InputRequests), maxQuestions)
	case len(result.InputRequests) == 0:
		// The server only wants a retry. Wait longer each time.
		return in, sleep(ctx, backoff(round))
	}
	in.InputResponses = protocol.InputResponses{}
	for _, key := range slices.Sorted(maps.Keys(result.InputRequests)) {
		q := result.InputRequests[key]
		var err error
		if in.InputResponses[key], err = c.respondTo(ctx, q); err != nil {
			return in, err
		}
	}
	return in, nil
}

// respondTo returns the response of the handlers to a question of the server.
func (c *Client) respondTo(ctx context.Context, q protocol.InputRequest) (json.RawMessage, error) {
	v, err := c.respond(ctx, q.Method, q.Params)
	if err != nil {
		return nil, fmt.Errorf("input request %.60s: %w", q.Method, err)
	}
	raw, err := jsonx.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("input response to %.60s: %w", q.Method, err)
	}
	return raw, nil
}

// untilClose returns a context that is also canceled by Close.
func (c *Client) untilClose(ctx context.Context) (limited context.Context, stop func()) {
	limited, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(c.base, func() { cancel(transport.ErrClosed) })
	return limited, func() {
		unhook()
		cancel(nil)
	}
}

// backoff returns how long to wait before attempt n+1: from 100 ms to 5 s.
func backoff(n int) time.Duration {
	return min(100*time.Millisecond<<min(n, 10), 5*time.Second)
}

// respond calls the handler for one request of the server. The error is a *jsonrpc.Error if the
// client refuses the request.
func (c *Client) respond(ctx context.Context, method string, params []byte) (any, error) {
	return guarded(c, func() (any, error) { return c.callHandler(ctx, method, params) })
}

// guarded calls f, which calls a handler, and turns a panic into an error.
func guarded[Result any](c *Client, f func() (Result, error)) (r Result, err error) {
	err = errors.New("the handler panicked")
	perform(c.log, func() { r, err = f() })
	return r, err
}

func (c *Client) callHandler(ctx context.Context, method string, params []byte) (any, error) {
	h := c.cfg.handlers
	switch {
	case method == protocol.MethodElicitationCreate:
		p := new(protocol.ElicitParams)
		if err := decodeQuestion(method, params, p); err != nil {
			return nil, err
		}
		return c.elicit(ctx, p)
	case method == protocol.MethodSamplingCreateMessage && h.sample != nil:
		p := new(protocol.CreateMessageParams)
		if err := decodeQuestion(method, params, p); err != nil {
			return nil, err
		}
		if caps := c.cfg.extra.Sampling; (p.Tools != nil || p.ToolChoice != nil) && (caps == nil || caps.Tools == nil) {
			return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "sampling with tools was not declared")
		}
		r, err := h.sample(ctx, p)
		if err == nil && r == nil {
			err = errors.New("the method Sample returned neither a result nor an error")
		}
		return r, err
	case method == protocol.MethodRootsList && h.roots != nil:
		roots, err := h.roots(ctx)
		return &protocol.ListRootsResult{Roots: roots}, err
	}
	return nil, notDeclared(method)
}

func decodeQuestion(method string, params []byte, p any) error {
	if err := jsonx.Unmarshal(orEmpty(params), p); err != nil {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "the params of %s are invalid: %v", method, err)
	}
	return nil
}

func orEmpty(params []byte) []byte {
	if params == nil {
		return []byte("{}")
	}
	return params
}

func notDeclared(method string) error {
	return jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "this client did not declare the capability for %.60q", method)
}

// elicit calls the handler for an elicitation.
func (c *Client) elicit(ctx context.Context, p *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	ask := c.cfg.handlers.elicit
	switch p.Mode {
	case "", protocol.ElicitForm:
	case protocol.ElicitURL:
		ask = c.cfg.handlers.elicitURL
		if err := checkElicitURL(p.URL); ask != nil && err != nil {
			return nil, err
		}
	default:
		ask = nil
	}
	if ask == nil {
		if p.Mode == "" && c.cfg.handlers.elicitURL == nil {
			return nil, notDeclared(protocol.MethodElicitationCreate)
		}
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "this client did not declare elicitation in the mode %.20q", p.Mode)
	}
	r, err := ask(ctx, p)
	switch {
	case err != nil:
		return nil, err
	case r == nil:
		return nil, errors.New("the method Elicit returned neither a result nor an error")
	case r.Action != protocol.ElicitAccept || p.Mode == protocol.ElicitURL:
		return &protocol.ElicitResult{Action: r.Action}, nil // URL mode has no content
	}
	content, err := withDefaults(p.RequestedSchema, r.Content)
	return &protocol.ElicitResult{Action: r.Action, Content: content}, err
}

// withDefaults adds the defaults of the schema to the content of an accepted form (2025-11-25,
// client/elicitation).
func withDefaults(schema, content []byte) ([]byte, error) {
	content = jsonx.TrimSpace(content)
	if len(content) == 0 || string(content) == "null" {
		content = []byte("{}")
	}
	if !jsonx.Valid(content) || jsonx.Kind(content) != '{' {
		return nil, errors.New("the content of the response is not a JSON object")
	}
	b := jsonx.AppendEdited(nil, content, func(_, value []byte) []byte { return value })
	b = b[:len(b)-1]
	for name, property := range jsonx.Members(jsonx.Member(schema, "properties")) {
		if def := jsonx.Member(property, "default"); def != nil && jsonx.Member(content, jsonx.String(name)) == nil {
			b = jsonx.AppendMember(b, name, def)
		}
	}
	return append(b, '}'), nil
}

// serve responds to a request that the server sent on the stream of the call f; f is nil if the
// call is unknown. The response is nil on modern versions, in which servers send no requests.
func (c *Client) serve(ctx context.Context, req *jsonrpc.Request, f *flight) *jsonrpc.Response {
	a := c.agreed.Load()
	if a != nil && a.version.Modern() {
		c.warn("client: the server sent a request, which the agreed version does not allow", "method", clip(req.Method))
		return nil
	}
	resp := &jsonrpc.Response{ID: req.ID}
	if req.Method == protocol.MethodPing {
		return resp
	}
	release := c.flights.hold(f)
	defer release()
	v, err := c.respond(ctx, req.Method, req.Params)
	if err == nil {
		resp.Result, err = jsonx.Marshal(v)
	}
	if err != nil {
		resp.Error = c.refusal(req.Method, err)
	}
	return resp
}

// refusal returns the error that a legacy server receives if its request failed.
func (c *Client) refusal(method string, err error) *jsonrpc.Error {
	if errors.Is(err, ErrRejected) {
		return jsonrpc.Errorf(protocol.CodeUserRejected, "the user rejected the request")
	}
	if rpc, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return rpc
	}
	// Do not reveal internal errors of this program to the server.
	c.warn("client: a request of the server failed", "method", clip(method), "error", err)
	return jsonrpc.Errorf(jsonrpc.CodeInternalError, "internal error of the client")
}

// clip shortens text of the server for the log.
func clip(s string) string {
	if len(s) > 100 {
		return s[:100] + "..."
	}
	return s
}

// hear handles a notification that the server sent on the stream of the call f; f is nil if calls
// share the stream.
func (c *Client) hear(n *jsonrpc.Request, f *flight) {
	switch n.Method {
	case protocol.NotificationProgress:
		c.heardProgress(n)
	case protocol.NotificationMessage:
		c.heardLog(n, f)
		if h := c.cfg.handlers.log; h != nil {
			c.handOn(n, h)
		}
	default:
		if !c.heardByCall(n) {
			c.changes.heard(n)
		}
	}
}

// hearFirst handles a notification as soon as it is read from a shared connection, so that a call
// receives its notifications before its response. It returns false if hearNext must handle the
// notification too.
func (c *Client) hearFirst(n *jsonrpc.Request) (all bool) {
	switch n.Method {
	case protocol.NotificationProgress:
		c.heardProgress(n)
		return true
	case protocol.NotificationMessage:
		c.heardLog(n, nil)
		return c.cfg.handlers.log == nil
	}
	return c.heardByCall(n)
}

// hearNext handles the notifications for which hearFirst returned false, in their order.
func (c *Client) hearNext(n *jsonrpc.Request) {
	if n.Method != protocol.NotificationMessage {
		c.changes.heard(n)
	} else if h := c.cfg.handlers.log; h != nil {
		c.handOn(n, h)
	}
}

// heardProgress passes progress to its call. It ignores progress of unknown or finished calls.
func (c *Client) heardProgress(n *jsonrpc.Request) {
	f := c.flights.byID(string(n.Param("progressToken")))
	if f == nil || !c.reports(f) {
		return
	}
	p := new(protocol.ProgressParams)
	if err := jsonx.Unmarshal(n.Params, p); err != nil {
		return
	}
	f.deadline.extend()
	f.hand(c, n, func() { c.progressed(f.progress, p) })
}

// reports reports whether a handler receives the progress of f.
func (c *Client) reports(f *flight) bool { return f.progress != nil || c.cfg.handlers.progress != nil }

// heardByCall passes a notification to the function that [OnNotification] set for its call. It
// returns false if there is none.
func (c *Client) heardByCall(n *jsonrpc.Request) bool {
	f := c.flights.byID(subscriptionID(n))
	if f == nil || f.notify == nil {
		return false
	}
	notify := func() { f.notify(n.Method, orEmpty(n.Params)) }
	f.inbox.push(c.log, notify, len(n.Params), func() { f.deadline.cancel(errBehind) })
	return true
}

// heardLog passes a log message to the call f, or as [OnLog] says if f is nil.
func (c *Client) heardLog(n *jsonrpc.Request, f *flight) {
	var flights []*flight
	switch {
	case f != nil:
		flights = []*flight{f}
	case c.Shared() || c.cfg.handlers.log == nil:
		flights = c.flights.listening(c.Shared())
	}
	for _, f := range flights {
		if f.log != nil {
			f.hand(c, n, func() { c.handOn(n, func(_ context.Context, p *protocol.LoggingMessageParams) { f.log(p) }) })
		}
	}
}

// handOn decodes a log message and calls h.
func (c *Client) handOn(n *jsonrpc.Request, h func(context.Context, *protocol.LoggingMessageParams)) {
	p := new(protocol.LoggingMessageParams)
	if err := jsonx.Unmarshal(orEmpty(n.Params), p); err == nil {
		perform(c.log, func() { h(c.base, p) })
	}
}

// hand queues the function hear, which handles n for the call.
func (f *flight) hand(c *Client, n *jsonrpc.Request, hear func()) {
	if !f.inbox.push(c.log, hear, len(n.Params), nil) {
		c.warn("client: a notification was dropped because too many wait for the handlers of a call")
	}
}

// checkElicitURL refuses URLs that a user must not be sent to. It allows https, and http to this
// machine.
func checkElicitURL(raw string) error {
	u, err := url.Parse(raw)
	if err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http" && isLoopback(u.Hostname())) {
		return nil
	}
	return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "the URL of an elicitation must be an https URL")
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

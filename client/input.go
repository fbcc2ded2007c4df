package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/jsonrpc"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport"
)

// maxQuestions bounds the input requests of one result.
//
//limit:client questions in one result | the call fails: `inputs at once; at most `
const maxQuestions = 100

// answer gathers the answers to a result that requires input (2026-07-28, basic/patterns/mrtr): all
// of them, before the request is sent again. What it returns belongs to that one retry.
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
		return in, invalid(r.method, "it requires input but says not which")
	case len(result.InputRequests) > maxQuestions:
		return in, invalid(r.method, "it asks for %d inputs at once; at most %d are answered", len(result.InputRequests), maxQuestions)
	case len(result.InputRequests) == 0:
		// The server only wants to be asked again: a little later each time.
		return in, sleep(ctx, backoff(round))
	}
	in.InputResponses = protocol.InputResponses{}
	for _, key := range slices.Sorted(maps.Keys(result.InputRequests)) {
		q := result.InputRequests[key]
		v, err := c.respond(ctx, q.Method, q.Params)
		if err != nil {
			return in, fmt.Errorf("the server asks for %s: %w", q.Method, err)
		}
		if in.InputResponses[key], err = jsonx.Marshal(v); err != nil {
			return in, fmt.Errorf("the answer to %s: %w", q.Method, err)
		}
	}
	return in, nil
}

// untilClose returns a context that ends with ctx, and with Close.
func (c *Client) untilClose(ctx context.Context) (limited context.Context, stop func()) {
	limited, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(c.base, func() { cancel(transport.ErrClosed) })
	return limited, func() {
		unhook()
		cancel(nil)
	}
}

// backoff is how long to wait before attempt n+1: from 100 ms to 5 s.
func backoff(n int) time.Duration {
	return min(100*time.Millisecond<<min(n, 10), 5*time.Second)
}

// respond answers one question of the server by the handlers. A *jsonrpc.Error says why there is no
// answer.
func (c *Client) respond(ctx context.Context, method string, params []byte) (any, error) {
	switch method {
	case protocol.MethodElicitationCreate:
		return c.elicit(ctx, params)
	case protocol.MethodSamplingCreateMessage:
		if c.cfg.handlers.sample == nil {
			return nil, notDeclared(method)
		}
		p := new(protocol.CreateMessageParams)
		if err := jsonx.Unmarshal(orEmpty(params), p); err != nil {
			return nil, badQuestion(method, err)
		}
		if caps := c.cfg.extra.Sampling; (p.Tools != nil || p.ToolChoice != nil) && (caps == nil || caps.Tools == nil) {
			return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "sampling with tools was not declared")
		}
		r, err := c.cfg.handlers.sample(ctx, p)
		if err == nil && r == nil {
			err = errors.New("the method Sample returned neither a result nor an error")
		}
		return r, err
	case protocol.MethodRootsList:
		if c.cfg.handlers.roots == nil {
			return nil, notDeclared(method)
		}
		roots, err := c.cfg.handlers.roots(ctx)
		return &protocol.ListRootsResult{Roots: roots}, err
	}
	return nil, notDeclared(method)
}

func orEmpty(params []byte) []byte {
	if params == nil {
		return []byte("{}")
	}
	return params
}

func notDeclared(method string) error {
	return jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "this client did not declare %.60q", method)
}

func badQuestion(method string, err error) error {
	return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "the params of %s are invalid: %v", method, err)
}

// elicit asks the user.
func (c *Client) elicit(ctx context.Context, params []byte) (any, error) {
	p := new(protocol.ElicitParams)
	if err := jsonx.Unmarshal(orEmpty(params), p); err != nil {
		return nil, badQuestion(protocol.MethodElicitationCreate, err)
	}
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
	case r.Action != protocol.ElicitAccept:
		return &protocol.ElicitResult{Action: r.Action}, nil
	case p.Mode == protocol.ElicitURL:
		return &protocol.ElicitResult{Action: r.Action}, nil // agreeing is all there is
	}
	content, err := withDefaults(p.RequestedSchema, r.Content)
	if err != nil {
		return nil, err
	}
	return &protocol.ElicitResult{Action: r.Action, Content: content}, nil
}

// withDefaults returns the content of an accepted form, completed by the defaults of its schema
// (2025-11-25, client/elicitation).
func withDefaults(schema, content []byte) ([]byte, error) {
	content = content[jsonx.SkipSpace(content, 0):]
	if len(content) == 0 || string(content) == "null" {
		content = []byte("{}")
	}
	if !jsonx.Valid(content) || jsonx.Kind(content) != '{' {
		return nil, errors.New("the content of the response is not a JSON object")
	}
	b := []byte{'{'}
	for name, value := range jsonx.Members(content) {
		b = append(append(append(append(b, name...), ':'), value...), ',')
	}
	for name, property := range jsonx.Members(jsonx.Member(schema, "properties")) {
		if def := jsonx.Member(property, "default"); def != nil && jsonx.Member(content, jsonx.String(name)) == nil {
			b = append(append(append(append(b, name...), ':'), def...), ',')
		}
	}
	if b[len(b)-1] == ',' {
		b = b[:len(b)-1]
	}
	return append(b, '}'), nil
}

// serve answers a request of the server, which came on the stream of the call f; f is nil where
// that is not known. The response is nil on modern versions, in which servers have no requests.
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

// refusal is what a legacy server is told when there is no answer for it.
func (c *Client) refusal(method string, err error) *jsonrpc.Error {
	if errors.Is(err, ErrRejected) {
		return jsonrpc.Errorf(protocol.CodeUserRejected, "the user rejected the request")
	}
	if rpc, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return rpc
	}
	// What went wrong inside of this program is not the server's business.
	c.warn("client: a question of the server was not answered", "method", clip(method), "error", err)
	return jsonrpc.Errorf(jsonrpc.CodeInternalError, "the client could not answer")
}

// clip shortens what a server sent for the log.
func clip(s string) string {
	if len(s) > 100 {
		return s[:100] + "..."
	}
	return s
}

// hear takes a notification of the server. f is the call on whose stream it came, nil where streams
// are shared.
func (c *Client) hear(n *jsonrpc.Request, f *flight) {
	switch n.Method {
	case protocol.NotificationProgress:
		c.heardProgress(n, true)
	case protocol.NotificationMessage:
		c.heardLog(n, f, true)
		if h := c.cfg.handlers.log; h != nil {
			c.handOn(n, h)
		}
	default:
		c.changes.heard(n)
	}
}

// hearFirst takes a notification of a connection that is the session as soon as it was read, so
// that what belongs to a call is on its way before the response is. It reports whether that was all
// of it; the rest is heard in its turn.
func (c *Client) hearFirst(n *jsonrpc.Request) (all bool) {
	switch n.Method {
	case protocol.NotificationProgress:
		c.heardProgress(n, false)
		return true
	case protocol.NotificationMessage:
		c.heardLog(n, nil, false)
		return c.cfg.handlers.log == nil
	}
	return false
}

// hearNext takes what hearFirst left.
func (c *Client) hearNext(n *jsonrpc.Request) {
	if n.Method != protocol.NotificationMessage {
		c.changes.heard(n)
	} else if h := c.cfg.handlers.log; h != nil {
		c.handOn(n, h)
	}
}

// heardProgress hands progress to the call that it is of. What is late, or of none of ours, is
// nobody's.
func (c *Client) heardProgress(n *jsonrpc.Request, inline bool) {
	f := c.flights.byToken(n.Param("progressToken"))
	if f == nil {
		return
	}
	p := new(protocol.ProgressParams)
	if err := jsonx.Unmarshal(n.Params, p); err != nil {
		return
	}
	f.deadline.extend()
	f.hand(c, n, inline, func() {
		if f.progress != nil {
			f.progress(p)
		}
		if h := c.cfg.handlers.progress; h != nil {
			h(c.base, p)
		}
	})
}

// heardLog hands a message to the call f, or to all that listen where it is nobody's own.
func (c *Client) heardLog(n *jsonrpc.Request, f *flight, inline bool) {
	flights := []*flight{f}
	if f == nil {
		flights = c.flights.listening()
	}
	for _, f := range flights {
		if f.log != nil {
			f.hand(c, n, inline, func() { c.handOn(n, func(_ context.Context, p *protocol.LoggingMessageParams) { f.log(p) }) })
		}
	}
}

// handOn decodes a message for one handler.
func (c *Client) handOn(n *jsonrpc.Request, h func(context.Context, *protocol.LoggingMessageParams)) {
	p := new(protocol.LoggingMessageParams)
	if err := jsonx.Unmarshal(orEmpty(n.Params), p); err == nil {
		h(c.base, p)
	}
}

// hand has hear done, which hears n on behalf of the call.
func (f *flight) hand(c *Client, n *jsonrpc.Request, inline bool, hear func()) {
	if !f.inbox.push(c.log, hear, len(n.Params), inline) {
		c.warn("client: a notification was dropped, since too many wait for the handlers of a call")
	}
}

// checkElicitURL refuses what a user must not be sent to: only the web, and only by TLS unless it
// is this machine.
func checkElicitURL(raw string) error {
	u, err := url.Parse(raw)
	if err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http" && isLoopback(u.Hostname())) {
		return nil
	}
	return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "users are not sent to this URL; use https")
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

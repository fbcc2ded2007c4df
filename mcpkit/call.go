package mcpkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/uritemplate"
	"github.com/mcpkit/mcpkit-go/jsonrpc"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/rounds"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/secret"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport"
)

// A Call is one request being answered: what it says, who sent it, and the way back while it lasts.
// A method that has a *Call parameter is given it; so are middleware and raw handlers.
//
// Its methods may be called concurrently, but not after the method that was given it has returned.
type Call struct {
	*request

	server  *Server
	catalog *catalog
	row     *methodRow
	refusal *jsonrpc.Error // what prepare found wrong with the request

	name      string             // tool or prompt name, or resource URI
	entry     *entry             // what name names; nil for methods that name nothing
	target    any                // *tool, *prompt or *resource
	vars      uritemplate.Values // of the resource template that matched
	texts     []textArgument     // of prompts/get
	arguments json.RawMessage    // what SetArguments gave; nil: as they came
	ctx       context.Context    // of the call: scope, or what stands for it in a mounted server
	values    atomic.Pointer[kept]
}

// A request is what a client sent, and what belongs to it in whichever server answers: a request to a tool of a mounted server is one
// request and two Calls, one in each server.
type request struct {
	req       *jsonrpc.Request
	peer      transport.Peer
	to        *Server // that the client sent it to
	version   protocol.Version
	session   *session // legacy only; nil where there is none
	meta      json.RawMessage
	principal *oauth.Principal
	sent      string   // the name or URI that it is about, as the client has it
	needs     []string // scopes that the caller lacks some of; nil: it does not
	malformed bool     // it lacks a part of its envelope
	scope     scope
	begun     time.Time        // with the first round
	response  jsonrpc.Response // here so that it needs no memory of its own
	consulted atomic.Bool      // the client was asked something
	repairs   atomic.Int32     // see Repairs

	mu         sync.Mutex
	ref        string                                         // guarded by mu
	finished   bool                                           // guarded by mu
	progress   float64                                        // guarded by mu
	asked      *rounds.Questions                              // guarded by mu: the questions; see input.go
	onQuestion []func(context.Context, *Question) func(error) // guarded by mu
}

// newCall makes the call of a request that a client sent to s.
func newCall(s *Server, req *jsonrpc.Request, peer transport.Peer) *Call {
	c := &struct {
		Call
		request
	}{request: request{req: req, peer: peer, to: s, progress: -1, begun: time.Now()}}
	c.Call.request = &c.request
	c.server, c.catalog = s, s.catalog.Load()
	return &c.Call
}

// within lets a call of a mounted server run in a context of the call that it is part of.
func (c *Call) within(ctx context.Context) {
	c.ctx = &callContext{ctx, c}
}

// callContext carries the Call of a mounted server in a context.
type callContext struct {
	context.Context
	call *Call
}

func (c *callContext) Value(key any) any {
	if key == (callKey{}) {
		return c.call
	}
	return c.Context.Value(key)
}

type callKey struct{}

// overdue counts the methods that do not return, of what is called.
func (c *Call) overdue() *overdueCount {
	if c.entry != nil && c.entry.overdue != nil {
		return c.entry.overdue
	}
	return c.row.overdue
}

// CallFrom returns the call that ctx belongs to, and nil when it belongs to none.
func CallFrom(ctx context.Context) *Call {
	call, _ := ctx.Value(callKey{}).(*Call)
	return call
}

// Method is the protocol's method: "tools/call".
func (c *Call) Method() string { return c.row.method }

// Name is the name of the tool or prompt, or the URI of the resource, that the request is about; "" for other methods.
func (c *Call) Name() string { return c.name }

// Target is the name, URI or URI template under which the tool, prompt or resource that the request is about is
// registered, so one of few; "" when nothing of the kind is, or the caller may not know of it.
func (c *Call) Target() string {
	if c.entry == nil {
		return ""
	}
	return c.entry.key
}

// Version is the protocol revision of this request.
func (c *Call) Version() protocol.Version { return c.version }

// RequestID is the request's JSON-RPC id as JSON text.
func (c *Call) RequestID() string { return c.req.ID.String() }

// Params is the params object as it came; nil when absent. It must not be changed.
func (c *Call) Params() json.RawMessage { return c.req.Params }

// Arguments is the arguments object of a tool call or of prompts/get, as it came or as [Call.SetArguments] gave it; nil
// when absent or null. It must not be changed.
func (c *Call) Arguments() json.RawMessage {
	if c.arguments != nil {
		return c.arguments
	}
	args := c.req.Param("arguments")
	if jsonx.Kind(args) == 'n' {
		return nil // clients in languages with null send it for none
	}
	return args
}

// RedactedArguments are the arguments as logs may have them: what is tagged secret, and what nothing is known of, is
// replaced by "[redacted]". In tools with a schema written by hand the writeOnly properties and those of the format
// password are secret. It is nil when there are no arguments; where nothing of the name is registered no value is shown.
func (c *Call) RedactedArguments() json.RawMessage {
	raw := c.Arguments()
	switch {
	case jsonx.Kind(raw) != '{':
		return nil
	case c.entry == nil:
		return (&secret.Secrecy{}).AppendObject(nil, raw)
	case c.entry.secrets == nil:
		return raw
	default:
		return c.entry.secrets.AppendObject(nil, raw)
	}
}

// SetArguments replaces the arguments of a tool call or of prompts/get: middleware calls it before it calls the next
// handler. They are held to the tool's schema like those that a client sends. args must be valid JSON, an object, for
// prompts one of strings; it belongs to the call from then on.
func (c *Call) SetArguments(args json.RawMessage) error {
	method := c.row.method
	if method != protocol.MethodToolsCall && method != protocol.MethodPromptsGet {
		return fmt.Errorf("mcpkit: SetArguments: %s has no arguments", method)
	}
	if !jsonx.Valid(args) || jsonx.Kind(args) != '{' {
		return fmt.Errorf("mcpkit: SetArguments: %.40q is no JSON object", args)
	}
	if method == protocol.MethodPromptsGet {
		texts, err := textArguments(c.name, args)
		if err != nil {
			return fmt.Errorf("mcpkit: SetArguments: %s", err.Message)
		}
		c.texts = texts
	}
	c.arguments = args
	return nil
}

// Bind decodes the arguments into v, a pointer. It checks no rules: that is for raw tools, whose schema was checked already.
func (c *Call) Bind(v any) error {
	raw := c.Arguments()
	if raw == nil {
		raw = []byte("{}")
	}
	if err := jsonx.Unmarshal(raw, v); err != nil {
		return Errorf("the arguments do not fit: %s", describeJSON(err))
	}
	return nil
}

// Var is the value of a variable of the resource template that matched, or of a prompt's argument; "" when absent.
func (c *Call) Var(name string) string {
	v, _ := c.text(name)
	return v
}

// text looks a textual argument up: URI variables and prompt arguments.
func (c *Call) text(name string) (string, bool) {
	for _, t := range c.texts {
		if t.name == name {
			return t.value, true
		}
	}
	return c.vars.Get(name)
}

// Principal is who is asking; nil where nobody was authenticated.
func (c *Call) Principal() *oauth.Principal { return c.principal }

// Scopes are the scopes that the tool, prompt or resource demands.
func (c *Call) Scopes() []string {
	if c.entry == nil {
		return nil
	}
	return c.entry.scopes
}

// Tags are the words of the tags tag of the tool, prompt or resource.
func (c *Call) Tags() []string {
	if c.entry == nil {
		return nil
	}
	return c.entry.tags
}

// Tool is the definition of the tool that is called; nil for other methods. It must not be changed.
func (c *Call) Tool() *protocol.Tool {
	if t, ok := c.target.(*tool); ok {
		return &t.def
	}
	return nil
}

// SessionID names the legacy session; "" where there is none or the connection is the session.
func (c *Call) SessionID() string {
	if s := c.peer.Session(); s != nil {
		return s.ID()
	}
	return ""
}

// Header returns a header field of the HTTP request, by its canonical name; "" on other bindings.
func (c *Call) Header(name string) string { return c.peer.Header().Get(name) }

// Meta returns a member of the request's _meta as JSON; nil when absent.
func (c *Call) Meta(key string) json.RawMessage { return jsonx.Member(c.meta, key) }

// ClientInfo is what the client says it is; nil when it does not say. It proves nothing.
func (c *Call) ClientInfo() *protocol.Implementation {
	if !c.version.Modern() {
		if c.session != nil {
			return &c.session.info
		}
		return nil
	}
	raw := c.Meta(protocol.MetaClientInfo)
	if raw == nil {
		return nil
	}
	var info protocol.Implementation
	if jsonx.Unmarshal(raw, &info) != nil {
		return nil
	}
	return &info
}

// ClientCapabilities are what the client can be asked: declared on this request (2026-07-28) or when the session began.
// What the version of the session does not have is left out.
func (c *Call) ClientCapabilities() protocol.ClientCapabilities {
	if !c.version.Modern() {
		if c.session == nil {
			return protocol.ClientCapabilities{}
		}
		caps := c.session.capabilities
		switch {
		case caps.Elicitation == nil:
		case c.version < protocol.V20250618:
			caps.Elicitation = nil
		case c.version < protocol.V20251125:
			caps.Elicitation = &protocol.ElicitationCapability{} // forms alone
		}
		return caps
	}
	var caps protocol.ClientCapabilities
	_ = jsonx.Unmarshal(c.Meta(protocol.MetaClientCapabilities), &caps) // checked to be an object; a wrong member is one not declared
	return caps
}

// Asked reports whether the method has asked the client something, with [Elicit] and its like: what comes of it is for this call alone.
func (c *Call) Asked() bool { return c.consulted.Load() }

// Round is how many times the client has come back with answers to questions of this call: 0 when the call begins. On legacy versions it is
// always 0, since the method waits for the answers.
func (c *Call) Round() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asked == nil {
		return 0
	}
	return c.asked.State.Round
}

// SetTimeout lets the time of the call be over after d, from now on, unless it is over sooner. The context of the call ends then, with a
// [*TimeoutError] for its cause, and the caller gets that error whether the method returns or not. The time does not pass while a question
// to the client is open. No d, or a negative one, changes nothing.
func (c *Call) SetTimeout(d time.Duration) { c.scope.limit(d) }

// Overdue reports whether a method of the call still runs though its caller was answered in its place: see [Server.Overdue].
func (c *Call) Overdue() bool {
	c.scope.mu.Lock()
	defer c.scope.mu.Unlock()
	return slices.ContainsFunc(c.scope.running, func(x *execution) bool { return x.overdue })
}

// OnReturn calls f as soon as no method of the call runs: at once, unless the caller was answered in place of a method that does not
// return (see [Server.Overdue]). It reports whether f waits.
func (c *Call) OnReturn(f func()) (waits bool) {
	s := &c.scope
	s.mu.Lock()
	if waits = len(s.running) > 0; waits {
		s.onReturn = append(s.onReturn, f)
	}
	s.mu.Unlock()
	if !waits {
		f()
	}
	return waits
}

// OnEnd lets f run when the call is over: after its method has returned, and after its result was encoded or, where the
// result is written while it is read, after its last byte. The latest f runs first.
func (c *Call) OnEnd(f func()) { c.scope.onEnd(f) }

// Repairs is how many values of the arguments were repaired so far (see [Repair]): none before the method was called, and none without
// that option.
func (c *Call) Repairs() int { return int(c.repairs.Load()) }

// Ref is a short random name for this call, the same in the log, in what a caller is told of an internal error, and in all rounds of a
// call that asks questions.
func (c *Call) Ref() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refLocked()
}

// refLocked is Ref for who holds mu.
func (c *Call) refLocked() string {
	if c.ref == "" {
		c.ref = newRef()
	}
	return c.ref
}

// Begun is when the call began: with its first round.
func (c *Call) Begun() time.Time { return c.begun }

// A kept value is what Set kept, and what was kept before it.
type kept struct {
	key, value any
	before     *kept
}

// Set keeps a value with the call, for middleware and methods further in, those of mounted servers too; keys as for
// context.WithValue.
func (c *Call) Set(key, value any) {
	for {
		before := c.values.Load()
		if c.values.CompareAndSwap(before, &kept{key, value, before}) {
			return
		}
	}
}

// Get returns what Set kept; nil when nothing.
func (c *Call) Get(key any) any {
	for k := c.values.Load(); k != nil; k = k.before {
		if k.key == key {
			return k.value
		}
	}
	return nil
}

// Progress tells the client how far the call is, if it asked to be told: done so far, of total (0 when not known), and a
// message, which may be empty. done must grow from one report to the next; a report that does not is dropped, as the
// protocol demands (basic/utilities/progress).
func (c *Call) Progress(done, total float64, message string) {
	token := c.Meta(protocol.MetaProgressToken)
	if token == nil {
		return
	}
	p := protocol.ProgressParams{ProgressToken: token, Progress: done, Message: message}
	if total > 0 {
		p.Total = &total
	}
	if c.version < protocol.V20250326 {
		p.Message = ""
	}
	c.mu.Lock()
	stale := c.finished || c.progress >= 0 && done <= c.progress
	if !stale {
		c.progress = done
	}
	c.mu.Unlock()
	if !stale {
		c.notify(protocol.NotificationProgress, &p)
	}
}

// Logger writes log messages to the client, as far as it asked for them, and to the server's own logger.
func (c *Call) Logger() *slog.Logger { return slog.New(&clientLog{call: c}) }

// CloseStream ends the stream of this call while its method goes on: the client comes back for the result after about
// retry (2025-11-25, "polling"). The error is errors.ErrUnsupported where the client cannot come back.
func (c *Call) CloseStream(retry time.Duration) error {
	if sc, ok := c.peer.(transport.StreamCloser); ok {
		return sc.CloseStream(retry)
	}
	return errors.ErrUnsupported
}

// notify sends a notification on the stream of this call. That a client is gone is not the method's business.
func (c *Call) notify(method string, params any) {
	n, err := jsonrpc.NewNotification(method, params)
	if err == nil && !c.isFinished() {
		err = c.peer.Notify(c.scope.parent, n)
	}
	if err != nil {
		c.server.config.logger.DebugContext(c.ctx, "mcpkit: a notification was not sent", "method", method, "error", err)
	}
}

func (c *Call) isFinished() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.finished
}

// finish makes late progress reports void: none may follow the result.
func (c *Call) finish() {
	c.mu.Lock()
	c.finished = true
	c.mu.Unlock()
}

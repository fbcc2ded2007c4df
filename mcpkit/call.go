package mcpkit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/uritemplate"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/annotation"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/secret"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// A Call is a request that the server handles: what it contains, who sent it, and the way to notify
// or ask the client. Methods with a *Call parameter and middleware get it.
//
// Its methods are safe for concurrent use, but must not be called after the method that got the
// Call has returned.
type Call struct {
	server  *Server
	catalog *catalog
	envelope
	row     *methodRow // nil until the request is accepted
	refusal error      // what find found wrong with the request
	target
	run      *Run      // outside of a request; nil for most calls
	limit    timeLimit // the context of the call
	load     *load     // that the running call counts in; nil before
	progress progress
	dialog
	values  sync.Map                        // of Set
	replace atomic.Pointer[json.RawMessage] // the arguments of SetArguments; nil: those of the client
	tracers atomic.Pointer[[]tracer]        // of Trace; nil for none
	repairs atomic.Int32                    // see Repairs
}

// newCall returns the call of a request that a client sent to s.
func newCall(ctx context.Context, s *Server, req *jsonrpc.Request, peer transport.Peer) *Call {
	c := &Call{
		server: s, catalog: s.catalog.Load(),
		envelope: envelope{req: req, peer: peer, principal: oauth.FromContext(ctx)},
		progress: progress{last: -1}, dialog: dialog{begun: time.Now()},
	}
	c.asked.State.Begun = c.begun.UnixMilli()
	for name, value := range jsonx.Members(req.Params) {
		switch {
		case jsonx.IsString(name, "arguments"):
			c.arguments = value
		case jsonx.IsString(name, "_meta"):
			c.meta = value
		}
	}
	c.limit.call, c.limit.request = c, ctx
	c.limit.Context, c.limit.cancel = context.WithCancelCause(ctx)
	return c
}

// CallFrom returns the call that ctx belongs to, or nil.
func CallFrom(ctx context.Context) *Call {
	call, _ := ctx.Value(callKey{}).(*Call)
	return call
}

// An envelope is a request with who sent it.
type envelope struct {
	req       *jsonrpc.Request
	peer      transport.Peer
	version   protocol.Version
	session   *session // legacy only; may be nil
	principal *oauth.Principal

	arguments, meta json.RawMessage // members of the params; nil if they are absent
}

// Version returns the protocol version of the request.
func (c *envelope) Version() protocol.Version { return c.version }

// RequestID returns the request's JSON-RPC id as JSON text.
func (c *envelope) RequestID() string { return c.req.ID.String() }

// Params returns the params object as it was sent, or nil. It must not be changed.
func (c *envelope) Params() json.RawMessage { return c.req.Params }

// Principal returns who the caller authenticated as, or nil.
func (c *envelope) Principal() *oauth.Principal { return c.principal }

// SessionID returns a name of the legacy session for logs, a digest of its secret ID; "" if there is
// no session or the connection is the session.
func (c *envelope) SessionID() string {
	if s := c.peer.Session(); s != nil {
		return s.Digest()
	}
	return ""
}

// Header returns a header field of the HTTP request by its canonical name; "" on other transports.
func (c *envelope) Header(name string) string { return c.peer.Header().Get(name) }

// Meta returns a member of the request's _meta as JSON, or nil.
func (c *envelope) Meta(key string) json.RawMessage { return jsonx.Member(c.meta, key) }

// ClientInfo returns what the client calls itself, or nil. It proves nothing.
func (c *envelope) ClientInfo() *protocol.Implementation {
	if c.session != nil {
		return &c.session.ClientInfo
	}
	var info *protocol.Implementation
	if jsonx.Unmarshal(c.Meta(protocol.MetaClientInfo), &info) != nil {
		return nil
	}
	return info
}

// ClientCapabilities returns what the client can be asked, as it declared on this request
// (2026-07-28) or at the start of its session. Capabilities that the session's version does not
// have are left out.
func (c *envelope) ClientCapabilities() protocol.ClientCapabilities {
	if c.session != nil {
		return c.session.Capabilities
	}
	var caps protocol.ClientCapabilities
	if c.version.Modern() { // else the client is not known
		_ = jsonx.Unmarshal(c.Meta(protocol.MetaClientCapabilities), &caps) // checked to be an object; a wrong member counts as not declared
	}
	return caps
}

// A target is what a request is about.
type target struct {
	name  string             // tool or prompt name, or resource URI
	entry *entry             // what name names, or nil
	vars  uritemplate.Values // of the resource template that matched, or the arguments of prompts/get; nil for none
	// params are those of the request if they were decoded to find what it is about; nil for most.
	params any
}

// nowhere is the entry of requests that are about none that the caller may know of.
var nowhere = &entry{Annotation: &annotation.Annotation{}, shown: secret.Shown{}}

// about returns the entry, or nowhere.
func (t *target) about() *entry { return cmp.Or(t.entry, nowhere) }

// Name returns the name of the tool or prompt, or the URI of the resource, that the request is
// about; "" for other methods. It is that of the client, also in the middleware and the methods of
// mounted servers: see [Call.OwnName].
func (t *target) Name() string { return t.name }

// OwnName is like Target, but returns the name in the server that registered the tool or prompt,
// without the prefixes of mounts and the names of [Describe]: "refund" for "billing_refund". Middleware
// of a server that may be mounted looks at it.
func (t *target) OwnName() string {
	own := t.about().own()
	return cmp.Or(own.plain, own).key
}

// Target returns the registered name, URI or URI template of what the request is about. Unlike Name
// it has few values. It is "" for other methods, and if the caller may not know of the target.
func (t *target) Target() string { return t.about().key }

// Var returns the value of a variable of the URI template, or of an argument of the prompt; "" if
// it is absent.
func (t *target) Var(name string) string { return t.vars[name] }

// text is like Var, and reports whether the value is there.
func (t *target) text(name string) (value string, ok bool) {
	value, ok = t.vars[name]
	return value, ok
}

// Scopes returns the scopes that the tool, prompt or resource needs.
func (t *target) Scopes() []string { return t.about().Scopes }

// Tags returns the labels of the tags tag of the tool, prompt or resource.
func (t *target) Tags() []string { return t.about().Labels }

// Tool returns the definition of the tool that is called; nil for other methods. It must not be
// changed.
func (t *target) Tool() *protocol.Tool { return t.about().tool }

// owner returns the digest of the name of the server whose method or middleware runs with ctx.
// Answers to its questions are not answers to those of another server.
func (c *Call) owner(ctx context.Context) []byte {
	s := c.server
	for e := c.entry; e != nil && e.from != nil && ctx.Value(withinKey{e.from.child}) != nil; e = e.inner {
		s = e.from.child
	}
	return s.state.Owner
}

// Method returns the protocol's method: "tools/call".
func (c *Call) Method() string { return c.row.method }

// Address returns the network address of the client; "" on stdio and in memory. Of an IPv6 address it
// has the first 64 bits. Behind proxies that the transport does not trust, it is theirs.
func (c *Call) Address() string { return transport.Address(&c.limit) }

// Path returns the path of the URL of the HTTP request, as the handler got it, or of the one that opened
// the connection; "" on stdio, in memory and in runs of tasks.
func (c *Call) Path() string { return transport.Path(&c.limit) }

// Arguments returns the arguments of a tool call or of prompts/get: as they were sent, or as
// [Call.SetArguments] set them. It is nil if they are absent or null. It must not be changed.
func (c *Call) Arguments() json.RawMessage {
	if set := c.replace.Load(); set != nil {
		return *set
	}
	if jsonx.Kind(c.arguments) == 'n' {
		return nil // clients send null for no arguments
	}
	return c.arguments
}

// RedactedArguments returns the arguments for logs: those with the tag secret, or with a secret field
// within them, are "[redacted]", and unknown ones are left out if there are secrets. What is writeOnly
// in the schema, or has the format password, is secret as well. It is nil if there are no arguments. If
// the target is unknown, all are left out.
func (c *Call) RedactedArguments() json.RawMessage {
	raw := c.Arguments()
	if jsonx.Kind(raw) != '{' {
		return nil
	}
	return c.about().shown.Redact(raw)
}

// SetArguments replaces the arguments of a tool call or of prompts/get. Middleware calls it before
// the next handler. The new arguments are validated like those of a client. args must be a valid
// JSON object, for prompts one of strings, and must not be changed afterwards.
func (c *Call) SetArguments(args json.RawMessage) error {
	method := c.row.method
	if method != protocol.MethodToolsCall && method != protocol.MethodPromptsGet {
		return fmt.Errorf("mcpkit: SetArguments: %s has no arguments", method)
	}
	if !jsonx.Valid(args) || jsonx.Kind(args) != '{' {
		return fmt.Errorf("mcpkit: SetArguments: %.40q is not a JSON object", args)
	}
	if method == protocol.MethodPromptsGet {
		texts, err := readTextArguments(c.name, args)
		if err != nil {
			return fmt.Errorf("mcpkit: SetArguments: %w", err)
		}
		c.vars = texts
	}
	c.replace.Store(&args)
	return nil
}

// Bind decodes the arguments into v, a pointer. It does not check rules: it is for tools with
// a schema written by hand, whose arguments were validated already.
func (c *Call) Bind(v any) error {
	if err := jsonx.Unmarshal(orEmpty(c.Arguments()), v); err != nil {
		return Errorf("the arguments do not fit: %s", jsonx.Describe(err))
	}
	return nil
}

// SetTimeout limits the rest of the call to d, unless its limit is earlier. When the time is up,
// the context of the call ends with a [*TimeoutError] as its cause, and the caller gets that error
// even if the method does not return. The time stops while a question to the client is open.
// SetTimeout does nothing if d is 0 or negative.
func (c *Call) SetTimeout(d time.Duration) { c.limit.set(d) }

// Overdue reports whether a method of the call still runs although the caller has got a timeout
// error: see [Server.Overdue].
func (c *Call) Overdue() bool { return c.limit.isOverdue() }

// OnReturn calls f when no method of the call runs. That is immediately, unless a method is overdue:
// see [Server.Overdue].
func (c *Call) OnReturn(f func()) { c.limit.onReturn(f) }

// OnEnd calls f when the call is over: after its method has returned, and after the last byte of
// its result was encoded. The last f runs first.
func (c *Call) OnEnd(f func()) { c.limit.onEnd(f) }

// Repairs returns how many values of the arguments were repaired so far (see [Lenient]).
func (c *Call) Repairs() int { return int(c.repairs.Load()) }

// Set keeps a value with the call, for inner middleware and methods, also those of mounted servers.
// Use keys as for context.WithValue.
func (c *Call) Set(key, value any) { c.values.Store(key, value) }

// Get returns a value of Set, or nil.
func (c *Call) Get(key any) any {
	value, _ := c.values.Load(key)
	return value
}

// progress is what a call has reported.
type progress struct {
	own  atomic.Bool // the method itself reports
	over atomic.Bool // the call has its result: nothing more may be sent or asked

	mu   sync.Mutex
	last float64 // guarded by mu: the last report; -1 before
}

// grows notes a report. It returns false if it must not be sent.
func (p *progress) grows(done float64) (grows bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if grows = p.last < 0 || done > p.last; grows {
		p.last = done
	}
	return grows
}

// Progress notifies the client of the progress of the call if the client asked for it: done of
// total (0 if it is unknown), and a message, which may be empty. done must grow; a report with a
// done that does not grow is dropped, as the protocol demands (basic/utilities/progress).
func (c *Call) Progress(done, total float64, message string) {
	c.progress.own.Store(true)
	c.report(done, total, message)
}

// countProgress reports that n items are done, unless the method itself reports progress.
func (c *Call) countProgress(n int) {
	if !c.progress.own.Load() {
		c.report(float64(n), 0, "")
	}
}

// report is Progress without the note that the method reports.
func (c *Call) report(done, total float64, message string) {
	c.event(&c.limit, TraceEvent{Kind: TraceProgress, Done: done, Total: total, Text: message})
	token := c.Meta(protocol.MetaProgressToken)
	if token == nil || !c.progress.grows(done) {
		return
	}
	p := protocol.ProgressParams{ProgressToken: token, Progress: done, Message: message}
	if total > 0 {
		p.Total = &total
	}
	if c.version < protocol.V20250326 {
		p.Message = ""
	}
	c.Notify(protocol.NotificationProgress, &p)
}

// Logger returns a logger that writes to the client, at the level that it asked for, and to the
// server's own logger.
func (c *Call) Logger() *slog.Logger {
	return slog.New(&clientLog{call: c, server: c.server.config.logger.Handler()})
}

// CloseStream ends the stream of this call while its method continues. The client resumes after
// about retry (2025-11-25, "polling"). The error is errors.ErrUnsupported if the client cannot
// resume.
func (c *Call) CloseStream(retry time.Duration) error {
	if sc, ok := c.peer.(transport.StreamCloser); ok {
		return sc.CloseStream(retry)
	}
	return errors.ErrUnsupported
}

// Notify sends a notification on the stream of this call. The params encode to a JSON object. A
// disconnected client is not an error. Extensions call it.
func (c *Call) Notify(method string, params any) {
	n, err := jsonrpc.NewNotification(method, params)
	if err != nil {
		c.server.config.logger.DebugContext(&c.limit, "mcpkit: a notification was not sent", "method", method, "error", err)
		return
	}
	c.sendNotification(n)
}

// sendNotification sends a notification on the stream of the call, unless that has finished.
func (c *Call) sendNotification(n *jsonrpc.Request) {
	if c.progress.over.Load() {
		return
	}
	if err := c.peer.Notify(c.limit.request, n); err != nil {
		c.server.config.logger.DebugContext(&c.limit, "mcpkit: a notification was not sent", "method", n.Method, "error", err)
	}
}

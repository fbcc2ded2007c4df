package mcpkit

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/annotation"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/rounds"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// A Runner runs tools outside of requests, for an [Extension] whose calls outlive the requests that
// made them. One server has each Runner. It is safe for concurrent use.
type Runner struct{ server atomic.Pointer[Server] }

// Permits reports whether the caller has the scopes that a tool of the Runner's server needs, and
// [Visible] permits it. A tool that the server does not have needs nothing.
func (r *Runner) Permits(c *Call, tool string) bool {
	variants := r.server.Load().catalog.Load().list(annotation.Tool).named(tool)
	return variants == nil || slices.ContainsFunc(variants, func(t *entry) bool {
		return c.principal.Has(t.Scopes...) && c.sees(t)
	})
}

// Logger returns the logger of the server.
func (r *Runner) Logger() *slog.Logger { return r.server.Load().config.logger }

// A Run is a run of a tool outside of a request: what the method needs of the request that it
// continues. It encodes to JSON, without the credential of the caller. Make one with [Runner.Detach].
type Run struct {
	// ID is the name of the work that the run is part of, such as that of a task.
	ID string `json:"id"`
	// Method is that of the request; "" is tools/call.
	Method string `json:"method,omitempty"`
	// Tool is the name of the tool.
	Tool string `json:"tool"`
	// Params are those of a request of 2026-07-28 that calls the tool.
	Params json.RawMessage `json:"params,omitempty"`
	// Principal is who made the request; nil if the caller is unauthenticated.
	Principal *oauth.Principal `json:"principal,omitempty"`
	// Version is the protocol version that results are written for.
	Version protocol.Version `json:"version"`
	// Journal is what earlier runs have learned.
	Journal Journal `json:"journal"`

	// Keep is called with each new value of [Once], before Once returns it. An error of Keep is
	// that of Once. Nil keeps values only until the run ends. Keep must not use the call.
	Keep func(*Journal) error `json:"-"`
}

// An Outcome is how a run ended: with a result, an error, or questions.
type Outcome struct {
	// Result is the encoded result of the tool; nil if there is none.
	Result json.RawMessage
	// IsError reports whether the result is a tool error.
	IsError bool
	// Err is the protocol error; nil if there is none.
	Err *jsonrpc.Error
	// Asked reports whether the method asked questions that have no answers: see
	// [Journal].
	Asked bool
	// Journal is what the run has learned.
	Journal Journal
	// Unused are the keys of values of [Once] that earlier runs kept and that this one did not ask
	// for: the program has changed, or the method does not do the same each time.
	Unused []string
}

// A Journal is what the runs of a method have learned so far: answers to its questions, and values
// of [Once]. With it, the method runs again from its beginning, as for the rounds of 2026-07-28.
// The zero value is empty. It encodes to JSON. It is not safe for concurrent use. Its methods are
//
//	Questions() protocol.InputRequests // those that have no answers, by key; a key is used for one question only
//	Answer(responses json.RawMessage) (answered int, err error)
//
// Answer keeps answers to questions, and returns how many there were. responses is an object with
// the answers, which are objects, by key. Keys of no open question are ignored. If an answer is
// malformed, or the content of a form does not fit its schema, the error is a protocol error for
// the client, and nothing is kept.
type Journal = rounds.State

// Run returns the run that the method is called in, or nil during a request. In a run there is
// neither a header nor a session, notifications go nowhere, and questions end the run.
func (c *Call) Run() *Run { return c.run }

// Detach returns a [Run] that continues the call of a tool outside of its request, with the answers
// and values of its rounds so far. The tag rate counts the call here, and not in its runs: the error is
// a [*RateLimitError] if the caller made too many.
func (r *Runner) Detach(c *Call, id string) (*Run, error) {
	if err := c.entry.count(c); err != nil {
		return nil, err
	}
	meta := map[string]any{protocol.MetaProtocolVersion: protocol.V20260728, protocol.MetaClientCapabilities: c.ClientCapabilities()}
	if info := c.ClientInfo(); info != nil {
		meta[protocol.MetaClientInfo] = info
	}
	params := map[string]any{"name": c.Target(), "_meta": meta}
	if c.arguments != nil {
		params["arguments"] = c.arguments // middleware changes them again
	}
	text, err := jsonx.Marshal(params)
	if err != nil {
		return nil, err
	}
	run := &Run{ID: id, Tool: c.Target(), Params: text, Version: c.version}
	if p := c.principal; p != nil {
		own := *p
		own.Expires = time.Time{} // of the credential, which the run does not have
		run.Principal = &own
	}
	c.Ref() // the state has it
	c.mu.Lock()
	defer c.mu.Unlock()
	run.Journal = *c.asked.State.Learned()
	return run, nil
}

// Run runs the tool, inside all middleware, until the method returns. ctx is that of the call. The
// scopes of the principal are checked as for a request. The time limit of [ToolTimeout] does not
// apply, but that of the tag timeout does. A panic is an error of the tool.
func (r *Runner) Run(ctx context.Context, run *Run) Outcome {
	method := cmp.Or(run.Method, protocol.MethodToolsCall)
	req := &jsonrpc.Request{ID: jsonrpc.NumberID(0), Method: method, Params: run.Params}
	call := newCall(oauth.NewContext(ctx, run.Principal), r.server.Load(), req, runPeer{})
	call.goOn(&run.Journal)
	call.run, call.unused = run, maps.Clone(run.Journal.Once)
	defer call.limit.finish()
	resp := call.serve(ctx)
	out := Outcome{Result: resp.Result, Err: resp.Error, Journal: *call.nextRound()}
	out.Asked = out.Result == nil && out.Err == nil
	out.IsError = string(jsonx.Member(out.Result, "isError")) == "true"
	call.mu.Lock()
	defer call.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(call.unused)) {
		_, key, _ = strings.Cut(key, ":") // without the server that it belongs to
		out.Unused = append(out.Unused, key)
	}
	return out
}

// runPeer is the peer of a run: nobody.
type runPeer struct{}

func (runPeer) Notify(context.Context, *jsonrpc.Request) error { return nil }
func (runPeer) Call(context.Context, *jsonrpc.Request) (*jsonrpc.Response, error) {
	return nil, transport.ErrNoServerRequests
}
func (runPeer) Session() *transport.Session { return nil }
func (runPeer) Header() transport.Header    { return nil }

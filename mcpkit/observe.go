package mcpkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// A Question is a request of the server to a legacy client during a call, made for instance with
// [Elicit]. In version 2026-07-28 there are none, since questions are part of results.
type Question struct {
	// Method is the protocol's method: "sampling/createMessage".
	Method string

	// Meta is the _meta of the request. Entries that are added are sent.
	Meta protocol.Meta

	// ID is the JSON-RPC id as JSON text; "" until the response has arrived.
	ID string
}

// A questionWatcher is told of a question, and returns what is told of its end, or nil.
type questionWatcher = func(ctx context.Context, q *Question) (end func(err error))

// OnQuestion calls begin before each question to the client during this call. The returned end,
// which may be nil, gets the error of the question: nil, or a [*jsonrpc.Error] if the client sent
// one. Both may be called concurrently. It is for middleware that traces calls.
func (c *Call) OnQuestion(begin func(ctx context.Context, q *Question) (end func(err error))) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watchers == nil {
		c.watchers = new([]questionWatcher)
	}
	*c.watchers = append(*c.watchers, begin)
}

// OnSessionEnd calls f when the session of this call has ended and nothing of it runs. It returns
// false, and f never runs, if there is no session or it has ended. Middleware of initialize must
// call it after the next handler.
func (c *Call) OnSessionEnd(f func()) bool {
	ts := c.peer.Session()
	if ts == nil {
		return false
	}
	state, ok := ts.State().(*session)
	if !ok {
		return false
	}
	state.mu.Lock()
	defer state.mu.Unlock()
	if state.over {
		return false
	}
	state.onEnd = append(state.onEnd, f)
	return true
}

// endSession calls the functions of OnSessionEnd, once. It recovers their panics.
func (s *Server) endSession(state *session) {
	state.mu.Lock()
	tell := state.onEnd
	state.onEnd, state.over = nil, true
	state.mu.Unlock()
	for _, f := range tell {
		func() {
			defer func() {
				if v := recover(); v != nil {
					s.config.logger.Error("mcpkit: a function of OnSessionEnd panicked", "panic", v, "stack", string(debug.Stack()))
				}
			}()
			f()
		}()
	}
}

// question sends a question to the client and calls the functions of OnQuestion.
func (c *Call) question(ctx context.Context, method string, params json.RawMessage) (*jsonrpc.Response, error) {
	c.mu.Lock()
	var watchers []questionWatcher
	if c.watchers != nil {
		watchers = slices.Clone(*c.watchers)
	}
	c.mu.Unlock()
	q := &Question{Method: method, Meta: protocol.Meta{}}
	if len(watchers) > 0 {
		for name, value := range jsonx.Members(jsonx.Member(params, "_meta")) {
			q.Meta[jsonx.String(name)] = value
		}
	}
	ends := make([]func(error), 0, len(watchers))
	for _, begin := range watchers {
		if end := begin(ctx, q); end != nil {
			ends = append(ends, end)
		}
	}
	resp, err := c.send(ctx, q, params)
	told := err
	if err == nil {
		q.ID = resp.ID.String()
		if resp.Error != nil {
			told = resp.Error
		}
	}
	for _, end := range slices.Backward(ends) {
		end(told)
	}
	return resp, err
}

func (c *Call) send(ctx context.Context, q *Question, params json.RawMessage) (*jsonrpc.Response, error) {
	params, err := withMeta(params, q.Meta)
	if err != nil {
		return nil, err
	}
	req, err := jsonrpc.NewRequest(jsonrpc.ID{}, q.Method, params)
	if err != nil {
		return nil, err
	}
	if c.isFinished() {
		return nil, errors.New("mcpkit: the call is over; its client can no longer be asked")
	}
	// The time in which a person answers does not count.
	c.limit.pause()
	defer c.limit.resume()
	var late error
	if limit := c.server.config.questions; limit > 0 {
		late = Errorf("the question was not answered within %s", limit)
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, late)
		defer cancel()
	}
	resp, err := c.peer.Call(ctx, req)
	if err != nil && late != nil && context.Cause(ctx) == late {
		return nil, late
	}
	if err == nil && resp == nil {
		err = errors.New("mcpkit: the transport has neither an answer nor an error")
	}
	return resp, err
}

// withMeta returns the object params with meta as its _meta, unless meta is empty.
func withMeta(params json.RawMessage, meta protocol.Meta) (json.RawMessage, error) {
	if len(meta) == 0 {
		return params, nil
	}
	text, err := meta.AppendJSON(nil)
	if err != nil {
		return nil, fmt.Errorf("mcpkit: OnQuestion: Meta: %w", err)
	}
	b := appendWithout(nil, params, "_meta")
	return append(jsonx.AppendMember(b[:len(b)-1], []byte(`"_meta"`), text), '}'), nil
}

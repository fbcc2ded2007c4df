package mcpkit

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"runtime/debug"
	"slices"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/jsonrpc"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// A Question is a request of the server to its client, made with [Elicit] and its like during a call of a legacy revision.
// On 2026-07-28 there are none: what is asked there is part of a result.
type Question struct {
	// Method is the protocol's: "sampling/createMessage".
	Method string

	// Meta is the _meta of the request. What is put here is sent.
	Meta protocol.Meta

	// ID is the JSON-RPC id as JSON text; "" until it is answered.
	ID string
}

// OnQuestion lets begin see each question to the client while this call lasts, before it is sent; what it returns is told when
// the answer is there, or why there is none: the client's own error is a [*jsonrpc.Error]. Either func may be called
// concurrently, and end may be nil. Middleware that traces calls needs it.
func (c *Call) OnQuestion(begin func(ctx context.Context, q *Question) (end func(err error))) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onQuestion = append(slices.Clip(c.onQuestion), begin)
}

// OnSessionEnd lets f run when the session of this call is over, after what is running then. It is false, and f never runs, where
// there is no session, or none any more. Calls of initialize have theirs once the next handler has returned.
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

// endSession tells who wanted to know, once. A panic of theirs must not reach the transport.
func (s *Server) endSession(state *session) {
	state.mu.Lock()
	tell := state.onEnd
	state.onEnd, state.over = nil, true
	state.mu.Unlock()
	for _, f := range tell {
		func() {
			defer func() {
				if v := recover(); v != nil {
					s.config.logger.Error("mcpkit: what was to run at the end of a session panicked", "panic", v, "stack", string(debug.Stack()))
				}
			}()
			f()
		}()
	}
}

// question sends a question to the client, past those who watch.
func (c *Call) question(ctx context.Context, method string, params json.RawMessage) (*jsonrpc.Response, error) {
	c.mu.Lock()
	watchers := c.onQuestion
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
		return nil, errors.New("mcpkit: the call is over; its client cannot be asked any more")
	}
	// A person answers: that time is not the method's.
	s := &c.scope
	s.pause()
	defer s.resume()
	if limit := c.server.config.questions; limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, &QuestionTimeoutError{After: limit})
		defer cancel()
	}
	resp, err := c.peer.Call(ctx, req)
	if late, ok := errors.AsType[*QuestionTimeoutError](context.Cause(ctx)); ok && err != nil && errors.Is(err, context.DeadlineExceeded) {
		return nil, late
	}
	if err == nil && resp == nil {
		err = errors.New("mcpkit: the transport has neither an answer nor an error")
	}
	return resp, err
}

// withMeta returns the object params with another _meta, unless there is none to be put there.
func withMeta(params json.RawMessage, meta protocol.Meta) (json.RawMessage, error) {
	if len(meta) == 0 {
		return params, nil
	}
	b := []byte{'{'}
	for name, value := range jsonx.Members(params) {
		if jsonx.IsString(name, "_meta") {
			continue
		}
		b = append(append(append(append(b, name...), ':'), value...), ',')
	}
	b = append(b, `"_meta":{`...)
	for i, key := range slices.Sorted(maps.Keys(meta)) {
		if !jsonx.Valid(meta[key]) {
			return nil, errors.New("mcpkit: OnQuestion: a value of Meta is no JSON")
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(jsonx.AppendString(b, key), ':')
		b = append(b, meta[key]...)
	}
	return append(b, '}', '}'), nil
}

package tasks

import (
	"context"
	"encoding/json"
	"sync/atomic"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// A lateCall is a call that has not become a task yet.
type lateCall struct{ begun atomic.Bool }

type lateKey struct{}

// methods returns the methods of both protocol families.
func (e *engine) methods() []*mcpkit.Method {
	named := func(m *mcpkit.Method) *mcpkit.Method { return m.NameParam("taskId").Negotiated() }
	return []*mcpkit.Method{
		named(mcpkit.NewMethod(protocol.MethodTasksGet, e.handleGet)).Versions(protocol.V20251125, ""),
		named(mcpkit.NewMethod(protocol.MethodTasksCancel, e.handleCancel)).Versions(protocol.V20251125, ""),
		named(mcpkit.NewMethod(protocol.MethodTasksUpdate, e.handleUpdate)),
		mcpkit.NewMethod(protocol.MethodTasksResult, e.handleResult).Versions(protocol.V20251125, protocol.V20251125),
		mcpkit.NewMethod(protocol.MethodTasksList, e.handleList).Versions(protocol.V20251125, protocol.V20251125),
	}
}

// params are the params of all methods about one task.
type params struct {
	id        string
	responses json.RawMessage
	cursor    string
}

// UnmarshalJSON reads the members that this package knows.
func (p *params) UnmarshalJSON(text []byte) error {
	p.id = jsonx.String(jsonx.Member(text, "taskId"))
	p.cursor = jsonx.String(jsonx.Member(text, "cursor"))
	p.responses = append(json.RawMessage(nil), jsonx.Member(text, "inputResponses")...)
	return nil
}

// handleGet answers tasks/get.
func (e *engine) handleGet(ctx context.Context, p params) (mcpkit.Result, error) {
	call := mcpkit.CallFrom(ctx)
	r, t, err := e.find(ctx, call, p.id)
	if err != nil {
		return nil, err
	}
	if err := e.mayPoll(p.id); err != nil {
		return nil, err
	}
	if !call.Version().Modern() {
		return result(mcpkit.NewObjectResult(e.legacy(r, t)))
	}
	return result(mcpkit.NewObjectResult(e.detailed(r, t)))
}

// result makes an interface of a pointer.
func result(r *mcpkit.ObjectResult, err error) (mcpkit.Result, error) {
	if err != nil {
		return nil, err
	}
	return r, nil
}

// acknowledge is the result of methods that change a task.
func acknowledge() (mcpkit.Result, error) { return result(mcpkit.NewObjectResult(struct{}{})) }

// handleUpdate answers tasks/update.
func (e *engine) handleUpdate(ctx context.Context, p params) (mcpkit.Result, error) {
	if err := e.answer(ctx, mcpkit.CallFrom(ctx), p.id, p.responses); err != nil {
		return nil, err
	}
	return acknowledge()
}

// handleCancel answers tasks/cancel.
func (e *engine) handleCancel(ctx context.Context, p params) (mcpkit.Result, error) {
	call := mcpkit.CallFrom(ctx)
	r, t, cancelled, err := e.cancel(ctx, call, p.id)
	switch {
	case err != nil:
		return nil, err
	case call.Version().Modern():
		return acknowledge()
	case !cancelled:
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "the task has ended already: it is %s", t.Status)
	}
	return result(mcpkit.NewObjectResult(e.legacy(r, t)))
}

// maySubscribe reports whether the caller may subscribe to a task.
func (e *engine) maySubscribe(ctx context.Context, id string) bool {
	r, _, err := e.find(ctx, mcpkit.CallFrom(ctx), id)
	if err == nil {
		e.expectNews(r)
	}
	return err == nil
}

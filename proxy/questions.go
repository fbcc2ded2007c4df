package proxy

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// A question is a request of the remote server during a call.
type question struct {
	ctx    context.Context
	method string
	params func(protocol.Version) any // for the version of the caller

	answered chan struct{} // closed when raw and err are set
	raw      json.RawMessage
	err      error
}

// Elicit forwards a form to the caller's user.
func (l *link) Elicit(ctx context.Context, p *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	result := new(protocol.ElicitResult)
	params := func(v protocol.Version) any { return elicitFor(v, *p) }
	return result, l.ask(ctx, protocol.MethodElicitationCreate, params, result)
}

// ElicitURL forwards a URL to the caller's user.
func (l *link) ElicitURL(ctx context.Context, p *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	return l.Elicit(ctx, p)
}

// elicitFor returns the params of an elicitation as callers of version v know them.
func elicitFor(v protocol.Version, p protocol.ElicitParams) *protocol.ElicitParams {
	switch {
	case p.Mode == protocol.ElicitURL && v.Modern():
		p.ElicitationID = ""
	case p.Mode == protocol.ElicitURL:
		p.ElicitationID = cmp.Or(p.ElicitationID, rand.Text())
	case v >= protocol.V20251125:
		p.Mode = protocol.ElicitForm
	default:
		p.Mode = ""
	}
	return &p
}

// Sample forwards a request to the caller's model.
func (l *link) Sample(ctx context.Context, p *protocol.CreateMessageParams) (*protocol.CreateMessageResult, error) {
	result := new(protocol.CreateMessageResult)
	return result, l.ask(ctx, protocol.MethodSamplingCreateMessage, func(protocol.Version) any { return p }, result)
}

// Roots asks the caller for its roots.
func (l *link) Roots(ctx context.Context) ([]protocol.Root, error) {
	var result protocol.ListRootsResult
	err := l.ask(ctx, protocol.MethodRootsList, func(protocol.Version) any { return &protocol.EmptyParams{} }, &result)
	return result.Roots, err
}

// Log drops messages. Those on the stream of a call go to that call; see [client.OnLog].
func (l *link) Log(context.Context, *protocol.LoggingMessageParams) {}

// ask sends a question to its caller and decodes the answer.
func (l *link) ask(ctx context.Context, method string, params func(protocol.Version) any, result any) error {
	run, _ := ctx.Value(runningKey{}).(*running)
	if run == nil {
		run = l.proxy.only(l)
	}
	if run == nil {
		const text = "no call is in flight, or several may be: it is unknown which of them %s is for"
		return jsonrpc.Errorf(jsonrpc.CodeInternalError, text, method)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(run.ctx, cancel)()
	q := &question{ctx: ctx, method: method, params: params, answered: make(chan struct{})}
	select {
	case run.questions <- q:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-q.answered:
		if q.err != nil {
			return l.refusal(q.err)
		}
		return jsonx.Unmarshal(q.raw, result)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// refusal returns the error for the remote server if there is no answer.
func (l *link) refusal(err error) error {
	switch {
	case errors.Is(err, mcpkit.ErrDeclined):
		return client.ErrRejected
	case l.client.Version().Modern():
		return err // ends the call with this error
	}
	if user, ok := errors.AsType[mcpkit.UserMessenger](err); ok {
		return jsonrpc.Errorf(jsonrpc.CodeInternalError, "%s", user.UserMessage())
	}
	return jsonrpc.Errorf(jsonrpc.CodeInternalError, "the caller could not be asked")
}

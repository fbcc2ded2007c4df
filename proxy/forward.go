package proxy

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// unreachable returns an error for the caller and logs why there is no connection or no response.
func (r *remote) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	r.warn(ctx, "the remote server cannot be reached", "error", err)
	if s, ok := errors.AsType[*client.StatusError](err); ok {
		return mcpkit.Errorf("the remote server %q responded with HTTP status %d %s", r.title(), s.Code, http.StatusText(s.Code))
	}
	return mcpkit.Errorf("the remote server %q cannot be reached at the moment; try again later", r.title())
}

// explain returns the error of a call without a response. It does not change errors of the remote
// server.
func (r *remote) explain(ctx context.Context, l *link, err error) error {
	rpc, isRPC := errors.AsType[*jsonrpc.Error](err)
	question, isQuestion := errors.AsType[mcpkit.UserMessenger](err)
	_, isStatus := errors.AsType[*client.StatusError](err)
	op, isNetwork := errors.AsType[*net.OpError](err)
	switch {
	case errors.Is(err, mcpkit.ErrAsked):
		return err
	case errors.Is(err, client.ErrTaskRequired):
		const text = "this tool of the remote server %q runs only as a task, and this server does not call it as one"
		return mcpkit.Errorf(text, r.title())
	case errors.Is(err, client.ErrTaskCancelled):
		return mcpkit.Errorf("the remote server %q cancelled the task of this call", r.title())
	case isRPC:
		return rpc
	case ctx.Err() != nil:
		return ctx.Err()
	case isQuestion:
		return question
	case errors.Is(err, client.ErrRejected):
		return mcpkit.ErrDeclined
	case isStatus || isNetwork && op.Op == "dial": // the call was not sent
		return r.unreachable(ctx, err)
	case l.lost(err):
		const text = "the connection to the remote server %q was lost; the call may or may not have taken effect"
		return mcpkit.Errorf(text, r.title())
	}
	r.warn(ctx, "a call failed", "error", err)
	if errors.Is(err, context.DeadlineExceeded) {
		return mcpkit.Errorf("the remote server %q did not respond in time", r.title())
	}
	return mcpkit.Errorf("the remote server %q did not respond correctly", r.title())
}

// lost reports whether err means that the connection broke.
func (l *link) lost(err error) bool {
	var network net.Error
	return l.ctx.Err() != nil || errors.Is(err, transport.ErrClosed) || errors.As(err, &network) && !network.Timeout()
}

// params are the params of a call with the name that the remote server uses.
type params struct {
	Name      string          `json:"name,omitzero"`
	URI       string          `json:"uri,omitzero"`
	Arguments json.RawMessage `json:"arguments,omitzero"`
	Meta      json.RawMessage `json:"_meta,omitzero"` // of the caller; the client sets the members of the protocol
}

func paramsOf(call *mcpkit.Call) *params {
	meta := jsonx.Member(call.Params(), "_meta")
	if call.Method() == protocol.MethodResourcesRead {
		return &params{URI: call.Name(), Meta: meta}
	}
	return &params{Name: call.OwnName(), Arguments: call.Arguments(), Meta: meta}
}

// decode returns the result as a type that middleware can inspect.
func decode(call *mcpkit.Call, raw json.RawMessage) (mcpkit.Result, error) {
	var result mcpkit.Result
	switch call.Method() {
	case protocol.MethodToolsCall:
		result = new(protocol.CallToolResult)
	case protocol.MethodPromptsGet:
		result = new(protocol.GetPromptResult)
	default:
		result = new(protocol.ReadResourceResult)
	}
	if err := jsonx.Unmarshal(raw, result); err != nil {
		return nil, fmt.Errorf("proxy: the remote server responded to %q with no result of %s: %w", call.Name(), call.Method(), err)
	}
	if read, ok := result.(*protocol.ReadResourceResult); ok {
		// As long as the remote server allows, but for this caller alone: it does not know the others.
		read.TTLMs = cmp.Or(read.TTLMs, new(int64))
		read.CacheScope = protocol.CachePrivate
	}
	return result, nil
}

// complete forwards a completion.
func (r *remote) complete(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
	l, err := r.connect(ctx)
	if err != nil {
		return nil, r.unreachable(ctx, err)
	}
	var p protocol.CompleteParams
	if err := jsonx.Unmarshal(call.Params(), &p); err != nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "the params of %s are invalid", call.Method())
	}
	if p.Ref.Type == protocol.RefPrompt {
		p.Ref.Name = call.OwnName()
	}
	known := cmp.Or(p.Context, new(protocol.CompletionContext)).Arguments
	c, err := l.client.Complete(ctx, p.Ref, p.Argument.Name, p.Argument.Value, known, r.members(ctx)...)
	if err != nil {
		return nil, r.explain(ctx, l, err)
	}
	return &protocol.CompleteResult{Completion: *c}, nil
}

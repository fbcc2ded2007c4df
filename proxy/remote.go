package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// remote is the service of a proxy.
type remote struct {
	config config
	target any // as passed to New; may be a *Switch
	server *mcpkit.Server

	base   context.Context // of background work; ends with Close
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	connecting sync.Mutex    // held while connecting
	to         destination   // where to connect; guarded by connecting
	retryAt    time.Time     // guarded by connecting
	backoff    time.Duration // guarded by connecting
	lastErr    error         // guarded by connecting

	publishing sync.Mutex // held while a connection and its lists become current, or its changed lists

	link atomic.Pointer[link]   // nil if disconnected
	said atomic.Pointer[string] // the name that the remote server reports

	mu      sync.Mutex
	closed  bool                  // guarded by mu
	attempt *attempt              // to connect; guarded by mu
	watched map[string]*watch     // by URI; guarded by mu
	parked  map[string]*running   // by a key in the caller's sealed state; guarded by mu
	running map[*running]struct{} // calls that were sent; guarded by mu

}

// answer handles a call of a tool, prompt or resource.
func (r *remote) answer(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
	run := r.resume(ctx)
	again := repeatable(call)
	for {
		if run == nil {
			l, err := r.connect(ctx)
			if err != nil {
				return nil, r.unreachable(ctx, err)
			}
			if run = r.begin(ctx, l, call); run == nil {
				continue // another server has taken its place
			}
		}
		raw, err := r.attend(ctx, run)
		if err == nil {
			return decode(call, raw)
		}
		if !again || !run.link.lost(err) || ctx.Err() != nil {
			return nil, r.explain(ctx, run.link, err)
		}
		if run.link.client.Shared() {
			r.giveUp(run.link, err)
		}
		run, again = nil, false
	}
}

// repeatable reports whether the call may be sent twice.
func repeatable(call *mcpkit.Call) bool {
	t := call.Tool()
	return t == nil || t.Annotations.Repeatable() // other methods only read
}

// unreachable returns an error for the caller and logs why there is no connection.
func (r *remote) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if status, ok := errors.AsType[*client.StatusError](err); ok {
		return r.refused(ctx, status)
	}
	r.config.logger.WarnContext(ctx, "proxy: the remote server cannot be reached", "server", r.title(), "error", err)
	return mcpkit.Errorf("the remote server %q cannot be reached at the moment; try again later", r.title())
}

// refused returns the error for a response that is only an HTTP status.
func (r *remote) refused(ctx context.Context, status *client.StatusError) error {
	r.config.logger.WarnContext(ctx, "proxy: the remote server refuses", "server", r.title(), "error", status)
	return mcpkit.Errorf("the remote server %q responded with HTTP status %d %s", r.title(), status.Code, http.StatusText(status.Code))
}

// explain returns the error of a call without a response. It does not change errors of the remote
// server.
func (r *remote) explain(ctx context.Context, l *link, err error) error {
	if errors.Is(err, mcpkit.ErrAsked) {
		return err
	}
	switch {
	case errors.Is(err, client.ErrTaskRequired):
		return mcpkit.Errorf("this tool of the remote server %q runs only as a task, and this server does not call it as one", r.title())
	case errors.Is(err, client.ErrTaskCancelled):
		return mcpkit.Errorf("the remote server %q cancelled the task of this call", r.title())
	}
	if rpc, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return &jsonrpc.Error{Code: rpc.Code, Message: rpc.Message, Data: rpc.Data}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if user, ok := errors.AsType[mcpkit.UserMessenger](err); ok {
		return user // the error of a question
	}
	if errors.Is(err, client.ErrRejected) {
		return mcpkit.ErrDeclined
	}
	if status, ok := errors.AsType[*client.StatusError](err); ok {
		return r.refused(ctx, status)
	}
	if dialing(err) {
		return r.unreachable(ctx, err)
	}
	if l.lost(err) {
		if l.client.Shared() { // over HTTP, other calls continue
			r.giveUp(l, err)
		}
		return mcpkit.Errorf("the connection to the remote server %q was lost; the call may or may not have taken effect", r.title())
	}
	r.config.logger.WarnContext(ctx, "proxy: a call failed", "server", r.title(), "error", err)
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

// dialing reports whether err means that the call was not sent.
func dialing(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// params returns the params of the call with the name that the remote server uses.
func params(call *mcpkit.Call) json.RawMessage {
	b := []byte{'{'}
	if call.Method() == protocol.MethodResourcesRead {
		b = jsonx.AppendString(append(b, `"uri":`...), call.Name())
	} else {
		b = jsonx.AppendString(append(b, `"name":`...), call.OwnName())
		if args := call.Arguments(); args != nil {
			b = append(append(b, `,"arguments":`...), args...)
		}
	}
	// The members of the caller. The client sets those of the protocol.
	if meta := jsonx.Member(call.Params(), "_meta"); jsonx.Kind(meta) == '{' {
		b = append(append(b, `,"_meta":`...), meta...)
	}
	return append(b, '}')
}

// decode returns the result as a type that middleware can inspect.
func decode(call *mcpkit.Call, raw json.RawMessage) (result mcpkit.Result, err error) {
	switch call.Method() {
	case protocol.MethodToolsCall:
		r := new(protocol.CallToolResult)
		if err = jsonx.Unmarshal(raw, r); err == nil {
			r.ResultType = ""
			result = r
		}
	case protocol.MethodPromptsGet:
		r := new(protocol.GetPromptResult)
		if err = jsonx.Unmarshal(raw, r); err == nil {
			r.ResultType = ""
			result = r
		}
	default:
		r := new(protocol.ReadResourceResult)
		if err = jsonx.Unmarshal(raw, r); err == nil {
			r.ResultType, r.Cache = "", cacheFor(r.Cache)
			result = r
		}
	}
	if err != nil {
		return nil, fmt.Errorf("proxy: the response of the remote server to %q is not a result of %s: %w", call.Name(), call.Method(), err)
	}
	return result, nil
}

// cacheFor returns how long a resource may be cached: as long as the remote server allows, but for
// this caller alone, since that server does not know the other callers.
func cacheFor(c protocol.Cache) protocol.Cache {
	if c.TTLMs == nil {
		c.TTLMs = new(int64)
	}
	c.CacheScope = protocol.CachePrivate
	return c
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
	var known map[string]string
	if p.Context != nil {
		known = p.Context.Arguments
	}
	c, err := l.client.Complete(ctx, p.Ref, p.Argument.Name, p.Argument.Value, known)
	if err != nil {
		return nil, r.explain(ctx, l, err)
	}
	return &protocol.CompleteResult{Completion: *c}, nil
}

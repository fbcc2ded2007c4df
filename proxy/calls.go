package proxy

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// running is a call that was sent to the remote server. If its caller must answer a question in a
// new request (2026-07-28), the call is parked, and the new request continues it.
type running struct {
	link      *link
	version   protocol.Version // of the caller
	ctx       context.Context  // ends with the call
	cancel    context.CancelFunc
	questions chan *question
	done      chan struct{} // closed when raw and err are set
	raw       json.RawMessage
	err       error

	open *question // the question without an answer; used only by attend

	mu    sync.Mutex
	asked int                     // guarded by mu
	to    context.Context         // of the request that attends; nil if parked; guarded by mu
	late  []func(context.Context) // messages for the next request; guarded by mu
	timer *time.Timer             // ends a parked call; guarded by remote.mu
}

// A question is a request of the remote server during a call.
type question struct {
	key    string
	method string
	params json.RawMessage
	answer chan answered // has a buffer of one
}

type answered struct {
	raw json.RawMessage
	err error
}

type runningKey struct{}

// begin sends a call. Its context does not derive from the caller's, whose values are not for the
// remote server. It returns nil if the link was replaced.
func (r *remote) begin(ctx context.Context, l *link, call *mcpkit.Call) *running {
	run := &running{link: l, to: ctx, version: call.Version(), questions: make(chan *question), done: make(chan struct{})}
	run.ctx, run.cancel = context.WithCancel(context.WithValue(l.ctx, runningKey{}, run))
	var opts []client.CallOption
	if call.Meta(protocol.MetaProgressToken) != nil {
		opts = append(opts, client.OnProgress(run.progress))
	}
	if level := logLevel(call); level != "" {
		opts = append(opts, client.LogLevel(level), client.OnLog(func(p *protocol.LoggingMessageParams) { r.log(run, p) }))
	}
	if r.config.meta != nil {
		for key, value := range r.config.meta(ctx) {
			opts = append(opts, client.Meta(key, value))
		}
	}
	method, params := call.Method(), params(call)
	r.mu.Lock()
	retired := l.retired
	if !retired {
		r.running[run] = struct{}{}
		l.calls.Add(1)
	}
	r.mu.Unlock()
	if retired {
		run.cancel()
		return nil
	}
	// Ends with the call, or with the connection.
	sent := r.spawn(func() {
		err := l.client.Request(run.ctx, method, params, &run.raw, opts...)
		r.finished(run)
		run.err = err
		close(run.done)
		run.cancel()
	})
	if !sent {
		r.finished(run)
		run.err = errClosed
		close(run.done)
	}
	return run
}

// logLevel returns the lowest level that the caller may want, or "". Messages are filtered when
// they arrive.
func logLevel(call *mcpkit.Call) protocol.LoggingLevel {
	if !call.Version().Modern() {
		return protocol.LevelDebug
	}
	level := protocol.LoggingLevel(jsonx.String(call.Meta(protocol.MetaLogLevel)))
	if !level.Valid() {
		return ""
	}
	return level
}

// attend waits for the result, and forwards questions of the remote server to the caller.
func (r *remote) attend(ctx context.Context, run *running) (json.RawMessage, error) {
	run.attach(ctx)
	defer run.detach()
	select {
	case <-run.done:
		return run.raw, run.err
	default:
	}
	if run.open != nil {
		if err := r.put(ctx, run); err != nil {
			return nil, err
		}
	}
	for {
		select {
		case run.open = <-run.questions:
			if err := r.put(ctx, run); err != nil {
				return nil, err
			}
		case <-run.done:
			return run.raw, run.err
		case <-ctx.Done():
			run.cancel()
			return nil, ctx.Err()
		}
	}
}

// put asks the caller the open question. If the answer comes in a later request, put parks the call
// and returns an error.
func (r *remote) put(ctx context.Context, run *running) error {
	q := run.open
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(run.ctx, cancel)() // the remote server may cancel the question
	raw, err := mcpkit.CallFrom(ctx).Ask(asking, q.method, q.params, mcpkit.Key(q.key))
	if errors.Is(err, mcpkit.ErrAsked) {
		r.park(ctx, run)
		return err
	}
	run.open = nil
	q.answer <- answered{raw, err}
	return nil
}

// maxLate limits the messages that are kept for the next request.
const maxLate = 64

// attach sets the request to which progress and log messages go.
func (run *running) attach(ctx context.Context) {
	run.mu.Lock()
	defer run.mu.Unlock()
	run.to = ctx
	for _, tell := range run.late {
		tell(ctx)
	}
	run.late = nil
}

// detach ends what attach began: nothing may be sent on a request that has ended.
func (run *running) detach() {
	run.mu.Lock()
	defer run.mu.Unlock()
	run.to = nil
}

// tell sends a message to the caller, at once or with the next request.
func (run *running) tell(f func(ctx context.Context)) {
	run.mu.Lock()
	defer run.mu.Unlock()
	if run.to != nil {
		f(run.to)
	} else if len(run.late) < maxLate {
		run.late = append(run.late, f)
	}
}

func (run *running) progress(p *protocol.ProgressParams) {
	var total float64
	if p.Total != nil {
		total = *p.Total
	}
	run.tell(func(ctx context.Context) { mcpkit.CallFrom(ctx).Progress(p.Progress, total, p.Message) })
}

// log forwards a log message if it is known to belong to this call.
func (r *remote) log(run *running, p *protocol.LoggingMessageParams) {
	if run.link.client.Shared() && !r.config.oneUser && r.only(run.link) != run {
		return
	}
	run.tell(func(ctx context.Context) { mcpkit.CallFrom(ctx).SendLog(p) })
}

// parkedKey is the key of a parked call in the sealed state of its caller.
const parkedKey = "mcpkit/proxy"

// park keeps a call until the next request of its caller. A call that cannot be kept starts again
// then, with the answers that were given.
func (r *remote) park(ctx context.Context, run *running) {
	id, err := mcpkit.Once(ctx, parkedKey, func() (string, error) { return rand.Text(), nil })
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil || len(r.parked) >= maxParked || r.closed {
		run.cancel()
		return
	}
	r.parked[id] = run
	run.timer = time.AfterFunc(parkedFor, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.parked[id] == run {
			delete(r.parked, id)
			run.cancel()
		}
	})
}

// resume returns the call that the request of ctx continues, or nil. It may have ended: the remote server
// went on without the answer.
func (r *remote) resume(ctx context.Context) *running {
	id, err := mcpkit.Once(ctx, parkedKey, func() (string, error) { return "", errors.New("none is parked") })
	if err != nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	run := r.parked[id]
	if run == nil {
		return nil
	}
	delete(r.parked, id)
	run.timer.Stop()
	select {
	case <-run.done:
		if run.err != nil && run.link.lost(run.err) {
			return nil
		}
	default:
	}
	return run
}

// only returns the call of the connection if there is exactly one. For one user, it returns any.
func (r *remote) only(l *link) (found *running) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for run := range r.running {
		if run.link != l {
			continue
		}
		if found != nil && !r.config.oneUser {
			return nil
		}
		found = run
	}
	return found
}

// An asker forwards questions of the remote server to callers.
type asker struct {
	r *remote
	l *link
}

// Elicit forwards a form to the caller's user.
func (a *asker) Elicit(ctx context.Context, p *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	result := new(protocol.ElicitResult)
	return result, a.ask(ctx, protocol.MethodElicitationCreate, func(v protocol.Version) any {
		own := *p
		own.Mode = ""
		if v >= protocol.V20251125 {
			own.Mode = protocol.ElicitForm
		}
		return &own
	}, result)
}

// ElicitURL forwards a URL to the caller's user.
func (a *asker) ElicitURL(ctx context.Context, p *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	result := new(protocol.ElicitResult)
	return result, a.ask(ctx, protocol.MethodElicitationCreate, func(v protocol.Version) any {
		own := *p
		switch {
		case v.Modern():
			own.ElicitationID = ""
		case own.ElicitationID == "":
			own.ElicitationID = rand.Text()
		}
		return &own
	}, result)
}

// Sample forwards a request to the caller's model.
func (a *asker) Sample(ctx context.Context, p *protocol.CreateMessageParams) (*protocol.CreateMessageResult, error) {
	result := new(protocol.CreateMessageResult)
	return result, a.ask(ctx, protocol.MethodSamplingCreateMessage, func(protocol.Version) any { return p }, result)
}

// Roots asks the caller for its roots.
func (a *asker) Roots(ctx context.Context) ([]protocol.Root, error) {
	var result protocol.ListRootsResult
	err := a.ask(ctx, protocol.MethodRootsList, func(protocol.Version) any { return &protocol.EmptyParams{} }, &result)
	return result.Roots, err
}

// ask sends a question to its caller and decodes the answer.
func (a *asker) ask(ctx context.Context, method string, params func(protocol.Version) any, result any) error {
	run, _ := ctx.Value(runningKey{}).(*running)
	if run == nil {
		run = a.r.only(a.l)
	}
	if run == nil {
		return jsonrpc.Errorf(jsonrpc.CodeInternalError, "several calls are in flight, or none: it is unknown which of them %s is for", method)
	}
	raw, err := jsonx.Marshal(params(run.version))
	if err != nil {
		return err
	}
	run.mu.Lock()
	run.asked++
	q := &question{key: "proxy-" + strconv.Itoa(run.asked), method: method, params: raw, answer: make(chan answered, 1)}
	run.mu.Unlock()
	select {
	case run.questions <- q:
	case <-run.ctx.Done():
		return run.ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case got := <-q.answer:
		if got.err != nil {
			return a.refusal(got.err)
		}
		return jsonx.Unmarshal(got.raw, result)
	case <-run.ctx.Done():
		return run.ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// refusal returns the error for the remote server if there is no answer.
func (a *asker) refusal(err error) error {
	switch {
	case errors.Is(err, mcpkit.ErrDeclined):
		return client.ErrRejected
	case a.l.client.Version().Modern():
		return err // ends the call with this error
	}
	if user, ok := errors.AsType[mcpkit.UserMessenger](err); ok {
		return jsonrpc.Errorf(jsonrpc.CodeInternalError, "%s", user.UserMessage())
	}
	return jsonrpc.Errorf(jsonrpc.CodeInternalError, "the caller could not be asked")
}

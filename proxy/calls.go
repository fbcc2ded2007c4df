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
	ctx       context.Context // ends with the call
	cancel    context.CancelFunc
	questions chan *question
	done      chan struct{} // closed when raw and err are set
	raw       json.RawMessage
	err       error

	// Used by the request that attends to the call.
	open  *question   // the question without an answer
	asked int         // how many questions there were
	timer *time.Timer // ends the call while it is parked

	mu   sync.Mutex
	to   *mcpkit.Call         // the request that attends; nil if there is none; guarded by mu
	late []func(*mcpkit.Call) // progress and log messages for the next request; guarded by mu
}

type runningKey struct{}

// answer handles a call of a tool, prompt or resource.
func (r *remote) answer(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
	run := r.resume(ctx)
	tool := call.Tool()
	again := tool == nil || tool.Annotations.Repeatable() // other methods only read
	for {
		if run == nil {
			l, err := r.connect(ctx)
			if err != nil {
				return nil, r.unreachable(ctx, err)
			}
			if run = r.begin(ctx, l, call); run == nil {
				continue // another link has taken its place
			}
		}
		raw, err := r.attend(ctx, call, run)
		if err == nil {
			return decode(call, raw)
		}
		if !again || !run.link.lost(err) || ctx.Err() != nil {
			return nil, r.explain(ctx, run.link, err)
		}
		run, again = nil, false
	}
}

// begin sends a call. Its context does not derive from the caller's, whose values are not for the
// remote server. It returns nil if the link is no longer current.
func (r *remote) begin(ctx context.Context, l *link, call *mcpkit.Call) *running {
	run := &running{link: l, questions: make(chan *question), done: make(chan struct{})}
	run.ctx, run.cancel = context.WithCancel(context.WithValue(l.ctx, runningKey{}, run))
	var opts []client.CallOption
	if call.Meta(protocol.MetaProgressToken) != nil {
		opts = append(opts, client.OnProgress(run.progress))
	}
	level := protocol.LevelDebug // the server of a legacy caller drops what its session did not ask for
	if call.Version().Modern() {
		level = protocol.LoggingLevel(jsonx.String(call.Meta(protocol.MetaLogLevel)))
	}
	if level.Valid() && l.logs() {
		opts = append(opts, client.LogLevel(level), client.OnLog(run.log))
	}
	opts = append(opts, r.members(ctx)...)
	method, params := call.Method(), paramsOf(call)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.link.Load() != l {
		run.cancel()
		return nil
	}
	l.running[run] = struct{}{}
	// Ends with the call, or with the connection.
	l.calls.Go(func() {
		run.err = l.client.Request(run.ctx, method, params, &run.raw, opts...)
		_, responded := errors.AsType[*jsonrpc.Error](run.err)
		r.mu.Lock()
		delete(l.running, run)
		l.unsure = l.unsure || run.err != nil && !responded
		r.mu.Unlock()
		close(run.done)
		run.cancel()
	})
	return run
}

// members returns the options for the members of [Meta].
func (r *remote) members(ctx context.Context) (opts []client.CallOption) {
	for key, value := range r.meta(ctx) {
		opts = append(opts, client.Meta(key, value))
	}
	return opts
}

// attend waits for the result, and forwards questions of the remote server to the caller.
func (r *remote) attend(ctx context.Context, call *mcpkit.Call, run *running) (json.RawMessage, error) {
	run.attach(call)
	defer run.attach(nil) // nothing may be sent on a request that has ended
	for {
		if run.open != nil {
			if err := r.put(ctx, call, run); err != nil {
				return nil, err
			}
		}
		select {
		case run.open = <-run.questions:
			run.asked++
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
func (r *remote) put(ctx context.Context, call *mcpkit.Call, run *running) error {
	q := run.open
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(q.ctx, cancel)() // the remote server may cancel the question
	raw, err := jsonx.Marshal(q.params(call.Version()))
	if err == nil {
		raw, err = call.Ask(asking, q.method, raw, mcpkit.Key("proxy-"+strconv.Itoa(run.asked)))
	}
	if errors.Is(err, mcpkit.ErrAsked) {
		r.park(ctx, run)
		return err
	}
	run.open = nil
	q.raw, q.err = raw, err
	close(q.answered)
	return nil
}

// attach sets the request to which progress and log messages go; nil for none.
func (run *running) attach(call *mcpkit.Call) {
	run.mu.Lock()
	defer run.mu.Unlock()
	run.to = call
	if call == nil {
		return
	}
	for _, send := range run.late {
		send(call)
	}
	run.late = nil
}

// tell sends p to the caller, at once or with the next request. For that, it keeps small messages only,
// and not too many.
func (run *running) tell(p any, send func(*mcpkit.Call)) {
	run.mu.Lock()
	defer run.mu.Unlock()
	if run.to != nil {
		send(run.to)
	} else if raw, err := jsonx.Marshal(p); err == nil && len(raw) <= maxLateBytes && len(run.late) < maxLate {
		run.late = append(run.late, send)
	}
}

func (run *running) progress(p *protocol.ProgressParams) {
	var total float64
	if p.Total != nil {
		total = *p.Total
	}
	run.tell(p, func(call *mcpkit.Call) { call.Progress(p.Progress, total, p.Message) })
}

func (run *running) log(p *protocol.LoggingMessageParams) {
	run.tell(p, func(call *mcpkit.Call) { call.SendLog(p) })
}

// logs reports whether log messages are forwarded: it is known whose they are.
func (l *link) logs() bool { return l.proxy.oneUser || !l.client.Shared() }

// only returns the call of the connection if no other call can be running. For one user, it returns
// any.
func (r *remote) only(l *link) *running {
	r.mu.Lock()
	defer r.mu.Unlock()
	if (len(l.running) > 1 || l.unsure) && !r.oneUser {
		return nil
	}
	for run := range l.running {
		return run
	}
	return nil
}

// parkedKey is the key of a parked call in the sealed state of its caller.
const parkedKey = "mcpkit/proxy"

// park keeps a call until the next request of its caller. A call that cannot be kept starts again
// then, with the answers that were given. Of the calls of a request that was sent several times, it
// keeps the last.
func (r *remote) park(ctx context.Context, run *running) {
	id, err := mcpkit.Once(ctx, parkedKey, func() (string, error) { return rand.Text(), nil })
	r.mu.Lock()
	defer r.mu.Unlock()
	if old := r.unpark(id); old != nil {
		old.cancel()
	}
	if err != nil || len(r.parked) >= maxParked {
		run.cancel()
		return
	}
	r.parked[id] = run
	run.timer = time.AfterFunc(parkedFor, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.parked[id] == run {
			r.unpark(id).cancel()
		}
	})
}

// unpark returns a parked call, or nil, and no longer keeps it. The caller holds mu.
func (r *remote) unpark(id string) *running {
	run := r.parked[id]
	if run != nil {
		run.timer.Stop()
		delete(r.parked, id)
	}
	return run
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
	return r.unpark(id)
}

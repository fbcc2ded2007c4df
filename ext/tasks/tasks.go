// Package tasks lets calls of tools become tasks: the extension io.modelcontextprotocol/tasks of
// version 2026-07-28, and the tasks of version 2025-11-25.
//
// A tool says with a tag that its calls may become tasks. Its method stays the same:
//
//	type Trips struct {
//		_ struct {
//			Book mcpkit.Tool `task:"optional,durable"`
//		}
//	}
//
//	mcpkit.Serve(&Trips{}, tasks.New())
//
// The client then gets a task at once, asks for its result later, and answers questions of
// [mcpkit.Elicit] and its like whenever the user does. No goroutine waits for a user: when all
// questions have answers, the method runs again from its beginning, with the answers and the values
// of [mcpkit.Once], as it does for the rounds of a call. All that it needs for that is in a record.
// Records are in memory or, with [mcpkit.Fleet], in the engine of the fleet, sealed with
// [mcpkit.StateKeys].
//
// # The tag
//
//   - optional: the call becomes a task if the client supports tasks.
//   - required: clients that do not support tasks get an error.
//   - durable: if the process ends while the method runs, the method is run again from its
//     beginning. Values of Once are kept, and everything else happens again. Without it, such a
//     task fails with the reason "the server restarted".
//
// # Runs
//
// Each run passes the middleware of the server, with a call for which [mcpkit.Call.Run] is not nil.
// It has neither headers nor a session. The principal is that of the request, and its scopes are
// checked again. The context ends when the client cancels the task, when its time to live is over,
// and when the server closes. The tag timeout limits each run; [mcpkit.ToolTimeout] does not.
package tasks

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

const (
	defaultTTL        = 24 * time.Hour
	defaultInterval   = time.Second // between polls of a client
	defaultMaxRunning = 256
	defaultMaxOpen    = 64

	lease     = 30 * time.Second // how long a task belongs to a process that does not renew its claim
	maxMemory = 256 << 20        // bytes of tasks in memory
)

type options struct {
	limits
	ttl        time.Duration
	interval   time.Duration
	maxRunning int
}

// An Option configures [New]. A value that is not allowed is an error of [mcpkit.New].
type Option func(*options) error

// TTL sets how long a task lives from its creation, at least a second: then it is ended and
// deleted, whether or not somebody has asked for its result. Clients of 2025-11-25 may ask for a
// shorter time. The default is 24 hours.
func TTL(d time.Duration) Option {
	return atLeast("TTL", d, time.Second, func(o *options) { o.ttl = d })
}

// PollInterval sets how often clients should ask for a task, at least every millisecond. The default
// is a second.
func PollInterval(d time.Duration) Option {
	return atLeast("PollInterval", d, time.Millisecond, func(o *options) { o.interval = d })
}

// MaxRunning limits how many methods of tasks run in this process at the same time, at least 1.
// Other tasks wait. The default is 256.
func MaxRunning(n int) Option {
	return atLeast("MaxRunning", n, 1, func(o *options) { o.maxRunning = n })
}

// MaxOpen limits the tasks of one principal that have not ended, at least 1. All unauthenticated
// callers together count as one. The default is 64.
func MaxOpen(n int) Option {
	return atLeast("MaxOpen", n, 1, func(o *options) { o.open = n })
}

func atLeast[T int | time.Duration](name string, n, least T, set func(*options)) Option {
	return func(o *options) error {
		if n < least {
			return fmt.Errorf("tasks: %s(%v): the least is %v", name, n, least)
		}
		set(o)
		return nil
	}
}

// New returns the option of a server whose tools may have the tag task. A value that is not allowed
// is an error of [mcpkit.New].
func New(opts ...Option) mcpkit.Option {
	o := options{
		ttl: defaultTTL, interval: defaultInterval, maxRunning: defaultMaxRunning,
		limits: limits{open: defaultMaxOpen, kept: 256, total: 20_000, bytes: 64 << 20},
	}
	var faults []error
	for i, opt := range opts {
		if opt == nil {
			faults = append(faults, fmt.Errorf("tasks: option %d is nil", i+1))
		} else if err := opt(&o); err != nil {
			faults = append(faults, err)
		}
	}
	o.kept = max(o.kept, o.open)
	return mcpkit.ExtendEach(func() mcpkit.Extension {
		e := &engine{
			options: o, wake: make(chan struct{}, 1), running: map[string]*run{}, waiting: map[string]*waiting{},
			told: map[string]int64{}, heard: map[string]change{},
		}
		memory := fleet.NewMemory(fleet.MemoryOptions{MaxBytes: maxMemory})
		e.store = store{f: fleet.New(memory, fleet.Options{}), limits: o.limits, onChange: e.changed}
		e.topic = mcpkit.NewTopic("taskIds", protocol.NotificationTasks, e.maySubscribe)
		return mcpkit.Extension{
			ID: protocol.ExtensionTasks, Since: protocol.V20260728,
			Methods:   e.methods(),
			Topics:    []*mcpkit.Topic{e.topic},
			Tags:      []string{"task"},
			Tool:      describe,
			Intercept: e.intercept,
			Runner:    &e.runner,
			Declare:   declare,
			Check:     func() error { return errors.Join(faults...) },
			Service:   e,
		}
	})
}

// describe adds to the entry of a tool that it may be called as a task.
func describe(t *mcpkit.ToolEntry, v protocol.Version) error {
	value, ok := t.Tags["task"]
	if !ok {
		return nil
	}
	m, err := parseMode(value)
	if err != nil {
		return fmt.Errorf("tag task: %w; write for example task:\"optional\"", err)
	}
	support := "optional"
	if m.required {
		support = protocol.TaskSupportRequired
	}
	switch v {
	case protocol.V20251125:
		t.Definition.Execution = &protocol.ToolExecution{TaskSupport: support}
	case protocol.V20260728:
		return t.Definition.Meta.Set(protocol.MetaTaskSupport, support)
	}
	return nil
}

// A mode is the value of the tag task.
type mode struct{ required, durable bool }

// parseMode parses the tag.
func parseMode(value string) (mode, error) {
	var m mode
	first, rest, _ := strings.Cut(value, ",")
	switch first {
	case "optional":
	case "required":
		m.required = true
	default:
		return m, fmt.Errorf("%q is neither optional nor required", first)
	}
	switch rest {
	case "":
	case "durable":
		m.durable = true
	default:
		return m, fmt.Errorf("unknown word %q; known is durable", rest)
	}
	return m, nil
}

// intercept makes tasks of calls.
func (e *engine) intercept(next mcpkit.Handler) mcpkit.Handler {
	return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
		value, ok := call.ToolTag("task")
		m, _ := parseMode(value) // describe has checked it
		switch {
		case call.Run() != nil:
			if err := e.rerun(call); err != nil {
				return nil, err
			}
			return next(ctx, call)
		case !call.Version().Modern():
			return e.interceptLegacy(ctx, call, m, ok, next)
		case !ok:
			return next(ctx, call)
		}
		if _, declared := call.Extension(protocol.ExtensionTasks); !declared {
			if m.required {
				return nil, protocol.MissingClientCapability(
					protocol.ClientCapabilities{Extensions: map[string]protocol.Object{protocol.ExtensionTasks: {}}},
					"tool %q needs a client that declares the extension %q", call.Name(), protocol.ExtensionTasks)
			}
			return next(ctx, call)
		}
		return e.createTask(ctx, call, m, e.ttl, func(t protocol.Task) mcpkit.Result {
			return &protocol.CreateTaskResult{Task: t, ResultType: protocol.ResultTask}
		})
	}
}

// refuseTask is the error for a client of 2025-11-25 that asks for a task, or not, against the tag.
func refuseTask(format string, args ...any) error {
	return jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, format, args...)
}

package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// Limits of following a task.
const (
	defaultTaskTimeout = 24 * time.Hour // time that a call or Wait follows a task

	minPollInterval = 100 * time.Millisecond // a shorter interval of the server counts as this
	maxPollInterval = time.Hour              // time between two requests for the state of a task

	maxPollFailures = 10 // requests in a row for the state of a task that bring no response
	// answerPolls is how often a question may be in the state of its task after the server has
	// acknowledged the response, before the response is sent again.
	answerPolls = 10
	maxAnswers  = 3 // times that the response to a question of a task is sent
)

// A follower follows a task to its end.
type follower struct {
	t        *Task
	cc       *callConfig
	deadline *deadline
	answers  map[string]*taskAnswer // by the key of the question
	rounds   int                    // in which there were new questions
	failures int                    // of polls, in a row
	polls    int
	message  string  // the status message that was last reported as progress
	reports  float64 // how many there were
}

// A taskAnswer is the response to a question of a task.
type taskAnswer struct {
	raw   json.RawMessage
	sent  int // how often it was sent
	polls int // how often the question was in the state of the task since
}

// A taskTimeoutError reports that a task did not end in time.
type taskTimeoutError struct{ after time.Duration }

func (e *taskTimeoutError) Error() string {
	return fmt.Sprintf("the task has not ended within %s; raise TaskTimeout", e.after)
}

func (e *taskTimeoutError) Unwrap() error { return context.DeadlineExceeded }
func (e *taskTimeoutError) Timeout() bool { return true }

// follow asks for the task until it has ended, and returns the result of the tool.
// Begun is what the server said when it made the task, or nil.
func (t *Task) follow(ctx context.Context, cc *callConfig, begun *protocol.Task) (json.RawMessage, error) {
	f := &follower{t: t, cc: cc, answers: map[string]*taskAnswer{}}
	ctx, stop := t.c.untilClose(ctx)
	defer stop()
	after := max(cc.taskTimeout, 0)
	ctx, f.deadline = withDeadline(ctx, after, &taskTimeoutError{after})
	defer f.deadline.stop()
	d, err := f.run(ctx, begun)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, err
	case d.Status == protocol.TaskFailed:
		return nil, fmt.Errorf("it failed%s: %w", because(d.StatusMessage), d.Error)
	case d.Status == protocol.TaskCancelled:
		return nil, fmt.Errorf("%w%s", ErrTaskCancelled, because(d.StatusMessage))
	}
	return d.Result, nil
}

// because returns the status message of a task for an error.
func because(message string) string {
	if message == "" {
		return ""
	}
	return fmt.Sprintf(" (%.200q)", message)
}

// run polls the task until it has ended.
func (f *follower) run(ctx context.Context, begun *protocol.Task) (*protocol.DetailedTask, error) {
	if begun != nil && begun.Status == protocol.TaskWorking {
		f.report(begun)
		if err := f.pause(ctx, begun); err != nil {
			return nil, err
		}
	}
	for {
		d, err := f.poll(ctx)
		if err != nil {
			return nil, err
		}
		f.report(&d.Task)
		if d.Status.Terminal() {
			return d, nil
		}
		if err := f.answer(ctx, d); err != nil {
			return nil, err
		}
		if err := f.pause(ctx, &d.Task); err != nil {
			return nil, err
		}
	}
}

// poll asks for the state of the task. It tries again for a while if the server does not respond.
func (f *follower) poll(ctx context.Context) (*protocol.DetailedTask, error) {
	for {
		d, err := f.t.get(ctx, f.cc)
		if err == nil {
			f.failures = 0
			return d, nil
		}
		if f.failures++; ctx.Err() != nil || !Transient(err) || f.failures >= maxPollFailures {
			return nil, err
		}
		f.t.c.log.Debug("client: a task did not respond", "task", clip(f.t.id), "error", err)
		if err := sleep(ctx, backoff(f.failures)); err != nil {
			return nil, err
		}
	}
}

// Transient reports whether the same request may succeed later, for example because the server
// restarts.
func Transient(err error) bool {
	if status, ok := errors.AsType[*StatusError](err); ok {
		return status.Code == 429 || status.Code >= 500
	}
	if rpc, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return rpc.Code == jsonrpc.CodeInternalError
	}
	if _, ok := errors.AsType[*InvalidResponseError](err); ok {
		return false
	}
	return !errors.Is(err, transport.ErrClosed)
}

// report passes a new status message on as progress.
func (f *follower) report(t *protocol.Task) {
	if t.StatusMessage == "" || t.StatusMessage == f.message {
		return
	}
	f.message = t.StatusMessage
	f.reports++
	c := f.t.c
	perform(c.log, func() {
		c.progressed(f.cc.progress, &protocol.ProgressParams{Progress: f.reports, Message: t.StatusMessage})
	})
}

// answer lets the handlers answer the questions of the task that are new. Each response is sent
// before the next question is asked, so that none is lost if the client ends.
func (f *follower) answer(ctx context.Context, d *protocol.DetailedTask) error {
	asked := false
	for _, key := range slices.Sorted(maps.Keys(d.InputRequests)) {
		a := f.answers[key]
		if a == nil {
			if !asked && f.rounds == f.t.c.cfg.maxRounds {
				return fmt.Errorf("the server asked %d times for input and still wants more; raise MaxRounds", f.rounds)
			}
			asked = true
			raw, err := f.ask(ctx, d.InputRequests[key])
			if err != nil {
				return err
			}
			a = &taskAnswer{raw: raw}
			f.answers[key] = a
		} else if a.polls++; a.polls < answerPolls {
			continue // the server has acknowledged the response, and may need time
		}
		if a.sent == maxAnswers {
			return fmt.Errorf("the server still asks %.60q, to which %d responses were sent", key, a.sent)
		}
		a.sent++
		a.polls = 0
		switch err := f.t.answer(ctx, f.cc, protocol.InputResponses{key: a.raw}); {
		case err != nil && !Transient(err):
			return err
		case err != nil:
			a.polls = answerPolls // send it again if the server still asks
		}
	}
	if asked {
		f.rounds++
	}
	return nil
}

// ask returns the response of the handlers. Meanwhile the time of TaskTimeout does not run.
func (f *follower) ask(ctx context.Context, q protocol.InputRequest) (json.RawMessage, error) {
	f.deadline.hold()
	defer f.deadline.release()
	return f.t.c.respondTo(ctx, q)
}

// pause waits until the task may be polled again.
func (f *follower) pause(ctx context.Context, t *protocol.Task) error {
	interval := backoff(f.polls) // from 100 ms to 5 s
	if t.PollIntervalMs != nil {
		interval = pollInterval(*t.PollIntervalMs)
	}
	f.polls++
	return sleep(ctx, interval)
}

// pollInterval returns the interval for what the server sets.
func pollInterval(ms int64) time.Duration {
	ms = min(max(ms, minPollInterval.Milliseconds()), maxPollInterval.Milliseconds())
	return time.Duration(ms) * time.Millisecond
}

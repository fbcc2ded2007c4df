package playground

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/middleware"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

// middleware fills the timeline. No entry has values of secret arguments, results or answers of users.
func (t *timeline) middleware(next mcpkit.Handler) mcpkit.Handler {
	return func(ctx context.Context, call *mcpkit.Call) (result mcpkit.Result, err error) {
		if t.closed.Err() != nil {
			return next(ctx, call)
		}
		e := t.begin(call)
		call.Trace(func(_ context.Context, ev mcpkit.TraceEvent) (context.Context, func(error)) {
			if t.proxy && ev.Kind != mcpkit.TraceQuestion {
				return nil, nil
			}
			ev.At = time.Now()
			end := t.event(e, ev)
			return nil, func(err error) {
				if errors.Is(err, mcpkit.ErrAsked) {
					err = nil
				}
				end(time.Now(), textOf(err))
			}
		})
		err = errPanicked
		defer func() { t.end(e, call, result, err) }()
		result, err = next(ctx, call)
		return result, err
	}
}

// errPanicked stands for the panic of a middleware.
var errPanicked = &mcpkit.PanicError{Value: "a middleware panicked"}

// begin adds the entry of a call.
func (t *timeline) begin(call *mcpkit.Call) *entry {
	e := &entry{
		start: time.Now(), ends: map[int64]endFunc{}, Begun: float64(time.Now().UnixMicro()) / 1000, Took: -1, Out: -1,
		Method: call.Method(), Name: clip(call.Name()), Version: string(call.Version()), Session: shown(call.SessionID()),
		Ref: call.Ref(), Request: clip(call.RequestID()), Round: call.Round(), In: len(call.Params()),
	}
	if info := call.ClientInfo(); info != nil {
		e.Client = clip(info.Name)
	}
	if p := call.Principal(); p != nil {
		e.Principal = clip(p.Subject)
	}
	if run := call.Run(); run != nil {
		e.Task, e.Request = run.ID, ""
	}
	if args := call.RedactedArguments(); len(args) <= maxText {
		e.Arguments = slices.Clone(args)
	} else {
		e.Cut = true
	}
	t.add(e)
	return e
}

// end notes how a call has ended.
func (t *timeline) end(e *entry, call *mcpkit.Call, result mcpkit.Result, err error) {
	outcome, text := string(middleware.OutcomeOf(result, err)), textOf(err)
	bad, _ := errors.AsType[*reflectx.ArgumentError](err)
	t.change(e, func() {
		e.Took, e.Outcome, e.Error, e.Repairs = between(e.start, time.Now()), outcome, cmp.Or(text, e.Error), call.Repairs()
		if err == nil && result != nil {
			if n, known := mcpkit.SizeOf(result); known {
				e.Out = n
			}
		}
		if bad != nil {
			for _, v := range bad.Violations {
				e.Faults = append(e.Faults, fault{v.Pointer, clip(v.String())})
			}
		}
		asks, ok := result.(*protocol.InputRequiredResult)
		if !ok || asks == nil {
			return
		}
		for _, key := range slices.Sorted(maps.Keys(asks.InputRequests)) {
			q := asks.InputRequests[key]
			e.addStep(&step{Kind: "question", Name: q.Method, Text: clip(jsonx.String(jsonx.Member(q.Params, "message")))}, time.Now())
		}
	})
}

// An endFunc ends a step. failure is the text of its error, or "".
type endFunc func(at time.Time, failure string)

// event adds a step to the entry of a call, and returns what ends it; nil if nothing does.
func (t *timeline) event(e *entry, ev mcpkit.TraceEvent) endFunc {
	s := &step{Kind: string(ev.Kind), Name: clip(ev.Name), Kept: ev.Kept, Text: clip(ev.Text)}
	deeper := 0
	switch ev.Kind {
	case mcpkit.TraceHandler:
		s.Kind, s.Took, deeper = "span", -1, 1
	case mcpkit.TraceQuestion:
		s.Took = -1
	case mcpkit.TraceProgress:
		s.Text = progressText(ev)
	}
	open := s.Took < 0
	t.change(e, func() {
		s.Depth = e.depth
		e.depth += deeper
		if n := len(e.Steps); n > 0 && s.Kind == "progress" && e.Steps[n-1].Kind == s.Kind {
			e.Steps[n-1].Text = s.Text // a report replaces one just before it
			return
		}
		s = e.addStep(s, ev.At)
	})
	if !open {
		return nil
	}
	return func(at time.Time, failure string) {
		t.change(e, func() {
			e.depth -= deeper
			if s != nil {
				s.Took, s.Error = between(e.start, at)-s.At, clip(failure)
			}
		})
	}
}

// Report adds what happened in another program to the newest call with its reference, if there is one:
// see [Options.Proxy].
func (h *Handler) Report(ev mcpkit.TraceEvent) {
	t := h.timeline
	e := t.find(ev.Ref)
	if e == nil {
		return
	}
	if ev.Kind != mcpkit.TraceEnd {
		if end := t.event(e, ev); end != nil {
			t.change(e, func() { e.ends[ev.ID] = end })
		}
		return
	}
	var end endFunc
	t.change(e, func() {
		end = e.ends[ev.ID]
		delete(e.ends, ev.ID)
		if len(e.ends) == 0 {
			e.Error = cmp.Or(clip(ev.Text), e.Error)
		}
	})
	if end != nil {
		end(ev.At, ev.Text)
	}
}

// progressText returns a report as text: "1 of 2: half".
func progressText(ev mcpkit.TraceEvent) string {
	text := strconv.FormatFloat(ev.Done, 'g', -1, 64)
	if ev.Total > 0 {
		text += " of " + strconv.FormatFloat(ev.Total, 'g', -1, 64)
	}
	if ev.Text != "" {
		text += ": " + clip(ev.Text)
	}
	return text
}

// textOf returns the text of an error, or "". The methods of an error are the program's, which may log,
// so they must not run while the timeline is locked.
func textOf(err error) string {
	if err == nil {
		return ""
	}
	return clip(err.Error())
}

// clip shortens a text to maxText.
func clip(s string) string {
	if len(s) > maxText {
		return strings.ToValidUTF8(s[:maxText], "") + "…"
	}
	return s
}

// shown is the part of a session ID that tells sessions apart, and is too short to take one over.
func shown(session string) string {
	const most = 8
	if len(session) > most {
		return session[:most] + "…"
	}
	return session
}

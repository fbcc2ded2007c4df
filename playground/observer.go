package playground

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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

// entryKey is the key of the entry of a call.
type entryKey struct{ *timeline }

// observer returns the functions that fill the timeline. No entry has values of secret arguments,
// results or answers of users.
func (t *timeline) observer() mcpkit.Observer {
	return mcpkit.Observer{Call: t.call, Span: t.span, Once: t.once, Log: t.log, Progress: t.progress}
}

// call adds the entry of a call.
func (t *timeline) call(_ context.Context, call *mcpkit.Call) func(mcpkit.Result, error) {
	e := &entry{
		start: time.Now(), Begun: float64(time.Now().UnixMicro()) / 1000, Took: -1, Out: -1,
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
	call.Set(entryKey{t}, e)
	if !call.Version().Modern() {
		call.OnQuestion(func(_ context.Context, q *mcpkit.Question) func(error) { return t.question(e, q.Method) })
	}
	return func(result mcpkit.Result, err error) { t.end(e, call, result, err) }
}

// of returns the entry of a call, or nil.
func (t *timeline) of(call *mcpkit.Call) *entry {
	e, _ := call.Get(entryKey{t}).(*entry)
	return e
}

// end notes how a call has ended.
func (t *timeline) end(e *entry, call *mcpkit.Call, result mcpkit.Result, err error) {
	outcome, text := string(middleware.OutcomeOf(result, err)), textOf(err)
	bad, _ := errors.AsType[*reflectx.ArgumentError](err)
	t.change(e, func() {
		e.Took, e.Outcome, e.Error, e.Repairs = since(e.start), outcome, text, call.Repairs()
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
			e.addStep(&step{Kind: "question", Name: q.Method, Text: clip(jsonx.String(jsonx.Member(q.Params, "message")))})
		}
	})
}

// question adds a question to a legacy client.
func (t *timeline) question(e *entry, method string) func(error) {
	var s *step
	t.change(e, func() { s = e.addStep(&step{Kind: "question", Name: method, Took: -1}) })
	return func(err error) { t.endStep(e, s, err) }
}

// endStep notes the end of a step.
func (t *timeline) endStep(e *entry, s *step, err error) {
	if errors.Is(err, mcpkit.ErrAsked) {
		err = nil
	}
	text := textOf(err)
	t.change(e, func() {
		if s == nil {
			return
		}
		s.Took, s.Error = since(e.start)-s.At, text
	})
}

// textOf returns the text of an error, or "". The methods of an error are the program's, which may log,
// so they must not run while the timeline is locked.
func textOf(err error) string {
	if err == nil {
		return ""
	}
	return clip(err.Error())
}

func (t *timeline) span(call *mcpkit.Call, name string) func(error) {
	e := t.of(call)
	if e == nil {
		return nil
	}
	var s *step
	t.change(e, func() {
		s = e.addStep(&step{Kind: "span", Name: name, Took: -1, Depth: e.depth})
		e.depth++
	})
	return func(err error) {
		t.change(e, func() { e.depth-- })
		t.endStep(e, s, err)
	}
}

func (t *timeline) once(call *mcpkit.Call, key string, kept bool) {
	if e := t.of(call); e != nil {
		t.change(e, func() { e.addStep(&step{Kind: "once", Name: clip(key), Kept: kept, Depth: e.depth}) })
	}
}

func (t *timeline) log(call *mcpkit.Call, r slog.Record) {
	e := t.of(call)
	if e == nil {
		return
	}
	var text strings.Builder
	text.WriteString(r.Message)
	r.Attrs(func(a slog.Attr) bool {
		fmt.Fprintf(&text, " %s=%v", a.Key, a.Value.Resolve())
		return text.Len() < maxText
	})
	t.change(e, func() {
		e.addStep(&step{Kind: "log", Name: strings.ToLower(r.Level.String()), Text: clip(text.String()), Depth: e.depth})
	})
}

// progress adds a report, which replaces one just before it.
func (t *timeline) progress(call *mcpkit.Call, done, total float64, message string) {
	e := t.of(call)
	if e == nil {
		return
	}
	text := strconv.FormatFloat(done, 'g', -1, 64)
	if total > 0 {
		text += " of " + strconv.FormatFloat(total, 'g', -1, 64)
	}
	if message != "" {
		text += ": " + clip(message)
	}
	t.change(e, func() {
		if n := len(e.Steps); n > 0 && e.Steps[n-1].Kind == "progress" {
			e.Steps[n-1].Text = text
			return
		}
		e.addStep(&step{Kind: "progress", Text: text, Depth: e.depth})
	})
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

package mcpkit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// A TraceEvent is something that happens within a call: see [Call.Trace]. It is data, and encodes as JSON.
type TraceEvent struct {
	Kind TraceKind `json:"kind"`
	// Name is the function that made a middleware, or a method, with its place in the source, such
	// as "Logging (logging.go:37)", the protocol's method of a question, a key of Once, or the level
	// of a record.
	Name string `json:"name,omitzero"`
	// Kept reports whether the value of Once is from an earlier round or run, so that its function
	// did not run.
	Kept bool `json:"kept,omitzero"`
	// Text is a record as the JSON that clients get, the message of a report or of a form, or an error.
	Text string `json:"text,omitzero"`
	// Done and Total are those of [Call.Progress].
	Done  float64 `json:"done,omitzero"`
	Total float64 `json:"total,omitzero"`
	// Ref is the reference of the call, At the time, and ID that of the event and of its end, in events
	// for mcpkit dev.
	Ref string    `json:"ref,omitzero"`
	At  time.Time `json:"at,omitzero"`
	ID  int64     `json:"id,omitzero"`
	// Meta is the _meta of a question. Entries that are added are sent.
	Meta protocol.Meta `json:"meta,omitzero"`
}

// A TraceKind says what happens.
type TraceKind string

// The kinds of events.
const (
	// TraceHandler is the handler of a middleware, or a method of a service.
	TraceHandler TraceKind = "handler"
	// TraceQuestion is a request to a legacy client, made for instance with [Elicit]. In version
	// 2026-07-28 there are none, since questions are part of results.
	TraceQuestion TraceKind = "question"
	// TraceOnce is a value of [Once].
	TraceOnce TraceKind = "once"
	// TraceLog is a record of [Call.Logger], of any level.
	TraceLog TraceKind = "log"
	// TraceProgress is a report of [Call.Progress], also one that the client did not ask for.
	TraceProgress TraceKind = "progress"
	// TraceEnd is the end of a handler or question, with the same ID. Only mcpkit dev gets it.
	TraceEnd TraceKind = "end"
)

// What mcpkit dev and a program that it runs agree on.
const (
	// EnvDev is the environment variable with the word that begins each line on the program's
	// standard error that is an event, as JSON. Package config reads those that begin with MCPKIT_.
	EnvDev = "MCP_DEV_EVENTS"
	// MetaRef is the key of the reference of a call in its _meta. It has no effect without EnvDev.
	MetaRef = "io.github.mcpkit/ref"
)

var (
	devWord = func() string {
		defer func() { _ = os.Unsetenv(EnvDev) }() // programs that this one starts do not tell
		return os.Getenv(EnvDev)
	}()
	devID atomic.Int64 // of the last event
)

// tellDev tells mcpkit dev what happens in the call, which has the same reference there.
func (c *Call) tellDev() {
	c.asked.State.Ref = cmp.Or(jsonx.String(c.Meta(MetaRef)), c.asked.State.Ref)
	tell := func(e TraceEvent) {
		e.Ref, e.At = c.Ref(), time.Now()
		text, _ := jsonx.Marshal(e)
		_, _ = fmt.Fprintf(os.Stderr, "%s%s\n", devWord, text)
	}
	c.Trace(func(_ context.Context, e TraceEvent) (context.Context, func(error)) {
		e.ID = devID.Add(1)
		tell(e)
		return nil, func(err error) {
			end := TraceEvent{Kind: TraceEnd, ID: e.ID}
			if err != nil && !errors.Is(err, ErrAsked) {
				end.Text = err.Error()
			}
			tell(end)
		}
	})
}

// A tracer is a function of Trace.
type tracer = func(ctx context.Context, e TraceEvent) (context.Context, func(err error))

// Trace calls f with what happens in the rest of the call. Middleware calls it before the next
// handler. f may return another context, which handlers and questions get, and a function that is
// called at their end: err is that of the handler, or that of the question, a [*jsonrpc.Error] if the
// client sent one. Both may be nil. The calls wait for f, which is called concurrently where methods
// use goroutines.
func (c *Call) Trace(f func(ctx context.Context, e TraceEvent) (context.Context, func(err error))) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []tracer
	if old := c.tracers.Load(); old != nil {
		all = slices.Clip(*old)
	}
	all = append(all, f)
	c.tracers.Store(&all)
}

// event tells the tracers of the call. end is never nil.
func (c *Call) event(ctx context.Context, e TraceEvent) (_ context.Context, end func(error)) {
	tracers := c.tracers.Load()
	if tracers == nil {
		return ctx, func(error) {}
	}
	var ends []func(error)
	for _, f := range *tracers {
		inner, end := f(ctx, e)
		if inner != nil {
			ctx = inner
		}
		if end != nil {
			ends = append(ends, end)
		}
	}
	return ctx, func(err error) {
		for _, end := range slices.Backward(ends) {
			end(err)
		}
	}
}

// traced returns h, of which tracers are told.
func traced(name string, h Handler) Handler {
	return func(ctx context.Context, call *Call) (result Result, err error) {
		if call == nil || call.tracers.Load() == nil {
			return h(ctx, call)
		}
		ctx, end := call.event(ctx, TraceEvent{Kind: TraceHandler, Name: name})
		defer func() { end(err) }()
		defer recoverAs(&err)
		return h(ctx, call)
	}
}

// middlewareName returns the function that made m, with its place in the source: "Logging (logging.go:37)".
func middlewareName(m Middleware) string {
	f := runtime.FuncForPC(reflect.ValueOf(m).Pointer())
	name := strings.ReplaceAll(f.Name(), "[...]", "")
	name, _, _ = strings.Cut(name[strings.LastIndex(name, "/")+1:], ".func") // a compiler adds who calls the function
	name, isMethod := strings.CutSuffix(name[strings.LastIndex(name, ".")+1:], "-fm")
	if isMethod { // what the compiler makes of it has no place
		return name
	}
	file, line := f.FileLine(f.Entry())
	return fmt.Sprintf("%s (%s:%d)", name, filepath.Base(file), line)
}

package middleware

import (
	"context"
	"log/slog"
	"maps"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// LoggingOptions say what [LoggingWith] writes. The zero value is that of [Logging].
type LoggingOptions struct {
	// Logger is where the lines go. Nil means slog.Default at the time of each call.
	Logger *slog.Logger

	// Arguments adds the arguments of tools and prompts, less what is tagged secret: see mcpkit.Call.RedactedArguments.
	// They are what models and people wrote, so think of who reads the log.
	Arguments bool

	// MaxArgumentBytes is how much of them is written. Zero means 1024.
	MaxArgumentBytes int
}

// Logging writes one line for each call when it is over: method, name, revision, duration, outcome, sizes of params and
// result where known, principal, request and trace id. Arguments and results are not logged. A nil logger means
// slog.Default at the time of each call.
//
// Calls that succeed are logged at level Info, those that fail at Warn, and panics at Error.
func Logging(logger *slog.Logger) mcpkit.Middleware {
	return logging(LoggingOptions{Logger: logger})
}

// LoggingWith is [Logging] with options.
func LoggingWith(o LoggingOptions) mcpkit.Middleware { return logging(o) }

func logging(options LoggingOptions) mcpkit.Middleware {
	o := &logLine{LoggingOptions: options}
	if o.MaxArgumentBytes <= 0 {
		o.MaxArgumentBytes = 1024
	}
	var pcs [1]uintptr
	runtime.Callers(3, pcs[:]) // who called Logging or LoggingWith
	o.source = pcs[0]
	return func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (result mcpkit.Result, err error) {
			start := time.Now()
			finished := false
			defer func() {
				outcome := Panicked // of a middleware further in; the panic goes on
				if finished {
					outcome = OutcomeOf(result, err)
				}
				o.write(ctx, call, start, outcome, result, err)
			}()
			result, err = next(ctx, call)
			finished = true
			return result, err
		}
	}
}

// A logLine is what is the same in all lines of one Logging.
type logLine struct {
	LoggingOptions
	source uintptr // where the middleware was made: the place in the program that the lines are owed to
	heads  headTable
}

func (o *logLine) write(ctx context.Context, call *mcpkit.Call, start time.Time, outcome Outcome, result mcpkit.Result, err error) {
	logger := o.Logger
	if logger == nil {
		logger = slog.Default()
	}
	level := levelOf(outcome)
	if !logger.Enabled(ctx, level) {
		return
	}
	d := time.Since(start)
	attrs := make([]slog.Attr, 0, 16)
	h := headOf(call, outcome)
	handler, ok := o.heads.handler(h, o.Logger)
	if !ok {
		handler, attrs = logger.Handler(), h.appendTo(attrs)
	}
	attrs = append(attrs,
		slog.Duration("duration", d),
		slog.String("ref", RequestID(call)),
		slog.String("request", shorten(call.RequestID(), maxLogged)),
		slog.Int("params_bytes", len(call.Params())),
	)
	if size, ok := SizeOf(result); ok {
		attrs = append(attrs, slog.Int("result_bytes", size))
	}
	attrs = o.appendRest(attrs, call, h, err)
	r := slog.NewRecord(start.Add(d), level, "mcp call", o.source)
	r.AddAttrs(attrs...)
	_ = handler.Handle(ctx, r) // as slog does: that a log cannot be written must not cost the answer
}

// appendRest appends what not every call has.
func (o *logLine) appendRest(attrs []slog.Attr, call *mcpkit.Call, h head, err error) []slog.Attr {
	text := func(key, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(key, value))
		}
	}
	if h.name == "" {
		text("name", shorten(call.Name(), maxLogged))
	}
	if p := call.Principal(); p != nil {
		text("principal", p.Subject)
		text("client", p.ClientID)
	}
	text("session", shorten(call.SessionID(), shownOfSession))
	text("trace", TraceID(call))
	if n := call.Repairs(); n > 0 {
		attrs = append(attrs, slog.Int("repairs", n))
	}
	if o.Arguments {
		text("arguments", shorten(string(call.RedactedArguments()), o.MaxArgumentBytes))
	}
	if err != nil {
		text("error", err.Error())
	}
	return attrs
}

// A head is the part of a line of which there are few, whatever clients send.
type head struct {
	method, name string // the name is "" unless it is that of something that is registered
	revision     protocol.Version
	outcome      Outcome
}

func headOf(call *mcpkit.Call, outcome Outcome) head {
	h := head{method: call.Method(), revision: call.Version(), outcome: outcome}
	if name := call.Target(); name == call.Name() && len(name) <= maxLogged {
		h.name = name
	}
	return h
}

func (h head) appendTo(attrs []slog.Attr) []slog.Attr {
	attrs = append(attrs, slog.String("method", h.method), slog.String("revision", string(h.revision)), slog.String("outcome", string(h.outcome)))
	if h.name != "" {
		attrs = append(attrs, slog.String("name", h.name))
	}
	return attrs
}

// maxHeads bounds what a headTable keeps: programs may register and remove tools without end.
const maxHeads = 512

// A headTable keeps handlers that have written heads already: a third of what a line costs is to write it.
type headTable struct {
	handlers atomic.Pointer[map[head]slog.Handler] // replaced by a longer one, never changed
}

// handler returns false where there is none: the default logger may be another one for the next call.
func (t *headTable) handler(h head, logger *slog.Logger) (slog.Handler, bool) {
	if logger == nil {
		return nil, false
	}
	known := t.handlers.Load()
	if known == nil {
		known = &map[head]slog.Handler{}
		t.handlers.CompareAndSwap(nil, known)
	}
	if handler, ok := (*known)[h]; ok {
		return handler, true
	}
	if len(*known) >= maxHeads {
		return nil, false
	}
	handler := logger.Handler().WithAttrs(h.appendTo(nil))
	longer := maps.Clone(*known)
	longer[h] = handler
	t.handlers.CompareAndSwap(known, &longer) // who was faster keeps its own; this one comes again
	return handler, true
}

func levelOf(outcome Outcome) slog.Level {
	switch outcome {
	case OK, InputRequired, Cancelled:
		return slog.LevelInfo
	case Panicked:
		return slog.LevelError
	}
	return slog.LevelWarn
}

const (
	// shownOfSession is enough of a session id to tell sessions apart, and too little to take one over.
	shownOfSession = 8
	// maxLogged is how much is written of what a client may choose, such as the name of a tool that does not exist.
	maxLogged = 256
)

// shorten returns s, or the beginning of it when it is longer than n bytes.
func shorten(s string, n int) string {
	if len(s) > n {
		return prefix(s, n) + "…"
	}
	return s
}

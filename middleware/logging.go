package middleware

import (
	"cmp"
	"context"
	"log/slog"
	"runtime"
	"time"

	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// A LoggingOption configures [Logging].
type LoggingOption func(*callLogger)

// LogArguments adds the first maxBytes of the arguments of tools and prompts, without secret
// values; see [mcpkit.Call.RedactedArguments]. 0 means 1,024. Arguments are texts of models and
// people: consider who reads the log.
func LogArguments(maxBytes int) LoggingOption {
	return func(l *callLogger) { l.argumentBytes = cmp.Or(max(maxBytes, 0), 1024) }
}

// Logging writes one line for each call when it ends: method, name, protocol version, duration,
// outcome, principal, request and trace ID, and the sizes of params and result where they are
// known. Arguments and results are not logged. A nil logger means slog.Default at the time of each
// call.
//
// Successful calls have the level Info, failed calls Warn, and panics Error.
func Logging(logger *slog.Logger, opts ...LoggingOption) mcpkit.Middleware {
	o := &callLogger{logger: logger}
	for _, opt := range opts {
		opt(o)
	}
	var pcs [1]uintptr
	runtime.Callers(2, pcs[:]) // the caller of Logging
	o.source = pcs[0]
	return func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (result mcpkit.Result, err error) {
			start := time.Now()
			finished := false
			defer func() {
				outcome := Panicked // in inner middleware; the panic continues
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

// A callLogger writes the lines of one [Logging].
type callLogger struct {
	logger        *slog.Logger // nil means slog.Default
	argumentBytes int          // 0: do not log arguments
	source        uintptr      // the place in the program that called Logging
}

func (o *callLogger) write(ctx context.Context, call *mcpkit.Call, start time.Time, outcome Outcome, result mcpkit.Result, err error) {
	logger := o.logger
	if logger == nil {
		logger = slog.Default()
	}
	level := levelOf(outcome)
	if !logger.Enabled(ctx, level) {
		return
	}
	d := time.Since(start)
	attrs := make([]slog.Attr, 0, 16)
	attrs = append(attrs,
		slog.String("method", call.Method()),
		slog.String("version", string(call.Version())),
		slog.String("outcome", string(outcome)),
	)
	if name := call.Name(); name != "" {
		attrs = append(attrs, slog.String("name", shorten(name, maxLogged)))
	}
	attrs = append(attrs,
		slog.Duration("duration", d),
		slog.String("ref", RequestID(call)),
		slog.String("request", shorten(call.RequestID(), maxLogged)),
		slog.Int("params_bytes", len(call.Params())),
	)
	if size, known := mcpkit.SizeOf(result); known {
		attrs = append(attrs, slog.Int("result_bytes", size))
	}
	attrs = o.appendRest(attrs, call, err)
	r := slog.NewRecord(start.Add(d), level, "mcp call", o.source)
	r.AddAttrs(attrs...)
	_ = logger.Handler().Handle(ctx, r) // a log that cannot be written does not fail the call, as in slog
}

// appendRest appends the attributes that not every call has.
func (o *callLogger) appendRest(attrs []slog.Attr, call *mcpkit.Call, err error) []slog.Attr {
	text := func(key, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(key, value))
		}
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
	if o.argumentBytes > 0 {
		text("arguments", shorten(string(call.RedactedArguments()), o.argumentBytes))
	}
	if err != nil {
		text("error", err.Error())
	}
	return attrs
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
	// shownOfSession is how many bytes of a session ID are shown: enough to tell sessions apart,
	// too few to take one over.
	shownOfSession = 8
	// maxLogged is how many bytes are logged of a text that the client chooses, such as an unknown
	// name.
	maxLogged = 256
)

// shorten returns s, or its first n bytes and an ellipsis.
func shorten(s string, n int) string {
	if len(s) > n {
		return prefix(s, n) + "…"
	}
	return s
}

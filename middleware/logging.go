package middleware

import (
	"context"
	"log/slog"
	"time"

	"github.com/mcpkit/mcpkit-go/mcpkit"
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
	return LoggingWith(LoggingOptions{Logger: logger})
}

// LoggingWith is [Logging] with options.
func LoggingWith(o LoggingOptions) mcpkit.Middleware {
	if o.MaxArgumentBytes <= 0 {
		o.MaxArgumentBytes = 1024
	}
	return func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (result any, err error) {
			start := time.Now()
			finished := false
			defer func() {
				outcome := Panicked // of a middleware further in; the panic goes on
				if finished {
					outcome = OutcomeOf(result, err)
				}
				o.write(ctx, call, time.Since(start), outcome, result, err)
			}()
			result, err = next(ctx, call)
			finished = true
			return result, err
		}
	}
}

func (o *LoggingOptions) write(ctx context.Context, call *mcpkit.Call, d time.Duration, outcome Outcome, result any, err error) {
	logger := o.Logger
	if logger == nil {
		logger = slog.Default()
	}
	level := levelOf(outcome)
	if !logger.Enabled(ctx, level) {
		return
	}
	attrs := append(make([]slog.Attr, 0, 16),
		slog.String("method", call.Method()),
		slog.String("revision", string(call.Version())),
		slog.Duration("duration", d),
		slog.String("outcome", string(outcome)),
		slog.String("ref", RequestID(call)),
		slog.String("request", shorten(call.RequestID(), maxLogged)),
		slog.Int("params_bytes", len(call.Params())),
	)
	text := func(key, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(key, value))
		}
	}
	if n := call.Repairs(); n > 0 {
		attrs = append(attrs, slog.Int("repairs", n))
	}
	text("name", shorten(call.Name(), maxLogged))
	if size, ok := SizeOf(result); ok {
		attrs = append(attrs, slog.Int("result_bytes", size))
	}
	if p := call.Principal(); p != nil {
		text("principal", p.Subject)
		text("client", p.ClientID)
	}
	text("session", shorten(call.SessionID(), shownOfSession))
	text("trace", TraceID(call))
	if o.Arguments {
		text("arguments", shorten(string(call.RedactedArguments()), o.MaxArgumentBytes))
	}
	if err != nil {
		text("error", err.Error())
	}
	logger.LogAttrs(ctx, level, "mcp call", attrs...)
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

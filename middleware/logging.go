package middleware

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/mcpkit/mcpkit-go/jsonrpc"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// Logging writes one line for each call when it is over: method, name, revision, duration, outcome, principal and
// request id. Arguments and results are not logged. A nil logger means slog.Default.
//
// Calls that succeed are logged at level Info, those that fail at Warn, and panics at Error.
func Logging(logger *slog.Logger) mcpkit.Middleware {
	if logger == nil {
		logger = slog.Default()
	}
	return func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (any, error) {
			start := time.Now()
			result, err := next(ctx, call)
			level, outcome := outcomeOf(result, err)
			if !logger.Enabled(ctx, level) {
				return result, err
			}
			attrs := []slog.Attr{
				slog.String("method", call.Method()),
				slog.String("revision", string(call.Version())),
				slog.Duration("duration", time.Since(start)),
				slog.String("outcome", outcome),
				slog.String("ref", RequestID(call)),
				slog.String("request", call.RequestID()),
			}
			if name := call.Name(); name != "" {
				attrs = append(attrs, slog.String("name", name))
			}
			if p := call.Principal(); p != nil {
				attrs = append(attrs, slog.String("principal", p.Subject))
			}
			if id := call.SessionID(); id != "" {
				attrs = append(attrs, slog.String("session", shorten(id)))
			}
			if err != nil {
				attrs = append(attrs, slog.String("error", err.Error()))
			}
			logger.LogAttrs(ctx, level, "mcp call", attrs...)
			return result, err
		}
	}
}

// outcomeOf says in one word how a call ended.
func outcomeOf(result any, err error) (slog.Level, string) {
	if err == nil {
		switch r := result.(type) {
		case *protocol.CallToolResult:
			if r.IsError {
				return slog.LevelWarn, "tool_error"
			}
		case *protocol.InputRequiredResult:
			return slog.LevelInfo, "input_required"
		}
		return slog.LevelInfo, "ok"
	}
	if _, ok := errors.AsType[*mcpkit.PanicError](err); ok {
		return slog.LevelError, "panic"
	}
	switch {
	case errors.Is(err, mcpkit.ErrTimeout):
		return slog.LevelWarn, "timeout"
	case errors.Is(err, context.Canceled):
		return slog.LevelInfo, "cancelled"
	}
	if _, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return slog.LevelWarn, "protocol_error"
	}
	return slog.LevelWarn, "error"
}

// shorten leaves of a session id enough to tell sessions apart, and too little to take one over.
func shorten(id string) string {
	if len(id) > 8 {
		return id[:8] + "…"
	}
	return id
}

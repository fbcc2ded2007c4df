package middleware

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"time"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// An AuditOption configures [Audit].
type AuditOption func(*auditor)

// AuditBegin writes a record before each call as well. Without it, a call leaves no trace if the
// program dies meanwhile.
func AuditBegin() AuditOption { return func(a *auditor) { a.begin = true } }

// AuditArguments adds the arguments, without secret values; see [mcpkit.Call.RedactedArguments].
func AuditArguments() AuditOption { return func(a *auditor) { a.arguments = true } }

// Audit writes a record to log when a call ends: who called what, and how it ended. For a file with
// a JSON object per line, log is slog.NewJSONHandler(file, nil). Add Audit first, so that it sees
// the calls that other middleware refuses. [When] limits it to a part of the server.
//
// The record is written before the response is sent. If log returns an error, the caller gets an
// error instead of the result, although the method has run. With [AuditBegin], the method does not
// run if the begin record cannot be written.
//
// A record has the attributes event (begin or end), ref, request, method, version, and where they
// are known name, principal, session, trace and arguments. An end record also has outcome,
// durationMs, and the code of a protocol error. ref is the ID of the call in the log and in the
// text of an internal error; session is the beginning of the session ID.
//
// In version 2026-07-28, a call that asks questions has several rounds. Each round writes an end
// record, with its number as the attribute round if it is not the first one. All have the same ref,
// and the outcome of a round that asks is [InputRequired]. The first round writes the begin record.
func Audit(log slog.Handler, opts ...AuditOption) mcpkit.Middleware {
	a := &auditor{log: log}
	for _, opt := range opts {
		opt(a)
	}
	return func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (result mcpkit.Result, err error) {
			about := a.about(call)
			if a.begin && call.Round() == 0 {
				if err := a.write(ctx, "begin", about); err != nil {
					return nil, err
				}
			}
			finished := false
			defer func() {
				outcome := Panicked // in inner middleware; the panic continues
				if finished {
					outcome = OutcomeOf(result, err)
				}
				duration := float64(time.Since(call.Begun()).Microseconds()) / 1000
				end := append(about, slog.String("outcome", string(outcome)), slog.Float64("durationMs", duration))
				if code := codeOf(err); code != 0 {
					end = append(end, slog.Int("code", code))
				}
				if writeErr := a.write(ctx, "end", end); writeErr != nil && finished {
					result, err = nil, writeErr // not joined with err, whose text could be sent to the caller
				}
			}()
			result, err = next(ctx, call)
			finished = true
			return result, err
		}
	}
}

// An auditor writes the records of one [Audit].
type auditor struct {
	log              slog.Handler
	begin, arguments bool
}

// about returns the attributes that all records of a call have.
func (a *auditor) about(call *mcpkit.Call) []slog.Attr {
	attrs := []slog.Attr{
		slog.String("ref", call.Ref()),
		slog.String("request", shorten(call.RequestID(), maxLogged)),
		slog.String("method", call.Method()),
		slog.String("version", string(call.Version())),
	}
	attrs = appendText(attrs, "name", shorten(call.Name(), maxLogged))
	if p := call.Principal(); p != nil {
		who := appendText([]slog.Attr{slog.String("subject", p.Subject)}, "issuer", p.Issuer)
		attrs = append(attrs, slog.Attr{Key: "principal", Value: slog.GroupValue(appendText(who, "clientId", p.ClientID)...)})
	}
	attrs = appendText(attrs, "session", shorten(call.SessionID(), shownOfSession))
	attrs = appendText(attrs, "trace", TraceID(call))
	if round := call.Round(); round > 0 {
		attrs = append(attrs, slog.Int("round", round))
	}
	if a.arguments {
		if arguments := call.RedactedArguments(); arguments != nil {
			// The log may keep them, and the bytes of a request are reused after its response.
			attrs = append(attrs, slog.Any("arguments", slices.Clone(arguments)))
		}
	}
	return slices.Clip(attrs)
}

func (a *auditor) write(ctx context.Context, event string, attrs []slog.Attr) error {
	r := slog.NewRecord(time.Now().UTC(), slog.LevelInfo, "audit", 0)
	r.AddAttrs(slog.String("event", event))
	r.AddAttrs(attrs...)
	if err := a.log.Handle(ctx, r); err != nil {
		return &auditError{err}
	}
	return nil
}

// appendText appends an attribute unless the value is "".
func appendText(attrs []slog.Attr, key, value string) []slog.Attr {
	if value == "" {
		return attrs
	}
	return append(attrs, slog.String(key, value))
}

// codeOf returns the code of a protocol error, or 0.
func codeOf(err error) int {
	if rpc, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return rpc.Code
	}
	if coded, ok := errors.AsType[mcpkit.CodedError](err); ok {
		return coded.ErrorCode()
	}
	return 0
}

// An auditError hides from callers why a record was not written.
type auditError struct{ err error }

func (e *auditError) Error() string { return fmt.Sprintf("middleware: the audit log: %v", e.err) }
func (e *auditError) UserMessage() string {
	return "the audit log cannot be written, so there is no result"
}
func (e *auditError) Unwrap() error { return e.err }

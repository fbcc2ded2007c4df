package middleware

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/jsonrpc"
	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// An AuditRecord is one line of an audit log.
type AuditRecord struct {
	Time time.Time `json:"time"` // UTC: when the call began, or, at its end, when it ended
	// Event is "begin" or "end".
	Event string `json:"event"`
	// Ref names the call: the same in both of its records, in the log, and in what the caller is told of an internal error.
	Ref       string          `json:"ref"`
	Request   string          `json:"request"` // the JSON-RPC id
	Method    string          `json:"method"`
	Name      string          `json:"name,omitzero"`
	Revision  string          `json:"revision"`
	Principal *AuditPrincipal `json:"principal,omitzero"` // nil: nobody was authenticated
	Session   string          `json:"session,omitzero"`   // the beginning of its id
	Trace     string          `json:"trace,omitzero"`
	Arguments json.RawMessage `json:"arguments,omitzero"` // without secrets; only where asked for
	// At the end alone:
	Outcome    Outcome `json:"outcome,omitzero"`
	Code       int     `json:"code,omitzero"` // of a protocol error
	DurationMS float64 `json:"durationMs,omitzero"`
}

// An AuditPrincipal says who called.
type AuditPrincipal struct {
	Subject  string `json:"subject"`
	Issuer   string `json:"issuer,omitzero"`
	ClientID string `json:"clientId,omitzero"`
}

// AuditOptions say what [Audit] writes. The zero value writes a record at the end of each call.
type AuditOptions struct {
	// Begin writes a record before each call, too: without it a call during which the program ends leaves no trace.
	Begin bool

	// Arguments adds the arguments, less what is tagged secret: see mcpkit.Call.RedactedArguments.
	Arguments bool
}

// Audit writes to log who called what, and how it ended. It should be the outermost, so that it sees what others refuse;
// with mcpkit.Server.UseFor it keeps to a part.
//
// No answer leaves before its record is written: where it cannot be, the caller gets an error in place of the result, also
// though the method has run, and with Begin the method does not run.
func Audit(log *AuditLog, o AuditOptions) mcpkit.Middleware {
	return func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (result mcpkit.Result, err error) {
			start := time.Now()
			record := newAuditRecord(call, o)
			if o.Begin {
				record.Time, record.Event = start.UTC(), "begin"
				if err := log.write(record); err != nil {
					return nil, err
				}
			}
			finished := false
			defer func() {
				record.Event, record.Outcome = "end", Panicked
				record.Time = time.Now().UTC()
				record.DurationMS = float64(time.Since(start).Microseconds()) / 1000
				if finished {
					record.Outcome, record.Code = OutcomeOf(result, err), codeOf(err)
				}
				if writeErr := log.write(record); writeErr != nil && finished {
					result, err = nil, writeErr // not joined with err, which could be shown in its place
				}
			}()
			result, err = next(ctx, call)
			finished = true
			return result, err
		}
	}
}

func newAuditRecord(call *mcpkit.Call, o AuditOptions) *AuditRecord {
	r := &AuditRecord{
		Ref: call.Ref(), Request: shorten(call.RequestID(), maxLogged), Method: call.Method(), Name: shorten(call.Name(), maxLogged),
		Revision: string(call.Version()), Session: shorten(call.SessionID(), shownOfSession), Trace: TraceID(call),
	}
	if p := call.Principal(); p != nil {
		r.Principal = &AuditPrincipal{Subject: p.Subject, Issuer: p.Issuer, ClientID: p.ClientID}
	}
	if o.Arguments {
		r.Arguments = call.RedactedArguments()
	}
	return r
}

// codeOf is the code of a protocol error that is known to be one here; 0 for others.
func codeOf(err error) int {
	if rpc, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return rpc.Code
	}
	if coded, ok := errors.AsType[mcpkit.CodedError](err); ok {
		return coded.ErrorCode()
	}
	return 0
}

// write appends a record as a line.
func (l *AuditLog) write(r *AuditRecord) error {
	line, err := jsonx.Marshal(r)
	if err == nil {
		err = l.append(append(line, '\n'))
	}
	if err != nil {
		return &auditError{err}
	}
	return nil
}

// auditError hides from callers why the record of a call was not written.
type auditError struct{ err error }

func (e *auditError) Error() string { return fmt.Sprintf("middleware: the audit log: %v", e.err) }
func (e *auditError) UserMessage() string {
	return "the audit log cannot be written, so there is no answer"
}
func (e *auditError) Unwrap() error { return e.err }

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
//
// On 2026-07-28 a call that asks its client questions is one call in several rounds: it has one begin record, from its first
// round, and one end record, from its last. If the client does not send the answers within [mcpkit.AnswerTime], the process that
// asked writes the end record then, with the outcome [Unanswered], and [AuditLog.Close] writes those of calls that still wait. A client that replays a round gets another end record with
// the same Ref.
func Audit(log *AuditLog, o AuditOptions) mcpkit.Middleware {
	return func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (result mcpkit.Result, err error) {
			start := time.Now()
			record := newAuditRecord(call, o)
			log.resumed(record.Ref)
			if o.Begin && call.Round() == 0 {
				record.Time, record.Event = start.UTC(), "begin"
				if err := log.write(record); err != nil {
					return nil, err
				}
			}
			finished := false
			defer func() {
				record.Event, record.Outcome = "end", Panicked
				record.Time = time.Now().UTC()
				record.DurationMS = float64(time.Since(call.Begun()).Microseconds()) / 1000
				if finished {
					record.Outcome, record.Code = OutcomeOf(result, err), codeOf(err)
				}
				if record.Outcome == InputRequired && log.awaits(record) {
					return
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

// maxWaiting is how many calls may wait for an answer. The round of a further call that asks gets an end record at once.
const maxWaiting = 10_000

// A waitingCall is one whose client was asked something.
type waitingCall struct {
	record *AuditRecord
	timer  *time.Timer // ends it after AnswerTime
}

// awaits keeps the record of a call whose client is asked something until the client sends the answer or AnswerTime has passed. It
// reports false when too many records are kept, or the log is closed.
func (l *AuditLog) awaits(r *AuditRecord) bool {
	l.waitingMu.Lock()
	defer l.waitingMu.Unlock()
	if l.ended || len(l.waiting) >= maxWaiting {
		return false
	}
	if l.waiting == nil {
		l.waiting = map[string]*waitingCall{}
	}
	if before := l.waiting[r.Ref]; before != nil { // of a round that the client played twice
		before.timer.Stop()
	}
	call := &waitingCall{record: r}
	call.timer = time.AfterFunc(mcpkit.AnswerTime, func() { l.unanswered(call) })
	l.waiting[r.Ref] = call
	return true
}

// resumed forgets a call that waits for an answer.
func (l *AuditLog) resumed(ref string) {
	l.waitingMu.Lock()
	defer l.waitingMu.Unlock()
	if call := l.waiting[ref]; call != nil {
		call.timer.Stop()
		delete(l.waiting, ref)
	}
}

// unanswered ends a call whose client did not send the answer in time.
func (l *AuditLog) unanswered(call *waitingCall) {
	r := call.record
	l.waitingMu.Lock()
	waits := l.waiting[r.Ref] == call
	if waits {
		delete(l.waiting, r.Ref)
	}
	l.waitingMu.Unlock()
	if waits {
		r.Time, r.Outcome = time.Now().UTC(), Unanswered
		r.DurationMS += float64(mcpkit.AnswerTime.Milliseconds())
		_ = l.write(r) // there is no response left to withhold
	}
}

// endWaiting writes the records of all calls that wait for answers.
func (l *AuditLog) endWaiting() {
	l.waitingMu.Lock()
	waiting := l.waiting
	l.waiting, l.ended = nil, true
	l.waitingMu.Unlock()
	for _, call := range waiting {
		call.timer.Stop()
		_ = l.write(call.record) // Close says why the log cannot be written
	}
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

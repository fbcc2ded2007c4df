package middleware

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// An AuditRecord is one line of an audit log.
type AuditRecord struct {
	// Time is in UTC: the beginning of the call, or its end in an end record.
	Time time.Time `json:"time"`
	// Event is "begin" or "end".
	Event string `json:"event"`
	// Ref identifies the call. It is the same in both of its records, in the log, and in the text
	// of an internal error that the caller gets.
	Ref       string          `json:"ref"`
	Request   string          `json:"request"` // the JSON-RPC ID
	Method    string          `json:"method"`
	Name      string          `json:"name,omitzero"`
	Version   string          `json:"version"`            // of the protocol
	Principal *AuditPrincipal `json:"principal,omitzero"` // nil if the caller is not authenticated
	Session   string          `json:"session,omitzero"`   // the beginning of its ID
	Trace     string          `json:"trace,omitzero"`
	Arguments json.RawMessage `json:"arguments,omitzero"` // without secret values; see AuditArguments
	// Only in end records:
	Outcome    Outcome `json:"outcome,omitzero"`
	Code       int     `json:"code,omitzero"` // of a protocol error
	DurationMS float64 `json:"durationMs,omitzero"`
}

// An AuditPrincipal is the principal of the caller.
type AuditPrincipal struct {
	Subject  string `json:"subject"`
	Issuer   string `json:"issuer,omitzero"`
	ClientID string `json:"clientId,omitzero"`
}

// An AuditOption configures [Audit].
type AuditOption func(*auditOptions)

// AuditBegin writes a record before each call as well. Without it, a call leaves no trace if the
// program dies meanwhile.
func AuditBegin() AuditOption { return func(o *auditOptions) { o.begin = true } }

// AuditArguments adds the arguments, without secret values; see [mcpkit.Call.RedactedArguments].
func AuditArguments() AuditOption { return func(o *auditOptions) { o.arguments = true } }

type auditOptions struct{ begin, arguments bool }

// Audit writes a record to log at the end of each call: who called what, and how it ended. Add it
// first, so that it sees the calls that other middleware refuses. Server.UseFor limits it to a part
// of the server.
//
// The record is written before the response is sent. If it cannot be written, the caller gets an
// error instead of the result, although the method has run. With [AuditBegin], the method does not
// run if the begin record cannot be written.
//
// In version 2026-07-28, a call that asks questions has several rounds. The first round writes the
// begin record, the last one the end record. If the client does not answer within
// [mcpkit.AnswerTime], the process that asked writes the end record then, with the outcome
// [Unanswered]. [AuditLog.Close] writes the end records of calls that still wait. A round that a
// client replays writes another end record with the same Ref. A run of a task ([mcpkit.Call.Run])
// that asks writes its end record at once, with the outcome [InputRequired].
func Audit(log *AuditLog, opts ...AuditOption) mcpkit.Middleware {
	var o auditOptions
	for _, opt := range opts {
		opt(&o)
	}
	return func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (result mcpkit.Result, err error) {
			start := time.Now()
			record := newAuditRecord(call, o)
			log.resumed(record.Ref)
			if o.begin && call.Round() == 0 {
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
				if record.Outcome == InputRequired && call.Run() == nil && log.await(record) {
					return
				}
				if writeErr := log.write(record); writeErr != nil && finished {
					result, err = nil, writeErr // not joined with err, whose text could be sent to the caller
				}
			}()
			result, err = next(ctx, call)
			finished = true
			return result, err
		}
	}
}

func newAuditRecord(call *mcpkit.Call, o auditOptions) *AuditRecord {
	r := &AuditRecord{
		Ref: call.Ref(), Request: shorten(call.RequestID(), maxLogged), Method: call.Method(), Name: shorten(call.Name(), maxLogged),
		Version: string(call.Version()), Session: shorten(call.SessionID(), shownOfSession), Trace: TraceID(call),
	}
	if p := call.Principal(); p != nil {
		r.Principal = &AuditPrincipal{Subject: p.Subject, Issuer: p.Issuer, ClientID: p.ClientID}
	}
	if o.arguments {
		r.Arguments = call.RedactedArguments()
	}
	return r
}

// Limits of the calls that wait for answers of their clients. A call beyond them gets an end record
// with the outcome [InputRequired] at once.
const (
	maxWaiting      = 10_000   // calls for which Audit waits until clients answer (2026-07-28)
	maxWaitingBytes = 16 << 20 // bytes of the arguments of these calls, with AuditArguments
)

// A waitingCall is a call whose client was asked a question.
type waitingCall struct {
	record *AuditRecord
	timer  *time.Timer // ends the call after AnswerTime
}

// await keeps the record of a call that waits for an answer, until the client answers or AnswerTime
// has passed. It returns false if too many records are kept, or the log is closed.
func (l *AuditLog) await(r *AuditRecord) bool {
	l.waitingMu.Lock()
	defer l.waitingMu.Unlock()
	l.forget(r.Ref) // if the client replayed a round
	if l.ended || len(l.waiting) >= maxWaiting || l.waitingBytes+len(r.Arguments) > maxWaitingBytes {
		return false
	}
	if l.waiting == nil {
		l.waiting = map[string]*waitingCall{}
	}
	r.Arguments = slices.Clone(r.Arguments) // the bytes of a request are reused after its response
	call := &waitingCall{record: r}
	call.timer = time.AfterFunc(mcpkit.AnswerTime, func() { l.unanswered(call) })
	l.waiting[r.Ref] = call
	l.waitingBytes += len(r.Arguments)
	return true
}

// resumed drops the record of a call whose client has answered.
func (l *AuditLog) resumed(ref string) {
	l.waitingMu.Lock()
	defer l.waitingMu.Unlock()
	l.forget(ref)
}

// forget drops a record, if there is one. The caller holds waitingMu.
func (l *AuditLog) forget(ref string) {
	if call := l.waiting[ref]; call != nil {
		call.timer.Stop()
		delete(l.waiting, ref)
		l.waitingBytes -= len(call.record.Arguments)
	}
}

// unanswered writes the end record of a call whose client did not answer in time.
func (l *AuditLog) unanswered(call *waitingCall) {
	r := call.record
	l.waitingMu.Lock()
	waits := l.waiting[r.Ref] == call
	if waits {
		l.forget(r.Ref)
	}
	l.waitingMu.Unlock()
	if waits {
		r.Time, r.Outcome = time.Now().UTC(), Unanswered
		r.DurationMS += float64(mcpkit.AnswerTime.Milliseconds())
		_ = l.write(r) // there is no response to hold back
	}
}

// endWaiting writes the end records of all calls that wait for answers.
func (l *AuditLog) endWaiting() {
	l.waitingMu.Lock()
	waiting := l.waiting
	l.waiting, l.waitingBytes, l.ended = nil, 0, true
	l.waitingMu.Unlock()
	for _, call := range waiting {
		call.timer.Stop()
		_ = l.write(call.record) // Close returns the error
	}
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

// write appends a record.
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

// An auditError hides from callers why a record was not written.
type auditError struct{ err error }

func (e *auditError) Error() string { return fmt.Sprintf("middleware: the audit log: %v", e.err) }
func (e *auditError) UserMessage() string {
	return "the audit log cannot be written, so there is no result"
}
func (e *auditError) Unwrap() error { return e.err }

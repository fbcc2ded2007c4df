package otelmcp

import (
	"context"
	"errors"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/middleware"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// session measures the session that an initialize has begun.
func (t *telemetry) session(call *mcpkit.Call, start time.Time) {
	option := t.labels.option(labels{version: call.Version(), network: networkOf(call)})
	call.OnSessionEnd(func() { t.sessions.Record(context.Background(), time.Since(start).Seconds(), option) })
}

// question makes a span for a server request and puts its context into the request.
func (t *telemetry) question(ctx context.Context, call *mcpkit.Call, q *mcpkit.Question) func(error) {
	start := time.Now()
	l := labels{method: q.Method, version: call.Version(), network: networkOf(call)}
	ctx, span := t.tracer.Start(ctx, l.method, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(l.all()...))
	w3c.Inject(ctx, metaCarrier{set: q.Meta})
	return func(err error) {
		outcome := middleware.OK
		if err != nil {
			l.code, l.errorType, outcome = failureOf(err)
		}
		t.questions.Record(ctx, time.Since(start).Seconds(), t.labels.option(l))
		if span.IsRecording() {
			if q.ID != "" {
				span.SetAttributes(attribute.String("jsonrpc.request.id", idText(q.ID)))
			}
			if id := call.SessionID(); id != "" {
				span.SetAttributes(attribute.String("mcp.session.id", sessionID(id)))
			}
			end(span, l, outcome, err)
		}
		span.End()
	}
}

// failureOf returns why a server request failed. Clients may send any code, so only those of the
// specification become labels.
func failureOf(err error) (code, errorType string, outcome middleware.Outcome) {
	outcome = middleware.OutcomeOf(nil, err)
	rpc, ok := errors.AsType[*jsonrpc.Error](err)
	switch {
	case !ok && outcome == middleware.Failed:
		return "", "_OTHER", outcome
	case !ok:
		return "", string(outcome), outcome
	case rpc.Code < -32768 || rpc.Code > -32000 && rpc.Code != protocol.CodeUserRejected:
		return "", "_OTHER", outcome
	}
	code = strconv.Itoa(rpc.Code)
	return code, code, outcome
}

// sessionID returns a prefix of the ID: long enough to distinguish sessions, too short to take one
// over.
func sessionID(id string) string { return id[:min(len(id), 8)] }

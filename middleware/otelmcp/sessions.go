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

// question makes a span for a server request and puts its context into the request.
func (t *telemetry) question(ctx context.Context, call *mcpkit.Call, e mcpkit.TraceEvent) (context.Context, func(error)) {
	start := time.Now()
	l := labels{method: e.Name, version: call.Version(), network: networkOf(call)}
	ctx, span := t.tracer.Start(ctx, l.method, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(l.all()...))
	w3c.Inject(ctx, metaCarrier{set: e.Meta})
	return ctx, func(err error) {
		outcome := middleware.OK
		if err != nil {
			l.code, l.errorType, outcome = failureOf(err)
		}
		t.questions.Record(ctx, time.Since(start).Seconds(), t.labels.option(l))
		if span.IsRecording() {
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

// sessionID returns a prefix of the digest that is long enough to distinguish sessions.
func sessionID(id string) string { return id[:min(len(id), 8)] }

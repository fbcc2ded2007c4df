package middleware

import (
	"context"
	"time"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// A Recorder keeps count of calls: package expvarmcp has one for expvar, and package otelmcp is a middleware of its own. Its
// methods may be called concurrently, and should be quick: every call waits for them.
type Recorder interface {
	// CallBegan is called when a call begins, and when a further round of a call that asked its client begins (2026-07-28).
	CallBegan(ctx context.Context, call *mcpkit.Call)
	// CallEnded is called once for each CallBegan, when the call or its round is over.
	CallEnded(ctx context.Context, call *mcpkit.Call, m Measurement)
}

// A Measurement is what is known of a call that is over. Its texts come from few, whatever clients send, so that they may
// be labels.
type Measurement struct {
	Method  string           // of the protocol: "tools/call"
	Target  string           // name, URI or URI template of what was called; "" when nothing of the kind, or unknown
	Version protocol.Version // the revision
	Outcome Outcome
	// Round is how many times the client had sent answers to questions of this call: see mcpkit.Call.Round. A call that asks is
	// measured once for each round; those that count calls count round 0.
	Round int
	// Duration is from when the call reached this middleware to when it came back.
	Duration time.Duration
	// ParamsBytes is the size of the params, and ResultBytes that of the content; -1 when not known (see [SizeOf]).
	ParamsBytes, ResultBytes int
	// Repairs is how many values of the arguments were repaired: see mcpkit.Repair.
	Repairs int
}

// Metrics tells a [Recorder] of every call. It should be the outermost, so that it sees what the others refuse.
func Metrics(r Recorder) mcpkit.Middleware {
	return func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (result mcpkit.Result, err error) {
			start := time.Now()
			r.CallBegan(ctx, call)
			finished := false
			defer func() {
				m := measure(call, result, err, time.Since(start))
				if !finished {
					m.Outcome = Panicked // of a middleware further in; the panic goes on
				}
				r.CallEnded(ctx, call, m)
			}()
			result, err = next(ctx, call)
			finished = true
			return result, err
		}
	}
}

func measure(call *mcpkit.Call, result mcpkit.Result, err error, d time.Duration) Measurement {
	size, known := SizeOf(result)
	if !known {
		size = -1
	}
	return Measurement{
		Method: call.Method(), Target: call.Target(), Version: call.Version(), Outcome: OutcomeOf(result, err), Round: call.Round(),
		Duration: d, ParamsBytes: len(call.Params()), ResultBytes: size, Repairs: call.Repairs(),
	}
}

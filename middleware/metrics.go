package middleware

import (
	"context"
	"time"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// A Recorder counts calls for [Metrics]. Package expvarmcp has one for expvar. Its methods must be
// safe for concurrent use, and quick: every call waits for them.
type Recorder interface {
	// CallBegan is called when a call begins, and when it continues after a question (2026-07-28).
	CallBegan(ctx context.Context, call *mcpkit.Call)
	// CallEnded is called once for each CallBegan, when the call or its round ends.
	CallEnded(ctx context.Context, call *mcpkit.Call, m Measurement)
}

// A Measurement describes a call that has ended. Its strings have few distinct values, whatever
// clients send, so they can be labels.
type Measurement struct {
	Method  string           // for example "tools/call"
	Target  string           // name, URI or URI template; "" if there is none or it is not registered
	Version protocol.Version // of the protocol
	Outcome Outcome
	// Round is how many times the client has answered questions of this call; see
	// [mcpkit.Call.Round]. Each round is a Measurement. To count calls, count round 0.
	Round int
	// Duration is the time that the call or its round spent inside [Metrics].
	Duration time.Duration
	// ParamsBytes is the size of the params. ResultBytes is the size of the result's content, or -1
	// if it is not known.
	ParamsBytes, ResultBytes int
	// Repairs is how many argument values were repaired; see [mcpkit.Repair].
	Repairs int
}

// Metrics reports every call to a [Recorder]. Add it first, so that it sees the calls that other
// middleware refuses.
func Metrics(r Recorder) mcpkit.Middleware {
	return func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (result mcpkit.Result, err error) {
			start := time.Now()
			r.CallBegan(ctx, call)
			finished := false
			defer func() {
				m := measure(call, result, err, time.Since(start))
				if !finished {
					m.Outcome = Panicked // in inner middleware; the panic continues
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
	size := -1
	if result != nil {
		if n, known := result.Size(); known {
			size = n
		}
	}
	return Measurement{
		Method: call.Method(), Target: call.Target(), Version: call.Version(), Outcome: OutcomeOf(result, err), Round: call.Round(),
		Duration: d, ParamsBytes: len(call.Params()), ResultBytes: size, Repairs: call.Repairs(),
	}
}

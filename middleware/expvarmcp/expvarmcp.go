// Package expvarmcp keeps the metrics of mcpkit servers in expvar, which serves them at
// /debug/vars:
//
//	metrics := expvarmcp.New("mcp")
//	srv.Use(middleware.Metrics(metrics))
//
// It is a package of its own since expvar links net/http.
package expvarmcp

import (
	"context"
	"expvar"
	"strconv"
	"time"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/middleware"
)

// buckets are the upper bounds of the histogram of durations.
var buckets = [...]time.Duration{
	time.Millisecond, 5 * time.Millisecond, 25 * time.Millisecond, 100 * time.Millisecond,
	500 * time.Millisecond, 2500 * time.Millisecond, 10 * time.Second, 30 * time.Second,
}

// A Recorder is a [middleware.Recorder] that keeps, in one expvar.Map:
//
//	in_flight             calls that have begun and not ended
//	overdue               methods that still run though their callers were answered in their place (see mcpkit.Server.Overdue)
//	calls                 {"<method> <target> <outcome>": how many}; of calls that ask questions, the first round
//	rounds                {"<method> <target> <outcome>": how many}: the later rounds of calls that ask questions (2026-07-28)
//	duration_ms           {"<method> <target>": the sum, of what calls counts}
//	duration_le           {"<bound in seconds>": how many of what calls counts took at most that; "+Inf" has all}
//	params_bytes          the sum
//	result_bytes          the sum, where known
//	repairs               how many values of arguments were repaired (see mcpkit.Repair)
//
// Make one with New.
type Recorder struct {
	inFlight, overdue            expvar.Int
	params, results, repairs     expvar.Int
	calls, rounds, durations, le expvar.Map
	within                       [len(buckets) + 1]expvar.Int // what le has, in the order of the bounds
}

var _ middleware.Recorder = (*Recorder)(nil)

// New returns a Recorder that is published under name; like expvar.Publish it ends the program when
// the name is taken. The name "" publishes nothing: see [Recorder.Map].
func New(name string) *Recorder {
	r := &Recorder{}
	for i, bound := range buckets {
		r.le.Set(strconv.FormatFloat(bound.Seconds(), 'g', -1, 64), &r.within[i])
	}
	r.le.Set("+Inf", &r.within[len(buckets)])
	if name != "" {
		expvar.Publish(name, r.Map())
	}
	return r
}

// Map is what is published.
func (r *Recorder) Map() *expvar.Map {
	m := new(expvar.Map)
	m.Set("in_flight", &r.inFlight)
	m.Set("overdue", &r.overdue)
	m.Set("calls", &r.calls)
	m.Set("rounds", &r.rounds)
	m.Set("duration_ms", &r.durations)
	m.Set("duration_le", &r.le)
	m.Set("params_bytes", &r.params)
	m.Set("result_bytes", &r.results)
	m.Set("repairs", &r.repairs)
	return m
}

// CallBegan counts a call, or a round of one, that is in flight.
func (r *Recorder) CallBegan(context.Context, *mcpkit.Call) { r.inFlight.Add(1) }

// CallEnded counts a call, or a round of one, that is over.
func (r *Recorder) CallEnded(_ context.Context, call *mcpkit.Call, m middleware.Measurement) {
	r.inFlight.Add(-1)
	if call.Overdue() {
		r.overdue.Add(1)
		call.OnReturn(func() { r.overdue.Add(-1) })
	}
	r.repairs.Add(int64(m.Repairs))
	r.params.Add(int64(m.ParamsBytes))
	if m.ResultBytes > 0 {
		r.results.Add(int64(m.ResultBytes))
	}
	name := m.Method
	if m.Target != "" {
		name = m.Method + " " + m.Target
	}
	if m.Round > 0 {
		r.rounds.Add(name+" "+string(m.Outcome), 1)
		return
	}
	r.calls.Add(name+" "+string(m.Outcome), 1)
	r.durations.AddFloat(name, float64(m.Duration.Microseconds())/1000)
	for i := len(buckets); i >= 0 && (i == len(buckets) || m.Duration <= buckets[i]); i-- {
		r.within[i].Add(1)
	}
}

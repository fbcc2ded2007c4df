// Package expvarmcp publishes the metrics of mcpkit servers in expvar, which serves them at
// /debug/vars:
//
//	metrics := expvarmcp.New("mcp")
//	srv.Use(middleware.Metrics(metrics))
//
// It is a separate package because expvar imports net/http.
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

// A Recorder is a [middleware.Recorder] that counts, in one expvar.Map:
//
//	in_flight             calls in progress
//	overdue               methods that still run after their callers got a timeout error (see mcpkit.Server.Overdue)
//	calls                 {"<method> <target> <outcome>": calls}; if a call has several rounds, only the first
//	rounds                {"<method> <target> <outcome>": later rounds of calls (2026-07-28)}
//	duration_ms           {"<method> <target>": total duration of the calls in calls}
//	duration_le           {"<upper bound in seconds>": how many of the calls in calls took no longer; "+Inf" counts all}
//	params_bytes          total bytes of params
//	result_bytes          total bytes of results, if known
//	repairs               argument values that were repaired (see mcpkit.Repair)
//	fleet_operations      {"<operation> <set>": operations of the fleet's engine (see ObserveFleet)}
//	fleet_failures        {"<operation> <set>": those that failed}
//	fleet_duration_ms     {"<operation> <set>": their total duration}
//
// Create one with [New]. It is safe for concurrent use.
type Recorder struct {
	inFlight, overdue            expvar.Int
	params, results, repairs     expvar.Int
	calls, rounds, durations, le expvar.Map
	fleetOps, fleetFailures      expvar.Map
	fleetTimes                   expvar.Map
	within                       [len(buckets) + 1]expvar.Int // the values of le, in the order of buckets
}

var _ middleware.Recorder = (*Recorder)(nil)

// New returns a Recorder that is published under name. Like expvar.Publish, it ends the program if
// the name is already in use. With the name "", nothing is published; see [Recorder.Map].
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

// Map returns a map with the metrics.
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
	m.Set("fleet_operations", &r.fleetOps)
	m.Set("fleet_failures", &r.fleetFailures)
	m.Set("fleet_duration_ms", &r.fleetTimes)
	return m
}

// CallBegan counts a call, or a round of one, that begins.
func (r *Recorder) CallBegan(context.Context, *mcpkit.Call) { r.inFlight.Add(1) }

// CallEnded counts a call, or a round of one, that ends.
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

// Package expvarmcp keeps the metrics of mcpkit servers in expvar, which serves them at /debug/vars:
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
	"strings"
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
//	calls                 {"<method> <target> <outcome>": how many}
//	duration_ms           {"<method> <target>": the sum}
//	duration_le           {"<bound>": how many took at most that, of all methods; "+Inf" has all}
//	params_bytes          the sum
//	result_bytes          the sum, where known
//
// Make one with New.
type Recorder struct {
	inFlight, params, results expvar.Int
	calls, durations, le      expvar.Map
}

var _ middleware.Recorder = (*Recorder)(nil)

// New returns a Recorder that is published under name; like expvar.Publish it ends the program when the name is taken. The name ""
// publishes nothing: see [Recorder.Map].
func New(name string) *Recorder {
	r := &Recorder{}
	if name != "" {
		expvar.Publish(name, r.Map())
	}
	return r
}

// Map is what is published.
func (r *Recorder) Map() *expvar.Map {
	m := new(expvar.Map)
	m.Set("in_flight", &r.inFlight)
	m.Set("calls", &r.calls)
	m.Set("duration_ms", &r.durations)
	m.Set("duration_le", &r.le)
	m.Set("params_bytes", &r.params)
	m.Set("result_bytes", &r.results)
	return m
}

// CallBegan counts a call in flight.
func (r *Recorder) CallBegan(context.Context, *mcpkit.Call) { r.inFlight.Add(1) }

// CallEnded counts a call that is over.
func (r *Recorder) CallEnded(_ context.Context, _ *mcpkit.Call, m middleware.Measurement) {
	r.inFlight.Add(-1)
	name := m.Method
	if m.Target != "" {
		name = strings.Join([]string{m.Method, m.Target}, " ")
	}
	r.calls.Add(name+" "+string(m.Outcome), 1)
	r.durations.AddFloat(name, float64(m.Duration.Microseconds())/1000)
	for _, bound := range buckets {
		if m.Duration <= bound {
			r.le.Add(strconv.FormatFloat(bound.Seconds(), 'g', -1, 64), 1)
		}
	}
	r.le.Add("+Inf", 1)
	r.params.Add(int64(m.ParamsBytes))
	if m.ResultBytes > 0 {
		r.results.Add(int64(m.ResultBytes))
	}
}

package main

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/bench/internal/answer"
	"github.com/mcpkit/mcpkit-go/internal/bench/internal/load"
)

const (
	gateGroup = "gate"

	// In each round of the gate, a request is measured so many times, each so long. These glimpses
	// are so short that many are disturbed neither by the rest of the machine nor by the garbage
	// collector, and the rounds so many that the servers are measured at the same speed of the
	// processor.
	gateRounds = 40
	glimpses   = 15
	glimpse    = 500 * time.Microsecond
)

// planGate lists the rows of the gate.
func (b *bench) planGate() {
	servers, b.rounds = []string{"floor", "mcpkit"}, gateRounds
	for i := range load.Jobs[:3] {
		j := &load.Jobs[i]
		for _, way := range []struct {
			name   string
			server func(who string) answer.Func
		}{
			{"in memory", func(who string) answer.Func { return answer.Memory(who, 4) }},
			{"behind the HTTP handler", answer.Handler},
		} {
			b.add(&row{group: gateGroup, name: j.Name + " " + way.name, unit: "µs", f: func(who string) (float64, error) {
				return least(b.answerer(way.name+who, who, way.server), j)
			}})
		}
	}
}

// least returns the least CPU time of this thread for one request, in microseconds.
func least(f answer.Func, j *load.Job) (float64, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	msg := body(j)
	out := f(nil, msg)
	if err := j.Check(out); err != nil {
		return 0, err
	}
	best := math.Inf(1)
	for range glimpses {
		from, err := load.ThreadCPU()
		if err != nil {
			return 0, err
		}
		for n, now := 1, from; now-from < glimpse; n++ {
			for range 20 {
				out = f(out[:0], msg)
			}
			if now, err = load.ThreadCPU(); err != nil {
				return 0, err
			}
			if now-from >= glimpse {
				best = min(best, micros(now-from)/float64(20*n))
			}
		}
	}
	return best, nil
}

// low returns the lower quartile of the figures of a server, or NaN: not the least, which a moment of
// a faster processor decides.
func (r *row) low(who string) float64 {
	figures := slices.Sorted(slices.Values(r.figures[who]))
	if len(figures) == 0 {
		return math.NaN()
	}
	return figures[len(figures)/4]
}

// guard measures the rows of the gate up to three times, and fails if the ratio of one to the floor
// stays above that in the file by more than a part.
func (b *bench) guard() error {
	all, _, err := b.read()
	if err != nil {
		return err
	}
	if b.update {
		b.measure(b.rows)
		return b.write()
	}
	var above []string
	for range 3 {
		b.measure(b.rows)
		above = nil
		for _, t := range all {
			if !strings.HasPrefix(t.row, gateGroup+": ") {
				continue
			}
			now := b.figure(t)
			if math.IsNaN(now) {
				return fmt.Errorf("%s names no row that was measured: %q", b.targets, t.row)
			}
			line := fmt.Sprintf("%-40s %7s before, %6sx now", t.row, t.measured, number(now))
			fmt.Println(line)
			if now > value(t.measured)*(1+b.gate) {
				above = append(above, line)
			}
		}
		if len(above) == 0 {
			return nil
		}
		fmt.Println("above the gate; measuring again")
		for _, r := range b.rows {
			r.figures = nil
		}
	}
	return fmt.Errorf("%w:\n%s", errMissed, strings.Join(above, "\n"))
}

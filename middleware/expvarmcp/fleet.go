package expvarmcp

import (
	"context"
	"errors"
	"time"

	"github.com/mcpkit/mcpkit-go/fleet"
)

// ObserveFleet counts the operations of the engine of a fleet, too:
//
//	mcpkit.Fleet(engine, metrics.ObserveFleet())
func (r *Recorder) ObserveFleet() fleet.Option {
	return fleet.Observe(func(ctx context.Context, op, set string) (context.Context, func(error)) {
		start := time.Now()
		name := op
		if set != "" {
			name += " " + set
		}
		return ctx, func(err error) {
			r.fleetOps.Add(name, 1)
			r.fleetTimes.AddFloat(name, float64(time.Since(start))/float64(time.Millisecond))
			if err != nil && !expected(err) {
				r.fleetFailures.Add(name, 1)
			}
		}
	})
}

// expected reports whether err is an answer of the engine, or its caller has left.
func expected(err error) bool {
	return errors.Is(err, fleet.ErrNotFound) || errors.Is(err, fleet.ErrExists) || errors.Is(err, fleet.ErrConflict) || errors.Is(err, context.Canceled)
}

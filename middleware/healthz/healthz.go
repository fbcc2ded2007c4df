// Package healthz serves health checks over HTTP: is the program alive, and is it ready for
// requests.
//
//	health := healthz.New(healthz.Check{Name: "database", Run: db.PingContext})
//	mux.Handle("GET /livez", healthz.Live())
//	mux.Handle("GET /readyz", health)
//	...
//	health.Drain() // on SIGTERM, before the server is shut down
//
// The package is independent of MCP.
package healthz

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Live returns a handler that always responds with 200. It makes no checks, because restarting a
// program that cannot reach its database does not help.
func Live() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, "ok", nil, nil) })
}

// A Check checks one thing that the program needs, such as a database.
type Check struct {
	// Name is the name of the check in the response.
	Name string

	// Run returns an error if the check fails. The error is passed to OnFailure and is not in the
	// response, since anybody may be able to read that. ctx is done after Timeout.
	Run func(ctx context.Context) error

	// Timeout is how long Run may take. Zero means one second. If Run takes longer, the check
	// fails, and it keeps failing until Run returns; Run is not called again before.
	Timeout time.Duration

	// OnFailure receives errors, for example to log them. Nil ignores them.
	OnFailure func(err error)

	// Optional says that the program is ready even if the check fails: the response is 200, and
	// lists the check as degraded. Set it for what all replicas share. Without it they would all
	// leave the load balancer at once, with the requests that do not need what is missing.
	Optional bool
}

// Fleet returns an optional Check named "fleet". It fails while the engine that replicas share is
// not available. Pass the method Health of fleet.Fleet.
func Fleet(health func() error) Check {
	return Check{Name: "fleet", Optional: true, Run: func(context.Context) error { return health() }}
}

// Overdue returns a Check named "overdue methods". It fails while more than limit methods still run
// after their callers got a timeout error. Pass the method Overdue of mcpkit.Server as overdue.
func Overdue(overdue func() int, limit int) Check {
	return Check{Name: "overdue methods", Run: func(context.Context) error {
		if n := overdue(); n > limit {
			return fmt.Errorf("%d methods still run after their timeout; at most %d may", n, limit)
		}
		return nil
	}}
}

// Ready is a handler that responds with 200 if the program is ready for requests, and with 503 if a
// check that is not optional fails, or after Drain. The body is a JSON object that lists the failing
// checks. Create one with [New]. It is safe for concurrent use.
type Ready struct {
	checks   []*check
	draining atomic.Bool
}

// New returns a Ready that runs all checks concurrently for each request. Requests that arrive
// while a check runs share its result.
func New(checks ...Check) *Ready {
	r := &Ready{checks: make([]*check, len(checks))}
	for i, c := range checks {
		r.checks[i] = &check{Check: c}
	}
	return r
}

// A check is a Check and its current run.
type check struct {
	Check

	mu  sync.Mutex
	now *run // guarded by mu; nil if there is none
}

// A run is one call of a check.
type run struct {
	done chan struct{} // closed when ok is set
	ok   bool
}

// Drain makes every later request fail with 503, so that load balancers send no new requests while
// the last ones finish. It cannot be undone.
func (r *Ready) Drain() { r.draining.Store(true) }

// ServeHTTP responds whether the program is ready.
func (r *Ready) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if r.draining.Load() {
		reply(w, http.StatusServiceUnavailable, "draining", nil, nil)
		return
	}
	failing, degraded := r.failing(req.Context())
	if len(failing) > 0 {
		reply(w, http.StatusServiceUnavailable, "not ready", failing, degraded)
		return
	}
	reply(w, http.StatusOK, "ok", nil, degraded)
}

// failing returns the names of the failing checks, in order, and those of the optional ones.
func (r *Ready) failing(ctx context.Context) (required, optional []string) {
	failed := make([]bool, len(r.checks))
	var wg sync.WaitGroup
	for i := range r.checks {
		// Ends after the time of the check at the latest.
		wg.Go(func() { failed[i] = !r.checks[i].passes(ctx) })
	}
	wg.Wait()
	for i, f := range failed {
		switch {
		case f && r.checks[i].Optional:
			optional = append(optional, r.checks[i].Name)
		case f:
			required = append(required, r.checks[i].Name)
		}
	}
	return required, optional
}

// passes reports whether the check passes within its timeout.
func (c *check) passes(ctx context.Context) bool {
	timeout := c.Timeout
	if timeout <= 0 {
		timeout = time.Second
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	now := c.join(ctx, timeout)
	select {
	case <-now.done:
		return now.ok
	case <-timer.C:
	}
	select {
	case <-now.done: // it ended when its context was done
		return now.ok
	default:
		return false
	}
}

// join returns the current run, or starts one.
func (c *check) join(ctx context.Context, timeout time.Duration) *run {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now != nil {
		return c.now
	}
	now := &run{done: make(chan struct{})}
	c.now = now
	// Ends when the check returns; its context is done after the timeout.
	go func() {
		defer func() {
			c.mu.Lock()
			c.now = nil
			c.mu.Unlock()
			close(now.done)
		}()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
		defer cancel()
		now.ok = c.run(ctx)
	}()
	return now
}

// run calls the check. A check that panics, or ends its goroutine, fails.
func (c *check) run(ctx context.Context) (ok bool) {
	defer func() {
		if v := recover(); v != nil {
			c.tell(fmt.Errorf("healthz: check %q panicked: %v", c.Name, v))
			ok = false
		}
	}()
	if err := c.Run(ctx); err != nil {
		c.tell(fmt.Errorf("healthz: check %q: %w", c.Name, err))
		return false
	}
	return true
}

func (c *check) tell(err error) {
	if c.OnFailure != nil {
		defer func() { _ = recover() }() // a panic of OnFailure must not end the program
		c.OnFailure(err)
	}
}

func reply(w http.ResponseWriter, status int, state string, failing, degraded []string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	body, _ := json.Marshal(struct { // only strings, so encoding cannot fail
		Status   string   `json:"status"`
		Failing  []string `json:"failing,omitempty"`
		Degraded []string `json:"degraded,omitempty"`
	}{state, failing, degraded})
	_, _ = w.Write(append(body, '\n')) // the client may have disconnected
}

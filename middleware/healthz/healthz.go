// Package healthz answers the questions of orchestrators over HTTP: does the program live, and may
// it be sent requests.
//
//	health := healthz.New(healthz.Check{Name: "database", Run: db.PingContext})
//	mux.Handle("GET /livez", healthz.Live())
//	mux.Handle("GET /readyz", health)
//	...
//	health.Drain() // on SIGTERM, before the server is shut down
//
// It stands beside the protocol and knows nothing of it.
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

// Live answers 200 as long as the program answers anything at all. It checks nothing: a program
// that cannot reach its database is not helped by being started anew.
func Live() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, "ok", nil) })
}

// A Check is one thing without which a program cannot serve.
type Check struct {
	// Name names it in the answer.
	Name string

	// Run returns an error when it is not there. Its text is shown to whoever may ask, so it is
	// written to OnFailure and not into the answer. ctx ends after the time of the check.
	Run func(ctx context.Context) error

	// Timeout is how long Run may take. Zero means one second. One that does not look at its
	// context is not waited for any longer either; until it returns it is not run again, and fails.
	Timeout time.Duration

	// OnFailure is told of errors, for the log. Nil tells nobody.
	OnFailure func(err error)
}

// Overdue returns a Check named "overdue methods", which fails while more than limit methods are
// overdue: they run on though their callers were answered in their place. overdue counts them: give
// the method Overdue of mcpkit.Server.
func Overdue(overdue func() int, limit int) Check {
	return Check{Name: "overdue methods", Run: func(context.Context) error {
		if n := overdue(); n > limit {
			return fmt.Errorf("%d methods do not return though their time is over; at most %d may", n, limit)
		}
		return nil
	}}
}

// Ready is a handler that answers 200 while the program may be sent requests, and 503 when a check
// fails or after Drain. The body is a JSON object that says which checks fail. Make one with New;
// safe for concurrent use.
type Ready struct {
	checks   []*check
	draining atomic.Bool
}

// New returns a Ready that runs the checks, all at once, for each request. Requests that come while
// a check runs share it.
func New(checks ...Check) *Ready {
	r := &Ready{checks: make([]*check, len(checks))}
	for i, c := range checks {
		r.checks[i] = &check{Check: c}
	}
	return r
}

// A check is a Check and its run that is under way.
type check struct {
	Check

	mu  sync.Mutex
	now *run // guarded by mu; nil: none
}

// A run is one call of a check.
type run struct {
	done chan struct{} // closed when ok is there
	ok   bool
}

// Drain lets every later request be answered with 503, so that no new requests are sent here while
// the last ones end. It cannot be taken back.
func (r *Ready) Drain() { r.draining.Store(true) }

// ServeHTTP answers whether the program is ready.
func (r *Ready) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if r.draining.Load() {
		reply(w, http.StatusServiceUnavailable, "draining", nil)
		return
	}
	failing := r.failing(req.Context())
	if len(failing) > 0 {
		reply(w, http.StatusServiceUnavailable, "not ready", failing)
		return
	}
	reply(w, http.StatusOK, "ok", nil)
}

// failing names the checks that fail, in their order.
func (r *Ready) failing(ctx context.Context) []string {
	failed := make([]bool, len(r.checks))
	var wg sync.WaitGroup
	for i := range r.checks {
		// Ends after the time of the check at the latest.
		wg.Go(func() { failed[i] = !r.checks[i].passes(ctx) })
	}
	wg.Wait()
	var names []string
	for i, f := range failed {
		if f {
			names = append(names, r.checks[i].Name)
		}
	}
	return names
}

// passes reports whether the check passes in its time.
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
	case <-now.done: // it ended with its context
		return now.ok
	default:
		return false
	}
}

// join returns the run that is under way, or a new one.
func (c *check) join(ctx context.Context, timeout time.Duration) *run {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now != nil {
		return c.now
	}
	now := &run{done: make(chan struct{})}
	c.now = now
	// Ends when the check returns; it is told to after its time.
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

// run calls the check. One that panics, or ends its goroutine, fails.
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
		defer func() { _ = recover() }() // a log that breaks must not end the program
		c.OnFailure(err)
	}
}

func reply(w http.ResponseWriter, status int, state string, failing []string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	body, _ := json.Marshal(struct { // of strings: always encodable
		Status  string   `json:"status"`
		Failing []string `json:"failing,omitempty"`
	}{state, failing})
	_, _ = w.Write(append(body, '\n')) // who asked may have gone
}

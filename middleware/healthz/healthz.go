// Package healthz answers the questions of orchestrators over HTTP: does the program live, and may it be sent requests.
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

// Live answers 200 as long as the program answers anything at all. It checks nothing: a program that cannot reach its database
// is not helped by being started anew.
func Live() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, "ok", nil) })
}

// A Check is one thing without which a program cannot serve.
type Check struct {
	// Name names it in the answer.
	Name string

	// Run returns an error when it is not there. Its text is shown to whoever may ask, so it is written to OnFailure and
	// not into the answer. ctx ends after the time of the check.
	Run func(ctx context.Context) error

	// Timeout is how long Run may take. Zero means one second.
	Timeout time.Duration

	// OnFailure is told of errors, for the log. Nil tells nobody.
	OnFailure func(err error)
}

// Ready is a handler that answers 200 while the program may be sent requests, and 503 when a check fails or after Drain.
// The body is a JSON object that says which checks fail. Make one with New; safe for concurrent use.
type Ready struct {
	checks   []Check
	draining atomic.Bool
}

// New returns a Ready that runs the checks, all at once, for each request.
func New(checks ...Check) *Ready { return &Ready{checks: checks} }

// Drain lets every later request be answered with 503, so that no new requests are sent here while the last ones end.
// It cannot be taken back.
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
		// Ends when the check returns; it is told to after its time.
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

func (c *Check) passes(ctx context.Context) (ok bool) {
	timeout := c.Timeout
	if timeout <= 0 {
		timeout = time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
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

func (c *Check) tell(err error) {
	if c.OnFailure != nil {
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

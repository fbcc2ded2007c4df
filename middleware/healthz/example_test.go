package healthz_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"

	"github.com/mcpkit/mcpkit-go/middleware/healthz"
)

// A load balancer asks whether the program is ready; draining says no while calls still work.
func Example() {
	var broken error
	ready := healthz.New(healthz.Check{Name: "database", Run: func(context.Context) error { return broken }})
	ask := func() {
		w := httptest.NewRecorder()
		ready.ServeHTTP(w, httptest.NewRequest("GET", "/readyz", nil))
		fmt.Print(w.Code, " ", w.Body)
	}
	ask()
	broken = errors.New("connection refused")
	ask()
	broken = nil
	ready.Drain()
	ask()
	// Output:
	// 200 {"status":"ok"}
	// 503 {"status":"not ready","failing":["database"]}
	// 503 {"status":"draining"}
}

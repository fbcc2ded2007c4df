package healthz_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/middleware/healthz"
)

func TestMain(m *testing.M) { testkit.VerifyTestMain(m) }

func ask(h http.Handler) (status int, body string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	return w.Code, w.Body.String()
}

func TestReadyListsFailingChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failures []string
		tell := func(err error) { failures = append(failures, err.Error()) }
		fine := healthz.Check{Name: "fine", Run: func(context.Context) error { return nil }}
		ends := healthz.Check{Name: "ends", Run: func(context.Context) error { runtime.Goexit(); return nil }}
		mute := healthz.Check{Name: "mute", Run: func(context.Context) error { return errors.New("x") }, OnFailure: func(error) { panic("oops") }}
		broken := healthz.Check{Name: "broken", Run: func(context.Context) error { return errors.New("dial 10.0.0.7: refused") }, OnFailure: tell}
		slow := healthz.Check{Name: "slow", Run: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, Timeout: 3 * time.Second}
		panics := healthz.Check{Name: "panics", Run: func(context.Context) error { panic("oops") }, OnFailure: tell}
		for _, test := range []struct {
			name     string
			checks   []healthz.Check
			status   int
			body     string
			failures []string
			took     time.Duration
		}{
			{"no checks", nil, 200, `{"status":"ok"}`, nil, 0},
			{"all is well", []healthz.Check{fine, fine}, 200, `{"status":"ok"}`, nil, 0},
			{"one fails", []healthz.Check{fine, broken}, 503, `{"status":"not ready","failing":["broken"]}`, []string{`healthz: check "broken": dial 10.0.0.7: refused`}, 0},
			{"one panics", []healthz.Check{panics, fine}, 503, `{"status":"not ready","failing":["panics"]}`, []string{`healthz: check "panics" panicked: oops`}, 0},
			{"one ends its goroutine, and one has no log", []healthz.Check{ends, fine, mute}, 503, `{"status":"not ready","failing":["ends","mute"]}`, nil, 0},
			{"two hang, at once", []healthz.Check{slow, fine, slow}, 503, `{"status":"not ready","failing":["slow","slow"]}`, nil, 3 * time.Second},
		} {
			failures = nil
			start := time.Now()
			status, body := ask(healthz.New(test.checks...))
			require.Equal(t, test.status, status, test.name)
			require.Equal(t, test.body+"\n", body, test.name)
			require.Equal(t, test.failures, failures, test.name)
			require.Equal(t, test.took, time.Since(start), test.name)
		}
	})
}

func TestOverdueMethodsMakeAServerNotReady(t *testing.T) {
	overdue := 0
	var failure error
	check := healthz.Overdue(func() int { return overdue }, 2)
	check.OnFailure = func(err error) { failure = err }
	ready := healthz.New(check)
	for overdue = range 5 {
		status, body := ask(ready)
		if overdue <= 2 {
			require.Equal(t, http.StatusOK, status, overdue)
			continue
		}
		require.Equal(t, http.StatusServiceUnavailable, status, overdue)
		require.JSONEq(t, `{"status":"not ready","failing":["overdue methods"]}`, body)
		require.EqualError(t, failure, fmt.Sprintf(`healthz: check "overdue methods": %d methods still run after their timeout; at most 2 may`, overdue))
	}
}

func TestHangingCheckIsRunOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		var runs atomic.Int64
		ready := healthz.New(healthz.Check{Name: "deaf", Run: func(context.Context) error { runs.Add(1); <-let; return nil }, Timeout: time.Second})
		start := time.Now()
		for range 3 {
			status, _ := ask(ready)
			require.Equal(t, 503, status)
		}
		require.Equal(t, 3*time.Second, time.Since(start))
		require.EqualValues(t, 1, runs.Load(), "what hangs does not pile up")
		close(let)
		synctest.Wait()
		status, _ := ask(ready)
		require.Equal(t, 200, status)
		require.EqualValues(t, 2, runs.Load())
	})
}

func TestDisconnectedCallerDoesNotFailASharedCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ready := healthz.New(healthz.Check{Name: "slow", Run: func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(100 * time.Millisecond):
				return nil
			}
		}})
		gone, leave := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			ready.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil).WithContext(gone))
		})
		synctest.Wait()
		leave()
		status, _ := ask(ready)
		require.Equal(t, 200, status)
		wg.Wait()
	})
}

func TestDrainMakesTheServerNotReady(t *testing.T) {
	ran := false
	ready := healthz.New(healthz.Check{Name: "x", Run: func(context.Context) error { ran = true; return nil }})
	ready.Drain()
	status, body := ask(ready)
	require.Equal(t, 503, status)
	require.Equal(t, "{\"status\":\"draining\"}\n", body)
	require.False(t, ran)
	status, body = ask(healthz.Live())
	require.Equal(t, 200, status, "it lives all the same")
	require.Equal(t, "{\"status\":\"ok\"}\n", body)
}

func TestAFleetWithoutItsEngineIsReadyAndDegraded(t *testing.T) {
	var health, database error
	ready := healthz.New(healthz.Fleet(func() error { return health }), healthz.Check{Name: "database", Run: func(context.Context) error { return database }})
	says := func(status int, body string) {
		t.Helper()
		code, text := ask(ready)
		require.Equal(t, status, code)
		require.JSONEq(t, body, text)
	}
	says(200, `{"status":"ok"}`)
	health = errors.New("redis://:hunter2@10.0.0.1 refuses")
	says(200, `{"status":"ok","degraded":["fleet"]}`)
	database = errors.New("gone")
	says(503, `{"status":"not ready","failing":["database"],"degraded":["fleet"]}`)
	health, database = nil, nil
	says(200, `{"status":"ok"}`)

	strict := healthz.Fleet(func() error { return errors.New("gone") })
	strict.Optional = false
	ready = healthz.New(strict)
	says(503, `{"status":"not ready","failing":["fleet"]}`)
}

package healthz_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/middleware/healthz"
)

func TestAFleetWithoutItsEngineIsReadyAndDegraded(t *testing.T) {
	var health, database error
	ready := healthz.New(healthz.Fleet(func() error { return health }), healthz.Check{Name: "database", Run: func(context.Context) error { return database }})
	ask := func(status int, body string) {
		t.Helper()
		w := httptest.NewRecorder()
		ready.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/readyz", nil))
		require.Equal(t, status, w.Code)
		require.JSONEq(t, body, w.Body.String())
	}
	ask(200, `{"status":"ok"}`)
	health = errors.New("redis://:hunter2@10.0.0.1 refuses")
	ask(200, `{"status":"ok","degraded":["fleet"]}`)
	database = errors.New("gone")
	ask(503, `{"status":"not ready","failing":["database"],"degraded":["fleet"]}`)
	health, database = nil, nil
	ask(200, `{"status":"ok"}`)

	strict := healthz.Fleet(func() error { return errors.New("gone") })
	strict.Optional = false
	ready = healthz.New(strict)
	ask(503, `{"status":"not ready","failing":["fleet"]}`)

	w := httptest.NewRecorder()
	healthz.Live().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/livez", nil))
	require.Equal(t, 200, w.Code)
}

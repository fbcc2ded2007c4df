package expvarmcp_test

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/middleware/expvarmcp"
)

func TestOperationsOfTheFleetAreCounted(t *testing.T) {
	r := expvarmcp.New("")
	opts := fleet.Options{
		Seal:   func(_ string, plain []byte) []byte { return bytes.Clone(plain) },
		Open:   func(string, []byte) ([]byte, error) { return nil, errors.New("not needed") },
		Logger: slog.New(slog.DiscardHandler),
	}
	r.ObserveFleet()(&opts)
	engine := fleet.NewMemory(fleet.MemoryOptions{})
	f := fleet.New(engine, opts)
	set := f.Set("things", 1)
	for range 2 {
		_, _ = set.Create(t.Context(), fleet.Record{Key: "a", TTL: time.Hour})
	}
	_, _ = f.Last(t.Context(), "group", "log")
	require.NoError(t, engine.Close())
	_, _ = set.Get(t.Context(), "a")
	m := r.Map()
	require.JSONEq(t, `{"Create things":2,"Get things":1,"Last":1}`, m.Get("fleet_operations").String())
	require.JSONEq(t, `{"Get things":1}`, m.Get("fleet_failures").String())
	require.Contains(t, m.Get("fleet_duration_ms").String(), `"Get things"`)
}

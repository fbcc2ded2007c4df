package mcpkit_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/mcpkit"
)

func TestFleetNeedsKeysThatReplicasShare(t *testing.T) {
	engine := fleet.NewMemory(fleet.MemoryOptions{})
	defer engine.Close()
	key := mcpkit.StateKeys([]byte(strings.Repeat("k", 32)))
	for text, opts := range map[string][]mcpkit.Option{
		"add mcpkit.StateKeys(key)": {mcpkit.Fleet(engine)},
		"there is no engine":        {mcpkit.Fleet(nil), key},
		"Fleet is given twice":      {mcpkit.Fleet(engine), mcpkit.Fleet(engine), key},
	} {
		_, err := mcpkit.New(&library{}, opts...)
		require.ErrorContains(t, err, text)
	}
	srv, err := mcpkit.New(&library{}, key, mcpkit.Fleet(engine, fleet.Timeout(time.Second)))
	require.NoError(t, err)
	require.NotNil(t, srv.Fleet())
	require.NoError(t, srv.Start(t.Context()))
	require.NoError(t, srv.Close())
	_, err = engine.Count(t.Context(), "set", "")
	require.Error(t, err, "the server closes the engine")
}

func TestAServerThatWasNotStartedClosesTheEngine(t *testing.T) {
	engine := fleet.NewMemory(fleet.MemoryOptions{})
	srv, err := mcpkit.New(&library{}, mcpkit.StateKeys([]byte(strings.Repeat("k", 32))), mcpkit.Fleet(engine))
	require.NoError(t, err)
	_, err = engine.Count(t.Context(), "set", "")
	require.NoError(t, err)
	require.NoError(t, srv.Close())
	_, err = engine.Count(t.Context(), "set", "")
	require.Error(t, err)
	require.NoError(t, srv.Close())
}

func TestServersWithoutAFleetHaveNone(t *testing.T) {
	require.Nil(t, newServer(t, &library{}).Fleet())
}

func TestTheEngineIsOpenedWhenTheServerHasNoFaults(t *testing.T) {
	key := mcpkit.StateKeys([]byte(strings.Repeat("k", 32)))
	opened := 0
	from := mcpkit.FleetFrom(func() (fleet.Engine, error) { opened++; return nil, errors.New("connection refused") })
	for _, opts := range [][]mcpkit.Option{{from}, {from, key, mcpkit.PageSize(-1)}, {from, from, key}} {
		_, err := mcpkit.New(&library{}, opts...)
		require.Error(t, err)
		require.Zero(t, opened)
	}
	_, err := mcpkit.New(&library{}, from, key)
	require.EqualError(t, err, "connection refused")
	require.Equal(t, 1, opened)
	for text, open := range map[string]func() (fleet.Engine, error){
		"open is nil":        nil,
		"there is no engine": func() (fleet.Engine, error) { return nil, nil },
	} {
		_, err = mcpkit.New(&library{}, mcpkit.FleetFrom(open), key)
		require.ErrorContains(t, err, text)
	}
}

func TestRecordsAreSealedForTheirIDAndServer(t *testing.T) {
	engine := fleet.NewMemory(fleet.MemoryOptions{})
	defer engine.Close()
	key, next := []byte(strings.Repeat("k", 32)), []byte(strings.Repeat("n", 32))
	open := func(name string, current []byte, previous ...[]byte) *fleet.Set {
		srv, err := mcpkit.New(&library{}, mcpkit.Name(name, "1.0.0"), mcpkit.StateKeys(current, previous...), mcpkit.Fleet(engine.Open()))
		require.NoError(t, err)
		require.NoError(t, srv.Start(t.Context()))
		t.Cleanup(func() { _ = srv.Close() })
		return srv.Fleet().Set("records", 1)
	}
	own := open("library", key)
	_, err := own.Create(t.Context(), fleet.Record{Key: "7", Data: []byte("a record"), TTL: time.Hour})
	require.NoError(t, err)
	sealed, err := engine.Get(t.Context(), "records", "7")
	require.NoError(t, err)
	require.NotContains(t, string(sealed.Data), "record")
	sealed.Key = "8"
	_, err = engine.Create(t.Context(), "records", sealed)
	require.NoError(t, err)
	_, err = own.Get(t.Context(), "8")
	require.Error(t, err, "it is bound to its ID")

	r, err := open("library", next, key).Get(t.Context(), "7")
	require.NoError(t, err, "previous keys open it")
	require.Equal(t, "a record", string(r.Data))
	_, err = open("other", key).Get(t.Context(), "7")
	require.Error(t, err, "it is bound to its server")
}

func TestAReplicaWithTheRateTagWarnsOnceThatItCountsItsOwnCalls(t *testing.T) {
	engine := fleet.NewMemory(fleet.MemoryOptions{})
	defer engine.Close()
	for range 2 {
		var log bytes.Buffer
		srv, err := mcpkit.New(nil, mcpkit.Logger(slog.New(slog.NewTextHandler(&log, nil))),
			mcpkit.StateKeys([]byte(strings.Repeat("k", 32))), mcpkit.Fleet(engine.Open()))
		require.NoError(t, err)
		require.NoError(t, srv.Add(mcpkit.NewTool("draw", func() string { return "a card" }).Rate("2/h")))
		for range 2 {
			require.Contains(t, modern(t, srv).result("tools/call", `{"name":"draw"}`), "a card")
		}
		require.Contains(t, modern(t, srv).result("tools/call", `{"name":"draw"}`), "too many calls")
		require.Equal(t, 1, strings.Count(log.String(), "divide them by the number of replicas"))
		require.NoError(t, srv.Close())
	}
}

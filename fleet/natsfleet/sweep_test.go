package natsfleet

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/fleet/natsfleet/natsserver"
)

// Logs that have expired leave nothing behind, also if the replica that wrote them is gone.
func TestLogsThatHaveExpiredAreRemoved(t *testing.T) {
	s, err := natsserver.Start(t.Context(), natsserver.Options{})
	require.NoError(t, err)
	defer s.Close()
	nc, err := s.Connect()
	require.NoError(t, err)
	defer nc.Close()
	open := func() *Engine {
		e := New(nc, &Options{Memory: true})
		t.Cleanup(func() { require.NoError(t, e.Close()) })
		return e
	}
	writer := open()
	keep := func(ttl time.Duration) fleet.Keep { return fleet.Keep{Entries: 9, Bytes: 99, TTL: ttl} }
	require.NoError(t, writer.Append(t.Context(), "g", "short", fleet.Entry{Seq: 1}, keep(time.Second)))
	require.NoError(t, writer.Append(t.Context(), "g", "long", fleet.Entry{Seq: 1}, keep(time.Hour)))
	require.NoError(t, writer.Append(t.Context(), "g", "dropped", fleet.Entry{Seq: 1}, keep(time.Second)))
	require.NoError(t, writer.Close())

	e := open()
	// Half an hour later, all logs but one have expired.
	e.skew = 30 * time.Minute
	require.NoError(t, e.sweep(t.Context()))
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	count := func(subject string) (n uint64) {
		all, err := js.Stream(t.Context(), "mcpkit-logs")
		require.NoError(t, err)
		info, err := all.Info(t.Context(), jetstream.WithSubjectFilter(subject))
		require.NoError(t, err)
		for _, of := range info.State.Subjects {
			n += of
		}
		return n
	}
	require.Zero(t, count("mcpkit.logs.g.short.>"))
	require.EqualValues(t, 1, count("mcpkit.logs.g.long.>"))
	n, err := e.Count(t.Context(), headSet, "")
	require.NoError(t, err)
	require.Equal(t, 1, n, "the log that lives")
	e.skew = 3 * time.Hour
	require.NoError(t, e.sweep(t.Context()))
	require.Zero(t, count("mcpkit.logs.>"))
	n, err = e.Count(t.Context(), headSet, "")
	require.NoError(t, err)
	require.Zero(t, n)
}

package redisfleet_test

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/fleet"
)

// The package comment has these figures.
func TestRecordsAndEntriesTakeLittleMemory(t *testing.T) {
	const count, size = 5000, 600
	s := start(t, "--appendfsync", "no")
	client := s.client()
	e := s.engine(client)
	ctx := t.Context()
	used := func() int {
		text, err := client.Info(ctx, "memory").Result()
		require.NoError(t, err)
		n, err := strconv.Atoi(regexp.MustCompile(`used_memory:(\d+)`).FindStringSubmatch(text)[1])
		require.NoError(t, err)
		return n
	}
	create := func(set string, change func(r *fleet.Record, i int)) int {
		before := used()
		for i := range count {
			r := fleet.Record{Key: fmt.Sprintf("%043d", i), Data: make([]byte, size), TTL: time.Hour}
			change(&r, i)
			_, err := e.Create(ctx, set, r)
			require.NoError(t, err)
		}
		return (used()-before)/count - size
	}
	plain := create("plain", func(*fleet.Record, int) {})
	full := create("full", func(r *fleet.Record, i int) { r.Group, r.Due = fmt.Sprintf("%043d", i%100), time.Minute })
	t.Logf("a record takes %d bytes besides its data, one with a group that becomes due %d", plain, full)
	require.Less(t, plain, 650)
	require.Less(t, full, 1300)
	before := used()
	for i := range count {
		require.NoError(t, e.Append(ctx, "group", "log", fleet.Entry{Seq: uint64(i + 1), Data: make([]byte, size)}, fleet.Keep{Entries: count, Bytes: 1 << 30, TTL: time.Hour}))
	}
	each := (used()-before)/count - size
	t.Logf("an entry takes %d bytes besides its data", each)
	require.Less(t, each, 200)
}

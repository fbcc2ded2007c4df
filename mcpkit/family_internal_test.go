package mcpkit

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestServersThatAreNotMountedInOneAnotherDoNotWaitForEachOther(t *testing.T) {
	a, b, c := MustNew(nil), MustNew(nil), MustNew(nil)
	a.MustMount("b", b)
	require.Same(t, a.family.Last(), b.family.Last(), "a and b are one family")
	unlock := b.family.Lock()
	require.NoError(t, c.Add(NewTool("x", func() {})), "c is another")
	unlock()
	require.NoError(t, a.Add(NewTool("x", func() {})))
	require.Equal(t, a.family.Last(), b.family.Last())
	require.NotEqual(t, a.family.Last(), c.family.Last())
}

func TestARefusedMountJoinsNothing(t *testing.T) {
	a, b := MustNew(nil), MustNew(nil)
	require.NoError(t, a.Add(NewTool("x", func() {})))
	require.NoError(t, b.Add(NewTool("x", func() {})))
	require.ErrorContains(t, a.Mount("", b), "registered twice")
	require.NotEqual(t, a.family.Last(), b.family.Last())
	require.NoError(t, a.Add(NewTool("y", func() {})), "and nothing is locked")
	require.NoError(t, b.Add(NewTool("y", func() {})))
}

// TestServersMountedInOneAnotherAtTheSameTime mounts servers in one another from several
// goroutines. Some mounts are refused, nothing hangs, and each server has the tools of the servers
// in it.
func TestServersMountedInOneAnotherAtTheSameTime(t *testing.T) {
	const servers = 5
	all := make([]*Server, servers)
	for i := range all {
		all[i] = MustNew(nil)
		require.NoError(t, all[i].Add(NewTool(fmt.Sprintf("t%d", i), func() {})))
	}
	var wg sync.WaitGroup
	for worker := range servers {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(1, uint64(worker)))
			for n := range 3 {
				from, to := rnd.IntN(servers), rnd.IntN(servers)
				_ = all[from].Mount(fmt.Sprintf("m%d_%d", worker, n), all[to]) // a circle is refused
				if err := all[worker].Add(NewTool(fmt.Sprintf("own%d", n), func() {})); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for i, s := range all {
		want := 4 // its own
		for _, m := range s.mounts.all() {
			want += m.child.catalog.Load().tools.len()
		}
		require.Equal(t, want, s.catalog.Load().tools.len(), "server %d", i)
	}
}

package mcpkit

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func bareTool(key string) *tool {
	t := &tool{entry: entry{key: key, site: "site of " + key}}
	t.setToolWire()
	return t
}

func keysOf(l list[*tool]) []string {
	keys := []string{}
	for _, it := range l.sorted {
		keys = append(keys, it.key)
	}
	return keys
}

func TestListsNeverChange(t *testing.T) {
	var l list[*tool]
	require.NoError(t, l.add("tool", []*tool{bareTool("b"), bareTool("d")}))
	before := l
	require.NoError(t, l.add("tool", []*tool{bareTool("c"), bareTool("a")}))
	require.True(t, l.remove(named([]string{"d", "e"})))
	require.False(t, l.remove(named([]string{"e"})))
	require.Equal(t, []string{"a", "b", "c"}, keysOf(l))
	require.Equal(t, []string{"b", "d"}, keysOf(before))
	_, ok := before.get("a")
	require.False(t, ok)
	key, ok := l.key([]byte("a"))
	require.True(t, ok)
	require.Equal(t, "a", key)
	_, ok = l.key([]byte(`\u0061`))
	require.False(t, ok)
}

func TestListsNameBothPlaces(t *testing.T) {
	var l list[*tool]
	require.NoError(t, l.add("tool", []*tool{bareTool("a")}))
	require.EqualError(t, l.add("tool", []*tool{bareTool("b"), bareTool("a"), bareTool("b")}), `mcpkit: tool "a" is registered twice, by site of a and site of a
mcpkit: tool "b" is registered twice, by site of b and site of b`)
	require.Equal(t, []string{"a"}, keysOf(l))
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
		for _, m := range s.mounts {
			want += len(m.child.catalog.Load().tools.sorted)
		}
		require.Len(t, s.catalog.Load().tools.sorted, want, "server %d", i)
	}
}

package mcpkit

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

func bareTool(key string) *tool {
	t := &tool{entry: entry{key: key, site: "site of " + key}}
	t.setToolWire()
	return t
}

// TestRegistryAgainstMap adds and removes entries at random, and drops some of the changes. In the
// end, it compares each registry that was ever current with a map.
func TestRegistryAgainstMap(t *testing.T) {
	type state struct {
		r    registry[*tool]
		want map[string]*tool
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	now := state{want: map[string]*tool{}}
	var states []state
	for range 600 {
		want := map[string]*tool{}
		for k, v := range now.want {
			want[k] = v
		}
		next := now.r
		var err error
		if rnd.IntN(4) == 0 {
			keys := []string{fmt.Sprint(rnd.IntN(60)), fmt.Sprint(rnd.IntN(60))}
			there := want[keys[0]] != nil || want[keys[1]] != nil
			require.Equal(t, there, next.remove(named(keys)))
			delete(want, keys[0])
			delete(want, keys[1])
		} else {
			items := make([]*tool, 1+rnd.IntN(3))
			taken := false
			for i := range items {
				items[i] = bareTool(fmt.Sprint(rnd.IntN(60)))
				taken = taken || want[items[i].key] != nil
				want[items[i].key] = items[i]
			}
			err = next.add("tool", items)
			require.Equal(t, taken, err != nil)
		}
		switch {
		case err != nil, rnd.IntN(5) == 0: // refused, or dropped because another server refused it
		default:
			now = state{next, want}
			states = append(states, now)
		}
	}
	require.Greater(t, len(states), 100)
	for _, s := range states {
		require.Equal(t, len(s.want), s.r.len())
		require.True(t, slices.Equal(slices.Sorted(maps.Keys(s.want)), keysOf(s.r)))
		for key := range 60 {
			it, ok := s.r.get(fmt.Sprint(key))
			require.Same(t, s.want[fmt.Sprint(key)], it)
			require.Equal(t, ok, it != nil)
			name, ok := s.r.key([]byte(fmt.Sprint(key)))
			require.Equal(t, it != nil, ok)
			require.Equal(t, ok, name == fmt.Sprint(key))
		}
	}
}

func keysOf(r registry[*tool]) []string {
	var keys []string
	for _, it := range r.all() {
		keys = append(keys, it.key)
	}
	return keys
}

func TestRegistryNamesBothPlaces(t *testing.T) {
	var r registry[*tool]
	require.NoError(t, r.add("tool", []*tool{bareTool("a")}))
	require.EqualError(t, r.add("tool", []*tool{bareTool("b"), bareTool("a"), bareTool("b")}), `mcpkit: tool "a" is registered twice, by site of a and site of a
mcpkit: tool "b" is registered twice, by site of b and site of b`)
	require.Equal(t, []string{"a"}, keysOf(r))
}

// TestAddingOneByOneGrowsWithWhatIsAdded shows that four times as many tools need four times the
// memory, and not sixteen times.
func TestAddingOneByOneGrowsWithWhatIsAdded(t *testing.T) {
	few, many := bytesToAdd(t, 1000), bytesToAdd(t, 4000)
	require.Less(t, many, 7*few)
}

// bytesToAdd is what adding n tools one by one allocates, apart from the tools.
func bytesToAdd(t *testing.T, n int) uint64 {
	tools := make([]draft, n)
	for i := range tools {
		tools[i] = draft{bareTool(fmt.Sprint(i))}
	}
	s, err := New(nil)
	require.NoError(t, err)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, one := range tools {
		require.NoError(t, s.add(one))
	}
	runtime.ReadMemStats(&after)
	require.Equal(t, n, s.catalog.Load().tools.len())
	return after.TotalAlloc - before.TotalAlloc
}

// TestTheListOfManyAdditionsIsMadeOnce shows that the first call makes the list that calls read,
// and that later calls share it.
func TestTheListOfManyAdditionsIsMadeOnce(t *testing.T) {
	s, err := New(nil)
	require.NoError(t, err)
	var views []*view[*tool]
	for i := range 10 {
		require.NoError(t, s.add(draft{bareTool(fmt.Sprint(i))}))
		views = append(views, s.catalog.Load().tools.view)
	}
	for _, v := range views {
		require.Nil(t, v.sorted)
	}
	require.Len(t, s.catalog.Load().tools.all(), 10)
	require.Same(t, &s.catalog.Load().tools.all()[0], &s.catalog.Load().tools.all()[0])
	require.Nil(t, views[8].sorted)
	_, known := s.catalog.Load().tools.key(jsonx.AppendString(nil, "9")[1:2])
	require.True(t, known)
}

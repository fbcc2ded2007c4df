package ordered_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mcpkit/mcpkit-go/fleet/internal/ordered"
)

// Whatever is added, scheduled and removed, an index lists what a slice with the same items has.
func TestAnIndexListsWhatASliceHas(t *testing.T) {
	start := time.Unix(0, 0)
	type entry struct {
		key, group   string
		due, expires int
	}
	rapid.Check(t, func(t *rapid.T) {
		x := ordered.New[int]()
		var want []entry
		keys := func(all []*ordered.Item[int]) (keys []string) {
			for _, i := range all {
				keys = append(keys, i.Key)
			}
			return keys
		}
		for n := range rapid.IntRange(1, 60).Draw(t, "steps") {
			e := entry{fmt.Sprint("k", rapid.IntRange(0, 20).Draw(t, "key")), rapid.SampledFrom([]string{"", "g", "h"}).Draw(t, "group"), 100 + n, 1000 + n}
			i := x.Get(e.key)
			switch remove := rapid.Bool().Draw(t, "remove"); {
			case i != nil && remove:
				x.Remove(i)
				want = slices.DeleteFunc(want, func(old entry) bool { return old.key == e.key })
			case i == nil:
				i = x.Add(e.key, e.group, n)
				want = append(want, e)
				x.Schedule(i, start.Add(time.Duration(e.due)), start.Add(time.Duration(e.expires)))
			}
			after := fmt.Sprint("k", rapid.IntRange(0, 20).Draw(t, "after"))
			var listed []string
			for _, e := range want {
				if e.group == "g" && e.key > after {
					listed = append(listed, e.key)
				}
			}
			slices.SortFunc(listed, strings.Compare)
			require.Equal(t, listed[:min(3, len(listed))], keys(x.List("g", after, 3)))
			require.Equal(t, len(want), x.Count(""))
		}
		var all []string
		for _, e := range want {
			all = append(all, e.key)
		}
		require.Equal(t, all, keys(x.Due(start.Add(999), 100)), "those that have been due longest first")
		require.Empty(t, x.Expire(start.Add(999)))
		require.Equal(t, all, keys(x.Expire(start.Add(9999))))
		require.Zero(t, x.Count(""))
		require.Zero(t, x.Count("g"))
	})
}

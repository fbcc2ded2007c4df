package limits_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mcpkit/mcpkit-go/internal/limits"
)

var start = time.Unix(1_790_000_000, 0)

func at(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

// TestMapMatchesAModel compares the map with a simple implementation.
func TestMapMatchesAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(0, 4).Draw(t, "most")
		m := limits.NewMap[int, int](most)
		type entry struct{ key, value, until int }
		var model []entry // latest use first
		drop := func(key int) (e entry, ok bool) {
			for i := range model {
				if model[i].key == key {
					e = model[i]
					model = append(model[:i:i], model[i+1:]...)
					return e, true
				}
			}
			return e, false
		}
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			key, now := rapid.IntRange(0, 5).Draw(t, "key"), rapid.IntRange(0, 10).Draw(t, "now")
			if rapid.Bool().Draw(t, "put") {
				value, until := rapid.Int().Draw(t, "value"), rapid.IntRange(0, 10).Draw(t, "until")
				m.Put(key, value, at(until))
				_, _ = drop(key)
				model = append([]entry{{key, value, until}}, model...)
				model = model[:min(most, len(model))]
			} else {
				e, ok := drop(key)
				if ok = ok && now < e.until; ok {
					model = append([]entry{e}, model...)
				}
				got, found := m.Get(key, at(now))
				require.Equal(t, ok, found)
				if ok {
					require.Equal(t, e.value, got)
				}
			}
			require.Equal(t, len(model), m.Len())
		}
	})
}

func TestManyAtOnce(t *testing.T) {
	m := limits.NewMap[int, int](8)
	var wg sync.WaitGroup
	for g := range 8 {
		// Ends after its iterations.
		wg.Go(func() {
			for i := range 500 {
				m.Put((g+i)%16, i, at(10))
				_, _ = m.Get(i%16, at(i%20))
			}
		})
	}
	wg.Wait()
	require.LessOrEqual(t, m.Len(), 8)
}

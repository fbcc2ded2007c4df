package main

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/protocol"
)

// TestATaskOutlivesTheReplicaThatRunsIt kills the replica that runs a task at the worst moment: an
// effect has happened, and the replica does not know it yet.
func TestATaskOutlivesTheReplicaThatRunsIt(t *testing.T) {
	needRedis(t)
	for _, v := range []protocol.Version{protocol.V20251125, protocol.V20260728} {
		t.Run(string(v), func(t *testing.T) {
			s, err := open(t.Context(), options{replicas: 3, address: "127.0.0.1:0"})
			require.NoError(t, err)
			defer s.Close()
			runner := make(chan string, 1)
			var first sync.Once
			s.books.mu.Lock()
			s.books.hold = func(r *http.Request) {
				first.Do(func() {
					runner <- r.FormValue("by")
					<-r.Context().Done() // until the replica is dead
				})
			}
			s.books.mu.Unlock()
			c := &customer{shop: s, r: &report{}, version: v, name: "one"}
			require.NoError(t, c.connect(t.Context()))
			defer c.close()
			wait, err := c.startTask(t.Context(), kind{tool: "deliver", args: map[string]string{"id": "1"}})
			require.NoError(t, err)
			var i int
			_, err = fmt.Sscanf(<-runner, "replica-%d", &i)
			require.NoError(t, err)
			require.NoError(t, s.kill(i))

			text, err := wait(t.Context())
			require.NoError(t, err)
			require.Equal(t, "delivered 1", text)
			require.Greater(t, s.books.count("run", "1"), undisturbedRuns)
			require.Positive(t, s.books.repeats(), "another replica packs again, with the same key")
			for _, effect := range effects {
				require.Equal(t, 1, s.books.count(effect, "1"), effect)
			}
		})
	}
}

package mcpkit_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/mcpkit"
)

type rationed struct {
	_ struct {
		Draw mcpkit.Tool `rate:"2/m"`
		Roll mcpkit.Tool `rate:"2/m"`
	}
}

func (*rationed) Draw() string { return "a card" }
func (*rationed) Roll() string { return "a six" }

func TestTheRateTagCountsForAllReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := fleet.NewMemory(fleet.MemoryOptions{})
		defer engine.Close()
		var all []*mcpkit.Server
		for range 2 {
			srv, err := mcpkit.New(&rationed{}, mcpkit.StateKeys([]byte(strings.Repeat("k", 32))), mcpkit.Fleet(engine.Open()))
			require.NoError(t, err)
			require.NoError(t, srv.Start(t.Context()))
			defer srv.Close()
			all = append(all, srv)
		}
		draw := func(srv *mcpkit.Server, tool string) string { return callText(t, srv, tool) }
		require.Equal(t, "a card", draw(all[0], "draw"))
		require.Equal(t, "a card", draw(all[1], "draw"))
		require.Equal(t, "too many calls; try again in 30s", draw(all[0], "draw"))
		require.Equal(t, "too many calls; try again in 30s", draw(all[1], "draw"))
		require.Equal(t, "a six", draw(all[1], "roll"), "each tool has a limit of its own")
		time.Sleep(30 * time.Second)
		require.Equal(t, "a card", draw(all[1], "draw"))
		require.Contains(t, draw(all[0], "draw"), "too many calls")
	})
}

func callText(t *testing.T, srv *mcpkit.Server, tool string) string {
	t.Helper()
	var r struct{ Content []struct{ Text string } }
	require.NoError(t, json.Unmarshal([]byte(modern(t, srv).result("tools/call", `{"name":"`+tool+`"}`)), &r))
	require.NotEmpty(t, r.Content)
	return r.Content[0].Text
}

package mcpkit_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/mcptest"
	"github.com/mcpkit/mcpkit-go/protocol"
)

type parrot struct {
	_ struct {
		Repeat mcpkit.Tool
	}
}

type parrotInput struct {
	Mark  string `json:"mark"`
	Times int    `json:"times"`
	Talk  bool   `json:"talk" default:"false"`
}

func (*parrot) Repeat(c *mcpkit.Call, in parrotInput) string {
	if in.Talk {
		c.Progress(1, 2, "")
	}
	return strings.Repeat(in.Mark, in.Times)
}

// Transports lend their buffers for results, and reuse them. Each call here has a text of its own, and
// a third of the replies are streams.
func TestResultsOfConcurrentCallsDoNotMix(t *testing.T) {
	for name, on := range map[string]func(*mcptest.Server) *mcptest.Server{
		"memory": func(s *mcptest.Server) *mcptest.Server { return s },
		"stdio":  (*mcptest.Server).Stdio,
		"HTTP":   (*mcptest.Server).HTTP,
	} {
		for _, version := range []protocol.Version{protocol.V20251125, protocol.V20260728} {
			t.Run(fmt.Sprintf("%s, %s", name, version), func(t *testing.T) {
				c := on(mcptest.New(t, &parrot{})).Version(version).Client()
				var callers sync.WaitGroup
				for caller := range 16 {
					callers.Go(func() {
						for i := range 30 {
							in := parrotInput{Mark: fmt.Sprintf("%d.%d;", caller, i), Times: 1 << (i % 15), Talk: i%3 == 0}
							text, err := client.Call[string](t.Context(), c, "repeat", in, client.OnProgress(func(*protocol.ProgressParams) {}))
							assert.NoError(t, err)
							assert.True(t, text == strings.Repeat(in.Mark, in.Times), "the text of another call: %.40q", text)
						}
					})
				}
				callers.Wait()
			})
		}
	}
}

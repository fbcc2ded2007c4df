package client_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/protocol"
)

func TestBurstOfLogMessagesArrivesCompletely(t *testing.T) {
	t.Parallel()
	const n = 900
	onEveryEnd(t, func(t *testing.T, _ *Queue, c *client.Client, _ func()) {
		var got []string
		_, err := client.Call[string](t.Context(), c, "say", map[string]int{"n": n}, client.LogLevel(protocol.LevelInfo),
			client.OnLog(func(p *protocol.LoggingMessageParams) { got = append(got, fmt.Sprint(p.Data)) }))
		require.NoError(t, err)
		require.Len(t, got, n)
	})
}

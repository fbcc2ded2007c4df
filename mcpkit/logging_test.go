package mcpkit_test

import (
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/slogtest"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// TestClientLogKeepsTheRulesOfSlog runs slog's tests of handlers on the handler that sends records
// to clients.
func TestClientLogKeepsTheRulesOfSlog(t *testing.T) {
	var client *peer
	slogtest.Run(t, func(t *testing.T) slog.Handler {
		srv := newServer(t, &Library{}, mcpkit.Logger(slog.New(slog.DiscardHandler)))
		handler, done := make(chan slog.Handler), make(chan struct{})
		require.NoError(t, srv.Add(mcpkit.NewTool("log", func(call *mcpkit.Call) string {
			handler <- call.Logger().Handler()
			<-done // messages after the call are not sent
			return ""
		})))
		client = legacy(t, srv, protocol.V20250618)
		var call sync.WaitGroup
		call.Go(func() { client.result("tools/call", `{"name":"log"}`) })
		t.Cleanup(func() { close(done); call.Wait() })
		return <-handler
	}, func(t *testing.T) map[string]any {
		sent := client.take()
		require.Len(t, sent, 1)
		m, bad := jsonrpc.Decode([]byte(sent[0]))
		require.Nil(t, bad)
		var p protocol.LoggingMessageParams
		require.NoError(t, json.Unmarshal(m.Request.Params, &p))
		record := map[string]any{}
		if json.Unmarshal(p.Data, &record) != nil {
			var text string
			require.NoError(t, json.Unmarshal(p.Data, &text))
			record = map[string]any{"msg": text}
		}
		record["level"] = string(p.Level)
		// Log messages of the protocol have no time.
		if !strings.HasSuffix(t.Name(), "/zero-time") {
			record["time"] = "none"
		}
		return record
	})
}

package mcpkit_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/slogtest"
	"time"

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

func TestDataOfLogMessages(t *testing.T) {
	srv := newServer(t, nil, mcpkit.Logger(slog.New(slog.DiscardHandler)))
	require.NoError(t, srv.Add(mcpkit.NewTool("log", func(call *mcpkit.Call) string {
		log := call.Logger()
		log.Info("plain")
		log.With("n", 1, "took", time.Minute).WithGroup("g").Info("all", "err", io.EOF, "n", uint64(math.MaxUint64), "n", 2, "bad", func() {})
		return ""
	})))
	p := legacy(t, srv, protocol.V20250618)
	p.result("tools/call", `{"name":"log"}`)
	sent := p.take()
	require.Len(t, sent, 2)
	require.JSONEq(t, `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","logger":"log","data":"plain"}}`, sent[0])
	require.JSONEq(t, `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","logger":"log","data":
		{"msg":"all","n":1,"took":"1m0s","g":{"err":"EOF","n":2,"bad":"!ERROR:json: unsupported type: func()"}}}}`, sent[1])
}

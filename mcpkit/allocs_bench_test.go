//go:build !race && !mcpkit_plain

package mcpkit_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// A notification is encoded once for all sessions, and each stream has memory to write it. The rest
// is the events that are stored. A subscription allocates the notification and its params, which
// name the subscription.
func TestANotificationToManyStreamsAllocatesAlmostNothingForEach(t *testing.T) {
	const streams = 100
	for family, most := range map[string]float64{"sessions": 0.5, "subscriptions": 2.5} {
		t.Run(family, func(t *testing.T) {
			a := newAudience(t, family, streams)
			require.LessOrEqual(t, testing.AllocsPerRun(20, a.notify)/streams, most)
		})
	}
}

// Allocations are the same on every machine, so the test expects exact numbers. The race detector
// adds allocations of its own.
func TestCallsAllocateNoMoreThanTheyNeed(t *testing.T) {
	s := newBenchServer(t)
	for _, test := range []struct {
		name   string
		method string
		params string
		most   float64
	}{
		{name: "two numbers", method: "tools/call", params: `"name":"add","arguments":{"a":19,"b":23}`, most: 12},
		{
			name: "nested arguments, ten structs", method: "tools/call", most: 20,
			params: `"name":"search","arguments":{"query":"fast servers","limit":10,"tags":["go","mcp"],"filter":{"field":"year","op":"gt","value":"2024"}}`,
		},
		{name: "64 kB of text", method: "tools/call", params: `"name":"blob"`, most: 11},
		{name: "list", method: "tools/list", params: `"_":1`, most: 8},
	} {
		for _, family := range benchFamilies {
			t.Run(test.name+", "+family.name, func(t *testing.T) {
				var peer transport.Peer = newBenchPeer(t, s, family.meta != "")
				body := []byte(`{"jsonrpc":"2.0","id":7,"method":"` + test.method + `","params":{` + test.params + family.meta + `}}`)
				out := make([]byte, 0, 256<<10)
				got := testing.AllocsPerRun(200, func() {
					msg, _ := jsonrpc.Decode(body)
					out = jsonrpc.AppendResponse(out[:0], s.ServeRPC(context.Background(), msg.Request, peer))
				})
				require.Contains(t, string(out), `"result":{`)
				require.NotContains(t, string(out), `"isError":true`)
				require.LessOrEqual(t, got, test.most)
			})
		}
	}
}

package main

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
)

func TestMain(m *testing.M) { testkit.VerifyTestMain(m) }

func TestEachTransportIsServedAtItsPath(t *testing.T) {
	srv, err := newServer()
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	listening, ended := make(chan string, 1), make(chan error, 1)
	// Ends with ctx.
	go func() {
		ended <- srv.Serve(ctx, endpoints{addr: "127.0.0.1:0", onListen: func(a net.Addr) { listening <- "http://" + a.String() }})
	}()
	url := <-listening
	for _, target := range []any{url + "/mcp", client.HTTPSSE(url + "/sse"), url + "/sse", strings.Replace(url, "http", "ws", 1) + "/ws"} {
		c, err := client.Dial(t.Context(), target)
		require.NoError(t, err)
		text, err := client.Call[string](t.Context(), c, "test_simple_text", nil)
		require.NoError(t, err)
		require.Equal(t, "This is a simple text response for testing.", text)
		require.NoError(t, c.Close())
	}
	stop()
	require.NoError(t, <-ended)
}

package mcpkit_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// slowLink leads to a client that reads slowly.
type slowLink struct {
	*peer
	begun, resume chan struct{}
}

func (l *slowLink) Notify(ctx context.Context, n *jsonrpc.Request) error {
	l.begun <- struct{}{}
	<-l.resume
	return l.peer.Notify(ctx, n)
}

// TestSlowClientsAreNotifiedOnceOfManyChanges adds tools while a client is being notified. The
// additions do not wait for the client, and a hundred of them cause one notification.
func TestSlowClientsAreNotifiedOnceOfManyChanges(t *testing.T) {
	srv := newServer(t, &library{})
	p := legacy(t, srv, protocol.V20251125)
	slow := &slowLink{peer: &peer{t: t, srv: srv}, begun: make(chan struct{}), resume: make(chan struct{})}
	slow.session = transport.NewSession("slow", slow)
	slow.raw(t.Context(), `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`)
	slow.raw(t.Context(), `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	p.take()
	slow.take()

	first := make(chan error)
	go func() { first <- srv.Add(mcpkit.NewTool("first", func() {})) }()
	<-slow.begun
	for i := range 100 {
		require.NoError(t, srv.Add(mcpkit.NewTool("more"+strconv.Itoa(i), func() {})))
	}
	require.True(t, srv.RemovePrompts("blurb"))
	slow.resume <- struct{}{}
	for range 2 { // tools once more, and prompts
		<-slow.begun
		slow.resume <- struct{}{}
	}
	require.NoError(t, <-first)
	const tools, prompts = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{}}`, `{"jsonrpc":"2.0","method":"notifications/prompts/list_changed","params":{}}`
	require.Equal(t, []string{tools, tools, prompts}, slow.take())
	require.Equal(t, []string{tools, tools, prompts}, p.take())
}

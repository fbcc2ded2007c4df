package client_test

import (
	"context"
	"crypto/rand"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

const questionOfPuppet = `{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"m","requestedSchema":{}}}`

// callTool calls a tool in the background.
func callTool(ctx context.Context, c *client.Client) <-chan error {
	over := make(chan error, 1)
	go func() {
		_, err := c.CallTool(ctx, "x", nil)
		over <- err
	}()
	return over
}

func TestCallIsCancelledDuringAServerRequest(t *testing.T) {
	user := slow{asked: make(chan struct{}), ended: make(chan error, 1)}
	onEveryStage(t, func(t *testing.T, s stage, p *puppet, c *client.Client) {
		modern := c.Version().Modern()
		if s.deaf && !modern {
			t.Skip("a legacy server cannot send requests on this stage")
		}
		ctx, cancel := context.WithCancel(t.Context())
		call := callTool(ctx, c)
		r := <-p.heard
		if modern {
			p.say(`{"jsonrpc":"2.0","id":` + r.ID.String() + `,"result":{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":{"message":"m","requestedSchema":{}}}}}}`)
		} else {
			p.say(questionOfPuppet)
		}
		<-user.asked
		cancel()
		if modern {
			require.ErrorIs(t, <-user.ended, context.Canceled)
			require.ErrorIs(t, <-call, context.Canceled)
		} else {
			require.ErrorIs(t, <-call, context.Canceled)
			n := <-p.heard
			require.Equal(t, protocol.NotificationCancelled, n.Method)
			p.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q"}}`)
			<-user.ended
		}
		next := ask(t.Context(), c)
		for r = <-p.heard; r.IsNotification(); r = <-p.heard {
		}
		p.answer(r, "next")
		require.Equal(t, told{"next", nil}, <-next)
	}, client.Handlers(user))
}

// The program only waits for changes, and sends no request that would find the session gone.
func TestSubscriptionsContinueWhenTheServerHasForgottenTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		servers := make([]*mcpkit.Server, 2)
		handlers := make([]*streamable.Handler, 2)
		for i := range servers {
			servers[i] = mcpkit.MustNew(nil)
			require.NoError(t, servers[i].Add(mcpkit.NewTool("first", func() {}), mcpkit.NewResource("test://x", "x", func() string { return "" })))
			handlers[i] = streamable.NewHandler(servers[i], nil)
		}
		var now atomic.Pointer[streamable.Handler]
		now.Store(handlers[0])
		network, closeAll := testkit.Serve(&http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { now.Load().ServeHTTP(w, r) })})
		c, err := client.Dial(t.Context(), "http://mcp.example", client.HTTPClient(network), client.Version(protocol.V20251125))
		require.NoError(t, err)
		s, err := c.Listen(t.Context(), protocol.SubscriptionFilter{ToolsListChanged: true, ResourceSubscriptions: []string{"test://x"}})
		require.NoError(t, err)
		now.Store(handlers[1])
		handlers[0].Close()
		for range 2 { // what may have changed meanwhile, and what changes then
			got := map[client.ChangeKind]bool{}
			for range 2 {
				limited, cancel := context.WithTimeout(t.Context(), time.Minute)
				change, err := s.Next(limited)
				cancel()
				require.NoError(t, err)
				got[change.Kind] = true
			}
			require.Equal(t, map[client.ChangeKind]bool{client.ToolsChanged: true, client.ResourceUpdated: true}, got)
			time.Sleep(time.Minute)
			require.NoError(t, servers[1].Add(mcpkit.NewTool(rand.Text(), func() {})))
			servers[1].ResourceUpdated("test://x")
		}
		require.NoError(t, c.Close())
		handlers[1].Close()
		closeAll()
	})
}

func TestSubscriptionsEndWhenTheirStreamIsRefused(t *testing.T) {
	t.Parallel()
	var opened atomic.Bool
	f := newLegacyFake(t, map[string]answer{
		"initialize":          initialized("2025-11-25", "one"),
		"resources/subscribe": result(`{}`),
		"GET": func(w http.ResponseWriter, r *http.Request, _ *jsonrpc.Request) {
			if !opened.CompareAndSwap(false, true) {
				http.Error(w, "no longer", http.StatusForbidden)
				return
			}
			stream()(w, r, nil)
		},
	})
	c := dial(t, f.URL)
	s, err := c.Subscribe(t.Context(), "test://x")
	require.NoError(t, err)
	_, err = s.Next(t.Context())
	require.ErrorContains(t, err, "client: the stream of the session cannot be opened again; call Listen again")
	require.ErrorContains(t, err, "403")
}

package client_test

import (
	"context"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/jsonrpc"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport"
)

const questionOfPuppet = `{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"m","requestedSchema":{}}}`

// question makes the puppet ask a question during the call r, in the way of its version.
func (p *puppet) question(c *client.Client, r *jsonrpc.Request) {
	if c.Version().Modern() {
		p.say(`{"jsonrpc":"2.0","id":` + r.ID.String() + `,"result":{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":{"message":"m","requestedSchema":{}}}}}}`)
	} else {
		p.say(questionOfPuppet)
	}
}

// callTool calls a tool in the background.
func callTool(ctx context.Context, c *client.Client) <-chan error {
	over := make(chan error, 1)
	go func() {
		_, err := c.CallTool(ctx, "x", nil)
		over <- err
	}()
	return over
}

// onEveryAskingStage is onEveryStage for the stages whose puppets can ask questions. The user
// answers no question before its context ends.
func onEveryAskingStage(t *testing.T, fact func(t *testing.T, p *puppet, c *client.Client, asked slow)) {
	user := slow{asked: make(chan struct{}), ended: make(chan error, 1)}
	onEveryStage(t, func(t *testing.T, s stage, p *puppet, c *client.Client) {
		if s.deaf && !c.Version().Modern() {
			// A legacy server cannot send requests on this stage.
			t.Skip("this puppet cannot ask")
		}
		fact(t, p, c, user)
	}, client.Handlers(user))
}

func TestCallIsCancelledDuringAServerRequest(t *testing.T) {
	onEveryAskingStage(t, func(t *testing.T, p *puppet, c *client.Client, user slow) {
		ctx, cancel := context.WithCancel(t.Context())
		call := callTool(ctx, c)
		r := <-p.heard
		p.question(c, r)
		<-user.asked
		cancel()
		if !c.Version().Modern() {
			require.ErrorIs(t, <-call, context.Canceled)
			n := <-p.heard
			require.Equal(t, protocol.NotificationCancelled, n.Method)
			p.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q"}}`)
			<-user.ended
		} else {
			require.ErrorIs(t, <-user.ended, context.Canceled)
			require.ErrorIs(t, <-call, context.Canceled)
		}
		next := ask(t.Context(), c)
		for r = <-p.heard; r.IsNotification(); r = <-p.heard {
		}
		p.answer(r, "next")
		require.Equal(t, told{"next", nil}, <-next)
	})
}

func TestCloseEndsTheCallAndItsServerRequest(t *testing.T) {
	onEveryAskingStage(t, func(t *testing.T, p *puppet, c *client.Client, user slow) {
		call := callTool(t.Context(), c)
		other := ask(t.Context(), c)
		first, second := <-p.heard, <-p.heard
		if first.Method != protocol.MethodToolsCall {
			first = second
		}
		p.question(c, first)
		<-user.asked
		closed := make(chan error, 1)
		go func() { closed <- c.Close() }()
		<-user.ended
		require.ErrorIs(t, <-call, transport.ErrClosed)
		require.ErrorIs(t, (<-other).err, transport.ErrClosed)
		require.NoError(t, <-closed)
	})
}

func TestSubscriptionsContinueInANewSession(t *testing.T) {
	var mu sync.Mutex
	session, subscribed := "one", map[string]bool{}
	streams := make(chan string, 10)
	update := make(chan struct{})
	f := newLegacyFake(t, map[string]answer{
		"initialize": func(w http.ResponseWriter, r *http.Request, req *jsonrpc.Request) {
			mu.Lock()
			defer mu.Unlock()
			initialized("2025-11-25", session)(w, r, req)
		},
		"resources/subscribe": func(w http.ResponseWriter, r *http.Request, req *jsonrpc.Request) {
			mu.Lock()
			defer mu.Unlock()
			subscribed[r.Header.Get("Mcp-Session-Id")] = true
			result(`{}`)(w, r, req)
		},
		"GET": func(w http.ResponseWriter, r *http.Request, _ *jsonrpc.Request) {
			stream()(w, r, nil)
			w.(http.Flusher).Flush()
			id := r.Header.Get("Mcp-Session-Id")
			streams <- id
			updates := update
			if id == "one" { // this stream may end shortly after its session
				updates = nil
			}
			select {
			case <-updates:
				_, _ = io.WriteString(w, event(updatedX))
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
			}
		},
		"tools/call": func(w http.ResponseWriter, r *http.Request, req *jsonrpc.Request) {
			mu.Lock()
			defer mu.Unlock()
			if r.Header.Get("Mcp-Session-Id") != session {
				http.Error(w, "who?", http.StatusNotFound)
				return
			}
			raw("application/json", done("x"))(w, r, req)
		},
	})
	c := dial(t, f.URL, client.Timeout(time.Minute))
	s, err := c.Subscribe(t.Context(), "test://x")
	require.NoError(t, err)
	require.Equal(t, "one", <-streams)
	mu.Lock()
	session = "two"
	mu.Unlock()
	_, err = c.CallTool(t.Context(), "x", nil)
	require.NoError(t, err)
	require.Equal(t, "two", <-streams, "the stream of the new session is opened")
	mu.Lock()
	require.True(t, subscribed["two"], "the new session has the subscription")
	mu.Unlock()
	want := client.Change{Kind: client.ResourceUpdated, URI: "test://x"}
	change, err := s.Next(t.Context())
	require.NoError(t, err)
	require.Equal(t, want, change, "the resource may have changed meanwhile")
	update <- struct{}{}
	change, err = s.Next(t.Context())
	require.NoError(t, err)
	require.Equal(t, want, change)
}

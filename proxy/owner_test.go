package proxy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/proxy"
	"github.com/mcpkit/mcpkit-go/transport"
)

// gated is a server with the tools ask, which asks once the gate is open, although it may be cancelled
// by then, and wait, which waits to be cancelled.
func gated(t *testing.T, gate chan struct{}, asked chan<- error) *mcpkit.Server {
	far := mcpkit.MustNew(nil, mcpkit.Logger(silent), mcpkit.ToolTimeout(0), mcpkit.QuestionTimeout(0))
	require.NoError(t, far.Add(
		mcpkit.NewTool("ask", func(ctx context.Context) error {
			<-gate
			_, err := mcpkit.Elicit[days](context.WithoutCancel(ctx), "Ann, how many days?")
			asked <- err
			return err
		}),
		mcpkit.NewTool("wait", func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})))
	return far
}

func TestTheQuestionOfACancelledCallIsForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate, asked := make(chan struct{}), make(chan error, 1)
		link := &cable{far: gated(t, gate, asked)}
		near := mounted(t, link.target(), protocol.V20251125)
		bob := &user{}
		a, b := dial(t, near, protocol.V20251125, client.Handlers(&user{})), dial(t, near, protocol.V20251125, client.Handlers(bob))
		ctx, cancel := context.WithCancel(t.Context())
		var calls sync.WaitGroup
		call := func(c *client.Client, tool string) {
			calls.Go(func() { _, _ = c.CallTool(ctx, tool, nil) })
			synctest.Wait()
		}
		call(a, "far_ask")
		cancel()
		calls.Wait()
		ctx, cancel = context.WithCancel(t.Context())
		call(b, "far_wait")
		close(gate)
		require.ErrorContains(t, <-asked, "it is unknown which of them elicitation/create is for")
		cancel()
		calls.Wait()
		require.Empty(t, bob.asked)
	})
}

// The message may belong to a call that is over, and the caller who still waits is another.
func TestALogMessageOnTheStreamOfTheSessionIsForNobody(t *testing.T) {
	begun, listed := make(chan struct{}), make(chan struct{}, 8)
	rpc := answers(func(req *jsonrpc.Request) (string, *jsonrpc.Error) {
		switch req.Method {
		case "initialize":
			return `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"logging":{}},"serverInfo":{"name":"far","version":"1"}}`, nil
		case "tools/list":
			listed <- struct{}{}
			return `{"tools":[{"name":"wait","inputSchema":{"type":"object"}}]}`, nil
		case "tools/call":
			<-listed // when the proxy connected
			close(begun)
			<-listed // after the message
			return `{"content":[]}`, nil
		}
		return `{}`, nil
	})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			rpc(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-begun:
			_, _ = io.WriteString(w, `data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"of Ann"}}`+"\n\n"+
				`data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`+"\n\n")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(web.Close)
	bob := &user{}
	c := dial(t, mounted(t, web.URL, protocol.V20251125), protocol.V20251125, client.Handlers(bob))
	_, err := c.CallTool(t.Context(), "far_wait", nil)
	require.NoError(t, err)
	require.Empty(t, bob.logged)
}

// nobody is a peer that receives nothing.
type nobody struct{}

func (nobody) Notify(context.Context, *jsonrpc.Request) error { return nil }
func (nobody) Call(context.Context, *jsonrpc.Request) (*jsonrpc.Response, error) {
	return nil, transport.ErrNoServerRequests
}
func (nobody) Session() *transport.Session { return nil }
func (nobody) Header() transport.Header    { return nil }

func TestOfARequestThatIsSentTwiceOneCallIsParked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		var running atomic.Int64
		far := mcpkit.MustNew(nil, mcpkit.Logger(silent), mcpkit.ToolTimeout(0), mcpkit.QuestionTimeout(0))
		require.NoError(t, far.Add(mcpkit.NewTool("ask", func(ctx context.Context) error {
			running.Add(1)
			defer running.Add(-1)
			if _, err := mcpkit.Elicit[days](ctx, "How many days?"); err != nil {
				return err
			}
			<-gate
			_, err := mcpkit.Elicit[days](ctx, "How many more?")
			return err
		})))
		near := mounted(t, client.InMemory(far), protocol.V20251125, proxy.Dial(client.Timeout(0)))
		require.NoError(t, near.Start(t.Context()))
		call := func(answer string) *string {
			resp := near.ServeRPC(t.Context(), &jsonrpc.Request{ID: jsonrpc.NumberID(1), Method: "tools/call", Params: json.RawMessage(
				`{"name":"far_ask","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
					`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}` + answer + `}`)}, nobody{})
			require.Nil(t, resp.Error)
			var result protocol.InputRequiredResult
			require.NoError(t, json.Unmarshal(resp.Result, &result))
			return result.RequestState
		}
		state := call("")
		var calls sync.WaitGroup
		for range 2 {
			calls.Go(func() {
				call(fmt.Sprintf(`,"requestState":%q,"inputResponses":{"proxy-1":{"action":"accept","content":{"days":1}}}`, *state))
			})
		}
		synctest.Wait()
		require.EqualValues(t, 2, running.Load())
		close(gate)
		calls.Wait()
		synctest.Wait()
		require.EqualValues(t, 1, running.Load())
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Zero(t, running.Load())
	})
}

// The caller takes two minutes to answer, in a new request.
func TestSmallMessagesWaitForTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var talk sync.WaitGroup
		far := mcpkit.MustNew(nil, mcpkit.Logger(silent))
		require.NoError(t, far.Add(mcpkit.NewTool("ask", func(ctx context.Context, call *mcpkit.Call) error {
			talk.Go(func() {
				time.Sleep(time.Second)
				call.Logger().Error(strings.Repeat("x", 100<<10))
				for i := range 100 {
					time.Sleep(time.Second)
					call.Logger().Error(fmt.Sprint(i))
				}
			})
			_, err := mcpkit.Elicit[days](ctx, "How many days?")
			return err
		})))
		near := mounted(t, client.InMemory(far), protocol.V20251125, proxy.OneUser())
		u := &user{takes: 2 * time.Minute}
		c := dial(t, near, protocol.V20260728, client.Handlers(u))
		_, err := c.CallTool(t.Context(), "far_ask", nil)
		require.NoError(t, err)
		talk.Wait()
		synctest.Wait()
		require.Equal(t, 64, len(u.logged)) // a failure of Len prints them
		require.Equal(t, `error "0"`, u.logged[0])
	})
}

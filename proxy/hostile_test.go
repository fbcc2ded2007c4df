package proxy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
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

// answering serves MCP over HTTP with a function, and returns the URL.
func answering(t *testing.T, respond func(*jsonrpc.Request) (result string, err *jsonrpc.Error)) string {
	s := httptest.NewServer(answers(respond))
	t.Cleanup(s.Close)
	return s.URL
}

// answers returns a handler that serves MCP with a function.
func answers(respond func(*jsonrpc.Request) (result string, err *jsonrpc.Error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		m, bad := jsonrpc.Decode(body)
		switch {
		case bad != nil:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case m.Request == nil || m.Request.IsNotification():
			w.WriteHeader(http.StatusAccepted)
		default:
			result, err := respond(m.Request)
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(jsonrpc.AppendResponse(nil, &jsonrpc.Response{ID: m.Request.ID, Result: json.RawMessage(result), Error: err}))
		}
	}
}

// complete is a result of 2026-07-28 with the members.
func complete(members string) string {
	return `{"resultType":"complete","ttlMs":0,"cacheScope":"public",` + members + `}`
}

const discovered = `"supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"prompts":{},"resources":{}}`

// listing serves the members of results of list methods, and says "thief" to each call.
func listing(t *testing.T, on map[string]string) string {
	return answering(t, func(req *jsonrpc.Request) (string, *jsonrpc.Error) {
		switch req.Method {
		case "server/discover":
			return complete(discovered), nil
		case "tools/call":
			return complete(`"content":[{"type":"text","text":"thief"}]`), nil
		}
		return complete(on[req.Method]), nil
	})
}

// A remote server cannot take over names and URIs of others, and what is wrong with it is left out.
func TestARemoteServerTakesNothingOver(t *testing.T) {
	var log bytes.Buffer
	url := listing(t, map[string]string{
		"tools/list": `"tools":[{"name":"pay","inputSchema":{"type":"object"}},{"name":"fine","inputSchema":{"type":"object"}},` +
			`{"name":"a b","inputSchema":{}},{"name":"","inputSchema":{}},{"name":"x","inputSchema":{}},{"name":"` + strings.Repeat("n", 129) + `","inputSchema":{}}]`,
		"prompts/list": `"prompts":[]`, "resources/list": `"resources":[]`, "resources/templates/list": `"resourceTemplates":[]`,
	})
	srv := mcpkit.MustNew(nil, mcpkit.Logger(slog.New(slog.NewTextHandler(&log, nil))))
	say := func() string { return "bank" }
	require.NoError(t, srv.Add(mcpkit.NewTool("far_pay", say), mcpkit.NewTool("far_x", say)))
	srv.MustMount("far", proxy.MustNew(url, proxy.Logger(silent)))
	t.Cleanup(func() { require.NoError(t, srv.Close()) })
	c := dial(t, srv, protocol.V20260728)
	for tool, want := range map[string]string{"far_pay": "bank", "far_fine": "thief"} {
		got, err := client.Call[string](t.Context(), c, tool, nil)
		require.NoError(t, err)
		require.Equal(t, want, got, tool)
	}
	var names []string
	for tool, err := range c.Tools(t.Context()) {
		require.NoError(t, err)
		names = append(names, tool.Name)
	}
	require.Equal(t, []string{"far_fine", "far_pay", "far_x"}, names)
	require.Equal(t, 1, strings.Count(log.String(), `tool \"far_pay\" is registered by`))
}

func TestARemoteServerHasAHundredTemplates(t *testing.T) {
	var log bytes.Buffer
	var templates []string
	for i := range 9000 {
		templates = append(templates, fmt.Sprintf(`{"uriTemplate":"t%d://{id}","name":"t"}`, i))
	}
	url := listing(t, map[string]string{"tools/list": `"tools":[]`, "prompts/list": `"prompts":[]`, "resources/list": `"resources":[]`,
		"resources/templates/list": `"resourceTemplates":[` + strings.Join(templates, ",") + `]`})
	srv := proxy.MustNew(url, proxy.Logger(slog.New(slog.NewTextHandler(&log, nil))))
	require.NoError(t, srv.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, srv.Close()) })
	n := 0
	for _, err := range dial(t, srv, protocol.V20260728).Templates(t.Context()) {
		require.NoError(t, err)
		n++
	}
	require.Equal(t, 100, n)
	require.Equal(t, 1, strings.Count(log.String(), "\n"), log.String())
	require.Contains(t, log.String(), "templates of the remote server are left out; it has too many")
}

func TestAWatchWithoutASubscriberEnds(t *testing.T) {
	for _, v := range []protocol.Version{protocol.V20251125, protocol.V20260728} {
		synctest.Test(t, func(t *testing.T) {
			far := mcpkit.MustNew(&desk{}, mcpkit.Logger(silent))
			c := dial(t, mounted(t, client.InMemory(far), v), v)
			sub, err := c.Subscribe(t.Context(), "desk://index")
			require.NoError(t, err)
			time.Sleep(10 * time.Minute) // of the synctest bubble
			require.True(t, far.Subscribed("desk://index"), "a client waits")
			require.NoError(t, sub.Close())
			time.Sleep(3 * time.Minute)
			synctest.Wait()
			require.False(t, far.Subscribed("desk://index"), "nobody waits")
		})
	}
}

// The remote server has the resource, and refuses to tell when it changes.
func TestASubscriptionThatTheRemoteServerRefusesIsAnError(t *testing.T) {
	for _, v := range []protocol.Version{protocol.V20251125, protocol.V20260728} {
		far := mcpkit.MustNew(&desk{}, mcpkit.Logger(silent))
		far.Use(func(next mcpkit.Handler) mcpkit.Handler {
			return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
				if strings.Contains(string(call.Params()), "desk://index") {
					return nil, &jsonrpc.Error{Code: 4711, Message: "not watched"}
				}
				return next(ctx, call)
			}
		})
		c := dial(t, mounted(t, client.InMemory(far), v), protocol.V20251125)
		_, err := c.Subscribe(t.Context(), "desk://index")
		require.ErrorContains(t, err, "not watched (code 4711)", v)
		_, err = c.Subscribe(t.Context(), "desk://note/1")
		require.NoError(t, err)
	}
}

// Names and URIs belong to the server itself, then to the server that was mounted first, whichever
// connects first.
func TestTheOrderOfMountsDecidesWhateverConnectsFirst(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	named := func(n string, uris ...string) *mcpkit.Server {
		srv := numbered(n)
		for _, uri := range uris {
			var method any = func() string { return n }
			if strings.Contains(uri, "{") {
				method = func(id string) string { return n }
			}
			require.NoError(t, srv.Add(mcpkit.NewResource(uri, n, method)))
		}
		return srv
	}
	var first, second proxy.Switch
	srv := mcpkit.MustNew(nil, mcpkit.Logger(logger))
	require.NoError(t, srv.Add(mcpkit.NewResource("own://{id}", "own", func(id string) string { return "own" })))
	srv.MustMount("", proxy.MustNew(&first, proxy.Logger(silent), proxy.Name("first")))
	srv.MustMount("", proxy.MustNew(&second, proxy.Logger(silent), proxy.Name("second")))
	require.NoError(t, srv.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, srv.Close()) })
	require.NoError(t, second.Connect(t.Context(), named("second", "x://a", "x://b", "y://{id}", "z://{id}", "own://a", "own://{id}")))
	c := dial(t, srv, protocol.V20260728)
	reads := func(want string) {
		got, err := client.Call[string](t.Context(), c, "which", nil)
		require.NoError(t, err)
		require.Equal(t, want, got)
		for uri, want := range map[string]string{"x://a": want, "x://b": want, "y://1": want, "z://1": want, "own://a": "own", "own://2": "own"} {
			got, err := c.ReadResource(t.Context(), uri)
			require.NoError(t, err)
			require.Equal(t, want, *got.Contents[0].Text, uri)
		}
	}
	reads("second")
	require.NoError(t, first.Connect(t.Context(), named("first", "x://a", "x://{id}", "y://1", "z://{id}", "own://{id}")))
	reads("first")
	for of, owner := range map[string]string{"tool \\\"which\\\"": "proxy of first", "resource \\\"x://a\\\"": "proxy of first",
		"resource \\\"x://b\\\"": "proxy of first", "template \\\"z://{id}\\\"": "proxy of first", "resource \\\"own://a\\\"": "mcpkit: resource"} {
		require.Equal(t, 1, strings.Count(log.String(), of), of)
		require.Contains(t, log.String(), of+" is registered by "+owner)
	}
}

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

package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

func TestInvalidResponsesFailTheirCalls(t *testing.T) {
	const invalid = `client: tools/call "x": the server's response is invalid: `
	for _, test := range []struct {
		name string
		call answer
		want string // the text of the result, if there is one
		err  string
	}{
		{name: "another id", call: raw("application/json", `{"jsonrpc":"2.0","id":99,"result":{"content":[]}}`), err: invalid + "the body does not contain the response to the request"},
		{name: "another id, then the right one", call: stream(event(`{"jsonrpc":"2.0","id":99,"result":{}}`), event(done("x"))), want: "x"},
		{name: "no resultType", call: result(`{"content":[{"type":"text","text":"x"}]}`), want: "x"},
		{name: "an unknown resultType", call: result(`{"content":[],"resultType":"later"}`), err: invalid + `the resultType "later" is unknown`},
		{name: "a resultType that is not a string", call: result(`{"content":[],"resultType":7}`), err: invalid + "resultType is not a string"},
		{name: "input required without input requests", call: result(`{"resultType":"input_required"}`), err: invalid + "it requires input but contains no input requests"},
		{name: "garbage", call: raw("application/json", `nope`), err: invalid + "invalid JSON: invalid character 'o' in literal null (expecting 'u') after offset 1"},
		{name: "garbage in a stream", call: stream(event("nope")), err: invalid + "invalid JSON: invalid character 'o' in literal null (expecting 'u') after offset 1"},
		{name: "an event of another type", call: stream("event: endpoint\ndata: /here\n\n", event(done("x"))), want: "x"},
		{name: "invalid content", call: result(`{"content":[null]}`), err: invalid + "json: cannot unmarshal JSON object into Go protocol.CallToolResult: json: cannot unmarshal JSON array into Go protocol.Contents within \"/content\": content 0: content must be an object"},
		{name: "a web page", call: raw("text/html", "<html>"), err: invalid + `HTTP status 200 with the content type "text/html"`},
		{name: "accepted", call: status(202, ""), err: invalid + `HTTP status 202 with the content type "text/plain"`},
		{name: "an internal error", call: status(500, "boom"), err: `client: tools/call "x": the server responded with HTTP status 500 Internal Server Error: "boom"`},
		{name: "an error with a status", call: withStatus(500, rpcError(-32603, "boom", "")), err: `client: tools/call "x": boom (code -32603)`},
		{name: "an error without an id", call: withStatus(400, raw("application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"bad"}}`)), err: `client: tools/call "x": bad (code -32600)`},
		{name: "larger than allowed", call: raw("application/json", done(strings.Repeat("x", 20000))), err: invalid + "it is larger than 10000 bytes; raise client.MaxMessageBytes"},
		{name: "an event that is larger than allowed", call: stream(event(done(strings.Repeat("x", 20000)))), err: invalid + "an event is larger than 10000 bytes; raise client.MaxMessageBytes"},
		{name: "a line without an end", call: stream(strings.Repeat("x", 30000)), err: invalid + "an event is larger than 10000 bytes; raise client.MaxMessageBytes"},
		{name: "a stream that ends", call: stream(": nothing\n\n"), err: `client: tools/call "x": the stream ended before the response: EOF`},
		{name: "silence", call: silence, err: `client: tools/call "x": no response within 300ms`},
		{name: "a stream of comments", call: endless(": still here\n\n"), err: `client: tools/call "x": no response within 300ms`},
		{name: "a stream of foreign notifications", call: endless(event(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"other","progress":1}}`)), err: `client: tools/call "x": no response within 300ms`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t, map[string]answer{"tools/call": test.call})
			c := dial(t, f.URL, client.MaxMessageBytes(10000))
			timeout := client.Timeout(time.Minute)
			if strings.HasSuffix(test.err, "300ms") {
				timeout = client.Timeout(300 * time.Millisecond)
			}
			text, err := client.Call[string](t.Context(), c, "x", nil, timeout, client.OnProgress(func(*protocol.ProgressParams) { t.Error("the progress is not of this call") }))
			if test.err != "" {
				require.ErrorContains(t, err, test.err)
				require.LessOrEqual(t, f.count("tools/call"), 1, "the call is not sent again")
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.want, text)
		})
	}
}

// endless sends part again and again until the client disconnects.
func endless(part string) answer {
	return func(w http.ResponseWriter, r *http.Request, _ *jsonrpc.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, part); err != nil {
				return
			}
		}
	}
}

func TestEndlessPaginationIsLimited(t *testing.T) {
	var n atomic.Int64
	f := newFake(t, map[string]answer{
		"tools/list": func(w http.ResponseWriter, r *http.Request, req *jsonrpc.Request) {
			result(fmt.Sprintf(`{"tools":[],"nextCursor":"%d"}`, n.Add(1)))(w, r, req)
		},
		"prompts/list": result(`{"prompts":[],"nextCursor":""}`),
	})
	c := dial(t, f.URL)
	var last error
	for _, last = range c.Tools(t.Context()) {
	}
	require.EqualError(t, last, "client: tools/list: the list has more than 1000 pages")
	require.EqualValues(t, 1000, n.Load())
	for _, last = range c.Prompts(t.Context()) {
	}
	require.EqualError(t, last, "client: prompts/list: the server's response is invalid: nextCursor leads back to an earlier page")
	require.Equal(t, 2, f.count("prompts/list"))
}

func TestEndlessServerRequestsAreLimited(t *testing.T) {
	const ask = `{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":{"message":"m","requestedSchema":{}}}},"requestState":"s"}`
	f := newFake(t, map[string]answer{"tools/call": result(ask), "tools/list": result(ask)})
	u := &user{}
	c := dial(t, f.URL, client.Handlers(u), client.MaxRounds(3))
	_, err := c.CallTool(t.Context(), "x", nil)
	require.EqualError(t, err, `client: tools/call "x": the server asked 3 times for input and still wants more; raise MaxRounds`)
	require.Len(t, u.asked, 3)
	ids := map[string]bool{}
	for i, req := range f.all("tools/call") {
		ids[req.ID.String()] = true
		if i > 0 {
			require.JSONEq(t, `"s"`, string(req.Param("requestState")))
			require.JSONEq(t, `{"k":{"action":"accept","content":{"confirm":true}}}`, string(req.Param("inputResponses")))
		}
	}
	require.Len(t, ids, 4, "each round has its own ID")
	_, err = c.Tool(t.Context(), "x")
	require.EqualError(t, err, "client: tools/list: the server's response is invalid: this method cannot require input")
}

func TestUndeclaredServerRequestsAreRejected(t *testing.T) {
	for _, test := range []struct{ name, question, err string }{
		{"a method that is not a server request", `{"method":"tools/call","params":{}}`, `this client did not declare the capability for "tools/call" (code -32601)`},
		{"a capability that was not declared", `{"method":"roots/list"}`, `this client did not declare the capability for "roots/list" (code -32601)`},
		{"a URL when only forms were declared", `{"method":"elicitation/create","params":{"mode":"url","message":"m","url":"https://x.example"}}`,
			`this client did not declare elicitation in the mode "url" (code -32602)`},
		{"an unknown mode", `{"method":"elicitation/create","params":{"mode":"voice","message":"m"}}`, `this client did not declare elicitation in the mode "voice" (code -32602)`},
		{"sampling with tools", `{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1,"tools":[]}}`, "sampling with tools was not declared (code -32602)"},
		{"invalid params", `{"method":"elicitation/create","params":[]}`, "the params of elicitation/create are invalid: json: cannot unmarshal JSON array into Go protocol.ElicitParams (code -32602)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFake(t, map[string]answer{"tools/call": result(`{"resultType":"input_required","inputRequests":{"k":` + test.question + `}}`)})
			c := dial(t, f.URL, client.Handlers(refuser{}))
			_, err := c.CallTool(t.Context(), "x", nil)
			require.ErrorContains(t, err, test.err)
			require.Equal(t, 1, f.count("tools/call"))
		})
	}
}

// A clicker accepts every URL and records it.
type clicker struct{ urls []string }

func (c *clicker) ElicitURL(_ context.Context, p *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	c.urls = append(c.urls, p.URL)
	return &protocol.ElicitResult{Action: protocol.ElicitAccept, Content: []byte(`{"secret":1}`)}, nil
}

func TestURLElicitationAcceptsWebURLsOnly(t *testing.T) {
	for url, fine := range map[string]bool{
		"https://pay.example/x": true, "http://127.0.0.1:8080/": true, "http://localhost/": true, "http://[::1]/": true,
		"http://pay.example/": false, "javascript:alert(1)": false, "file:///etc/passwd": false, "data:text/html,x": false, "https:///x": false, "": false, "-flag": false,
	} {
		ask := fmt.Sprintf(`{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":{"mode":"url","message":"m","url":%q}}}}`, url)
		f := newFake(t, map[string]answer{"tools/call": inTurn(result(ask), raw("application/json", done("paid")))})
		u := &clicker{}
		c := dial(t, f.URL, client.Handlers(u))
		_, err := c.CallTool(t.Context(), "x", nil)
		if !fine {
			require.ErrorContains(t, err, "the URL of an elicitation must be an https URL", url)
			require.Empty(t, u.urls)
			continue
		}
		require.NoError(t, err, url)
		require.Equal(t, []string{url}, u.urls)
		require.JSONEq(t, `{"k":{"action":"accept"}}`, string(f.all("tools/call")[1].Param("inputResponses")), "the response has no content")
	}
}

func TestServerRequestsOnAModernStreamAreIgnored(t *testing.T) {
	f := newFake(t, map[string]answer{"tools/call": stream(
		event(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"m","requestedSchema":{}}}`),
		event(`{"jsonrpc":"2.0","id":"p","method":"ping"}`), event(done("x")))})
	u := &user{}
	c := dial(t, f.URL, client.Handlers(u))
	_, err := c.CallTool(t.Context(), "x", nil)
	require.NoError(t, err)
	require.NoError(t, c.Close())
	require.Empty(t, u.asked)
	require.Equal(t, []string{"server/discover", "tools/call"}, f.methods())
}

func TestRedirectsStayAtTheOrigin(t *testing.T) {
	reached := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	defer other.Close()
	to := func(code int, url string) answer {
		return func(w http.ResponseWriter, r *http.Request, _ *jsonrpc.Request) { http.Redirect(w, r, url, code) }
	}
	for _, test := range []struct {
		name string
		call answer
		err  string
	}{
		{"to another origin", to(307, other.URL), "the server redirects to another origin, \"" + other.URL + "\"; dial that if you trust it"},
		{"to itself without end", to(308, "/"), "more than 5 redirects"},
		{"to a GET", to(302, "/else"), "the server redirects a POST to a GET"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFake(t, map[string]answer{"tools/call": test.call})
			c := dial(t, f.URL, client.Header("Authorization", "Bearer secret"))
			_, err := c.CallTool(t.Context(), "x", nil)
			require.ErrorContains(t, err, test.err)
			require.False(t, reached)
		})
	}
	f := newFake(t, map[string]answer{"tools/call": func(w http.ResponseWriter, r *http.Request, req *jsonrpc.Request) {
		if r.URL.Path == "/" {
			http.Redirect(w, r, "/moved", http.StatusTemporaryRedirect)
			return
		}
		raw("application/json", done("x"))(w, r, req)
	}})
	text, err := client.Call[string](t.Context(), dial(t, f.URL), "x", nil)
	require.NoError(t, err)
	require.Equal(t, "x", text)
}

// breaks cuts the connection in the middle of a stream.
func breaks(w http.ResponseWriter, _ *http.Request, _ *jsonrpc.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	_, _ = io.WriteString(w, ": begun\n\n")
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

func TestALostSessionIsReplacedOnce(t *testing.T) {
	f := newLegacyFake(t, map[string]answer{
		"initialize": inTurn(initialized("2025-11-25", "one"), initialized("2025-11-25", "two")),
		"tools/call": func(w http.ResponseWriter, r *http.Request, req *jsonrpc.Request) {
			if r.Header.Get("Mcp-Session-Id") == "one" {
				http.Error(w, "who?", http.StatusNotFound)
				return
			}
			raw("application/json", done(r.Header.Get("Mcp-Session-Id")))(w, r, req)
		},
	})
	c := dial(t, f.URL)
	text, err := client.Call[string](t.Context(), c, "x", nil)
	require.NoError(t, err)
	require.Equal(t, "two", text)
	require.NoError(t, c.Close())
	require.Equal(t, []string{"server/discover", "initialize", "notifications/initialized", "tools/call",
		"initialize", "notifications/initialized", "tools/call", "DELETE"}, f.methods())

	f = newLegacyFake(t, map[string]answer{"initialize": initialized("2025-11-25", "one"), "tools/call": status(http.StatusNotFound, "")})
	_, err = dial(t, f.URL).CallTool(t.Context(), "x", nil)
	require.EqualError(t, err, `client: tools/call "x": the server ended the session`)
	require.Equal(t, 2, f.count("tools/call"))
}

func TestBrokenStreamIsResumed(t *testing.T) {
	const prime = "id: a\nretry: 200\ndata: \n\n"
	begun := make(chan time.Time, 2)
	f := newLegacyFake(t, map[string]answer{
		"tools/call": func(w http.ResponseWriter, r *http.Request, req *jsonrpc.Request) {
			begun <- time.Now()
			stream(prime)(w, r, req)
		},
		"GET": func(w http.ResponseWriter, r *http.Request, _ *jsonrpc.Request) {
			begun <- time.Now()
			if r.Header.Get("Last-Event-ID") != "a" {
				http.Error(w, "where were we?", http.StatusBadRequest)
				return
			}
			stream("id: b\n"+event(`{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"x"}]}}`))(w, r, nil)
		},
	})
	text, err := client.Call[string](t.Context(), dial(t, f.URL), "x", nil)
	require.NoError(t, err)
	require.Equal(t, "x", text)
	require.GreaterOrEqual(t, (-time.Since(<-begun) + time.Since(<-begun)).Abs(), 190*time.Millisecond, "the client waits for the retry time")
}

func TestResumingIsLimited(t *testing.T) {
	for _, test := range []struct {
		name string
		get  answer
		err  string
	}{
		{"refused", status(http.StatusForbidden, ""), "HTTP status 403"},
		{"the session has ended", status(http.StatusNotFound, ""), "the stream ended before the response, and the session with it"},
		{"always busy", status(http.StatusServiceUnavailable, ""), "no response within 400ms"},
		{"a stream without events", stream(": hm\n\n"), "no response within 400ms"},
		{"a retry time of zero", stream("id: a\nretry: 0\ndata: \n\n"), "no response within 400ms"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := newLegacyFake(t, map[string]answer{
				"initialize": initialized("2025-11-25", "s"), "tools/call": stream("id: a\nretry: 0\ndata: \n\n"), "GET": test.get,
			})
			timeout := time.Minute
			if strings.HasSuffix(test.err, "400ms") {
				timeout = 400 * time.Millisecond
			}
			_, err := dial(t, f.URL).CallTool(t.Context(), "x", nil, client.Timeout(timeout))
			require.ErrorContains(t, err, test.err)
			require.Less(t, f.count("GET"), 6, "at most one attempt every 100 ms")
			require.LessOrEqual(t, f.count("tools/call"), 1, "the server may have handled the call")
		})
	}
}

func TestALegacyServerMaySendRequestsOnAnyStream(t *testing.T) {
	answered := make(chan string, 4)
	ask := func(id string) string {
		return event(`{"jsonrpc":"2.0","id":"` + id + `","method":"elicitation/create","params":{"message":"m","requestedSchema":{"properties":{"n":{"type":"integer","default":7}}}}}`)
	}
	gate := make(chan struct{})
	f := newLegacyFake(t, map[string]answer{
		"response": func(w http.ResponseWriter, _ *http.Request, req *jsonrpc.Request) {
			w.WriteHeader(http.StatusAccepted)
			answered <- string(req.Params)
			if req.ID == jsonrpc.StringID("call") {
				close(gate)
			}
		},
		"GET": func(w http.ResponseWriter, r *http.Request, _ *jsonrpc.Request) {
			stream(event("not a message"), ask("get"))(w, r, nil)
			<-r.Context().Done()
		},
		"tools/call": func(w http.ResponseWriter, r *http.Request, req *jsonrpc.Request) {
			stream(ask("call"))(w, r, req)
			<-gate
			_, _ = io.WriteString(w, withID(event(done("x")), req))
		},
	})
	c := dial(t, f.URL, client.Handlers(&user{}))
	require.JSONEq(t, `{"jsonrpc":"2.0","id":"get","result":{"action":"accept","content":{"confirm":true,"n":7}}}`, <-answered)
	_, err := c.CallTool(t.Context(), "x", nil)
	require.NoError(t, err)
	require.JSONEq(t, `{"jsonrpc":"2.0","id":"call","result":{"action":"accept","content":{"confirm":true,"n":7}}}`, <-answered)
}

// slow does not answer a question. It waits until the server cancels it.
type slow struct {
	asked chan struct{}
	ended chan error
}

func (s slow) Elicit(ctx context.Context, _ *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	s.asked <- struct{}{}
	<-ctx.Done()
	s.ended <- context.Cause(ctx)
	return nil, context.Cause(ctx)
}

func TestLegacyServersReceiveAnErrorIfTheirRequestFails(t *testing.T) {
	for _, test := range []struct{ method, want string }{
		{"ping", `{"jsonrpc":"2.0","id":"q","result":{}}`},
		{"roots/list", `{"jsonrpc":"2.0","id":"q","error":{"code":-32601,"message":"this client did not declare the capability for \"roots/list\""}}`},
		{"elicitation/create", `{"jsonrpc":"2.0","id":"q","error":{"code":-32603,"message":"internal error of the client"}}`},
		{"sampling/createMessage", `{"jsonrpc":"2.0","id":"q","error":{"code":-1,"message":"the user rejected the request"}}`},
		{"no/such", `{"jsonrpc":"2.0","id":"q","error":{"code":-32601,"message":"this client did not declare the capability for \"no/such\""}}`},
	} {
		t.Run(test.method, func(t *testing.T) {
			answered := make(chan string, 1)
			f := newLegacyFake(t, map[string]answer{
				"response": func(w http.ResponseWriter, _ *http.Request, req *jsonrpc.Request) {
					w.WriteHeader(http.StatusAccepted)
					answered <- string(req.Params)
				},
				"tools/call": func(w http.ResponseWriter, r *http.Request, req *jsonrpc.Request) {
					stream(event(`{"jsonrpc":"2.0","id":"q","method":"`+test.method+`","params":{}}`))(w, r, req)
					require.JSONEq(t, test.want, <-answered)
					_, _ = io.WriteString(w, withID(event(done("x")), req))
				},
			})
			_, err := dial(t, f.URL, client.Handlers(refuser{})).CallTool(t.Context(), "x", nil)
			require.NoError(t, err)
		})
	}
}

func TestToolsWithInvalidHeadersAreLeftOut(t *testing.T) {
	f := newFake(t, map[string]answer{"tools/list": result(`{"tools":[
		{"name":"good","inputSchema":{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"R"}}}},
		{"name":"bad","inputSchema":{"type":"object","properties":{"r":{"type":"number","x-mcp-header":"R"}}}}]}`),
		"tools/call": raw("application/json", done("x"))})
	c := dial(t, f.URL)
	require.Equal(t, []string{"good"}, list(t, c))
	_, err := c.CallTool(t.Context(), "bad", nil)
	require.EqualError(t, err, `client: tools/call "bad": the tool cannot be called over HTTP: x-mcp-header "R" is at "r", which is not a string, integer or boolean`)
	require.Zero(t, f.count("tools/call"))
}

func TestAHeaderMismatchIsRetriedOnce(t *testing.T) {
	f := newFake(t, map[string]answer{"tools/list": result(`{"tools":[]}`), "tools/call": withStatus(400, rpcError(-32020, "no", ""))})
	_, err := dial(t, f.URL).CallTool(t.Context(), "x", nil)
	require.EqualError(t, err, `client: tools/call "x": no (code -32020)`)
	require.Equal(t, []string{"server/discover", "tools/call", "tools/list", "tools/call"}, f.methods())
}

func TestAReopenedSubscriptionReportsEverythingAsChanged(t *testing.T) {
	ack := event(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/subscriptionId":$ID}}}`)
	f := newFake(t, map[string]answer{"subscriptions/listen": inTurn(
		stream(ack),
		func(w http.ResponseWriter, r *http.Request, req *jsonrpc.Request) {
			stream(ack)(w, r, req)
			<-r.Context().Done()
		})})
	c := dial(t, f.URL)
	s, err := c.Listen(t.Context(), protocol.SubscriptionFilter{ToolsListChanged: true, PromptsListChanged: true})
	require.NoError(t, err)
	require.Equal(t, protocol.SubscriptionFilter{ToolsListChanged: true}, s.Filter())
	change, err := s.Next(t.Context())
	require.NoError(t, err)
	require.Equal(t, client.Change{Kind: client.ToolsChanged}, change)
	require.NoError(t, s.Close())
	require.Equal(t, 2, f.count("subscriptions/listen"))

	f = newFake(t, map[string]answer{"subscriptions/listen": withStatus(404, rpcError(-32601, "no", ""))})
	_, err = dial(t, f.URL).Listen(t.Context(), protocol.SubscriptionFilter{ToolsListChanged: true})
	require.EqualError(t, err, "client: subscriptions/listen: no (code -32601)")

	f = newFake(t, map[string]answer{"subscriptions/listen": silence})
	_, err = dial(t, f.URL, client.Timeout(100*time.Millisecond)).Listen(t.Context(), protocol.SubscriptionFilter{ToolsListChanged: true})
	require.EqualError(t, err, "client: subscriptions/listen: no response within 100ms")
	require.True(t, errors.Is(err, context.DeadlineExceeded))
}

// A status about the caller or a proxy is a StatusError, whatever the body contains.
func TestAStatusWithAMessageIsAStatusError(t *testing.T) {
	t.Parallel()
	refused := func(code int) answer {
		return func(w http.ResponseWriter, r *http.Request, req *jsonrpc.Request) {
			w.Header().Set("WWW-Authenticate", `Bearer scope="x"`)
			withStatus(code, rpcError(-32001, "who are you?", `{"why":1}`))(w, r, req)
		}
	}
	check := func(t *testing.T, err error, code int) {
		t.Helper()
		var status *client.StatusError
		require.ErrorAs(t, err, &status)
		require.Equal(t, code, status.Code)
		require.Equal(t, `Bearer scope="x"`, status.Header.Get("WWW-Authenticate"))
		var rpc *jsonrpc.Error
		require.ErrorAs(t, err, &rpc, "the error in the body is available too")
		require.Equal(t, -32001, rpc.Code)
	}
	for _, code := range []int{401, 403, 503} {
		t.Run(http.StatusText(code), func(t *testing.T) {
			t.Parallel() // the client waits before it tries again
			for _, at := range []string{"server/discover", "initialize", "tools/call"} {
				f := newLegacyFake(t, map[string]answer{at: refused(code)})
				c, err := dialing(t, f.URL)
				if at == "tools/call" {
					require.NoError(t, err)
					_, err = c.CallTool(t.Context(), "x", nil)
					require.EqualError(t, err, `client: tools/call "x": the server responded with HTTP status `+
						statusLine(code)+`: who are you? (code -32001)`)
				}
				check(t, err, code)
				if at == "server/discover" {
					require.Subset(t, []string{"server/discover"}, f.methods(), "the client sends no other request")
				}
			}
		})
	}
}

func statusLine(code int) string {
	return strings.TrimPrefix((&client.StatusError{Code: code}).Error(), "the server responded with HTTP status ")
}

func TestARefusedWebSocketHandshakeIsAStatusError(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", "Bearer")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, "who are you?")
	}))
	defer s.Close()
	_, err := dialing(t, "ws"+strings.TrimPrefix(s.URL, "http"), client.Version(protocol.Latest))
	require.EqualError(t, err, `client: the server responded with HTTP status 401 Unauthorized: "who are you?"`)
	var status *client.StatusError
	require.ErrorAs(t, err, &status)
	require.Equal(t, http.StatusUnauthorized, status.Code)
	require.Equal(t, "Bearer", status.Header.Get("WWW-Authenticate"))
}

const (
	floodBytes  = 72 << 20 // that the server sends; a 32nd of it with the race detector
	floodUnit   = 1 << 20  // of a message
	maxLiveHeap = 64 << 20 // limit of the heap
)

// A flooder is a legacy server that sends many messages, either on the stream of each call or on
// that of the session. It ignores responses.
type flooder struct {
	message   func(n int, id jsonrpc.ID, filler string) string // id is that of the call, or absent
	onSession bool
}

const floodHandshake = `{"protocolVersion":"2025-11-25","capabilities":{"logging":{},"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true}},"serverInfo":{"name":"flood","version":"1"}}`

// write writes messages until floodBytes are written or w fails.
func (f *flooder) write(w io.Writer, id jsonrpc.ID, frame func(message string) string) {
	filler := strings.Repeat("x", floodUnit)
	messages := floodBytes / floodUnit
	if raceDetector {
		messages /= 32
	}
	for n := range messages {
		if _, err := io.WriteString(w, frame(f.message(n, id, filler))); err != nil {
			return
		}
	}
}

// RoundTrip answers without a network, so that synctest.Wait works.
func (f *flooder) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := func(status int, media, text string) (*http.Response, error) {
		return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {media}}, ContentLength: int64(len(text)), Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
	}
	stream := func(id jsonrpc.ID, flooded bool) (*http.Response, error) {
		body, events := io.Pipe()
		context.AfterFunc(r.Context(), func() { _ = body.CloseWithError(r.Context().Err()) })
		if flooded {
			// Ends when all is sent, or with the request.
			go f.write(events, id, event)
		}
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, ContentLength: -1, Body: body, Request: r}, nil
	}
	if r.Method == http.MethodGet {
		return stream(jsonrpc.ID{}, f.onSession)
	}
	if r.Method == http.MethodDelete {
		return answer(http.StatusMethodNotAllowed, "text/plain", "")
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	m, _ := jsonrpc.Decode(body)
	switch {
	case m.Response != nil:
		<-r.Context().Done()
		return nil, r.Context().Err()
	case m.Request.IsNotification():
		return answer(http.StatusAccepted, "text/plain", "")
	case m.Request.Method == protocol.MethodInitialize:
		return answer(http.StatusOK, "application/json", fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.Request.ID, floodHandshake))
	case m.Request.Method == protocol.MethodResourcesSubscribe:
		return answer(http.StatusOK, "application/json", fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, m.Request.ID))
	}
	return stream(m.Request.ID, !f.onSession)
}

// lines serves a connection.
func (f *flooder) lines(conn net.Conn) {
	defer conn.Close()
	in := make([]byte, 0, 64<<10)
	for {
		if i := bytes.IndexByte(in, '\n'); i >= 0 {
			m, _ := jsonrpc.Decode(bytes.Clone(in[:i]))
			in = in[i+1:]
			switch {
			case m.Request == nil || m.Request.IsNotification():
			case m.Request.Method == protocol.MethodInitialize:
				_, _ = fmt.Fprintf(conn, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.Request.ID, floodHandshake)
			case m.Request.Method == protocol.MethodResourcesSubscribe:
				_, _ = fmt.Fprintf(conn, `{"jsonrpc":"2.0","id":%s,"result":{}}`+"\n", m.Request.ID)
			default:
				f.write(conn, m.Request.ID, func(message string) string { return message + "\n" })
				return
			}
			continue
		}
		b := make([]byte, 4096)
		n, err := conn.Read(b)
		if err != nil {
			return
		}
		in = append(in, b[:n]...)
	}
}

// busy is a handler that blocks.
type busy struct{}

func (busy) Elicit(ctx context.Context, _ *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (busy) Log(ctx context.Context, _ *protocol.LoggingMessageParams) { <-ctx.Done() }
func (busy) ToolsChanged(ctx context.Context)                          { <-ctx.Done() }
func (busy) ResourceUpdated(ctx context.Context, _ string)             { <-ctx.Done() }

func TestAFloodOfNotificationsUsesLimitedMemory(t *testing.T) {
	for name, message := range map[string]func(n int, id jsonrpc.ID, filler string) string{
		"questions": func(n int, _ jsonrpc.ID, filler string) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":"q%d","method":"elicitation/create","params":{"message":"%s","requestedSchema":{}}}`, n, filler)
		},
		"log messages": func(n int, _ jsonrpc.ID, filler string) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"%d%s"}}`, n, filler)
		},
		"progress": func(n int, id jsonrpc.ID, filler string) string {
			if !id.IsValid() {
				id = jsonrpc.NumberID(3) // of the call
			}
			return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"message":"%s"}}`, id, n, filler)
		},
	} {
		for _, where := range []string{"a call over HTTP", "the session over HTTP", "a stream"} {
			t.Run(name+"/"+where, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := &flooder{message: message, onSession: where == "the session over HTTP"}
					var target any = "http://example.com/mcp"
					if where == "a stream" {
						ours, theirs := net.Pipe()
						// Ends with the connection.
						go f.lines(theirs)
						target = ours
					}
					c, err := client.Dial(t.Context(), target, client.Version(protocol.V20251125), client.HTTPClient(&http.Client{Transport: f}),
						client.Handlers(busy{}), client.Logger(slog.New(slog.DiscardHandler)))
					require.NoError(t, err)
					_, err = c.Subscribe(t.Context(), "test://x")
					require.NoError(t, err)
					before := liveHeap()
					ctx, cancel := context.WithCancel(t.Context())
					over := make(chan error, 1)
					go func() {
						_, err := c.CallTool(ctx, "x", nil, client.OnProgress(func(*protocol.ProgressParams) { <-ctx.Done() }))
						over <- err
					}()
					synctest.Wait()
					require.Less(t, liveHeap()-before, int64(maxLiveHeap))
					cancel()
					require.NoError(t, c.Close())
					require.Error(t, <-over)
				})
			})
		}
	}
}

// liveHeap returns the bytes of the heap that are in use.
func liveHeap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

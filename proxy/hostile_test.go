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
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/proxy"
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

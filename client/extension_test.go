package client_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

func TestExtensionsAreDeclaredOnBothSides(t *testing.T) {
	const id = "com.example/ratings"
	var declared []protocol.Object
	srv, err := mcpkit.New(nil, mcpkit.Extend(mcpkit.Extension{
		ID: id, Settings: map[string]int{"stars": 5},
		Methods: []*mcpkit.Method{mcpkit.NewMethod("ratings/ping", func(ctx context.Context, _ struct{}) (struct{}, error) {
			settings, _ := mcpkit.CallFrom(ctx).Extension(id)
			declared = append(declared, settings)
			return struct{}{}, nil
		}).Negotiated()},
	}))
	require.NoError(t, err)
	others := client.Capabilities(protocol.ClientCapabilities{Extensions: map[string]protocol.Object{"com.example/other": {}}})
	for _, v := range []protocol.Version{protocol.V20251125, protocol.V20260728} {
		c, err := client.Dial(t.Context(), srv, client.Version(v), client.Extension(id, map[string]int{"max": 3}), others)
		require.NoError(t, err)
		settings, ok := c.Extension(id)
		require.True(t, ok)
		require.Equal(t, protocol.Object{"stars": []byte("5")}, settings)
		_, ok = c.Extension("com.example/other")
		require.False(t, ok, "the server does not declare it")
		require.NoError(t, c.Request(t.Context(), "ratings/ping", nil, nil))
		require.Equal(t, protocol.Object{"max": []byte("3")}, declared[len(declared)-1])
		require.NoError(t, c.Close())
	}
	_, err = client.Dial(t.Context(), srv, client.Extension(id, 3))
	require.EqualError(t, err, `client: Extension("com.example/ratings"): the settings do not encode to a JSON object`)

}

func TestAMethodOfAnExtensionIsCalled(t *testing.T) {
	type term struct {
		Term string `json:"term"`
	}
	srv, err := mcpkit.New(nil, mcpkit.Extend(mcpkit.Extension{
		ID: "com.example/glossary",
		Methods: []*mcpkit.Method{mcpkit.NewMethod("glossary/define", func(_ context.Context, p term) (map[string]string, error) {
			return map[string]string{"text": "What " + p.Term + " is."}, nil
		}).NameParam("term").Negotiated()},
	}))
	require.NoError(t, err)
	ctx := t.Context()
	handler := streamable.NewHandler(srv, nil)
	web := httptest.NewServer(handler)
	defer web.Close()
	defer handler.Close()
	url := web.URL
	// docs:begin extension
	c, err := client.Dial(ctx, url, client.Extension("com.example/glossary", nil))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var definition struct {
		Text string `json:"text"`
	}
	if _, ok := c.Extension("com.example/glossary"); ok {
		err = c.Request(ctx, "glossary/define", map[string]string{"term": "tool"}, &definition, client.Name("tool"))
	}
	// docs:end extension
	require.NoError(t, err)
	require.Equal(t, "What tool is.", definition.Text)
	require.ErrorContains(t, c.Request(ctx, "glossary/define", map[string]string{"term": "tool"}, nil), "code -32020")
}

// newGlossary returns a server with an extension that answers tools/call with a result type of its
// own, and notifies of terms.
func newGlossary(t *testing.T) (*mcpkit.Server, *mcpkit.Topic) {
	const id = "com.example/glossary"
	terms := mcpkit.NewTopic("terms", "notifications/glossary/defined", func(_ context.Context, key string) bool { return key != "secret" })
	srv, err := mcpkit.New(nil, mcpkit.Extend(mcpkit.Extension{
		ID: id, Topics: []*mcpkit.Topic{terms},
		Methods: []*mcpkit.Method{mcpkit.NewMethod("glossary/define", func(ctx context.Context, p struct {
			Term string `json:"term"`
		}) (map[string]any, error) {
			return map[string]any{"content": []any{map[string]any{"type": "text", "text": p.Term + " is a drink"}}}, nil
		}).Negotiated()},
		Intercept: func(next mcpkit.Handler) mcpkit.Handler {
			return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
				if _, ok := call.Extension(id); !ok {
					return next(ctx, call)
				}
				return map[string]string{"resultType": "term", "term": call.Name()}, nil
			}
		},
	}), mcpkit.With(&glossary{}))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, srv.Close()) })
	return srv, terms
}

type glossary struct {
	_ any `mcp:"tool:Tea"`
}

func (*glossary) Tea() string { return "plain" }

func TestResultsOfAnExtensionLeadToTheResultOfTheTool(t *testing.T) {
	srv, _ := newGlossary(t)
	var progress []string
	define := client.OnResult("term", func(ctx context.Context, r *client.ExtensionResult) (json.RawMessage, error) {
		var named struct {
			Term string `json:"term"`
		}
		if err := json.Unmarshal(r.Raw, &named); err != nil {
			return nil, err
		}
		r.Progress(&protocol.ProgressParams{Progress: 1, Message: r.Tool})
		var result json.RawMessage
		err := r.Request(ctx, "glossary/define", &named, &result)
		return result, err
	})
	extension := client.Extension("com.example/glossary", nil, define, client.Since(protocol.V20260728))
	c := dial(t, srv, extension)
	out, err := client.Call[string](t.Context(), c, "tea", nil, client.OnProgress(func(p *protocol.ProgressParams) { progress = append(progress, p.Message) }))
	require.NoError(t, err)
	require.Equal(t, "tea is a drink", out)
	require.Equal(t, []string{"tea"}, progress)

	_, err = client.Call[string](t.Context(), c, "tea", nil, client.OnResult("term", func(context.Context, *client.ExtensionResult) (json.RawMessage, error) {
		return json.RawMessage(`{"resultType":"term"}`), nil
	}))
	require.EqualError(t, err, `client: tools/call "tea": the server's response is invalid: the result of a "term" is not a complete one`)

	plain := dial(t, srv)
	out, err = client.Call[string](t.Context(), plain, "tea", nil)
	require.NoError(t, err)
	require.Equal(t, "plain", out, "a client that does not declare the extension gets the result of the tool")
}

func TestNotificationsOfAnExtensionArriveOnSubscriptions(t *testing.T) {
	srv, topic := newGlossary(t)
	c := dial(t, srv, client.Extension("com.example/glossary", nil))
	heard := make(chan string, 10)
	ctx, hear := t.Context(), func(params json.RawMessage) { heard <- string(params) }
	terms := client.Topic{
		Member: "terms", Value: []string{"tea", "secret"},
		Notification: "notifications/glossary/defined", Receive: hear,
	}
	sub, err := c.Listen(ctx, protocol.SubscriptionFilter{}, terms)
	require.NoError(t, err)
	require.JSONEq(t, `["tea"]`, string(sub.Accepted("terms")))
	require.Nil(t, sub.Accepted("others"))
	require.NoError(t, topic.Notify("tea", map[string]string{"term": "tea"}))
	require.Contains(t, <-heard, `"term":"tea"`)
	require.NoError(t, sub.Close())

	legacy := dial(t, srv, client.Version(protocol.LatestLegacy))
	_, err = legacy.Listen(ctx, protocol.SubscriptionFilter{}, client.Topic{Member: "terms", Value: []string{"tea"}, Notification: "notifications/glossary/defined"})
	require.EqualError(t, err, `client: Listen: version 2025-11-25 has no filter for the member "terms"; it needs a modern server`)
	_, err = legacy.Listen(ctx, protocol.SubscriptionFilter{}, client.Topic{Member: "terms", Value: make(chan int), Notification: "notifications/glossary/defined"})
	require.ErrorContains(t, err, `client: Listen: the value of the member "terms": `)
}

func TestAReopenedSubscriptionSaysThatNotificationsMayBeMissing(t *testing.T) {
	acknowledge := func(then ...string) answer {
		return stream(append([]string{event(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"terms":true},"_meta":{"io.modelcontextprotocol/subscriptionId":$ID}}}`)}, then...)...)
	}
	notification := func(id, term string) string {
		return event(`{"jsonrpc":"2.0","method":"notifications/glossary/defined","params":{"term":"` + term + `","_meta":{"io.modelcontextprotocol/subscriptionId":` + id + `}}}`)
	}
	f := newFake(t, map[string]answer{"subscriptions/listen": inTurn(
		acknowledge(notification("$ID", "tea"), notification("99", "of another subscription")),
		acknowledge(notification("$ID", "milk")), silence)})
	c := dial(t, f.URL, client.Extension("com.example/glossary", nil))
	heard := make(chan string, 10)
	sub, err := c.Listen(t.Context(), protocol.SubscriptionFilter{}, client.Topic{Member: "terms", Value: true, Notification: "notifications/glossary/defined", Receive: func(params json.RawMessage) {
		var p struct {
			Term string `json:"term"`
		}
		_ = json.Unmarshal(params, &p)
		heard <- p.Term
	}})
	require.NoError(t, err)
	for _, want := range []string{"tea", "", "milk"} {
		require.Equal(t, want, <-heard)
	}
	require.NoError(t, sub.Close())
}

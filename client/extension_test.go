package client_test

import (
	"context"
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

	c, err := client.Dial(t.Context(), srv)
	require.NoError(t, err)
	defer c.Close()
	require.ErrorContains(t, c.Request(t.Context(), "ratings/ping", nil, nil), `needs a client that declares the extension`)
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

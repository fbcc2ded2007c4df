package streamable

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// A described handler has a server card.
type described string

func (described) ServeRPC(context.Context, *jsonrpc.Request, transport.Peer) *jsonrpc.Response {
	return nil
}

func (d described) ServerCard(url string) ([]byte, error) {
	if d == "" {
		return nil, errors.New("no server card: it has no name")
	}
	return []byte(string(d) + url), nil
}

func TestServerCard(t *testing.T) {
	const card = described("card")
	const etag = `"8367cd66fdd136bba8ba23f8805bb050dd6289401c8ec3b0be44a3c233eef90d"`
	for _, test := range []struct {
		name         string
		rpc          transport.Handler
		card         string
		method, path string
		field, value string
		status       int
		body         string
	}{
		{"get", card, "", "GET", "/mcp/", "", "", 200, "card"},
		{"from a page", card, "", "GET", "/mcp/", "Origin", "https://elsewhere.example", 200, "card"},
		{"with the URL", card, " at https://x.example", "GET", "/", "", "", 200, "card at https://x.example"},
		{"unchanged", card, "", "GET", "/mcp/", "If-None-Match", `"a", ` + etag, 304, ""},
		{"changed", card, "", "GET", "/mcp/", "If-None-Match", `"a"`, 200, "card"},
		{"head", card, "", "HEAD", "/mcp/", "", "", 200, ""},
		{"preflight", card, "", "OPTIONS", "/mcp/", "", "", 204, ""},
		{"messages", card, "", "POST", "/mcp/", "", "", 405, "only the server card is served here, to GET\n"},
		{"invalid", described(""), "", "GET", "/mcp/", "", "", 404, "no server card: it has no name\n"},
		{"off", card, "-", "GET", "/mcp/", "", "", 404, "there is no server card\n"},
		{"of no server", &scripted{}, "", "GET", "/mcp/", "", "", 404, "there is no server card\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := NewHandler(test.rpc, &Options{Card: test.card})
			defer h.Close()
			r, w := httptest.NewRequest(test.method, test.path+"server-card", strings.NewReader("{}")), httptest.NewRecorder()
			r.Header.Set(test.field, test.value)
			h.ServeHTTP(w, r)
			require.Equal(t, test.status, w.Code)
			require.Equal(t, test.body, w.Body.String())
			require.Equal(t, "*", w.Header().Get("Access-Control-Allow-Origin"))
			if test.status == 200 {
				require.Equal(t, "application/mcp-server-card+json", w.Header().Get("Content-Type"))
				require.Equal(t, "public, max-age=3600", w.Header().Get("Cache-Control"))
				require.NotEmpty(t, w.Header().Get("ETag"))
			}
		})
	}
}

package streamable

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A described handler has a server card.
type described struct{ scripted }

func (*described) ServerCard(url string) ([]byte, error) {
	if url == "none" {
		return nil, errors.New("no server card: it has no name")
	}
	return []byte("card" + url), nil
}

func TestServerCard(t *testing.T) {
	const etag = `"8367cd66fdd136bba8ba23f8805bb050dd6289401c8ec3b0be44a3c233eef90d"`
	for _, test := range []struct {
		card, method, path, field, value string
		status                           int
		body, header                     string
	}{
		{"", "GET", "/mcp/", "Origin", "https://elsewhere.example", 200, "card", "application/mcp-server-card+json " + etag},
		{" at https://x.example", "HEAD", "/", "", "", 200, "", "application/mcp-server-card+json "},
		{"", "GET", "/mcp/", "If-None-Match", `"a", ` + etag, 304, "", " " + etag},
		{"", "OPTIONS", "/mcp/", "Origin", "https://elsewhere.example", 204, "", " "},
		{"", "POST", "/mcp/", "", "", 405, "only the server card is served here, to GET\n", "text/plain; charset=utf-8 "},
		{"none", "GET", "/mcp/", "", "", 404, "no server card: it has no name\n", "text/plain; charset=utf-8 "},
		{"-", "GET", "/mcp/", "", "", 404, "there is no server card\n", "text/plain; charset=utf-8 "},
	} {
		h := NewHandler(&described{}, &Options{Card: test.card})
		r, w := httptest.NewRequest(test.method, test.path+"server-card", strings.NewReader("{}")), httptest.NewRecorder()
		r.Header.Set(test.field, test.value)
		h.ServeHTTP(w, r)
		require.Equal(t, test.status, w.Code, test)
		require.Equal(t, test.body, w.Body.String(), test)
		require.Equal(t, "*", w.Header().Get("Access-Control-Allow-Origin"), test)
		require.Contains(t, w.Header().Get("Content-Type")+" "+w.Header().Get("ETag"), test.header, test)
		h.Close()
	}
}

package sse_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/transport/sse"
)

// FuzzPOST sends any body to a session, declared as anything: each is answered at once, the stream
// stays whole, and the next good request is answered.
func FuzzPOST(f *testing.F) {
	for _, body := range []string{
		ping, `[` + ping + `]`, `[]`, ``, `{`, "\n", ping + "\n" + ping, `{"jsonrpc":"2.0","method":"n","params":[]}`,
		`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		strings.Repeat("[", 1000), "\xff\xfe", `{"jsonrpc":"2.0","id":"\ud800","method":"m"}`,
	} {
		f.Add(body, "application/json", "")
		f.Add(body, "application/json; charset=utf-8", "&sessionId=x")
		f.Add(body, "text/plain", "")
	}
	handler := sse.NewHandler(pong{}, &sse.Options{Logger: quiet, MaxBodyBytes: 1 << 16})
	// In memory: thousands of TCP connections a second use up all ports.
	network, closeAll := testkit.Serve(&http.Server{Handler: handler})
	f.Cleanup(func() { handler.Close(); closeAll() })
	f.Fuzz(func(t *testing.T, body, contentType, query string) {
		c := openOn(t, network, "http://mcp.test", nil)
		defer c.Close()
		r := httptest.NewRequest(http.MethodPost, "/sse", strings.NewReader(body))
		r.URL.RawQuery = c.url[strings.Index(c.url, "?")+1:] + query
		r.Header["Content-Type"] = []string{contentType}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		require.Contains(t, []int{202, 400, 404, 413, 415}, w.Code)
		// The answer to a last request is found behind whatever the body was answered with.
		status, err := c.post([]byte(`{"jsonrpc":"2.0","id":"the last one","method":"ping"}`), nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusAccepted, status)
		for {
			got, err := c.Receive()
			require.NoError(t, err)
			if strings.Contains(string(got), `"the last one"`) {
				return
			}
		}
	})
}

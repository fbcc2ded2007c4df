package sse_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/sse"
)

var quiet = slog.New(slog.DiscardHandler)

// serveHTTP serves h. It returns the URL and an HTTP client without persistent connections.
func serveHTTP(t *testing.T, h transport.Handler, opts *sse.Options) (base string, client *http.Client) {
	t.Helper()
	opts.Logger = quiet
	handler := sse.NewHandler(h, opts)
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		handler.Close()
		server.Close()
	})
	return server.URL, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
}

func TestRequestsThatAreRefused(t *testing.T) {
	base, httpClient := serveHTTP(t, pong{}, &sse.Options{MaxBodyBytes: 100})
	c := open(t, base, nil)
	post := func(url, contentType, body string) *http.Request {
		r, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
		require.NoError(t, err)
		if contentType != "" {
			r.Header.Set("Content-Type", contentType)
		}
		return r
	}
	get := func(field, value string) *http.Request {
		r, err := http.NewRequest(http.MethodGet, base+"/sse", nil)
		require.NoError(t, err)
		r.Header.Set(field, value)
		return r
	}
	const isJSON = "application/json"
	for _, test := range []struct {
		name   string
		r      *http.Request
		status int
		want   string
	}{
		{"a form", post(c.url, "application/x-www-form-urlencoded", ping), 415, "Content-Type must be application/json"},
		{"text", post(c.url, "text/plain", ping), 415, "Content-Type must be application/json"},
		{"no type", post(c.url, "", ping), 415, "Content-Type must be application/json"},
		{"no session", post(base+"/sse", isJSON, ping), 400, "send messages to the URL in the endpoint event of the stream"},
		{"two sessions", post(c.url+"&sessionId=x", isJSON, ping), 400, "send messages to the URL in the endpoint event of the stream"},
		{"an unknown session", post(base+"/sse?sessionId=AAAAAAAAAAAAAAAAAAAAAAAAAA", isJSON, ping), 404, "session is unknown or has ended; open a new stream"},
		{"an empty session", post(base+"/sse?sessionId=", isJSON, ping), 404, "session is unknown or has ended; open a new stream"},
		{"a long body", post(c.url, isJSON, strings.Repeat("x", 101)), 413, "request body is larger than 100 bytes"},
		{"no stream wanted", get("Accept", "application/json"), 406, "Accept must list text/event-stream"},
		{"a foreign page", get("Origin", "http://evil.example.com"), 403, `origin "http://evil.example.com" is not allowed; name it in AllowedOrigins`},
		{"another host", func() *http.Request { r := get("X", ""); r.Host = "evil.example.com"; return r }(), 403, `host "evil.example.com" is not allowed; name it in AllowedHosts`},
		{"another verb", func() *http.Request { r := get("X", ""); r.Method = http.MethodPut; return r }(), 405, "use GET for the stream and POST for messages"},
	} {
		t.Run(test.name, func(t *testing.T) {
			resp, err := httpClient.Do(test.r)
			require.NoError(t, err)
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.Equal(t, test.want, strings.TrimSpace(string(body)))
			require.Equal(t, test.status, resp.StatusCode)
			if test.status == 405 {
				require.Equal(t, "GET, POST", resp.Header.Get("Allow"))
			}
		})
	}
	require.NoError(t, c.Send([]byte(ping)), "the session continues")
	_, err := c.Receive()
	require.NoError(t, err)
	require.NoError(t, c.Close())
}

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

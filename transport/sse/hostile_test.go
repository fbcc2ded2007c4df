package sse_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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
		{"a long body", post(c.url, isJSON, strings.Repeat("x", 101)), 413, "body is larger than 100 bytes"},
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

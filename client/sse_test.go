package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
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
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport"
)

func TestHTTPSSEServersAreDetected(t *testing.T) {
	c := dial(t, serveSSE(t, shop(t)))
	require.False(t, c.Version().Modern())
	_, err := client.Call[any](t.Context(), c, "search", map[string]any{"query": "tea"})
	require.NoError(t, err)

	_, err = dialing(t, serveSSE(t, shop(t)), client.Version(protocol.V20260728))
	require.ErrorContains(t, err, "the server does not speak version 2026-07-28")
	_, err = dialing(t, client.HTTPSSE(serveSSE(t, shop(t))), client.Version(protocol.V20260728))
	require.EqualError(t, err, "client: HTTP+SSE does not support version 2026-07-28")
	_, err = dialing(t, client.HTTPSSE("ws://localhost"))
	require.EqualError(t, err, `client: "ws://localhost": the scheme of HTTP+SSE is http or https`)
}

// An oldServer is an HTTP+SSE server that answers initialize. The test handles all other requests.
type oldServer struct {
	begin   string                                       // the beginning of the stream; the endpoint if empty
	handle  func(w http.ResponseWriter, method string)   // of a POST that is not initialize
	stream  chan string                                  // messages for the stream; closed to end it
	handler func(w http.ResponseWriter, r *http.Request) // handles everything instead
}

func (o *oldServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case o.handler != nil:
		o.handler(w, r)
	case r.Method == http.MethodGet:
		w.Header().Set("Content-Type", "text/event-stream")
		begin := o.begin
		if begin == "" {
			begin = "event: endpoint\ndata: /post?session=1\n\n"
		}
		_, _ = io.WriteString(w, begin)
		w.(http.Flusher).Flush()
		for {
			select {
			case text, ok := <-o.stream:
				if !ok {
					return
				}
				_, _ = fmt.Fprintf(w, "event: message\ndata: %s\n\n", text)
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
				return
			}
		}
	default:
		var m struct {
			Method string `json:"method"`
		}
		_ = json.NewDecoder(r.Body).Decode(&m)
		switch {
		case m.Method == "initialize":
			w.WriteHeader(http.StatusAccepted)
			o.stream <- `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"old","version":"1"}}}`
		case strings.HasPrefix(m.Method, "notifications/"):
			w.WriteHeader(http.StatusAccepted)
		default:
			o.handle(w, m.Method)
		}
	}
}

func startOld(t *testing.T, o *oldServer) client.Target {
	t.Helper()
	o.stream = make(chan string, 10)
	s := httptest.NewServer(o)
	t.Cleanup(s.Close)
	return client.HTTPSSE(s.URL)
}

func TestInvalidStreamsAreRejected(t *testing.T) {
	for _, test := range []struct {
		name   string
		server oldServer
		want   string
	}{
		{"an endpoint of another origin", oldServer{begin: "event: endpoint\ndata: https://evil.example.com/post\n\n"},
			`client: the stream names an endpoint of another origin, "https://evil.example.com/post"`},
		{"an invalid endpoint", oldServer{begin: "event: endpoint\ndata: %zz\n\n"},
			`client: the endpoint that the stream names: parse "%zz": invalid URL escape "%zz"`},
		{"a message first", oldServer{begin: "data: {}\n\n"}, `client: the stream begins with the event "", not with "endpoint"`},
		{"no stream", oldServer{handler: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }},
			`client: the response to GET has the content type "text/plain"; want text/event-stream`},
		{"refused", oldServer{handler: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }},
			`client: the server responded with HTTP status 418 I'm a teapot`},
		{"no endpoint", oldServer{begin: ": wait\n\n"}, "client: the stream named no endpoint in time"},
	} {
		t.Run(test.name, func(t *testing.T) {
			patience := client.ProbeTimeout(time.Minute)
			if test.name == "no endpoint" {
				patience = client.ProbeTimeout(50 * time.Millisecond)
			}
			_, err := dialing(t, startOld(t, &test.server), patience)
			require.EqualError(t, err, test.want)
		})
	}
}

func TestFaultyHTTPSSEServers(t *testing.T) {
	t.Run("a session that is lost ends the connection", func(t *testing.T) {
		c := dial(t, startOld(t, &oldServer{handle: func(w http.ResponseWriter, _ string) { w.WriteHeader(http.StatusNotFound) }}))
		err := c.Ping(t.Context())
		require.ErrorIs(t, err, transport.ErrClosed)
		require.ErrorContains(t, err, "the server ended the session")
	})
	t.Run("a stream that ends in the middle of a call ends the connection", func(t *testing.T) {
		o := &oldServer{}
		o.handle = func(w http.ResponseWriter, _ string) {
			w.WriteHeader(http.StatusAccepted)
			close(o.stream)
		}
		c := dial(t, startOld(t, o))
		err := c.Ping(t.Context())
		require.ErrorIs(t, err, transport.ErrClosed)
		require.ErrorContains(t, err, "the server ended the stream")
		require.ErrorIs(t, c.Ping(t.Context()), transport.ErrClosed)
	})
	t.Run("a server that never takes the message is given up", func(t *testing.T) {
		block := make(chan struct{})
		defer close(block)
		o := &oldServer{handle: func(http.ResponseWriter, string) { <-block }}
		c := dial(t, startOld(t, o), client.ShutdownTimeout(10*time.Millisecond))
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, c.Ping(ctx), context.DeadlineExceeded)
	})
}

func TestRedirectsOfWebSocketsStayAtTheOrigin(t *testing.T) {
	s := httptest.NewServer(http.RedirectHandler("http://evil.example.com/", http.StatusTemporaryRedirect))
	defer s.Close()
	_, err := dialing(t, "ws"+strings.TrimPrefix(s.URL, "http"))
	require.ErrorContains(t, err, "the server redirects to another origin")
}

func TestPostsDoNotWaitForEachOther(t *testing.T) {
	held, release := make(chan struct{}, 40), make(chan struct{})
	o := &oldServer{}
	o.handle = func(w http.ResponseWriter, method string) {
		if method == "x/slow" {
			held <- struct{}{}
			<-release
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		w.WriteHeader(http.StatusAccepted)
		o.stream <- `{"jsonrpc":"2.0","id":42,"result":{}}`
	}
	c := dial(t, startOld(t, o))
	errs := make(chan error, 40)
	for range 40 {
		go func() { errs <- c.Request(t.Context(), "x/slow", nil, nil) }()
	}
	for range 40 {
		<-held
	}
	require.NoError(t, c.Ping(t.Context()), "while forty POSTs have no response")
	close(release)
	for range 40 {
		require.ErrorContains(t, <-errs, "HTTP status 500")
	}
}

func TestTheEndpointIsRelativeToTheURLAfterRedirects(t *testing.T) {
	o := &oldServer{begin: "event: endpoint\ndata: post?session=1\n\n", stream: make(chan string, 10)}
	o.handle = func(w http.ResponseWriter, _ string) {
		w.WriteHeader(http.StatusAccepted)
		o.stream <- `{"jsonrpc":"2.0","id":2,"result":{}}`
	}
	mux := http.NewServeMux()
	mux.Handle("GET /sse", http.RedirectHandler("/v1/mcp/sse", http.StatusTemporaryRedirect))
	mux.Handle("GET /v1/mcp/sse", o)
	mux.Handle("POST /v1/mcp/post", o)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	c := dial(t, client.HTTPSSE(s.URL+"/sse"))
	require.NoError(t, c.Ping(t.Context()))
}

// An oldLink is an HTTP+SSE server without a network. Its POST of x/login waits for 15 seconds,
// and x/refresh fails before it is sent.
type oldLink struct{ stream *io.PipeWriter }

var errRefresh = errors.New("the token cannot be refreshed")

func (o *oldLink) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet {
		body, stream := io.Pipe()
		o.stream = stream
		go func() { _, _ = io.WriteString(stream, "event: endpoint\ndata: /post?session=4711\n\n") }()
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: body, Request: r}, nil
	}
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		return nil, err
	}
	result := `{}`
	switch m.Method {
	case "initialize":
		result = `{"protocolVersion":"2024-11-05","capabilities":{},"serverInfo":{"name":"old","version":"1"}}`
	case "x/login":
		select {
		case <-time.After(15 * time.Second):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	case "x/refresh", "notifications/roots/list_changed":
		return nil, errRefresh
	}
	if m.ID != nil {
		go func() {
			_, _ = fmt.Fprintf(o.stream, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n\n", m.ID, result)
		}()
	}
	return &http.Response{StatusCode: http.StatusAccepted, Body: io.NopCloser(strings.NewReader("")), Request: r}, nil
}

func TestLoginsDuringAPostConcernItsCallAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged bytes.Buffer
		defer func() { require.NotContains(t, logged.String(), "4711", "the session ID") }()
		c, err := client.Dial(t.Context(), client.HTTPSSE("https://old.example.com"), client.HTTPClient(&http.Client{Transport: &oldLink{}}),
			client.Logger(slog.New(slog.NewTextHandler(&logged, nil))))
		require.NoError(t, err)
		defer c.Close()
		err = c.Request(t.Context(), "x/refresh", nil, nil)
		require.ErrorIs(t, err, errRefresh)
		require.NotContains(t, err.Error(), "4711", "the session ID")
		require.NoError(t, c.Ping(t.Context()))
		require.NoError(t, c.Notify(t.Context(), "notifications/roots/list_changed", nil))
		require.NoError(t, c.Ping(t.Context()))
		require.NoError(t, c.Request(t.Context(), "x/login", nil, nil), "a login of 15 seconds")
		require.ErrorContains(t, c.Request(t.Context(), "x/login", nil, nil, client.Timeout(12*time.Second)), "no response within 12s")
		require.NoError(t, c.Ping(t.Context()))
	})
}

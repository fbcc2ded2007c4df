package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
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

package client_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
)

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

func TestTheHostOfAnEndpointIsCaseInsensitive(t *testing.T) {
	o := &oldServer{stream: make(chan string, 10)}
	o.handle = func(w http.ResponseWriter, _ string) {
		w.WriteHeader(http.StatusAccepted)
		o.stream <- `{"jsonrpc":"2.0","id":2,"result":{}}`
	}
	s := httptest.NewServer(o)
	t.Cleanup(s.Close)
	_, port, _ := strings.Cut(strings.TrimPrefix(s.URL, "http://"), ":")
	o.begin = "event: endpoint\ndata: http://LOCALHOST:" + port + "/post\n\n"
	c := dial(t, client.HTTPSSE("http://localhost:"+port), client.Timeout(20*time.Second))
	require.NoError(t, c.Ping(t.Context()))
}

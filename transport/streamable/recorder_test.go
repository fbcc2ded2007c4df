package streamable

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/transporttest"
)

// A recorder is a response writer without a network, for synctest.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func newRecorder() *recorder { return &recorder{header: make(http.Header)} }

func (w *recorder) Header() http.Header { return w.header }

func (w *recorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

func (w *recorder) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(p)
}

func (w *recorder) FlushError() error { return nil }

func newPost(body string, fields ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "http://localhost/mcp", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(fields); i += 2 {
		if fields[i+1] != "" {
			r.Header.Set(fields[i], fields[i+1])
		}
	}
	return r
}

func newGet(ctx context.Context, session string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "http://localhost/mcp", nil).WithContext(ctx)
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Mcp-Session-Id", session)
	return r
}

// silentRPC answers everything with {}.
type silentRPC struct{ transporttest.Sessions }

func (silentRPC) ServeRPC(_ context.Context, req *jsonrpc.Request, _ transport.Peer) *jsonrpc.Response {
	return &jsonrpc.Response{ID: req.ID, Result: []byte(`{}`)}
}

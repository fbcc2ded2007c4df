package mcpkit_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

// BenchmarkNotify measures one change of which 1,000 clients are notified, each on a stream without a
// network. An operation is the notification of one stream.
func BenchmarkNotify(b *testing.B) {
	for _, family := range []string{"sessions", "subscriptions"} {
		b.Run(family, func(b *testing.B) {
			const streams = 1000
			a := newAudience(b, family, streams)
			b.ReportAllocs()
			b.ResetTimer()
			for n := 0; n < b.N; n += streams {
				a.notify()
			}
		})
	}
}

// An audience is clients that subscribed to a resource and listen.
type audience struct {
	srv  *mcpkit.Server
	n    int
	left atomic.Int64 // streams that have not received the notification
	all  chan struct{}
}

const heard = "bench://heard"

// newAudience opens n sessions with a stream each (2025-11-25), or n subscriptions (2026-07-28).
func newAudience(tb testing.TB, family string, n int) *audience {
	srv, err := mcpkit.New(nil, mcpkit.Logger(slog.New(slog.DiscardHandler)))
	require.NoError(tb, err)
	require.NoError(tb, srv.Add(mcpkit.NewResource(heard, "heard", func() string { return "" })))
	h := streamable.NewHandler(srv, &streamable.Options{MaxSessions: 2 * n, MaxSubscriptions: 2 * n})
	a := &audience{srv: srv, n: n, all: make(chan struct{}, 1)}
	a.left.Store(int64(n)) // the first event of each stream
	ctx, cancel := context.WithCancel(context.Background())
	var open sync.WaitGroup
	tb.Cleanup(func() {
		cancel()
		open.Wait()
		h.Close()
	})
	request := func(verb, body string, fields ...string) *http.Request {
		r := httptest.NewRequestWithContext(ctx, verb, "http://localhost/mcp", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		for i := 0; i < len(fields); i += 2 {
			r.Header.Set(fields[i], fields[i+1])
		}
		return r
	}
	for range n {
		if family == "subscriptions" {
			body := `{"jsonrpc":"2.0","id":"a subscription","method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["` + heard +
				`"]},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
			r := request(http.MethodPost, body, "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "subscriptions/listen")
			open.Go(func() { h.ServeHTTP(&ear{audience: a, header: http.Header{}}, r) })
			continue
		}
		session := ""
		for _, body := range []string{
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"n","version":"1"}}}`,
			`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
			`{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"` + heard + `"}}`,
		} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, request(http.MethodPost, body, "Mcp-Session-Id", session))
			require.Less(tb, w.Code, 300, w.Body)
			if session == "" {
				session = w.Header().Get("Mcp-Session-Id")
			}
		}
		get := request(http.MethodGet, "", "Mcp-Session-Id", session)
		open.Go(func() { h.ServeHTTP(&ear{audience: a, header: http.Header{}}, get) })
	}
	<-a.all
	return a
}

// notify notifies all clients, and returns when each has received the notification.
func (a *audience) notify() {
	a.left.Store(int64(a.n))
	a.srv.ResourceUpdated(heard)
	<-a.all
}

// An ear is the response writer of one stream.
type ear struct {
	*audience
	header http.Header
	last   []byte
}

func (w *ear) Header() http.Header              { return w.header }
func (w *ear) WriteHeader(int)                  {}
func (w *ear) FlushError() error                { return nil }
func (w *ear) SetReadDeadline(time.Time) error  { return nil }
func (w *ear) SetWriteDeadline(time.Time) error { return nil }
func (w *ear) Write(p []byte) (int, error) {
	w.last = append(w.last[:0], p...)
	if bytes.Contains(p, []byte("data:")) && w.left.Add(-1) == 0 {
		w.all <- struct{}{}
	}
	return len(p), nil
}

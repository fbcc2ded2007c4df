package streamable

import (
	"context"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

func TestAbandonedSessionsCostNothing(t *testing.T) {
	h := NewHandler(silentRPC{}, nil)
	defer h.Close()
	open := func() {
		require.Equal(t, http.StatusOK, status(h, "", begin(t, h, ""), pingBody))
	}
	open()
	before, goroutines := heap(), runtime.NumGoroutine()
	for range 20_000 {
		open()
	}
	require.Less(t, heap()-before, int64(2<<20))
	require.LessOrEqual(t, runtime.NumGoroutine(), goroutines) // those of other tests may have ended
	require.Len(t, h.sessions.all, maxSpare)
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestLargeReplies(t *testing.T) {
	s := serve(t, nil, nil)
	big := `{"a":"` + strings.Repeat("x", 3<<20) + `"}`
	for name, c := range map[string]*client{"modern": s.modern(), "legacy": s.legacy("2025-06-18")} {
		for range 2 { // the connection can be reused
			resp := c.post(`{"jsonrpc":"2.0","id":1,"method":"echo","params":` + big + `}`)
			require.Equal(t, int64(len(big))+34, resp.ContentLength, name)
			require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":`+big+`}`, read(t, resp), name)
		}
	}
}

func TestSubscriptionsWithLargeBodiesAreRefused(t *testing.T) {
	s := serve(t, script{"subscriptions/listen": func(_ context.Context, req *jsonrpc.Request, _ transport.Peer) *jsonrpc.Response {
		return result(req, string(req.Params))
	}}, nil)
	c := s.modern()
	body := func(size int) string {
		head, tail := `{"jsonrpc":"2.0","id":5,"method":"subscriptions/listen","params":{"notifications":{}}`, `}`
		return head + strings.Repeat(" ", size-len(head)-len(tail)) + tail
	}
	resp := c.post(body(maxListenBytes))
	require.Equal(t, `{"jsonrpc":"2.0","id":5,"result":{"notifications":{}}}`, read(t, resp))
	resp = c.post(body(maxListenBytes + 1))
	require.Equal(t, http.StatusRequestEntityTooLarge, resp.StatusCode)
	require.Equal(t, `{"jsonrpc":"2.0","id":5,"error":{"code":-32600,"message":"request body is larger than 262144 bytes"}}`, read(t, resp))
	c.works()
}

package proxy_test

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

func TestAnHTTPStatusOfTheRemoteServerIsReported(t *testing.T) {
	t.Parallel()
	far := mcpkit.MustNew(&desk{}, mcpkit.Logger(silent))
	h := streamable.NewHandler(far, nil)
	var refusing atomic.Bool
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refusing.Load() {
			http.Error(w, "later", http.StatusServiceUnavailable)
			return
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	near := mounted(t, web.URL, protocol.V20260728)
	c := dial(t, near, protocol.V20260728)
	_, err := c.Tool(t.Context(), "far_count")
	require.NoError(t, err)
	refusing.Store(true)
	_, err = c.CallTool(t.Context(), "far_count", nil)
	require.ErrorContains(t, err, "responded with HTTP status 503 Service Unavailable")
	refusing.Store(false)
	_, err = c.CallTool(t.Context(), "far_count", nil)
	require.NoError(t, err)
}

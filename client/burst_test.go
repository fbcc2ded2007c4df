package client_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/protocol"
)

func TestNotificationsReachASlowHandlerEvenIfTheStreamDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &babbler{answer: func(r *http.Request) *http.Response {
			body, events := io.Pipe()
			context.AfterFunc(r.Context(), func() { _ = events.CloseWithError(r.Context().Err()) })
			// Ends when all is read.
			go func() {
				for n := range 3 {
					_, _ = io.WriteString(events, event(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":%d}}`, n)))
				}
				_, _ = io.WriteString(events, event(`{"jsonrpc":"2.0","id":2,"result":{"content":[]}}`))
			}()
			return respond(r, http.StatusOK, "text/event-stream", body)
		}}
		c := dial(t, "http://example.com/mcp", client.Version(protocol.Latest), client.HTTPClient(&http.Client{Transport: server}))
		heard := 0
		_, err := c.CallTool(t.Context(), "x", nil, client.OnProgress(func(*protocol.ProgressParams) {
			time.Sleep(time.Second) // of the bubble
			heard++
		}))
		require.NoError(t, err)
		require.Equal(t, 3, heard)
	})
}

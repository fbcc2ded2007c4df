package websocket_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	ws "github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/websocket"
)

// big answers with 8 MiB.
type big struct{}

func (big) ServeRPC(context.Context, *jsonrpc.Request, transport.Peer) *jsonrpc.Response {
	return &jsonrpc.Response{Result: []byte(`"` + strings.Repeat("x", 8<<20) + `"`)}
}

// The server reads nothing from a client that has much to read, not even its responses to pings.
func TestClientThatReadsSlowlyIsNotDisconnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := dialWired(t, big{}, &websocket.Options{}, nil, false)
		conn.SetReadLimit(-1)
		require.NoError(t, conn.Write(t.Context(), ws.MessageText, []byte(`{"jsonrpc":"2.0","id":2,"method":"big"}`)))
		_, r, err := conn.Reader(t.Context())
		require.NoError(t, err)
		n := int64(0)
		for err == nil {
			var more int64
			more, err = io.CopyN(io.Discard, r, 64<<10)
			n += more
			time.Sleep(time.Second)
		}
		require.ErrorIs(t, err, io.EOF, "after %d bytes", n)
		require.Greater(t, n, int64(8<<20))
	})
}

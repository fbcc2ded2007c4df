package mcpkit

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// earlyPeer counts early responses.
type earlyPeer struct {
	transport.Peer
	responses int
}

func (p *earlyPeer) Session() *transport.Session    { return nil }
func (p *earlyPeer) Header() transport.Header       { return nil }
func (p *earlyPeer) RespondEarly(*jsonrpc.Response) { p.responses++ }

// A timer that fires while a question pauses it fires once more.
func TestAMethodIsOverdueOnceIfTheTimerFiresAgain(t *testing.T) {
	if !respondsEarly {
		t.Skip("methods have a goroutine of their own")
	}
	synctest.Test(t, func(t *testing.T) {
		srv, err := New(nil, Logger(slog.New(slog.DiscardHandler)))
		require.NoError(t, err)
		calls, released := make(chan *Call, 1), make(chan struct{})
		require.NoError(t, srv.Add(NewTool("deaf", func(call *Call) { calls <- call; <-released }).Timeout(time.Second)))
		req, err := jsonrpc.NewRequest(jsonrpc.NumberID(1), "tools/call", map[string]any{"name": "deaf"})
		require.NoError(t, err)
		p := &earlyPeer{}
		go srv.ServeRPC(t.Context(), req, p) // ends when released is closed
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, 1, p.responses)
		(<-calls).scope.expire()
		synctest.Wait()
		require.Equal(t, 1, p.responses)
		require.Equal(t, 1, srv.Overdue())
		close(released)
		synctest.Wait()
		require.Zero(t, srv.Overdue())
	})
}

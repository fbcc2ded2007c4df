package proxy_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/proxy"
	"github.com/mcpkit/mcpkit-go/transport/stdio"
)

// thoughtful takes two minutes to answer.
type thoughtful struct{}

func (thoughtful) Elicit(context.Context, *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	time.Sleep(2 * time.Minute)
	return &protocol.ElicitResult{Action: protocol.ElicitAccept, Content: json.RawMessage(`{"days":3}`)}, nil
}

// A legacy server goes on without the answer, which comes too late.
func TestACallThatEndedBeforeItsAnswerIsNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var booked atomic.Int64
		far := mcpkit.MustNew(nil, mcpkit.Logger(silent), mcpkit.QuestionTimeout(time.Minute))
		require.NoError(t, far.Add(mcpkit.NewTool("book", func(ctx context.Context) (string, error) {
			_, err := mcpkit.Elicit[days](ctx, "How many days?")
			booked.Add(1)
			if err != nil {
				return "booked one day", nil
			}
			return "booked", nil
		})))
		near := mcpkit.MustNew(nil, mcpkit.Logger(silent))
		near.MustMount("far", proxy.MustNew(client.InMemory(far), proxy.Logger(silent), proxy.Dial(client.Version(protocol.V20251125), client.Timeout(0))))
		c, err := client.Dial(t.Context(), near, client.Version(protocol.V20260728), client.Logger(silent), client.Handlers(thoughtful{}))
		require.NoError(t, err)
		got, err := client.Call[string](t.Context(), c, "far_book", nil)
		require.NoError(t, err)
		require.Equal(t, "booked one day", got)
		require.EqualValues(t, 1, booked.Load())
		require.NoError(t, c.Close())
		require.NoError(t, near.Close())
	})
}

// The remote server takes five seconds to start again, and its callers wait for three.
func TestCallersThatLeaveDoNotDelayTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := mcpkit.MustNew(nil, mcpkit.Logger(silent))
		require.NoError(t, far.Add(mcpkit.NewTool("count", func() int { return 7 })))
		var ours, theirs net.Conn
		startup := time.Duration(0)
		target := client.Connect(func(ctx context.Context) (io.ReadWriteCloser, error) {
			select {
			case <-time.After(startup):
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			ours, theirs = net.Pipe()
			go func() { _ = stdio.NewIO(theirs, theirs, nil).Serve(context.WithoutCancel(ctx), far) }() // ends with the connection
			return ours, nil
		})
		near := proxy.MustNew(target, proxy.Logger(silent))
		require.NoError(t, near.Start(t.Context()))
		c, err := client.Dial(t.Context(), near, client.Version(protocol.V20260728), client.Logger(silent))
		require.NoError(t, err)
		startup = 5 * time.Second
		require.NoError(t, theirs.Close())
		synctest.Wait()
		for range 4 {
			_, err = client.Call[int](t.Context(), c, "count", nil, client.Timeout(3*time.Second))
		}
		require.NoError(t, err)
		require.NoError(t, c.Close())
		require.NoError(t, near.Close())
	})
}

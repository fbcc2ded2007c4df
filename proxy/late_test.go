package proxy_test

import (
	"context"
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
		near := mounted(t, client.InMemory(far), protocol.V20251125, proxy.Dial(client.Timeout(0)))
		c := dial(t, near, protocol.V20260728, client.Handlers(&user{takes: 2 * time.Minute}))
		got, err := client.Call[string](t.Context(), c, "far_book", nil)
		require.NoError(t, err)
		require.Equal(t, "booked one day", got)
		require.EqualValues(t, 1, booked.Load())
	})
}

// A cable is a connection in memory to a server, which is made again after it was cut.
type cable struct {
	far     *mcpkit.Server
	connect func(ctx context.Context) error // called before each connection; nil does nothing
	theirs  net.Conn
}

func (c *cable) target() client.Target {
	return client.Connect(func(ctx context.Context) (io.ReadWriteCloser, error) {
		if c.connect != nil {
			if err := c.connect(ctx); err != nil {
				return nil, err
			}
		}
		ours, theirs := net.Pipe()
		c.theirs = theirs
		go func() { _ = stdio.NewIO(theirs, theirs, nil).Serve(context.WithoutCancel(ctx), c.far) }() // ends with the connection
		return ours, nil
	})
}

func (c *cable) cut(t *testing.T) {
	require.NoError(t, c.theirs.Close())
	synctest.Wait()
}

// The remote server takes five seconds to start again, and its callers wait for three.
func TestCallersThatLeaveDoNotDelayTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := &cable{far: mcpkit.MustNew(&desk{}, mcpkit.Logger(silent))}
		c := dial(t, mounted(t, link.target(), protocol.V20260728), protocol.V20260728)
		link.connect = func(ctx context.Context) error {
			select {
			case <-time.After(5 * time.Second):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		link.cut(t)
		var err error
		for range 4 {
			_, err = c.CallTool(t.Context(), "far_count", nil, client.Timeout(3*time.Second))
		}
		require.NoError(t, err)
	})
}

// The function of the program panics when the connection has to be made again.
func TestAPanicOfConnectFailsTheCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := &cable{far: mcpkit.MustNew(&desk{}, mcpkit.Logger(silent))}
		c := dial(t, mounted(t, link.target(), protocol.V20260728), protocol.V20260728)
		link.connect = func(context.Context) error { panic("no cable") }
		link.cut(t)
		_, err := c.CallTool(t.Context(), "far_count", nil)
		require.Error(t, err)
		link.connect = nil
		time.Sleep(time.Minute)
		_, err = c.CallTool(t.Context(), "far_count", nil)
		require.NoError(t, err)
	})
}

// awaitUpdate waits for an update of desk://index.
func awaitUpdate(t *testing.T, sub *client.Subscription) {
	t.Helper()
	limited, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	change, err := sub.Next(limited)
	require.NoError(t, err)
	require.Equal(t, client.Change{Kind: client.ResourceUpdated, URI: "desk://index"}, change)
}

// The remote server is away for longer than a client tries to listen again.
func TestUpdatesAreForwardedAfterAnOutage(t *testing.T) {
	for _, v := range []protocol.Version{protocol.V20251125, protocol.V20260728} {
		synctest.Test(t, func(t *testing.T) {
			far := mcpkit.MustNew(&desk{}, mcpkit.Logger(silent))
			w := newWeb(t, far)
			c := dial(t, mounted(t, url, v, proxy.Dial(client.HTTPClient(w.client))), protocol.V20260728)
			sub, err := c.Subscribe(t.Context(), "desk://index")
			require.NoError(t, err)
			w.breakDown()
			time.Sleep(10 * time.Minute)
			w.status.Store(0)
			awaitUpdate(t, sub) // one may have been missed
			synctest.Wait()
			require.True(t, far.ResourceUpdated("desk://index"), v)
			awaitUpdate(t, sub)
		})
	}
}

func TestUpdatesAreForwardedAfterTheConnectionBroke(t *testing.T) {
	for _, v := range []protocol.Version{protocol.V20251125, protocol.V20260728} {
		synctest.Test(t, func(t *testing.T) {
			link := &cable{far: mcpkit.MustNew(&desk{}, mcpkit.Logger(silent))}
			c := dial(t, mounted(t, link.target(), v), protocol.V20260728)
			sub, err := c.Subscribe(t.Context(), "desk://index")
			require.NoError(t, err)
			link.cut(t)
			awaitUpdate(t, sub) // one may have been missed
			synctest.Wait()
			require.True(t, link.far.ResourceUpdated("desk://index"))
			awaitUpdate(t, sub)
		})
	}
}

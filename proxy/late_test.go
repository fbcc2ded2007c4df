package proxy_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/proxy"
	"github.com/mcpkit/mcpkit-go/transport/stdio"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
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

// The function of the program panics when the connection has to be made again.
func TestAPanicOfConnectFailsTheCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := mcpkit.MustNew(nil, mcpkit.Logger(silent))
		require.NoError(t, far.Add(mcpkit.NewTool("count", func() int { return 7 })))
		var theirs net.Conn
		panics := false
		near := proxy.MustNew(client.Connect(func(ctx context.Context) (io.ReadWriteCloser, error) {
			if panics {
				panic("no cable")
			}
			ours, other := net.Pipe()
			theirs = other
			go func() { _ = stdio.NewIO(other, other, nil).Serve(context.WithoutCancel(ctx), far) }() // ends with the connection
			return ours, nil
		}), proxy.Logger(silent))
		require.NoError(t, near.Start(t.Context()))
		c, err := client.Dial(t.Context(), near, client.Version(protocol.V20260728), client.Logger(silent))
		require.NoError(t, err)
		panics = true
		require.NoError(t, theirs.Close())
		synctest.Wait()
		_, err = client.Call[int](t.Context(), c, "count", nil)
		require.Error(t, err)
		panics = false
		time.Sleep(time.Minute)
		got, err := client.Call[int](t.Context(), c, "count", nil)
		require.NoError(t, err)
		require.Equal(t, 7, got)
		require.NoError(t, c.Close())
		require.NoError(t, near.Close())
	})
}

// The remote server is away for longer than a client tries to listen again.
func TestUpdatesAreForwardedAfterAnOutage(t *testing.T) {
	for _, v := range []protocol.Version{protocol.V20251125, protocol.V20260728} {
		synctest.Test(t, func(t *testing.T) {
			far := mcpkit.MustNew(&desk{}, mcpkit.Logger(silent))
			handler := streamable.NewHandler(far, nil)
			var down atomic.Bool
			var conns sync.Map
			network, closeAll := testkit.Serve(&http.Server{
				Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if down.Load() {
						panic(http.ErrAbortHandler)
					}
					handler.ServeHTTP(w, r)
				}),
				ErrorLog:  slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
				ConnState: func(c net.Conn, _ http.ConnState) { conns.Store(c, true) },
			})
			near := proxy.MustNew("http://far.example/mcp", proxy.Logger(silent), proxy.Dial(client.Version(v), client.HTTPClient(network)))
			require.NoError(t, near.Start(t.Context()))
			c, err := client.Dial(t.Context(), near, client.Version(protocol.V20260728), client.Logger(silent))
			require.NoError(t, err)
			sub, err := c.Subscribe(t.Context(), "desk://index")
			require.NoError(t, err)
			down.Store(true)
			conns.Range(func(c, _ any) bool { _ = c.(net.Conn).Close(); return true })
			time.Sleep(10 * time.Minute)
			down.Store(false)
			time.Sleep(time.Minute)
			synctest.Wait()
			require.True(t, far.ResourceUpdated("desk://index"), v)
			limited, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			change, err := sub.Next(limited)
			require.NoError(t, err)
			require.Equal(t, client.Change{Kind: client.ResourceUpdated, URI: "desk://index"}, change)
			require.NoError(t, c.Close())
			require.NoError(t, near.Close())
			handler.Close()
			closeAll()
		})
	}
}

func TestUpdatesAreForwardedAfterTheConnectionBroke(t *testing.T) {
	for _, v := range []protocol.Version{protocol.V20251125, protocol.V20260728} {
		synctest.Test(t, func(t *testing.T) {
			far := mcpkit.MustNew(&desk{}, mcpkit.Logger(silent))
			var theirs net.Conn
			near := proxy.MustNew(client.Connect(func(ctx context.Context) (ours io.ReadWriteCloser, _ error) {
				ours, theirs = net.Pipe()
				go func(c net.Conn) { _ = stdio.NewIO(c, c, nil).Serve(context.WithoutCancel(ctx), far) }(theirs) // ends with the connection
				return ours, nil
			}), proxy.Logger(silent), proxy.Dial(client.Version(v)))
			require.NoError(t, near.Start(t.Context()))
			c, err := client.Dial(t.Context(), near, client.Version(protocol.V20260728), client.Logger(silent))
			require.NoError(t, err)
			sub, err := c.Subscribe(t.Context(), "desk://index")
			require.NoError(t, err)
			require.NoError(t, theirs.Close())
			synctest.Wait()
			_, err = client.Call[[]int](t.Context(), c, "count", nil) // connects again
			require.NoError(t, err)
			limited, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			change, err := sub.Next(limited)
			require.NoError(t, err, "an update may have been missed")
			require.Equal(t, "desk://index", change.URI)
			synctest.Wait()
			require.True(t, far.ResourceUpdated("desk://index"))
			_, err = sub.Next(limited)
			require.NoError(t, err)
			require.NoError(t, c.Close())
			require.NoError(t, near.Close())
		})
	}
}

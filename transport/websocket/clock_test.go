package websocket_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	ws "github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/websocket"
)

// dialWired serves h in a synctest bubble, and connects to it as the principal who. A deaf client
// does not answer pings.
func dialWired(t *testing.T, h transport.Handler, opts *websocket.Options, who *oauth.Principal, deaf bool) *ws.Conn {
	opts.Logger = slog.New(slog.DiscardHandler)
	handler := websocket.NewHandler(h, opts)
	client, closeAll := testkit.Serve(&http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(w, r.WithContext(oauth.NewContext(r.Context(), who)))
	})})
	t.Cleanup(func() {
		handler.Close()
		closeAll()
	})
	conn, _, err := ws.Dial(t.Context(), "ws://mcp.test", &ws.DialOptions{
		HTTPClient: client, Subprotocols: []string{"mcp"}, OnPingReceived: func(context.Context, []byte) bool { return !deaf },
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.CloseNow() })
	return conn
}

func TestAConnectionLastsAsLongAsItsCredential(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		conn := dialWired(t, methods{}, &websocket.Options{SessionIdle: -1}, &oauth.Principal{Subject: "ann", Expires: begun.Add(time.Hour)}, false)
		require.Equal(t, pong, exchange(t, conn, ping))
		// Reading answers the pings meanwhile.
		_, _, err := conn.Read(t.Context())
		require.Equal(t, ws.StatusNormalClosure, ws.CloseStatus(err), "%v", err)
		require.Equal(t, time.Hour, time.Since(begun))
	})
}

func TestClientThatIgnoresPingsIsDisconnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over := make(chan time.Time, 1)
		h := methods{"block": func(ctx context.Context, _ transport.Peer) {
			<-ctx.Done()
			over <- time.Now()
		}}
		conn := dialWired(t, h, &websocket.Options{KeepAlive: 20 * time.Second}, nil, true)
		begun := time.Now()
		require.Equal(t, pong, exchange(t, conn, ping))
		require.NoError(t, conn.Write(t.Context(), ws.MessageText, []byte(`{"jsonrpc":"2.0","id":2,"method":"block"}`)))
		_, _, err := conn.Read(t.Context())
		require.Error(t, err)
		require.Equal(t, 40*time.Second, (<-over).Sub(begun), "the next ping is due and the first is not answered")
	})
}

// trickle sends the beginning of a message and nothing more.
func trickle(t *testing.T, conn *ws.Conn) {
	w, err := conn.Writer(t.Context(), ws.MessageText)
	require.NoError(t, err)
	_, err = io.WriteString(w, `{"jsonrpc":`+strings.Repeat(" ", 8<<10)) // more than the client buffers
	require.NoError(t, err)
}

func TestUnfinishedMessageClosesTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := dialWired(t, methods{}, &websocket.Options{MessageTimeout: time.Second}, nil, false)
		require.Equal(t, pong, exchange(t, conn, ping))
		begun := time.Now()
		trickle(t, conn)
		_, _, err := conn.Read(t.Context())
		require.Equal(t, ws.StatusPolicyViolation, ws.CloseStatus(err), "%v", err)
		require.Contains(t, err.Error(), "the message did not end within 1s")
		require.Equal(t, time.Second, time.Since(begun))
	})
}

func TestAnIdleConnectionEnds(t *testing.T) {
	block := methods{"block": func(ctx context.Context, _ transport.Peer) { <-ctx.Done() }}
	for _, test := range []struct {
		name string
		idle time.Duration
		busy bool
		want time.Duration // 0 if it stays open
	}{
		{"by default", 0, false, 30 * time.Minute},
		{"sooner", time.Minute, false, time.Minute},
		{"never", -1, false, 0},
		{"with a call in flight", time.Minute, true, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				keepAlive := 7 * time.Second // no ping is due when the connection ends
				if test.want == 0 {
					keepAlive = -1 // nothing reads for a day
				}
				conn := dialWired(t, block, &websocket.Options{SessionIdle: test.idle, KeepAlive: keepAlive}, nil, false)
				require.Equal(t, pong, exchange(t, conn, ping))
				begun := time.Now()
				if test.busy {
					require.NoError(t, conn.Write(t.Context(), ws.MessageText, []byte(`{"jsonrpc":"2.0","id":2,"method":"block"}`)))
				}
				if test.want == 0 {
					time.Sleep(24 * time.Hour)
					require.Equal(t, pong, exchange(t, conn, ping))
					return
				}
				_, _, err := conn.Read(t.Context())
				require.Equal(t, ws.StatusNormalClosure, ws.CloseStatus(err), "%v", err)
				require.InDelta(t, test.want.Seconds(), time.Since(begun).Seconds(), test.want.Seconds()/4)
			})
		})
	}
}

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

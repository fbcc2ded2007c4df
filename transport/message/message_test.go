package message_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/internal/leaktest"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/message"
	"github.com/mcpkit/mcpkit-go/transport/transporttest"
)

func TestMain(m *testing.M) { leaktest.VerifyTestMain(m) }

var discard = slog.New(slog.DiscardHandler)

// pair returns both ends of a TCP connection, which has buffers like other networks.
func pair(t *testing.T) (ours, theirs net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	ours, err = net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	theirs, err = l.Accept()
	require.NoError(t, err)
	return ours, theirs
}

// end is the client's end in the contract tests.
type end struct {
	*frames
	stop func()
	done <-chan struct{}
}

func (e end) Send(message []byte) error { return e.WriteMessage(message) }
func (e end) Receive() ([]byte, error)  { return e.ReadMessage() }
func (e end) Stop()                     { e.stop() }
func (e end) Done() <-chan struct{}     { return e.done }

func TestContract(t *testing.T) {
	transporttest.RunInBubble(t, func(t *testing.T, h transport.Handler) transporttest.Conn {
		ours, theirs := net.Pipe()
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			assert.NoError(t, message.New(newFrames(theirs), &message.Options{
				MaxMessageBytes: transporttest.MaxMessageBytes, DrainTimeout: 3 * time.Second, Logger: discard,
			}).Serve(ctx, h))
		}()
		return end{newFrames(ours), stop, done}
	})
}

// who returns the subject of the caller.
type who struct{}

func (who) ServeRPC(ctx context.Context, _ *jsonrpc.Request, _ transport.Peer) *jsonrpc.Response {
	if !oauth.AuthenticationDecided(ctx) {
		return &jsonrpc.Response{Result: []byte(`"anybody"`)}
	}
	if p := oauth.FromContext(ctx); p != nil {
		return &jsonrpc.Response{Result: []byte(`"` + p.Subject + `"`)}
	}
	return &jsonrpc.Response{Result: []byte(`"nobody"`)}
}

func TestPeersAreUnauthenticatedWithoutConnContext(t *testing.T) {
	serve := func(o *message.Options) (string, error) {
		o.Logger = discard
		ours, theirs := pair(t)
		over := make(chan error, 1)
		go func() { over <- message.New(newFrames(theirs), o).Serve(t.Context(), who{}) }()
		f := newFrames(ours)
		require.NoError(t, f.WriteMessage([]byte(`{"jsonrpc":"2.0","id":1,"method":"initialize"}`)))
		got, _ := f.ReadMessage()
		require.NoError(t, f.Close())
		return string(got), <-over
	}
	got, err := serve(&message.Options{})
	require.NoError(t, err)
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":"nobody"}`, got)

	got, err = serve(&message.Options{ConnContext: func(ctx context.Context, c message.Conn) (context.Context, error) {
		require.IsType(t, &frames{}, c)
		return oauth.NewContext(ctx, &oauth.Principal{Subject: "ann"}), nil
	}})
	require.NoError(t, err)
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":"ann"}`, got)

	got, err = serve(&message.Options{ConnContext: func(ctx context.Context, _ message.Conn) (context.Context, error) {
		return nil, errors.New("no certificate")
	}})
	require.EqualError(t, err, "transport/message: connection refused: no certificate")
	require.Empty(t, got)
}

func TestAcceptEndsWithItsConnections(t *testing.T) {
	broken := errors.New("the broker is gone")
	err := message.Accept(func(context.Context) (message.Conn, error) { return nil, broken }, nil).Serve(t.Context(), who{})
	require.EqualError(t, err, "transport/message: the broker is gone")
	require.ErrorIs(t, err, broken)

	err = message.Accept(func(context.Context) (message.Conn, error) { return nil, nil }, nil).Serve(t.Context(), who{})
	require.EqualError(t, err, "transport/message: accept returned neither a connection nor an error")

	ctx, stop := context.WithCancel(t.Context())
	stop()
	require.NoError(t, message.Accept(func(context.Context) (message.Conn, error) { return nil, broken }, nil).Serve(ctx, who{}))
}

func TestAcceptLimitsConnections(t *testing.T) {
	accepted := make(chan *frames) // the clients' ends
	accept := func(ctx context.Context) (message.Conn, error) {
		ours, theirs := pair(t)
		select {
		case accepted <- newFrames(ours):
			return newFrames(theirs), nil
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), ours.Close(), theirs.Close())
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() {
		over <- message.Accept(accept, &message.Options{MaxConnections: 1, Logger: discard}).Serve(ctx, who{})
	}()
	first := <-accepted
	require.NoError(t, first.WriteMessage([]byte(`{"jsonrpc":"2.0","id":1,"method":"initialize"}`)))
	_, err := first.ReadMessage()
	require.NoError(t, err)
	select {
	case <-accepted:
		require.Fail(t, "a second connection was accepted")
	default:
	}
	require.NoError(t, first.Close())
	second := <-accepted
	stop()
	require.NoError(t, <-over)
	_, err = second.ReadMessage()
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, second.Close())
}

func TestClientsDialConnections(t *testing.T) {
	ours, theirs := pair(t)
	over := make(chan error, 1)
	go func() {
		over <- message.New(newFrames(theirs), nil).Serve(t.Context(), mcpkit.MustNew(&Clock{}, mcpkit.Logger(discard)))
	}()
	connect := func(context.Context) (message.Conn, error) { return newFrames(ours), nil }
	c, err := client.Dial(t.Context(), client.Messages(connect), client.Version(protocol.V20251125), client.MaxMessageBytes(2000), client.Logger(discard))
	require.NoError(t, err)
	got, err := client.Call[string](t.Context(), c, "now", nil)
	require.NoError(t, err)
	require.Equal(t, "noon", got)
	require.NoError(t, c.Close())
	require.NoError(t, <-over)

	_, err = client.Dial(t.Context(), client.Messages(func(context.Context) (message.Conn, error) { return nil, errors.New("no route") }))
	require.EqualError(t, err, "client: no route")
}

func TestLongMessagesAreWrittenWhole(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	ours, theirs := pair(t)
	h := handler(func() []byte { return []byte(`"` + long + `"`) })
	over := make(chan error, 1)
	go func() { over <- message.New(newFrames(theirs), nil).Serve(t.Context(), h) }()
	f := newFrames(ours)
	require.NoError(t, f.WriteMessage([]byte(`{"jsonrpc":"2.0","id":1,"method":"initialize"}`)))
	got, err := f.ReadMessage()
	require.NoError(t, err)
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":"`+long+`"}`, string(got))
	require.NoError(t, f.Close())
	require.NoError(t, <-over)
}

type handler func() []byte

func (h handler) ServeRPC(context.Context, *jsonrpc.Request, transport.Peer) *jsonrpc.Response {
	return &jsonrpc.Response{Result: h()}
}

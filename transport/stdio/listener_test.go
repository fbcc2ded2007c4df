package stdio_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/stdio"
)

// docs:begin listener

// A Listener is a transport that serves each connection to it.
type Listener struct{ net.Listener }

// Serve implements transport.Transport. When ctx ends, it lets calls in flight finish.
func (l Listener) Serve(ctx context.Context, h transport.Handler) error {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	var open sync.WaitGroup
	defer open.Wait()
	defer cancel()
	for {
		conn, err := l.Accept()
		if err != nil && ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		open.Go(func() { // ends with the connection, at the latest when ctx ends
			if err := stdio.NewIO(conn, conn, nil).Serve(ctx, h); err != nil {
				slog.Warn("a connection failed", "peer", conn.RemoteAddr(), "error", err)
			}
		})
	}
}

// docs:end listener

func ExampleNewIO_listener() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	// Ends when ctx does.
	go func() { served <- mcpkit.MustNew(&Greeter{}).Serve(ctx, Listener{l}) }()

	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		panic(err)
	}
	c, err := client.Dial(ctx, conn)
	if err != nil {
		panic(err)
	}
	fmt.Println(client.Call[string](ctx, c, "greet", map[string]string{"name": "Ann"}))
	c.Close()
	stop()
	fmt.Println(<-served)
	// Output:
	// Hello, Ann! <nil>
	// <nil>
}

// who returns the subject of the caller.
type who struct{}

func (who) ServeRPC(ctx context.Context, _ *jsonrpc.Request, _ transport.Peer) *jsonrpc.Response {
	subject := "the user of this process"
	if p := oauth.FromContext(ctx); p != nil {
		subject = p.Subject
	} else if oauth.AuthenticationDecided(ctx) {
		subject = "nobody"
	}
	return &jsonrpc.Response{Result: []byte(`"` + subject + `"`)}
}

func TestCallersOfAPortAreUnauthenticatedUnlessTheContextSaysWhoTheyAre(t *testing.T) {
	ann := &oauth.Principal{Subject: "ann"}
	for _, test := range []struct {
		network, addr string
		ctx           context.Context
		want          string
	}{
		{"tcp", "127.0.0.1:0", t.Context(), "nobody"},
		{"tcp", "127.0.0.1:0", oauth.NewContext(t.Context(), ann), "ann"},
		{"unix", filepath.Join(t.TempDir(), "s"), t.Context(), "the user of this process"},
	} {
		require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":"`+test.want+`"}`+"\n", answerOver(t, test.ctx, test.network, test.addr, ping(1)+"\n"))
	}
}

// answerOver returns what a server on a listener sends for text until it closes the connection.
func answerOver(t *testing.T, ctx context.Context, network, addr, text string) string {
	t.Helper()
	l, err := net.Listen(network, addr)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	// Ends with ctx.
	go func() { served <- Listener{l}.Serve(ctx, who{}) }()
	conn, err := net.Dial(network, l.Addr().String())
	require.NoError(t, err)
	_, err = io.WriteString(conn, text)
	require.NoError(t, err)
	require.NoError(t, conn.(interface{ CloseWrite() error }).CloseWrite())
	answer, _ := io.ReadAll(bufio.NewReader(conn))
	require.NoError(t, conn.Close())
	stop()
	require.NoError(t, <-served)
	return string(answer)
}

// A web page can make a browser send a request with any body to any port of this machine.
func TestHTTPRequestsOnAConnectionAreRefused(t *testing.T) {
	for _, request := range []string{
		"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n\r\n" + ping(1) + "\n",
		"\r\n GET /" + ping(1) + "\n",
		"Content-Length: 40\r\n\r\n" + ping(1) + "\n",
		"\x16\x03\x01" + ping(1) + "\n",
	} {
		require.Empty(t, answerOver(t, t.Context(), "tcp", "127.0.0.1:0", request), "%q", request)
	}
}

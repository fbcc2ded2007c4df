package client_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/stdio"
)

// serveListener serves each connection to l until the test ends.
func serveListener(t *testing.T, l net.Listener, h transport.Handler, opts *stdio.Options) {
	o := stdio.Options{}
	if opts != nil {
		o = *opts
	}
	o.Logger = slog.New(slog.DiscardHandler)
	ctx, stop := context.WithCancel(context.Background())
	var open sync.WaitGroup
	open.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			open.Go(func() { _ = stdio.NewIO(conn, conn, &o).Serve(ctx, h) })
		}
	})
	t.Cleanup(func() {
		assert.NoError(t, l.Close())
		stop()
		open.Wait()
	})
}

// serveUnix serves on a Unix socket and returns its path.
func serveUnix(t *testing.T, h transport.Handler, opts *stdio.Options) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "mcp") // t.TempDir may be too long for the path of a socket
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.Remove(dir)) })
	path := filepath.Join(dir, "shop.sock")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	serveListener(t, l, h, opts)
	return path
}

// serveStream serves one end of a pipe and returns the other.
func serveStream(t *testing.T, h transport.Handler, opts *stdio.Options) net.Conn {
	t.Helper()
	ours, theirs := net.Pipe()
	over := make(chan error, 1)
	go func() { over <- stdio.NewIO(theirs, theirs, opts).Serve(context.Background(), h) }()
	t.Cleanup(func() { assert.NoError(t, <-over) }) // it ends with the client's end
	return ours
}

func TestMessagesMayBeFramedByHeaders(t *testing.T) {
	for _, framing := range []stdio.Framing{stdio.ContentLength, stdio.AnyFraming} {
		opts := &stdio.Options{Framing: framing}
		for name, target := range map[string]any{
			"unix":   "unix:" + serveUnix(t, shop(t), opts),
			"stream": serveStream(t, shop(t), opts),
		} {
			c := dial(t, target, client.ContentLength())
			line, err := client.Call[string](t.Context(), c, "tagline", nil)
			require.NoError(t, err, name)
			require.Equal(t, "Everything must go.", line)
		}
	}
}

// lines answers the lines on conn until answer returns false.
func lines(conn net.Conn, answer func(method, id string) (string, bool)) {
	defer conn.Close()
	in := bufio.NewScanner(conn)
	for in.Scan() {
		id := between(in.Text(), `"id":`, `,`)
		if id == "" {
			continue
		}
		text, ok := answer(between(in.Text(), `"method":"`, `"`), id)
		if !ok {
			return
		}
		if text != "" {
			if _, err := fmt.Fprintf(conn, `{"jsonrpc":"2.0","id":%s,%s}`+"\n", id, text); err != nil {
				return
			}
		}
	}
}

const begun = `"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"old","version":"1"}}`

// old answers initialize and ping, and calls other for everything else.
func old(other func(id string) (string, bool)) func(method, id string) (string, bool) {
	return func(method, id string) (string, bool) {
		switch method {
		case protocol.MethodInitialize:
			return begun, true
		case protocol.MethodPing:
			return `"result":{}`, true
		}
		return other(id)
	}
}

func TestAServerOnAConnectionIsInitializedWhateverItDoesWithTheProbe(t *testing.T) {
	for _, test := range []struct {
		name  string
		other func(id string) (string, bool)
	}{
		{"refuses", func(string) (string, bool) { return `"error":{"code":-32601,"message":"what?"}`, true }},
		{"ends the connection", func(string) (string, bool) { return "", false }},
		{"does not answer", func(string) (string, bool) { return "", true }},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { probed(t, test.name, test.other) })
		})
	}
}

// probed dials a server that calls other for unknown methods, with and without a second connection,
// in a synctest bubble.
func probed(t *testing.T, name string, other func(id string) (string, bool)) {
	connect := func(context.Context) (io.ReadWriteCloser, error) {
		ours, theirs := net.Pipe()
		go lines(theirs, old(other))
		return ours, nil
	}
	c := dial(t, client.Connect(connect))
	require.Equal(t, protocol.V20250618, c.Version())
	require.NoError(t, c.Ping(t.Context()))

	only, err := connect(t.Context())
	require.NoError(t, err)
	c, err = dialing(t, only)
	if name == "ends the connection" {
		require.EqualError(t, err, "client: the server closed the connection after server/discover, and the client cannot reopen it; "+
			"set a legacy version with client.Version, or use client.Connect: transport: closed: the server closed the connection")
		return
	}
	require.NoError(t, err)
	require.Equal(t, protocol.V20250618, c.Version())
	require.NoError(t, c.Ping(t.Context()), "the probe may have no response on the same connection")
}

// opening keeps the notifications that no other method is for.
type opening struct{ heard chan string }

func (o opening) Notification(_ context.Context, method string, params json.RawMessage) {
	o.heard <- method + " " + string(params)
}

func TestNotificationsOfAnyNameReachTheHandler(t *testing.T) {
	ours, theirs := net.Pipe()
	go lines(theirs, func(method, _ string) (string, bool) {
		if method == protocol.MethodPing {
			_, err := io.WriteString(theirs, `{"jsonrpc":"2.0","method":"notifications/shop/opened","params":{"at":9}}`+"\n"+
				`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`+"\n"+`{"jsonrpc":"2.0","method":"closed"}`+"\n")
			return `"result":{}`, err == nil
		}
		return begun, true
	})
	o := opening{make(chan string, 2)}
	c := dial(t, ours, client.Version(protocol.V20250618), client.Handlers(o))
	require.NoError(t, c.Ping(t.Context()))
	require.Equal(t, `notifications/shop/opened {"at":9}`, <-o.heard)
	require.Equal(t, `closed {}`, <-o.heard)
}

func TestDoneIsClosedWhenTheConnectionEnds(t *testing.T) {
	ours, theirs := net.Pipe()
	go lines(theirs, old(func(string) (string, bool) { return "", true }))
	c := dial(t, ours, client.Version(protocol.V20250618))
	select {
	case <-c.Done():
		require.Fail(t, "the connection is open")
	default:
	}
	require.NoError(t, theirs.Close())
	<-c.Done()

	c = dial(t, shop(t))
	require.NoError(t, c.Close())
	<-c.Done()
}

// Some servers write the result before the ID, so the beginning of a message does not contain the
// ID.
func TestAnOversizedResponseFailsTheOnlyCall(t *testing.T) {
	ours, theirs := net.Pipe()
	go func() {
		defer theirs.Close()
		in := bufio.NewScanner(theirs)
		for in.Scan() {
			id := between(in.Text(), `"id":`, `,`)
			switch {
			case id == "":
			case between(in.Text(), `"method":"`, `"`) == protocol.MethodInitialize:
				_, _ = fmt.Fprintf(theirs, `{"jsonrpc":"2.0","id":%s,%s}`+"\n", id, begun)
			default:
				_, _ = fmt.Fprintf(theirs, `{"result":{"x":"%s"},"jsonrpc":"2.0","id":%s}`+"\n", strings.Repeat("x", 5000), id)
			}
		}
	}()
	c := dial(t, ours, client.Version(protocol.V20250618), client.MaxMessageBytes(4000))
	require.EqualError(t, c.Ping(t.Context()), "client: ping: response is larger than 4000 bytes; raise client.MaxMessageBytes (code -32600)")
}

func TestConnectMayFail(t *testing.T) {
	_, err := dialing(t, client.Connect(func(context.Context) (io.ReadWriteCloser, error) { return nil, errors.New("no route") }))
	require.EqualError(t, err, "client: no route")
}

// A closer closes its client in the first call of one of its methods.
type closer struct {
	c      chan *client.Client // holds the client
	closed chan error          // the error of Close
}

func newCloser() *closer { return &closer{make(chan *client.Client, 1), make(chan error, 1)} }

func (k *closer) close() {
	select {
	case c := <-k.c:
		k.closed <- c.Close()
	default:
	}
}

// closesOn closes its client in the method of this name.
type closesOn struct {
	*closer
	method string
}

func (k closesOn) in(method string) {
	if k.method == method {
		k.close()
	}
}

func (k closesOn) ToolsChanged(context.Context)                        { k.in("ToolsChanged") }
func (k closesOn) ResourceUpdated(context.Context, string)             { k.in("ResourceUpdated") }
func (k closesOn) Log(context.Context, *protocol.LoggingMessageParams) { k.in("Log") }
func (k closesOn) Progress(context.Context, *protocol.ProgressParams)  { k.in("Progress") }
func (k closesOn) Elicit(context.Context, *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	k.in("Elicit")
	return nil, client.ErrRejected
}

func TestCloseReturnsInsideAHandler(t *testing.T) {
	for _, test := range []struct {
		method, tool string // a method of the handlers, and the tool whose call makes the server use it
		args         any
	}{
		{"ToolsChanged", "change", nil},
		{"ResourceUpdated", "change", nil},
		{"Log", "count", nil},
		{"Progress", "count", nil},
		{"Elicit", "order", Hit{ID: 1, Title: "tea"}},
	} {
		t.Run(test.method, func(t *testing.T) {
			inBubbles(t, []protocol.Version{protocol.LatestLegacy, protocol.Latest}, func(t *testing.T, dial dialer, _ protocol.Version) {
				k := newCloser()
				c := dial(t, client.Handlers(closesOn{k, test.method}), client.LogLevel(protocol.LevelDebug))
				_, err := c.Listen(t.Context(), protocol.SubscriptionFilter{ToolsListChanged: true, ResourceSubscriptions: []string{"shop://hours"}})
				require.NoError(t, err)
				k.c <- c
				over := make(chan struct{})
				go func() {
					defer close(over)
					r, err := c.CallTool(t.Context(), test.tool, test.args) // it may return before or after Close
					if err != nil && r != nil {
						t.Error(err)
						k.closed <- c.Close()
					}
				}()
				require.NoError(t, <-k.closed)
				<-over
				_, err = c.CallTool(t.Context(), "add", nil)
				require.EqualError(t, err, `client: tools/call "add": transport: closed`)
			})
		})
	}
}

// A legacy server without sessions learns only from a cancellation that the client has closed.
func TestCloseCancelsCallsAtAServerWithoutSessions(t *testing.T) {
	for name, takes := range map[string]time.Duration{"a quick server": 0, "a server that does not respond": time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				methods := make(chan string, 10)
				server := roundTripper(func(r *http.Request) (*http.Response, error) {
					if r.Context().Err() != nil {
						return nil, r.Context().Err()
					}
					body, err := io.ReadAll(r.Body)
					require.NoError(t, err)
					method := jsonx.String(jsonx.Member(body, "method"))
					methods <- method
					var wait <-chan time.Time
					switch method {
					case "notifications/cancelled":
						wait = time.After(takes)
					case "tools/call":
					default:
						return (&babbler{}).RoundTrip(httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body)))
					}
					select {
					case <-wait:
						return &http.Response{StatusCode: http.StatusAccepted, Body: http.NoBody, Request: r}, nil
					case <-r.Context().Done():
						return nil, r.Context().Err()
					}
				})
				c := dial(t, "http://example.com/mcp", client.Version(protocol.LatestLegacy), client.HTTPClient(&http.Client{Transport: server}))
				over := make(chan error, 1)
				go func() {
					_, err := c.CallTool(t.Context(), "add", nil)
					over <- err
				}()
				synctest.Wait()
				begun := time.Now()
				require.NoError(t, c.Close())
				require.LessOrEqual(t, time.Since(begun), time.Second)
				require.ErrorIs(t, <-over, transport.ErrClosed)
				close(methods)
				var all []string
				for method := range methods {
					all = append(all, method)
				}
				require.Equal(t, []string{"initialize", "notifications/initialized", "tools/call", "notifications/cancelled"}, all)
			})
		})
	}
}

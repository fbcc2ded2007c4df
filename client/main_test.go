package client_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport/sse"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
	"github.com/mcpkit/mcpkit-go/transport/websocket"
)

// childVariable makes the test binary a stdio server instead of running tests. Its value is the
// kind.
const childVariable = "MCPKIT_CLIENT_TEST_SERVER"

func TestMain(m *testing.M) {
	if kind := os.Getenv(childVariable); kind != "" {
		os.Exit(beChild(kind))
	}
	// Parallel tests also wait: for Close inside a handler, and for children to end.
	flag.Parse()
	_ = flag.Set("test.parallel", "4")
	testkit.VerifyTestMain(m)
}

// beChild serves on standard input and output.
func beChild(kind string) int {
	if serve, ok := children[kind]; ok {
		return serve()
	}
	srv, err := newShop(slog.New(slog.DiscardHandler))
	if err == nil {
		err = srv.Serve(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// children are the servers of child processes, by kind, besides the shop.
var children = map[string]func() int{}

// child returns the command of a server of this kind; "" is the shop.
func child(kind string) *client.CommandTarget {
	if kind == "" {
		kind = "shop"
	}
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	t := client.Command(exe)
	t.Env = []string{childVariable + "=" + kind, "GORACE=atexit_sleep_ms=0"}
	return t
}

// transports are the ways to reach a server. Each starts its own server.
var transports = []struct {
	name   string
	target func(t *testing.T) any
}{
	{"memory", func(t *testing.T) any { return shop(t) }},
	{"stdio", func(*testing.T) any { return child("") }},
	{"http", func(t *testing.T) any { return serveHTTP(t, shop(t)) }},
	{"websocket", func(t *testing.T) any { return serveWebSocket(t, shop(t)) }},
	{"unix", func(t *testing.T) any { return "unix:" + serveUnix(t, shop(t), nil) }},
	{"stream", func(t *testing.T) any { return serveStream(t, shop(t), nil) }},
	{"sse", func(t *testing.T) any { return client.HTTPSSE(serveSSE(t, shop(t))) }},
}

func shop(t *testing.T) *mcpkit.Server {
	t.Helper()
	srv, err := newShop(slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, srv.Close()) })
	return srv
}

// serveHTTP serves over HTTP and returns the URL.
func serveHTTP(t *testing.T, srv *mcpkit.Server) string {
	t.Helper()
	return serveHandler(t, streamable.NewHandler(srv, &streamable.Options{Logger: slog.New(slog.DiscardHandler)}))
}

func serveWebSocket(t *testing.T, srv *mcpkit.Server) string {
	t.Helper()
	return "ws" + strings.TrimPrefix(serveHandler(t, websocket.NewHandler(srv, &websocket.Options{Logger: slog.New(slog.DiscardHandler)})), "http")
}

func serveSSE(t *testing.T, srv *mcpkit.Server) string {
	t.Helper()
	return serveHandler(t, sse.NewHandler(srv, &sse.Options{Logger: slog.New(slog.DiscardHandler)}))
}

// serveHandler serves the handler of a transport, and returns the URL.
func serveHandler(t *testing.T, h interface {
	http.Handler
	Shutdown(context.Context) error
}) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		require.NoError(t, h.Shutdown(context.Background()))
		s.Close()
	})
	return s.URL
}

// dial connects to target and closes the client at the end of the test.
func dial(t *testing.T, target any, opts ...client.DialOption) *client.Client {
	t.Helper()
	c, err := client.Dial(t.Context(), target, append([]client.DialOption{client.Logger(slog.New(slog.DiscardHandler)), client.Stderr(nil), patient}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// patient leaves a server enough time to start on a busy machine.
var patient = client.ProbeTimeout(time.Minute)

// everywhere runs a test on every transport in every version. Programs run only the newest version
// of each family, and so do other transports unless long tests run; "stream", which differs from a
// program only in the process, runs all.
func everywhere(t *testing.T, run func(t *testing.T, dial func(t *testing.T, opts ...client.DialOption) *client.Client, v protocol.Version)) {
	for _, b := range transports {
		for _, v := range protocol.Supported {
			if b.name == "sse" && v.Modern() {
				continue // HTTP+SSE supports only legacy versions
			}
			if b.name != "stream" && (b.name == "stdio" || !testkit.LongTests()) && v != protocol.LatestLegacy && v != protocol.Latest {
				continue
			}
			t.Run(b.name+"/"+string(v), func(t *testing.T) {
				t.Parallel()
				run(t, func(t *testing.T, opts ...client.DialOption) *client.Client {
					return dial(t, b.target(t), append([]client.DialOption{client.Version(v)}, opts...)...)
				}, v)
			})
		}
	}
}

package streamable

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

func TestListenServesOnePathAndLogsWhatItCancels(t *testing.T) {
	var log bytes.Buffer
	addrs, begun, over := make(chan net.Addr, 1), make(chan struct{}), make(chan error, 1)
	h := &scripted{methods: map[string]func(context.Context, *jsonrpc.Request, transport.Peer) *jsonrpc.Response{
		"quick": func(context.Context, *jsonrpc.Request, transport.Peer) *jsonrpc.Response { return &jsonrpc.Response{} },
		"block": func(ctx context.Context, _ *jsonrpc.Request, _ transport.Peer) *jsonrpc.Response {
			close(begun)
			<-ctx.Done()
			return &jsonrpc.Response{Result: []byte(`"ended"`)}
		},
	}}
	server := Listen("127.0.0.1:0", &Options{Stateless: true, ShutdownTimeout: 20 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(&log, nil)), OnListen: func(a net.Addr) { addrs <- a }})
	ctx, stop := context.WithCancel(t.Context())
	go func() { over <- server.Serve(ctx, h) }()
	url := "http://" + (<-addrs).String()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	post := func(path, method string) string {
		resp, err := client.Post(url+path, "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"`+method+`"}`))
		require.NoError(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.Status + " " + string(body)
	}
	require.Equal(t, `200 OK {"jsonrpc":"2.0","id":1,"result":{}}`, post("/mcp?x=1", "quick"))
	for _, path := range []string{"/", "/mcp/", "/mcp/x", "/MCP"} {
		require.Equal(t, "404 Not Found 404 page not found\n", post(path, "quick"), path)
	}
	require.Equal(t, "404 Not Found there is no server card\n", post("/mcp/server-card", "quick"))
	go func() { <-begun; stop() }()
	require.Contains(t, post("/mcp", "block"), `"ended"`)
	require.NoError(t, <-over)
	require.Contains(t, log.String(), `level=WARN msg="streamable: requests were cancelled at the end of the shutdown timeout" timeout=20ms`)
}

func TestListenReportsErrors(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	require.EqualError(t, Listen("127.0.0.1:0", &Options{Path: "mcp"}).Serve(t.Context(), &scripted{}), `streamable: path "mcp" must begin with a slash`)
	require.ErrorContains(t, Listen(taken.Addr().String(), nil).Serve(t.Context(), &scripted{}), "address already in use")
	require.EqualError(t, Listen("8080", nil).Serve(t.Context(), &scripted{}),
		"streamable: listen tcp: address 8080: missing port in address; give Listen a free address, such as 127.0.0.1:8080")
}

func TestServersThatOtherMachinesReachWarnOnce(t *testing.T) {
	for addr, warns := range map[string]int{"127.0.0.1:0": 0, "[::1]:0": 0, "0.0.0.0:0": 1, ":0": 1} {
		var log bytes.Buffer
		ctx, cancel := context.WithCancel(t.Context())
		s := Listen(addr, &Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), OnListen: func(net.Addr) { cancel() }})
		err := s.Serve(ctx, &scripted{})
		if addr == "[::1]:0" && err != nil {
			continue // this machine has no IPv6
		}
		require.NoError(t, err, addr)
		require.Equal(t, warns, strings.Count(log.String(), "level=WARN"), addr)
		require.Equal(t, warns, strings.Count(log.String(), "does not authenticate callers"), addr)
	}
}

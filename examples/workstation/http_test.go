package main

import (
	"bufio"
	"compress/gzip"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/examples/internal/rawclient"
)

func TestTheAppKeepsItsOwnRoutes(t *testing.T) {
	t.Parallel()
	url, _ := serveOverHTTP(t, workplace(t))
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	resp, err := client.Get(url + "/healthz")
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, "ok", string(body))
	require.NotEmpty(t, resp.Header.Get("X-Request-Id"))
}

// The app's middleware also runs for MCP: responses are compressed, and the log has the request ID.
func TestTheAppsMiddlewareServesMCP(t *testing.T) {
	t.Parallel()
	url, log := serveOverHTTP(t, workplace(t))
	const body = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/mcp", strings.NewReader(body))
	require.NoError(t, err)
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Accept-Encoding": "gzip",
		"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list", "X-Request-Id": "from-the-proxy",
	} {
		req.Header.Set(name, value)
	}
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, "gzip", resp.Header.Get("Content-Encoding"))
	plain, err := gzip.NewReader(resp.Body)
	require.NoError(t, err)
	text, err := io.ReadAll(plain)
	require.NoError(t, err)
	require.Contains(t, string(text), `"name":"go_test"`)
	require.Len(t, log.lines("ref=from-the-proxy"), 1)
}

func TestOneLineIsLoggedForEachCall(t *testing.T) {
	t.Parallel()
	url, log := serveOverHTTP(t, workplace(t))
	c := rawclient.HTTP(t, rawclient.Modern, url+"/mcp")
	c.CallTool("files_list", `{}`)
	c.CallTool("files_read", `{"path":"../secret"}`)
	c.Request("resources/read", `{"uri":"file:///go.mod"}`)
	c.Request("tools/list", `{}`)
	c.Request("tools/call", `{"name":"no_such_tool"}`)
	lines := log.lines(`msg="mcp call"`)
	require.Len(t, lines, 5)
	require.Contains(t, lines[0], "level=INFO msg=\"mcp call\" method=tools/call version=2026-07-28")
	require.Contains(t, lines[0], "outcome=ok")
	require.Contains(t, lines[0], "name=files_list")
	require.Contains(t, lines[1], "level=WARN")
	require.Contains(t, lines[2], "name=file:///go.mod")
	require.Contains(t, lines[4], "outcome=protocol_error")
}

// Twenty calls at once are allowed, then ten a second. Callers over the limit get an error with a
// retry time.
func TestTheRateIsLimited(t *testing.T) {
	t.Parallel()
	c := overHTTP(t, rawclient.Modern, workplace(t))
	for i := range 20 {
		result := c.CallTool("files_list", `{"path":"doc"}`)
		require.False(t, result.IsError, "call %d: %s", i+1, result.Text())
	}
	var refused atomic.Pointer[string]
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() {
			for i := 0; i < 2000 && refused.Load() == nil; i++ {
				if result := c.CallTool("files_list", `{"path":"doc"}`); result.IsError {
					text := result.Text()
					refused.Store(&text)
				}
			}
		})
	}
	calls.Wait()
	require.NotNil(t, refused.Load())
	require.Regexp(t, `^too many calls; try again in \d+ms$`, *refused.Load())
	require.NotEmpty(t, c.Request("tools/list", `{}`).Result, "lists are not limited")
}

func TestHTTPIsServedUntilTheContextEnds(t *testing.T) {
	t.Parallel()
	read, written := io.Pipe()
	logger := slog.New(slog.NewTextHandler(written, nil))
	srv, err := newServer(workplace(t), logger)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	// Ends when ctx does.
	go func() {
		ended <- serveHTTP(ctx, srv, "127.0.0.1:0", logger)
		_ = written.Close()
	}()
	lines := bufio.NewScanner(read)
	require.True(t, lines.Scan())
	_, url, ok := strings.Cut(lines.Text(), "url=")
	require.True(t, ok, lines.Text())
	// Ends when the log does.
	go func() { _, _ = io.Copy(io.Discard, read) }()

	for _, version := range []string{rawclient.Legacy, rawclient.Modern} {
		require.Equal(t, "one\nthree\n", rawclient.HTTP(t, version, url).CallTool("files_read", `{"path":"doc/notes.txt"}`).Text())
	}
	cancel()
	require.NoError(t, <-ended)
}

func TestHTTPFailsOnAnAddressInUse(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	logger := slog.New(slog.DiscardHandler)
	srv, err := newServer(workplace(t), logger)
	require.NoError(t, err)
	require.ErrorContains(t, serveHTTP(t.Context(), srv, listener.Addr().String(), logger), "address already in use")
}

func TestOnlyLoopbackAddressesAreServed(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{"127.0.0.1:8080", "localhost:0", "[::1]:80"} {
		require.NoError(t, loopback(addr))
	}
	for addr, want := range map[string]string{
		":8080":          `-http ":8080" is reachable from other machines, and its callers can run code; write for example 127.0.0.1:8080`,
		"0.0.0.0:80":     `-http "0.0.0.0:80" is reachable from other machines, and its callers can run code; write for example 127.0.0.1:8080`,
		"example.com:80": `-http "example.com:80" is reachable from other machines, and its callers can run code; write for example 127.0.0.1:8080`,
		"8080":           `-http "8080" is not an address; write for example 127.0.0.1:8080`,
	} {
		require.EqualError(t, loopback(addr), want)
	}
}

func TestTheRootIsADirectory(t *testing.T) {
	t.Parallel()
	root := workplace(t)
	_, err := newServer(root+"/go.mod", slog.New(slog.DiscardHandler))
	require.EqualError(t, err, `"`+root+`/go.mod" is not a directory`)
}

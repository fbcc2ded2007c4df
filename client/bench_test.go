package client_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// A canned server has a fixed result for each method.
type canned map[string]string

var sums = canned{
	"initialize": `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"canned","version":"1"}}`,
	"tools/list": `{"tools":[{"name":"add","inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":{"sum":{"type":"integer"}},"required":["sum"]}}]}`,
	"tools/call": `{"content":[{"type":"text","text":"{\"sum\":42}"}],"structuredContent":{"sum":42}}`,
}

// answer returns the response to a message; nil for a notification.
func (c canned) answer(message []byte) []byte {
	id := jsonx.Member(message, "id")
	if id == nil {
		return nil
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, c[jsonx.String(jsonx.Member(message, "method"))])
}

// RoundTrip answers over HTTP, without a network.
func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	resp := &http.Response{StatusCode: http.StatusAccepted, Header: http.Header{}, Body: http.NoBody, Request: r}
	if r.Method != http.MethodPost {
		resp.StatusCode = http.StatusMethodNotAllowed
		return resp, nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if text := c.answer(body); text != nil {
		resp.StatusCode, resp.ContentLength = http.StatusOK, int64(len(text))
		resp.Header["Content-Type"] = []string{"application/json"}
		resp.Body = io.NopCloser(bytes.NewReader(text))
	}
	return resp, nil
}

// stream returns the client's end of a stream whose other end answers lines until it is closed.
func (c canned) stream() io.ReadWriteCloser {
	requests, toServer := io.Pipe()
	fromServer, answers := io.Pipe()
	// Ends with the stream.
	go func() {
		defer answers.Close()
		for in := bufio.NewScanner(requests); in.Scan(); {
			if text := c.answer(in.Bytes()); text != nil {
				if _, err := answers.Write(append(text, '\n')); err != nil {
					return
				}
			}
		}
	}()
	return &pipe{fromServer, toServer}
}

type pipe struct {
	*io.PipeReader
	w *io.PipeWriter
}

func (p *pipe) Write(b []byte) (int, error) { return p.w.Write(b) }

func (p *pipe) Close() error {
	_ = p.PipeReader.Close()
	return p.w.Close()
}

type sum struct {
	Sum int `json:"sum"`
}

// dialCanned returns a client that has listed the tools.
func dialCanned(t testing.TB, target any, opts ...client.DialOption) *client.Client {
	c, err := client.Dial(t.Context(), target, append(opts, client.Version(protocol.V20251125))...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	for _, err := range c.Tools(t.Context()) {
		require.NoError(t, err)
	}
	return c
}

// callSum calls the tool of the canned server.
func callSum(t testing.TB, c *client.Client) {
	out, err := client.Call[sum](t.Context(), c, "add", map[string]any{"a": 19, "b": 23})
	if err != nil || out.Sum != 42 {
		t.Fatal(out, err)
	}
}

// BenchmarkCall measures a call, the canned server included.
func BenchmarkCall(b *testing.B) {
	b.Run("HTTP", func(b *testing.B) {
		c := dialCanned(b, "http://example.com/mcp", client.HTTPClient(&http.Client{Transport: sums}))
		b.ReportAllocs()
		for b.Loop() {
			callSum(b, c)
		}
	})
	b.Run("stream", func(b *testing.B) {
		c := dialCanned(b, client.Stream(sums.stream()))
		b.ReportAllocs()
		for b.Loop() {
			callSum(b, c)
		}
	})
}

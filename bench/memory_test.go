// Package bench compares this project with other SDKs. cmd/compare and cmd/clients measure
// processes. The benchmarks here run in one process and measure mainly allocations, which are the
// same on every machine.
package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/bench/internal/floor"
	"github.com/mcpkit/mcpkit-go/bench/internal/gosdk"
	"github.com/mcpkit/mcpkit-go/bench/internal/load"
	"github.com/mcpkit/mcpkit-go/bench/internal/mcpgo"
	"github.com/mcpkit/mcpkit-go/bench/internal/ours"
	"github.com/mcpkit/mcpkit-go/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

// An answerer appends the response to msg to dst.
type answerer func(dst, msg []byte) []byte

// nobody is a peer without a transport.
type nobody struct{ session *transport.Session }

func (nobody) Notify(context.Context, *jsonrpc.Request) error { return nil }
func (nobody) Call(context.Context, *jsonrpc.Request) (*jsonrpc.Response, error) {
	return nil, transport.ErrNoServerRequests
}
func (n nobody) Session() *transport.Session { return n.session }
func (nobody) Header() transport.Header      { return nil }

func newOurs(testing.TB) answerer {
	s := ours.NewServer()
	var peer transport.Peer = &nobody{transport.NewSession("", nil)}
	return func(dst, msg []byte) []byte {
		m, bad := jsonrpc.Decode(msg)
		if bad != nil {
			return jsonrpc.AppendResponse(dst, bad)
		}
		if resp := s.ServeRPC(context.Background(), m.Request, peer); resp != nil {
			dst = jsonrpc.AppendResponse(dst, resp)
		}
		return dst
	}
}

func newMCPGo(tb testing.TB) answerer {
	s := mcpgo.NewServer()
	return func(dst, msg []byte) []byte {
		b, err := json.Marshal(s.HandleMessage(context.Background(), msg))
		require.NoError(tb, err)
		return append(dst, b...)
	}
}

func newGoSDK(tb testing.TB) answerer {
	s := gosdk.NewServer()
	in, w := io.Pipe()
	r, out := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	tb.Cleanup(func() { cancel(); _ = w.Close(); _ = r.Close() })
	// Ends with the benchmark.
	go func() { _ = s.Run(ctx, &mcp.IOTransport{Reader: in, Writer: out}) }()
	lines := bufio.NewReaderSize(r, 1<<20)
	return func(dst, msg []byte) []byte {
		_, err := w.Write(append(msg[:len(msg):len(msg)], '\n'))
		require.NoError(tb, err)
		if !bytes.Contains(msg[:min(len(msg), 40)], []byte(`"id"`)) {
			return dst
		}
		line, err := lines.ReadSlice('\n')
		require.NoError(tb, err)
		return append(dst, line...)
	}
}

var inMemory = []struct {
	name string
	make func(testing.TB) answerer
}{
	{"floor", func(testing.TB) answerer {
		return func(dst, msg []byte) []byte { return floor.Answer(dst, msg, false) }
	}},
	{"mcpkit", newOurs},
	{"mcpgo", newMCPGo},
	{"gosdk", newGoSDK}, // through pipes: it cannot be called without goroutines
}

// BenchmarkMemory measures a request without a transport, from bytes to bytes (2025-11-25).
func BenchmarkMemory(b *testing.B) {
	for _, job := range load.Jobs {
		for _, impl := range inMemory {
			b.Run(strings.ReplaceAll(job.Name, " ", "")+"/"+impl.name, func(b *testing.B) {
				answer := impl.make(b)
				answer(nil, []byte(load.Initialize))
				answer(nil, []byte(load.Initialized))
				msg, _ := job.Body(false)
				out := answer(nil, msg)
				require.NoError(b, job.Check(out))
				b.ReportAllocs()
				for b.Loop() {
					out = answer(out[:0], msg)
				}
			})
		}
	}
}

// A sink is an http.ResponseWriter that keeps only its header.
type sink struct {
	header http.Header
	status int
	body   []byte
}

func (s *sink) Header() http.Header { return s.header }
func (s *sink) WriteHeader(n int)   { s.status = n }
func (s *sink) Flush()              {}
func (s *sink) Write(p []byte) (int, error) {
	s.body = append(s.body[:0], p...)
	return len(p), nil
}

// BenchmarkHTTPHandler measures a handler without a connection and without the server of net/http
// (2025-11-25, with a session).
func BenchmarkHTTPHandler(b *testing.B) {
	for _, impl := range []struct {
		name string
		make func() http.Handler
	}{
		{"floor", floor.HTTP},
		{"mcpkit", func() http.Handler { return streamable.NewHandler(ours.NewServer(), nil) }},
		{"mcpgo", func() http.Handler {
			return server.NewStreamableHTTPServer(mcpgo.NewServer(), server.WithStateful(true))
		}},
		{"gosdk", func() http.Handler { return gosdk.HTTP(gosdk.NewServer()) }},
	} {
		for _, job := range load.Jobs[:2] {
			b.Run(job.Name+"/"+impl.name, func(b *testing.B) {
				h := impl.make()
				w := &sink{header: http.Header{}}
				header := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
				post := func(body []byte) {
					r, err := http.NewRequest(http.MethodPost, "http://127.0.0.1/mcp", bytes.NewReader(body))
					require.NoError(b, err)
					r.Header = header
					clear(w.header)
					h.ServeHTTP(w, r)
				}
				post([]byte(load.Initialize))
				header["Mcp-Session-Id"] = w.header["Mcp-Session-Id"]
				header["Mcp-Protocol-Version"] = []string{"2025-11-25"}
				post([]byte(load.Initialized))
				body, _ := job.Body(false)
				post(body)
				require.NoError(b, job.Check(w.body))
				b.ReportAllocs()
				for b.Loop() {
					post(body)
				}
			})
		}
	}
}

// Package answer calls the servers of the benchmark in this process: without a transport, and through
// their HTTP handlers without a connection.
package answer

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"

	"github.com/mark3labs/mcp-go/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpkit/mcpkit-go/internal/bench/internal/floor"
	"github.com/mcpkit/mcpkit-go/internal/bench/internal/gosdk"
	"github.com/mcpkit/mcpkit-go/internal/bench/internal/load"
	"github.com/mcpkit/mcpkit-go/internal/bench/internal/mcpgo"
	"github.com/mcpkit/mcpkit-go/internal/bench/internal/ours"
	"github.com/mcpkit/mcpkit-go/internal/bench/internal/work"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// Names are the servers.
var Names = []string{"floor", "mcpkit", "gosdk", "mcpgo"}

var inMemory = map[string]func(tools int) Func{"floor": newFloor, "mcpkit": newOurs, "gosdk": newGoSDK, "mcpgo": newMCPGo}

// Memory returns a server without a transport, from bytes to bytes (2025-11-25). go-sdk has pipes,
// since it cannot be called without goroutines.
func Memory(name string, tools int) Func {
	f := inMemory[name](tools)
	f(nil, []byte(load.Initialize))
	f(nil, []byte(load.Initialized))
	return f
}

// Registered is like Memory, and opens no session.
func Registered(name string, tools int) Func { return inMemory[name](tools) }

func newFloor(tools int) Func {
	s := floor.New(tools)
	return func(dst, msg []byte) []byte { return s.Answer(dst, msg, false) }
}

// A Func appends the response to msg to dst.
type Func func(dst, msg []byte) []byte

// nobody is a peer without a transport. Its buffer is reused, as those of transports are.
type nobody struct {
	session *transport.Session
	buffer  []byte
}

func (n *nobody) Lend(int) *[]byte {
	n.buffer = n.buffer[:0]
	return &n.buffer
}

func (*nobody) Notify(context.Context, *jsonrpc.Request) error { return nil }
func (*nobody) Call(context.Context, *jsonrpc.Request) (*jsonrpc.Response, error) {
	return nil, transport.ErrNoServerRequests
}
func (n *nobody) Session() *transport.Session { return n.session }
func (*nobody) Header() transport.Header      { return nil }

func newOurs(tools int) Func {
	s := ours.NewServer()
	ours.Wide(s, tools-len(work.Names))
	return serve(s, &early{&nobody{session: transport.NewSession("", nil)}})
}

// early is a peer that can be answered while a method runs, as on stdio.
type early struct{ *nobody }

func (early) RespondEarly(*jsonrpc.Response) {}

// Apart is like Memory, for this project's server with a peer that cannot be answered early, as with
// middleware and over HTTP. Each method has a goroutine of its own then.
func Apart(name string) Func {
	if name != "mcpkit" {
		return Memory(name, 4)
	}
	f := serve(ours.NewServer(), &nobody{session: transport.NewSession("", nil)})
	f(nil, []byte(load.Initialize))
	f(nil, []byte(load.Initialized))
	return f
}

func serve(s *mcpkit.Server, peer transport.Peer) Func {
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

func newMCPGo(tools int) Func {
	s := mcpgo.NewServer()
	mcpgo.Wide(s, tools-len(work.Names))
	return func(dst, msg []byte) []byte {
		b, err := json.Marshal(s.HandleMessage(context.Background(), msg))
		check(err)
		return append(dst, b...)
	}
}

func newGoSDK(tools int) Func {
	s := gosdk.NewServer()
	gosdk.Wide(s, tools-len(work.Names))
	in, w := io.Pipe()
	r, out := io.Pipe()
	// Ends with the process.
	go func() { _ = s.Run(context.Background(), &mcp.IOTransport{Reader: in, Writer: out}) }()
	lines := bufio.NewReaderSize(r, 8<<20)
	return func(dst, msg []byte) []byte {
		_, err := w.Write(append(msg[:len(msg):len(msg)], '\n'))
		check(err)
		if !bytes.Contains(msg[:min(len(msg), 40)], []byte(`"id"`)) {
			return dst
		}
		line, err := lines.ReadSlice('\n')
		check(err)
		return append(dst, line...)
	}
}

var handlers = map[string]func() http.Handler{
	"floor":  func() http.Handler { return &floor.Handler{Server: floor.New(4)} },
	"mcpkit": func() http.Handler { return streamable.NewHandler(ours.NewServer(), nil) },
	"mcpgo": func() http.Handler {
		return server.NewStreamableHTTPServer(mcpgo.NewServer(), server.WithStateful(true))
	},
	"gosdk": func() http.Handler { return gosdk.HTTP(gosdk.NewServer(), false) },
}

// Handler returns a server behind its HTTP handler, without a connection and without the server of
// net/http (2025-11-25, with a session).
func Handler(name string) Func { return open(handlers[name]()) }

func open(h http.Handler) Func {
	w := &sink{header: http.Header{}}
	header := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	post := func(dst, body []byte) []byte {
		r, err := http.NewRequest(http.MethodPost, "http://127.0.0.1/mcp", bytes.NewReader(body))
		check(err)
		r.Header, r.RemoteAddr = header, "127.0.0.1:1"
		clear(w.header)
		w.body = dst
		h.ServeHTTP(w, r)
		return w.body
	}
	post(nil, []byte(load.Initialize))
	header["Mcp-Session-Id"] = w.header["Mcp-Session-Id"]
	header["Mcp-Protocol-Version"] = []string{"2025-11-25"}
	post(nil, []byte(load.Initialized))
	return post
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

// Hijack is there because the writers of net/http have it over HTTP/1.1. It is not called.
func (s *sink) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, http.ErrNotSupported }

func (s *sink) Write(p []byte) (int, error) {
	s.body = append(s.body, p...)
	return len(p), nil
}

// Nested returns this project's server with a tool that takes any value.
func Nested() Func {
	s := ours.NewServer()
	check(s.Add(mcpkit.NewTool("nest", func(in struct {
		Value any `json:"value"`
	}) string {
		return "ok"
	})))
	f := serve(s, &early{&nobody{session: transport.NewSession("", nil)}})
	f(nil, []byte(load.Initialize))
	f(nil, []byte(load.Initialized))
	return f
}

// Sessions returns the HTTP handler of this project's server, with n sessions that take turns.
func Sessions(n int) Func {
	h := streamable.NewHandler(ours.NewServer(), &streamable.Options{MaxSessions: 2 * n})
	all := make([]Func, n)
	for i := range all {
		all[i] = open(h)
	}
	i := 0
	return func(dst, msg []byte) []byte {
		i++
		return all[i%n](dst, msg)
	}
}

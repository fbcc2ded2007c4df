package streamable

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// BenchmarkCall measures a call over a persistent connection on loopback. The row floor is a
// net/http handler that reads the body and writes the same bytes; the difference is what this
// package costs.
func BenchmarkCall(b *testing.B) {
	const reply = `{"jsonrpc":"2.0","id":7,"result":{"a":1}}`
	h := NewHandler(&scripted{methods: script{"talk": talkative}}, nil)
	defer h.Close()
	floor := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "41")
		_, _ = io.WriteString(w, reply)
	})
	open := newRecorder()
	h.ServeHTTP(open, newPost(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`))
	session := "Mcp-Session-Id: " + open.Header().Get("Mcp-Session-Id") + "\r\nMCP-Protocol-Version: 2025-11-25\r\n"
	modern := "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: echo\r\n"
	for _, row := range []struct {
		name    string
		handler http.Handler
		fields  string
		method  string
	}{
		{"floor", floor, modern, "echo"},
		{"modern", h, modern, "echo"},
		{"session", h, session, "echo"},
		{"modern stream", h, modern, "talk"},
	} {
		b.Run(row.name, func(b *testing.B) { benchmark(b, row.handler, row.fields, row.method) })
	}
}

func benchmark(b *testing.B, handler http.Handler, fields, method string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	server := &http.Server{Handler: handler}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l)
	}()
	defer func() {
		_ = server.Close()
		<-done
	}()
	conn, err := net.Dial("tcp", l.Addr().String())
	require.NoError(b, err)
	defer conn.Close()
	body := call1(7, method)
	request := []byte(fmt.Sprintf("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"+
		"Accept: application/json, text/event-stream\r\n%sContent-Length: %d\r\n\r\n%s", fields, len(body), body))
	in := bufio.NewReader(conn)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := conn.Write(request); err != nil {
			b.Fatal(err)
		}
		if err := skipReply(in); err != nil {
			b.Fatal(err)
		}
	}
}

// skipReply reads one reply, of a known length or in chunks, without allocating.
func skipReply(in *bufio.Reader) error {
	length := -1
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) == 2 {
			break
		}
		if n, ok := number(line, "Content-Length: ", 10); ok {
			length = n
		}
	}
	if length >= 0 {
		_, err := in.Discard(length)
		return err
	}
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		n, ok := number(line, "", 16)
		if !ok {
			return fmt.Errorf("chunk size %q", line)
		}
		if _, err := in.Discard(n + 2); err != nil || n == 0 {
			return err
		}
	}
}

func number(line []byte, prefix string, base int) (n int, ok bool) {
	if len(line) < len(prefix)+3 || string(line[:len(prefix)]) != prefix {
		return 0, false
	}
	for _, c := range line[len(prefix) : len(line)-2] {
		switch {
		case c >= '0' && c <= '9':
			n = n*base + int(c-'0')
		case base == 16 && c >= 'a' && c <= 'f':
			n = n*base + int(c-'a') + 10
		default:
			return 0, false
		}
	}
	return n, true
}

// BenchmarkHandler measures a call without a network.
func BenchmarkHandler(b *testing.B) {
	h := NewHandler(&scripted{}, nil)
	defer h.Close()
	open := newRecorder()
	h.ServeHTTP(open, newPost(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`))
	session := open.Header().Get("Mcp-Session-Id")
	for _, row := range []struct{ name, field, value string }{
		{"modern", "Mcp-Protocol-Version", "2026-07-28"},
		{"session", "Mcp-Session-Id", session},
	} {
		b.Run(row.name, func(b *testing.B) {
			r := newPost("", row.field, row.value)
			body := &rewound{data: call1(7, "echo")}
			r.Body = body
			r.ContentLength = int64(len(body.data))
			w := newRecorder()
			b.ReportAllocs()
			for b.Loop() {
				body.at = 0
				w.body.Reset()
				h.ServeHTTP(w, r)
			}
			require.Equal(b, `{"jsonrpc":"2.0","id":7,"result":{"a":1}}`, w.body.String())
		})
	}
}

// A rewound body can be read repeatedly.
type rewound struct {
	data string
	at   int
}

func (r *rewound) Read(p []byte) (int, error) {
	n := copy(p, r.data[r.at:])
	r.at += n
	if r.at == len(r.data) {
		return n, io.EOF
	}
	return n, nil
}

func (r *rewound) Close() error { return nil }

// BenchmarkMemoryStore measures storing a message.
func BenchmarkMemoryStore(b *testing.B) {
	m := newMemoryStore()
	data := jsonrpc.AppendRequest(nil, notification("notifications/progress", `{"n":1}`))
	seq := uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		seq++
		if err := m.append(b.Context(), "s", "1", event{seq: seq, data: data}); err != nil {
			b.Fatal(err)
		}
	}
}

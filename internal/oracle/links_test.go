package oracle

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/transport/sse"
	"github.com/mcpkit/mcpkit-go/transport/stdio"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
	mcpwebsocket "github.com/mcpkit/mcpkit-go/transport/websocket"
)

// A link is the client's end of a connection, or of a series of HTTP requests.
type link struct {
	send     func(text string) // sends a section, without waiting
	close    func()            // disconnects, and waits for the server
	requests bool              // each stream is the response to a request
	streams  []*stream
	running  sync.WaitGroup // what sends and receives
}

// A stream collects what the server sends: on a connection, or in an HTTP response. It ends with a
// NUL.
type stream struct {
	mu    sync.Mutex
	text  []byte // guarded by mu
	shown bool   // some of it was recorded
	stop  func()
}

func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = append(s.text, p...)
	return len(p), nil
}

func (s *stream) take() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.text = nil }()
	return string(s.text)
}

// received returns what the server has sent since the last call: a section for a connection or for
// the last request, and "server 1" for more of the response to the first request.
func (l *link) received() []txtar.File {
	var files []txtar.File
	for i, s := range l.streams {
		text, ended := strings.CutSuffix(s.take(), "\x00")
		if text == "" && (!ended || s.shown) {
			continue
		}
		name := "server"
		if l.requests {
			if s.shown || i < len(l.streams)-1 {
				name = fmt.Sprintf("server %d", i+1)
			}
			if !strings.HasSuffix(text, "\n") {
				text += "\n"
			}
			if !ended {
				text += "# open\n"
			}
		}
		s.shown = true
		files = append(files, txtar.File{Name: name, Data: []byte(text)})
	}
	return files
}

// open starts the fixture on a transport and connects to it.
func open(t *testing.T, transport string, options []string) *link {
	srv, o := newFixture(t, options), optionsOf(options)
	var handler interface {
		http.Handler
		Close()
	}
	switch transport {
	case "stdio":
		in, to := io.Pipe()
		l := newLines(t, func(m string) error { _, err := io.WriteString(to, m); return err }, func() { to.Close() })
		l.running.Go(func() {
			fmt.Fprintln(l.streams[0], "# closed:", stdio.NewIO(in, l.streams[0], &o.stdio).Serve(t.Context(), srv))
		})
		return l
	case "websocket":
		handler = mcpwebsocket.NewHandler(srv, &o.websocket)
	case "sse":
		handler = sse.NewHandler(srv, &o.sse)
	default:
		handler = streamable.NewHandler(srv, &o.streamable)
	}
	network, closeAll := testkit.Serve(&http.Server{Handler: atLoopback(handler)})
	if transport == "websocket" {
		return dial(t, network, func() { handler.Close(); closeAll() })
	}
	l := &link{requests: true}
	l.send = func(text string) { l.request(t, network, text) }
	l.close = func() {
		for _, s := range l.streams {
			s.stop()
		}
		handler.Close()
		closeAll()
		l.running.Wait()
	}
	return l
}

// newLines returns a link that sends messages with write, which may block.
func newLines(t *testing.T, write func(message string) error, disconnect func()) *link {
	l := &link{streams: []*stream{{}}}
	queue := make(chan string, 1000)
	l.running.Go(func() {
		for m := range queue {
			_ = write(m) // if the server has closed the connection, that is recorded
		}
	})
	l.close = func() { disconnect(); close(queue); l.running.Wait() }
	l.send = func(text string) {
		if text == "# disconnect\n" {
			disconnect()
			return
		}
		for line := range strings.Lines(text) {
			queue <- raw(t, line)
		}
	}
	return l
}

// dial opens a WebSocket.
func dial(t *testing.T, network *http.Client, closeServer func()) *link {
	o := &websocket.DialOptions{Subprotocols: []string{"mcp"}, HTTPClient: network}
	conn, _, err := websocket.Dial(t.Context(), "ws://"+address, o)
	require.NoError(t, err)
	l := newLines(t, func(m string) error {
		return conn.Write(t.Context(), websocket.MessageText, []byte(strings.TrimSuffix(m, "\n")))
	}, func() { conn.CloseNow() })
	l.running.Go(func() {
		_, message, err := conn.Read(t.Context())
		for ; err == nil; _, message, err = conn.Read(t.Context()) {
			_, _ = l.streams[0].Write(append(message, '\n'))
		}
		fmt.Fprintln(l.streams[0], "# closed:", websocket.CloseStatus(err))
	})
	wait := l.close
	l.close = func() { wait(); closeServer() }
	return l
}

// request sends an HTTP request: a method and a path, header fields, an empty line and a body. Or it
// disconnects from an earlier one.
func (l *link) request(t *testing.T, network *http.Client, text string) {
	var n int
	if _, err := fmt.Sscanf(text, "# disconnect %d\n", &n); err == nil {
		l.streams[n-1].stop()
		return
	}
	head, body, _ := strings.Cut(text, "\n\n")
	fields := strings.Split(strings.TrimSuffix(head, "\n"), "\n")
	method, path, _ := strings.Cut(fields[0], " ")
	ctx, cancel := context.WithCancel(t.Context())
	content := strings.NewReader(raw(t, strings.TrimSuffix(body, "\n")))
	req, err := http.NewRequestWithContext(ctx, method, "http://"+address+path, content)
	require.NoError(t, err)
	for _, field := range fields[1:] {
		name, value, _ := strings.Cut(field, ": ")
		req.Header.Add(name, value)
	}
	req.Host = req.Header.Get("Host")
	s := &stream{stop: cancel}
	l.streams = append(l.streams, s)
	l.running.Go(func() {
		defer fmt.Fprint(s, "\x00")
		resp, err := network.Do(req)
		if err != nil {
			fmt.Fprintln(s, "# no response")
			return
		}
		defer resp.Body.Close()
		resp.Header.Del("Date")
		resp.Header.Del("Content-Length") // says nothing that the body does not
		var header strings.Builder
		_ = resp.Header.Write(&header)
		fmt.Fprintln(s, resp.Status+"\n"+strings.ReplaceAll(header.String(), "\r\n", "\n"))
		if _, err := io.Copy(s, resp.Body); err != nil {
			fmt.Fprintln(s, "# broken")
		}
	})
}

package oracle

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"github.com/mcpkit/mcpkit-go/transport/stdio"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
	mcpwebsocket "github.com/mcpkit/mcpkit-go/transport/websocket"
)

// open starts the fixture on a transport and connects to it.
func open(t *testing.T, transport string, options []string) link {
	srv := newFixture(t, options)
	has := func(option string) bool { return slices.Contains(options, option) }
	ctx, cancel := context.WithCancel(t.Context())
	switch transport {
	case "stdio":
		o := stdio.Options{Logger: quiet}
		if has("any-framing") {
			o.Framing = stdio.AnyFraming
		}
		if has("small") {
			o.MaxMessageBytes, o.MaxInFlight = 10_000, 2
		}
		in, to := io.Pipe()
		from, out := io.Pipe()
		l := &lines{write: func(text string) error { _, err := io.WriteString(to, text); return err }, end: func() { to.Close(); cancel() }}
		l.running.Go(func() { _, _ = io.Copy(&l.got, from) })
		l.running.Go(func() {
			if err := stdio.NewIO(in, out, &o).Serve(ctx, srv); err != nil {
				fmt.Fprintf(&l.got, "# closed: %v\n", err)
			} else {
				fmt.Fprintln(&l.got, "# closed")
			}
		})
		return l
	case "websocket":
		o := mcpwebsocket.Options{Logger: quiet}
		if has("small") {
			o.MaxMessageBytes, o.MaxInFlight = 10_000, 2
		}
		handler := mcpwebsocket.NewHandler(srv, &o)
		n := serveHTTP(handler)
		l := &lines{}
		conn, _, err := websocket.Dial(ctx, "ws://"+address+"/", &websocket.DialOptions{Subprotocols: []string{"mcp"}, HTTPClient: n.client()})
		require.NoError(t, err)
		conn.SetReadLimit(1 << 20)
		l.write = func(text string) error {
			return conn.Write(ctx, websocket.MessageText, []byte(strings.TrimSuffix(text, "\n")))
		}
		l.end = func() { conn.CloseNow(); handler.Close(); cancel(); n.close() }
		l.running.Go(func() {
			for {
				_, message, err := conn.Read(ctx)
				if err != nil {
					fmt.Fprintf(&l.got, "# closed: %d\n", websocket.CloseStatus(err))
					return
				}
				_, _ = l.got.Write(append(message, '\n'))
			}
		})
		return l
	default:
		o := streamable.Options{Logger: quiet, Stateless: has("stateless"), JSONOnly: has("json-only")}
		if has("small") {
			o.MaxBodyBytes, o.MaxInFlight, o.MaxSessions, o.MaxSubscriptions = 10_000, 2, 1, 1
		}
		handler := streamable.NewHandler(srv, &o)
		n := serveHTTP(withPrincipal(handler))
		return &exchanges{network: n, end: func() { handler.Close(); cancel(); n.close() }}
	}
}

// A buffer collects what the server sends.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) take() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.text.Reset()
	return b.text.String()
}

// lines is a connection of messages.
type lines struct {
	write   func(text string) error
	end     func()
	got     buffer
	running sync.WaitGroup
}

func (l *lines) send(t *testing.T, text string) {
	if text == "# disconnect\n" {
		l.end()
		return
	}
	var messages []string
	for line := range strings.Lines(text) {
		messages = append(messages, raw(t, line))
	}
	l.running.Go(func() {
		for _, m := range messages {
			if err := l.write(m); err != nil {
				return // the server has closed the connection, which is recorded
			}
		}
	})
}

func (l *lines) received() []txtar.File {
	if text := l.got.take(); text != "" {
		return []txtar.File{{Name: "server", Data: []byte(text)}}
	}
	return nil
}

func (l *lines) close() { l.end(); l.running.Wait() }

// exchanges are HTTP requests, each on a connection of its own.
type exchanges struct {
	network   *network
	end       func()
	responses []*response
	running   sync.WaitGroup
}

// A response is what the server has sent so far.
type response struct {
	conn  net.Conn
	got   buffer
	mu    sync.Mutex
	ended bool // guarded by mu
	shown bool // some of it
}

// send sends a request: a method and a path, header fields, an empty line and a body.
func (x *exchanges) send(t *testing.T, text string) {
	var n int
	if _, err := fmt.Sscanf(text, "# disconnect %d\n", &n); err == nil {
		x.responses[n-1].conn.Close()
		return
	}
	head, body, _ := strings.Cut(text, "\n\n")
	body = raw(t, strings.TrimSuffix(body, "\n"))
	first, fields, _ := strings.Cut(strings.TrimSuffix(head, "\n"), "\n")
	message := first + " HTTP/1.1\r\n"
	if !strings.Contains("\n"+fields, "\nHost: ") {
		message += "Host: " + address + "\r\n"
	}
	if fields != "" {
		message += strings.ReplaceAll(fields, "\n", "\r\n") + "\r\n"
	}
	if body != "" {
		message += fmt.Sprintf("Content-Length: %d\r\n", len(body))
	}
	r := &response{conn: x.network.dial()}
	x.responses = append(x.responses, r)
	x.running.Go(func() { _, _ = io.WriteString(r.conn, message+"\r\n"+body) })
	x.running.Go(func() {
		defer r.conn.Close()
		method, _, _ := strings.Cut(first, " ")
		if resp, err := http.ReadResponse(bufio.NewReader(r.conn), &http.Request{Method: method}); err == nil {
			for _, ours := range []string{"Date", "Content-Length"} { // they say nothing about the server
				resp.Header.Del(ours)
			}
			fmt.Fprintln(&r.got, resp.Status)
			var fields strings.Builder
			_ = resp.Header.Write(&fields)
			fmt.Fprint(&r.got, strings.ReplaceAll(fields.String(), "\r\n", "\n")+"\n")
			_, err = io.Copy(&r.got, resp.Body)
			if err != nil {
				fmt.Fprintln(&r.got, "# cut off")
			}
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.ended = true
	})
}

// received returns a section for the response to the last request, and one for each older response
// of which more has arrived: "server 1" is of the first request. A response that has not ended says
// "# open".
func (x *exchanges) received() []txtar.File {
	var files []txtar.File
	for i, r := range x.responses {
		r.mu.Lock()
		ended := r.ended
		r.mu.Unlock()
		text := r.got.take()
		if text == "" && (!ended || r.shown) {
			continue
		}
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		name := fmt.Sprintf("server %d", i+1)
		if i == len(x.responses)-1 && !r.shown {
			name = "server"
		}
		if !ended {
			text += "# open\n"
		}
		r.shown = true
		files = append(files, txtar.File{Name: name, Data: []byte(text)})
	}
	return files
}

func (x *exchanges) close() {
	for _, r := range x.responses {
		r.conn.Close()
	}
	x.end()
	x.running.Wait()
}

const address = "127.0.0.1:8080"

// A network connects clients with an HTTP server in memory.
type network struct {
	conns  chan net.Conn
	closed chan struct{}
	server http.Server
	served sync.WaitGroup
}

func serveHTTP(h http.Handler) *network {
	n := &network{conns: make(chan net.Conn), closed: make(chan struct{}), server: http.Server{Handler: h}}
	n.served.Go(func() { _ = n.server.Serve(n) })
	return n
}

func (n *network) dial() net.Conn {
	ours, theirs := net.Pipe()
	n.conns <- local{theirs}
	return ours
}

func (n *network) client() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return n.dial(), nil }}}
}

func (n *network) close() { n.server.Close(); n.served.Wait() }

// Accept implements [net.Listener].
func (n *network) Accept() (net.Conn, error) {
	select {
	case c := <-n.conns:
		return c, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (n *network) Close() error { close(n.closed); return nil }

// Addr implements [net.Listener].
func (*network) Addr() net.Addr { return loopback(8080) }

// local is a connection on the loopback address.
type local struct{ net.Conn }

func (local) LocalAddr() net.Addr  { return loopback(8080) }
func (local) RemoteAddr() net.Addr { return loopback(50000) }

func loopback(port int) net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port} }

package client_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	ws "github.com/coder/websocket"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// A puppet is a server that answers the handshake by itself. The test decides everything else.
type puppet struct {
	heard  chan *jsonrpc.Request // what the client sends, in order
	frozen chan struct{}         // closed when the puppet must stop reading
	over   chan struct{}         // closed at the end of the test
	say    func(text string)     // sends a message; without a client it does nothing
	die    func()                // ends the puppet like the failure of its machine; nil in memory
}

// A stage is a transport for puppets.
type stage struct {
	name   string
	modern bool // carries modern versions
	deaf   bool // the client receives only the responses to its requests
	raise  func(t *testing.T, p *puppet, v protocol.Version) (target any)
}

var stages = []stage{
	{name: "memory", modern: true, deaf: true, raise: onMemory},
	{name: "stream", modern: true, raise: onStream},
	{name: "websocket", modern: true, raise: onWebSocket},
	{name: "sse", raise: onSSE},
	{name: "http", modern: true, raise: onHTTP},
}

// onEveryStage runs a test on every transport, in the newest legacy and the newest modern version
// that it carries.
func onEveryStage(t *testing.T, fact func(t *testing.T, s stage, p *puppet, c *client.Client), opts ...client.DialOption) {
	for _, s := range stages {
		for _, v := range []protocol.Version{protocol.LatestLegacy, protocol.Latest} {
			if v.Modern() && !s.modern {
				continue
			}
			t.Run(s.name+"/"+string(v), func(t *testing.T) {
				p := &puppet{heard: make(chan *jsonrpc.Request, 1000), frozen: make(chan struct{}), over: make(chan struct{})}
				target := s.raise(t, p, v)
				t.Cleanup(func() { close(p.over) })
				c := dial(t, target, append([]client.DialOption{client.Version(v), client.ShutdownTimeout(10 * time.Millisecond)}, opts...)...)
				fact(t, s, p, c)
			})
		}
	}
}

// handshake returns the result for the requests that a puppet answers by itself; "" for others.
func handshake(method string) string {
	switch method {
	case "initialize":
		return `{"protocolVersion":"` + string(protocol.LatestLegacy) + `","capabilities":{"logging":{}},"serverInfo":{"name":"puppet","version":"1"}}`
	case "server/discover":
		return discovered
	}
	return ""
}

// take handles one message of the client.
func (p *puppet) take(data []byte) {
	m, _ := jsonrpc.Decode(data)
	switch {
	case m.Request == nil, m.Request.Method == "notifications/initialized":
	case handshake(m.Request.Method) != "":
		p.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.Request.ID, handshake(m.Request.Method)))
	default:
		p.heard <- m.Request
	}
}

// listen reads messages until the input ends or the puppet is frozen.
func (p *puppet) listen(read func() ([]byte, error)) {
	for {
		select {
		case <-p.frozen:
			<-p.over
			return
		default:
		}
		data, err := read()
		if err != nil {
			return
		}
		p.take(data)
	}
}

// answer answers a request.
func (p *puppet) answer(r *jsonrpc.Request, text string) { p.say(answerOf(r, text)) }

func answerOf(r *jsonrpc.Request, text string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","text":%q}}`, r.ID, text)
}

// cancelled returns the notification that cancels a request.
func cancelled(id jsonrpc.ID) *jsonrpc.Request {
	return &jsonrpc.Request{Method: "notifications/cancelled", Params: []byte(`{"requestId":` + id.String() + `}`)}
}

// playLines serves a connection with one message per line.
func (p *puppet) playLines(t *testing.T, conn net.Conn) {
	var mu sync.Mutex
	p.say = func(text string) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = io.WriteString(conn, text+"\n")
	}
	p.die = func() { _ = conn.Close() }
	var playing sync.WaitGroup
	t.Cleanup(playing.Wait)
	t.Cleanup(func() { _ = conn.Close() })
	lines := bufio.NewReader(conn)
	playing.Go(func() { p.listen(func() ([]byte, error) { return lines.ReadBytes('\n') }) })
}

func onStream(t *testing.T, p *puppet, _ protocol.Version) any {
	ours, theirs := net.Pipe()
	p.playLines(t, theirs)
	return ours
}

func onWebSocket(t *testing.T, p *puppet, _ protocol.Version) any {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := ws.Accept(w, r, &ws.AcceptOptions{Subprotocols: []string{"mcp"}})
		if err != nil {
			return
		}
		defer func() { _ = conn.CloseNow() }()
		conn.SetReadLimit(-1)
		p.say = func(text string) { _ = conn.Write(context.Background(), ws.MessageText, []byte(text)) }
		p.die = func() { _ = conn.CloseNow() }
		p.listen(func() ([]byte, error) {
			_, data, err := conn.Read(context.Background())
			return data, err
		})
	}))
	t.Cleanup(s.Close)
	return "ws" + strings.TrimPrefix(s.URL, "http")
}

func onSSE(t *testing.T, p *puppet, _ protocol.Version) any {
	out, ended := make(chan string), make(chan struct{})
	end := sync.OnceFunc(func() { close(ended) })
	p.say = func(text string) {
		select {
		case out <- text:
		case <-p.over:
		case <-ended: // the client has disconnected
		}
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			p.posted(w, r, func(data []byte) {
				w.WriteHeader(http.StatusAccepted)
				w.(http.Flusher).Flush()
				p.take(data)
			})
			return
		}
		defer end()
		w.Header().Set("Content-Type", "text/event-stream")
		text := "event: endpoint\ndata: /post\n\n"
		for {
			_, _ = io.WriteString(w, text)
			w.(http.Flusher).Flush()
			select {
			case message := <-out:
				text = event(message)
			case <-r.Context().Done():
				return
			case <-p.over:
				return
			}
		}
	}))
	p.die = dying(s)
	t.Cleanup(s.Close)
	return client.HTTPSSE(s.URL)
}

// dying returns a function that ends all connections to a server.
func dying(s *httptest.Server) func() {
	return func() {
		_ = s.Listener.Close()
		s.CloseClientConnections()
	}
}

// posted passes the body of a POST to take, unless the puppet is frozen.
func (p *puppet) posted(_ http.ResponseWriter, r *http.Request, take func(data []byte)) {
	select {
	case <-p.frozen:
		select {
		case <-r.Context().Done():
		case <-p.over:
		}
		return
	default:
	}
	if data, err := io.ReadAll(r.Body); err == nil {
		take(data)
	}
}

// onHTTP has a stream for each request. It sends a message that is not a response to one of them on
// any open stream.
func onHTTP(t *testing.T, p *puppet, v protocol.Version) any {
	var mu sync.Mutex
	open := map[string]chan string{} // by id; guarded by mu
	p.say = func(text string) {
		m, _ := jsonrpc.Decode([]byte(text))
		mu.Lock()
		defer mu.Unlock()
		if m.Response != nil && open[m.Response.ID.String()] != nil {
			open[m.Response.ID.String()] <- text
			return
		}
		for _, stream := range open {
			stream <- text
			return
		}
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		p.posted(w, r, func(data []byte) {
			m, _ := jsonrpc.Decode(data)
			switch {
			case m.Request == nil || m.Request.IsNotification():
				w.WriteHeader(http.StatusAccepted)
				p.take(data)
				return
			case handshake(m.Request.Method) != "":
				result(handshake(m.Request.Method))(w, r, m.Request)
				return
			}
			id, said := m.Request.ID.String(), make(chan string, 1000)
			mu.Lock()
			open[id] = said
			mu.Unlock()
			defer func() {
				mu.Lock()
				defer mu.Unlock()
				delete(open, id)
			}()
			w.Header().Set("Content-Type", "text/event-stream")
			w.(http.Flusher).Flush()
			p.heard <- m.Request
			for {
				select {
				case text := <-said:
					_, _ = io.WriteString(w, event(text))
					w.(http.Flusher).Flush()
					if m, _ := jsonrpc.Decode([]byte(text)); m.Response != nil && m.Response.ID.String() == id {
						return
					}
				case <-r.Context().Done():
					if v.Modern() {
						p.heard <- cancelled(m.Request.ID) // the way to cancel over HTTP
					}
					return
				case <-p.over:
					return
				}
			}
		})
	}))
	p.die = dying(s)
	t.Cleanup(s.Close)
	return s.URL
}

// A marionette is a puppet in memory.
type marionette struct {
	p    *puppet
	mu   sync.Mutex
	open map[string]chan *jsonrpc.Response // by id; guarded by mu
}

func onMemory(_ *testing.T, p *puppet, _ protocol.Version) any {
	m := &marionette{p: p, open: map[string]chan *jsonrpc.Response{}}
	p.say = func(text string) {
		said, _ := jsonrpc.Decode([]byte(text))
		m.mu.Lock()
		defer m.mu.Unlock()
		if said.Response != nil && m.open[said.Response.ID.String()] != nil {
			m.open[said.Response.ID.String()] <- said.Response
		}
	}
	return m
}

func (m *marionette) ServeRPC(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
	switch {
	case req.IsNotification():
		return nil
	case handshake(req.Method) != "":
		if s := peer.Session(); s != nil && req.Method == "initialize" {
			s.SetVersion(string(protocol.LatestLegacy))
		}
		return &jsonrpc.Response{Result: []byte(handshake(req.Method))}
	}
	id, said := req.ID.String(), make(chan *jsonrpc.Response, 1)
	m.mu.Lock()
	m.open[id] = said
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.open, id)
	}()
	m.p.heard <- req
	select {
	case resp := <-said:
		return resp
	case <-ctx.Done():
		m.p.heard <- cancelled(req.ID)
		return &jsonrpc.Response{Error: jsonrpc.Errorf(-32000, "cancelled")}
	}
}

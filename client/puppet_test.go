package client_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	ws "github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
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

// told is the outcome of a call of the puppet.
type told struct {
	text string
	err  error
}

// ask begins a call in the background.
func ask(ctx context.Context, c *client.Client) <-chan told {
	over := make(chan told, 1)
	go func() {
		var result struct {
			Text string `json:"text"`
		}
		err := c.Request(ctx, "x/ask", nil, &result)
		over <- told{result.Text, err}
	}()
	return over
}

func TestUnknownResponsesAreIgnored(t *testing.T) {
	t.Parallel()
	onEveryStage(t, func(t *testing.T, _ stage, p *puppet, c *client.Client) {
		first := ask(t.Context(), c)
		r1 := <-p.heard
		p.say(`{"jsonrpc":"2.0","id":4711,"result":{"resultType":"complete","text":"for no request"}}`)
		p.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":"%s","result":{"resultType":"complete","text":"for an ID that is a string"}}`, r1.ID))
		p.say(`{"jsonrpc":"2.0","id":4712,"error":{"code":-32603,"message":"for no request"}}`)
		p.answer(r1, "first")
		require.Equal(t, told{"first", nil}, <-first)

		second := ask(t.Context(), c)
		r2 := <-p.heard
		require.NotEqual(t, r1.ID, r2.ID)
		p.answer(r1, "first, again")
		p.answer(r2, "second")
		require.Equal(t, told{"second", nil}, <-second)
		p.answer(r2, "second, again")

		third := ask(t.Context(), c)
		p.answer(<-p.heard, "third")
		require.Equal(t, told{"third", nil}, <-third)
	})
}

func TestNotificationsReachTheRequestThatTheyName(t *testing.T) {
	t.Parallel()
	onEveryStage(t, func(t *testing.T, s stage, p *puppet, c *client.Client) {
		if s.deaf {
			t.Skip("it receives no notifications")
		}
		var heard []string
		done := make(chan error)
		go func() {
			done <- c.Request(t.Context(), "x/watch", nil, nil, client.Timeout(0), client.OnNotification(func(method string, params json.RawMessage) {
				heard = append(heard, method+string(params))
			}))
		}()
		r := <-p.heard
		params := func(id string) string { return `{"_meta":{"io.modelcontextprotocol/subscriptionId":` + id + `}}` }
		for _, id := range []string{r.ID.String(), "4711", `"` + r.ID.String() + `"`, r.ID.String()} {
			p.say(`{"jsonrpc":"2.0","method":"notifications/x","params":` + params(id) + `}`)
		}
		p.say(`{"jsonrpc":"2.0","method":"notifications/x"}`)
		p.answer(r, "")
		require.NoError(t, <-done)
		require.Equal(t, []string{"notifications/x" + params(r.ID.String()), "notifications/x" + params(r.ID.String())}, heard)
	})
}

func TestCancellationReachesTheServer(t *testing.T) {
	t.Parallel()
	onEveryStage(t, func(t *testing.T, _ stage, p *puppet, c *client.Client) {
		stays := ask(t.Context(), c)
		r0 := <-p.heard
		ctx, cancel := context.WithCancel(t.Context())
		goes := ask(ctx, c)
		r1 := <-p.heard
		cancel()
		require.ErrorIs(t, (<-goes).err, context.Canceled)
		n := <-p.heard
		require.Equal(t, "notifications/cancelled", n.Method)
		require.Equal(t, r1.ID.String(), string(n.Param("requestId")))
		p.answer(r1, "too late")
		p.answer(r0, "in time")
		require.Equal(t, told{"in time", nil}, <-stays)
		require.Empty(t, p.heard, "the client cancels once")
	})
}

// The requests are larger than any buffer, so all calls wait to be written. They must end all the
// same.
func TestCallsEndEvenIfTheServerDoesNotRead(t *testing.T) {
	t.Parallel()
	large := map[string]string{"x": strings.Repeat("x", 512<<10)}
	onEveryStage(t, func(t *testing.T, _ stage, p *puppet, c *client.Client) {
		t.Parallel()
		close(p.frozen)
		const n = 16
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		errs := make(chan error, n)
		for range n {
			go func() { errs <- c.Request(ctx, "x/large", large, nil) }()
		}
		for range n {
			require.ErrorIs(t, <-errs, context.DeadlineExceeded)
		}
	})
}

func TestClosingEndsEachCallOnce(t *testing.T) {
	t.Parallel()
	onEveryStage(t, func(t *testing.T, _ stage, p *puppet, c *client.Client) {
		const n = 20
		var calls []<-chan told
		for range n {
			calls = append(calls, ask(t.Context(), c))
		}
		first := <-p.heard
		for range n - 1 {
			<-p.heard
		}
		closed := make(chan error, 1)
		go func() { closed <- c.Close() }()
		for _, call := range calls {
			require.ErrorIs(t, (<-call).err, transport.ErrClosed)
		}
		require.NoError(t, <-closed)
		go p.answer(first, "after the end")
		require.ErrorIs(t, (<-ask(t.Context(), c)).err, transport.ErrClosed)
		require.ErrorIs(t, c.Notify(t.Context(), "notifications/x", nil), transport.ErrClosed)
		require.NoError(t, c.Close(), "again")
	})
}

func TestAServerThatDiesFailsEachCallOnce(t *testing.T) {
	t.Parallel()
	onEveryStage(t, func(t *testing.T, s stage, p *puppet, c *client.Client) {
		if s.name == "memory" {
			return
		}
		var calls []<-chan told
		for range 20 {
			calls = append(calls, ask(t.Context(), c))
			<-p.heard
		}
		p.die()
		for _, call := range append(calls, ask(t.Context(), c)) {
			err := (<-call).err
			require.Error(t, err)
			require.NotErrorIs(t, err, context.DeadlineExceeded, "the client notices")
		}
	}, client.Timeout(20*time.Second))
}

// A legacy subscription has no request that fails with the connection.
func TestALegacySubscriptionEndsWithItsConnection(t *testing.T) {
	t.Parallel()
	onEveryStage(t, func(t *testing.T, s stage, p *puppet, c *client.Client) {
		if c.Version().Modern() || s.name == "http" || s.name == "memory" {
			return // modern subscriptions are requests, and over HTTP the client resumes the stream
		}
		filter := protocol.SubscriptionFilter{ToolsListChanged: true}
		sub, err := c.Listen(t.Context(), filter)
		require.NoError(t, err)
		ask(t.Context(), c)
		<-p.heard
		p.die()
		for range 2 {
			_, err = sub.Next(t.Context())
			require.ErrorIs(t, err, transport.ErrClosed)
		}
		require.NoError(t, sub.Close())
		_, err = c.Listen(t.Context(), filter)
		require.ErrorIs(t, err, transport.ErrClosed)
	})
}

func TestAResponseThatIsTooLargeFailsItsCall(t *testing.T) {
	t.Parallel()
	onEveryStage(t, func(t *testing.T, s stage, p *puppet, c *client.Client) {
		if s.name == "memory" { // its responses are values
			return
		}
		fits := strings.Repeat("x", 8<<10)
		call := ask(t.Context(), c)
		p.answer(<-p.heard, fits)
		require.Equal(t, told{fits, nil}, <-call)
		call = ask(t.Context(), c)
		p.answer(<-p.heard, strings.Repeat("x", 64<<10))
		require.ErrorContains(t, (<-call).err, "larger than 32768 bytes")
	}, client.MaxMessageBytes(32<<10))
}

func TestProgressHandlersMayCallTheServer(t *testing.T) {
	t.Parallel()
	onEveryStage(t, func(t *testing.T, s stage, p *puppet, c *client.Client) {
		if s.deaf {
			return
		}
		inner, outer := make(chan told, 1), make(chan error, 1)
		report := client.OnProgress(func(*protocol.ProgressParams) { inner <- <-ask(t.Context(), c) })
		go func() { outer <- c.Request(t.Context(), "x/ask", nil, nil, report) }()
		r := <-p.heard
		p.say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}`, r.ID))
		p.answer(<-p.heard, "inner")
		require.Equal(t, told{"inner", nil}, <-inner)
		p.answer(r, "outer")
		require.NoError(t, <-outer)
	})
}

// A malformed response ends its call at once with an error that says what is wrong. The call does not
// wait for its timeout, and the client does not answer the response.
func TestAFaultyResponseEndsItsCall(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, response, err string }{
		{"nested too deeply", `{"jsonrpc":"2.0","id":$ID,"result":{"x":` + strings.Repeat("[", 3000) + strings.Repeat("]", 3000) + `}}`, "nested deeper than"},
		{"Result", `{"jsonrpc":"2.0","id":$ID,"Result":{}}`, `member "Result" differs from "result" only by case`},
		{"bad UTF-8", `{"jsonrpc":"2.0","id":$ID,"result":{"x":"` + "\xff" + `"}}`, "invalid JSON"},
	} {
		t.Run(test.name, func(t *testing.T) {
			onEveryStage(t, func(t *testing.T, s stage, p *puppet, c *client.Client) {
				if s.name == "memory" { // its responses are values
					return
				}
				call := ask(t.Context(), c)
				r := <-p.heard
				p.say(strings.ReplaceAll(test.response, "$ID", r.ID.String()))
				got := <-call
				if s.name == "websocket" && test.name == "bad UTF-8" {
					// This ends the connection (RFC 6455, section 8.1).
					require.ErrorContains(t, got.err, "the peer sent a message that is not UTF-8")
					return
				}
				require.ErrorContains(t, got.err, test.err)
				require.NotErrorIs(t, got.err, client.ErrRejected)
				next := ask(t.Context(), c)
				for r = <-p.heard; r.IsNotification(); r = <-p.heard { // the cancellation of the stream, in modern versions over HTTP
				}
				p.answer(r, "next")
				require.Equal(t, told{"next", nil}, <-next)
			}, client.Timeout(0))
		})
	}
}

const questionOfPuppet = `{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"m","requestedSchema":{}}}`

// callTool calls a tool in the background.
func callTool(ctx context.Context, c *client.Client) <-chan error {
	over := make(chan error, 1)
	go func() {
		_, err := c.CallTool(ctx, "x", nil)
		over <- err
	}()
	return over
}

func TestCallIsCancelledDuringAServerRequest(t *testing.T) {
	user := slow{asked: make(chan struct{}), ended: make(chan error, 1)}
	onEveryStage(t, func(t *testing.T, s stage, p *puppet, c *client.Client) {
		modern := c.Version().Modern()
		if s.deaf && !modern {
			t.Skip("a legacy server cannot send requests on this stage")
		}
		ctx, cancel := context.WithCancel(t.Context())
		call := callTool(ctx, c)
		r := <-p.heard
		if modern {
			p.say(`{"jsonrpc":"2.0","id":` + r.ID.String() + `,"result":{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":{"message":"m","requestedSchema":{}}}}}}`)
		} else {
			p.say(questionOfPuppet)
		}
		<-user.asked
		cancel()
		if modern {
			require.ErrorIs(t, <-user.ended, context.Canceled)
			require.ErrorIs(t, <-call, context.Canceled)
		} else {
			require.ErrorIs(t, <-call, context.Canceled)
			n := <-p.heard
			require.Equal(t, protocol.NotificationCancelled, n.Method)
			p.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q"}}`)
			<-user.ended
		}
		next := ask(t.Context(), c)
		for r = <-p.heard; r.IsNotification(); r = <-p.heard {
		}
		p.answer(r, "next")
		require.Equal(t, told{"next", nil}, <-next)
	}, client.Handlers(user))
}

// The program only waits for changes, and sends no request that would find the session gone.
func TestSubscriptionsContinueWhenTheServerHasForgottenTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		servers := make([]*mcpkit.Server, 2)
		handlers := make([]*streamable.Handler, 2)
		for i := range servers {
			servers[i] = mcpkit.MustNew(nil)
			require.NoError(t, servers[i].Add(mcpkit.NewTool("first", func() {}), mcpkit.NewResource("test://x", "x", func() string { return "" })))
			handlers[i] = streamable.NewHandler(servers[i], nil)
		}
		var now atomic.Pointer[streamable.Handler]
		now.Store(handlers[0])
		network, closeAll := testkit.Serve(&http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { now.Load().ServeHTTP(w, r) })})
		c, err := client.Dial(t.Context(), "http://mcp.example", client.HTTPClient(network), client.Version(protocol.V20251125))
		require.NoError(t, err)
		s, err := c.Listen(t.Context(), protocol.SubscriptionFilter{ToolsListChanged: true, ResourceSubscriptions: []string{"test://x"}})
		require.NoError(t, err)
		now.Store(handlers[1])
		handlers[0].Close()
		for range 2 { // what may have changed meanwhile, and what changes then
			got := map[client.ChangeKind]bool{}
			for range 2 {
				limited, cancel := context.WithTimeout(t.Context(), time.Minute)
				change, err := s.Next(limited)
				cancel()
				require.NoError(t, err)
				got[change.Kind] = true
			}
			require.Equal(t, map[client.ChangeKind]bool{client.ToolsChanged: true, client.ResourceUpdated: true}, got)
			time.Sleep(time.Minute)
			require.NoError(t, servers[1].Add(mcpkit.NewTool(rand.Text(), func() {})))
			servers[1].ResourceUpdated("test://x")
		}
		require.NoError(t, c.Close())
		handlers[1].Close()
		closeAll()
	})
}

func TestSubscriptionsEndWhenTheirStreamIsRefused(t *testing.T) {
	t.Parallel()
	var opened atomic.Bool
	f := newLegacyFake(t, map[string]answer{
		"initialize":          initialized("2025-11-25", "one"),
		"resources/subscribe": result(`{}`),
		"GET": func(w http.ResponseWriter, r *http.Request, _ *jsonrpc.Request) {
			if !opened.CompareAndSwap(false, true) {
				http.Error(w, "no longer", http.StatusForbidden)
				return
			}
			stream()(w, r, nil)
		},
	})
	c := dial(t, f.URL)
	s, err := c.Subscribe(t.Context(), "test://x")
	require.NoError(t, err)
	_, err = s.Next(t.Context())
	require.ErrorContains(t, err, "client: the stream of the session cannot be opened again; call Listen again")
	require.ErrorContains(t, err, "403")
}

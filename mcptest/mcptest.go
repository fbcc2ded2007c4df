// Package mcptest tests services: it calls them as a client would, and says readably what differs.
//
//	s := mcptest.New(t, &Notes{})
//	s.Call("add", AddInput{ID: "tea", Text: "Green"}).OK().Text("kept tea")
//	s.As(&oauth.Principal{Subject: "eve"}).Call("delete", map[string]any{"id": "tea"}).Error("not yours")
//
// Every request goes through the client, the protocol and the whole chain of middleware. At the end of a test, goroutines that it
// started and that still run fail it.
//
// [Eras] runs a test on every revision and binding. [Golden] holds what clients see to a file, and says which differences break
// callers; [Server.Record] and [Server.Replay] do that with whole conversations.
package mcptest

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/jsonrpc"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

// A binding is the way to the server.
type binding int

const (
	memory binding = iota
	http
	standardIO
)

// A Server is a server under test, seen by one client. Make one with [New]; [Server.As], [Server.Answer], [Server.Handlers],
// [Server.Revision], [Server.HTTP], [Server.Stdio] and [Server.Record] return further views of the same server. A view connects at its first request.
// Its methods belong to the goroutine of the test.
type Server struct {
	t         testing.TB
	srv       *mcpkit.Server
	log       *buffer
	principal *oauth.Principal
	handlers  any
	answers   []*answer
	version   protocol.Version
	binding   binding
	tape      *tape // what records; nil for none
	client    *client.Client
}

// New returns a server of the service, with the options of mcpkit, in memory and of the newest revision. A *mcpkit.Server is taken
// as it is: its log is not shown, and the test closes it. What goes wrong ends the test.
func New(t testing.TB, service any, opts ...mcpkit.Option) *Server {
	t.Helper()
	checkLeaks(t)
	s := &Server{t: t, log: &buffer{}}
	if srv, ok := service.(*mcpkit.Server); ok {
		s.srv = srv
		return s
	}
	logger := slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	srv, err := mcpkit.New(service, append([]mcpkit.Option{mcpkit.Logger(logger)}, opts...)...)
	if err != nil {
		t.Fatalf("mcptest: the service cannot be served:\n%v", err)
	}
	s.srv = srv
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Errorf("mcptest: closing the server: %v", err)
		}
	})
	return s
}

// view returns a copy that has yet to connect.
func (s *Server) view() *Server {
	v := *s
	v.client, v.tape = nil, nil
	v.answers = slices.Clone(s.answers)
	return &v
}

// As is the server as p sees it. Nil is nobody.
func (s *Server) As(p *oauth.Principal) *Server {
	v := s.view()
	v.principal = p
	return v
}

// Revision is the server as a client of that revision sees it.
func (s *Server) Revision(r protocol.Version) *Server {
	v := s.view()
	v.version = r
	return v
}

// HTTP is the server over Streamable HTTP, on a loopback address.
func (s *Server) HTTP() *Server {
	v := s.view()
	v.binding = http
	return v
}

// Stdio is the server over the stdio binding, on a pair of pipes: what it says and hears are lines.
func (s *Server) Stdio() *Server {
	v := s.view()
	v.binding = standardIO
	return v
}

// Handlers is the server as a client sees it that answers by h; see [client.Handlers]. It replaces all of [Server.Answer].
func (s *Server) Handlers(h any) *Server {
	v := s.view()
	v.handlers, v.answers = h, nil
	return v
}

// Unwrap is the server itself.
func (s *Server) Unwrap() *mcpkit.Server { return s.srv }

// Client is the client of this view, for what has no method here. It is closed at the end of the test.
func (s *Server) Client() *client.Client {
	s.t.Helper()
	if s.client == nil {
		s.dial()
	}
	return s.client
}

func (s *Server) dial() {
	s.t.Helper()
	opts := []client.DialOption{client.Info("mcptest", "1"), client.Logger(slog.New(slog.DiscardHandler)), client.NoCache()}
	if s.version != "" {
		opts = append(opts, client.Version(s.version))
	}
	switch {
	case s.handlers != nil:
		opts = append(opts, client.Handlers(s.handlers))
	case len(s.answers) > 0:
		opts = append(opts, client.Handlers(&script{t: s.t, answers: s.answers}))
	}
	c, err := client.Dial(context.Background(), s.target(), opts...)
	if err != nil {
		s.t.Fatalf("mcptest: no connection: %v", err)
	}
	s.client = c
	s.t.Cleanup(func() {
		if err := c.Close(); err != nil {
			s.t.Errorf("mcptest: closing the client: %v", err)
		}
	})
}

// target serves the server on its binding, until the end of the test.
func (s *Server) target() any {
	h := s.handler()
	switch s.binding {
	case http:
		web := streamable.NewHandler(h, &streamable.Options{Logger: slog.New(slog.DiscardHandler)})
		server := httptest.NewServer(web)
		s.t.Cleanup(func() {
			web.Close()
			server.Close()
		})
		return server.URL
	case standardIO:
		p := startPipes(h)
		s.t.Cleanup(func() {
			if err := p.close(); err != nil {
				s.t.Errorf("mcptest: serving on pipes: %v", err)
			}
		})
		return client.InMemory(p)
	}
	return h
}

// handler is what a binding serves.
func (s *Server) handler() transport.Handler {
	h := asPrincipal{s.srv, s.principal}
	if s.tape != nil {
		return recorded{h, s.tape}
	}
	return h
}

// asPrincipal is the server for requests that come from the principal.
type asPrincipal struct {
	*mcpkit.Server
	principal *oauth.Principal
}

// ServeRPC answers as the server does.
func (a asPrincipal) ServeRPC(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
	if a.principal != nil {
		ctx = oauth.NewContext(ctx, a.principal)
	}
	return a.Server.ServeRPC(ctx, req, peer)
}

// Call calls a tool. In encodes as a JSON object; nil means no arguments.
func (s *Server) Call(tool string, in any) *Result {
	s.t.Helper()
	return s.do("call "+tool, in, func(r *Result, opts []client.CallOption) {
		res, err := s.Client().CallTool(s.t.Context(), tool, in, opts...)
		if res != nil { // that the tool failed is in the result
			r.text, r.structured, r.isError, err = contentText(res.Content), unwrap(res.StructuredContent, s.Client().Version()), res.IsError, nil
		}
		r.err = err
	})
}

// Read reads a resource.
func (s *Server) Read(uri string) *Result {
	s.t.Helper()
	return s.do("read "+uri, nil, func(r *Result, opts []client.CallOption) {
		res, err := s.Client().ReadResource(s.t.Context(), uri, opts...)
		r.err = err
		if err != nil {
			return
		}
		var parts []string
		for _, c := range res.Contents {
			if c.Text != nil {
				parts = append(parts, *c.Text)
			} else {
				parts = append(parts, string(c.Blob))
			}
		}
		r.text = strings.Join(parts, "\n")
	})
}

// Prompt gets a prompt. Its text is a line "role: text" for each message.
func (s *Server) Prompt(name string, args map[string]string) *Result {
	s.t.Helper()
	return s.do("prompt "+name, args, func(r *Result, opts []client.CallOption) {
		res, err := s.Client().GetPrompt(s.t.Context(), name, args, opts...)
		r.err = err
		if err != nil {
			return
		}
		var lines []string
		for _, m := range res.Messages {
			lines = append(lines, string(m.Role)+": "+contentText([]protocol.Content{m.Content}))
		}
		r.text = strings.Join(lines, "\n")
	})
}

// List returns the names of the tools that this client sees, in the server's order.
func (s *Server) List() []string {
	s.t.Helper()
	var names []string
	for _, tool := range s.tools() {
		names = append(names, tool.Name)
	}
	return names
}

func (s *Server) tools() []*protocol.Tool {
	s.t.Helper()
	var all []*protocol.Tool
	for tool, err := range s.Client().Tools(s.t.Context()) {
		if err != nil {
			s.t.Fatalf("mcptest: tools/list: %v", err)
		}
		all = append(all, tool)
	}
	return all
}

// do makes one request and keeps what can be said of it.
func (s *Server) do(what string, in any, request func(*Result, []client.CallOption)) *Result {
	s.t.Helper()
	r := &Result{t: s.t, what: what}
	if in != nil {
		r.arguments, _ = jsonx.Marshal(in) // what does not encode is the error of the request
	}
	from := s.log.len()
	request(r, []client.CallOption{
		client.LogLevel(protocol.LevelDebug),
		client.OnProgress(func(p *protocol.ProgressParams) { r.hearProgress(p) }),
		client.OnLog(func(p *protocol.LoggingMessageParams) { r.hearLog(p) }),
	})
	r.log = s.log.since(from)
	return r
}

// Eras runs the test on every revision and binding: in memory, over stdio and, where the revision has it, over Streamable HTTP, each
// time with a server of its own that make returns.
func Eras(t *testing.T, make func(t *testing.T) *Server, test func(t *testing.T, s *Server)) {
	t.Helper()
	for _, v := range protocol.Supported {
		t.Run("memory/"+string(v), func(t *testing.T) { test(t, make(t).Revision(v)) })
		t.Run("stdio/"+string(v), func(t *testing.T) { test(t, make(t).Revision(v).Stdio()) })
		if v.AtLeast(protocol.V20250326) {
			t.Run("http/"+string(v), func(t *testing.T) { test(t, make(t).Revision(v).HTTP()) })
		}
	}
}

func contentText(blocks []protocol.Content) string {
	var parts []string
	for _, b := range blocks {
		if text, ok := b.(*protocol.TextContent); ok {
			parts = append(parts, text.Text)
		} else {
			parts = append(parts, fmt.Sprintf("[%s]", protocol.ContentType(b)))
		}
	}
	return strings.Join(parts, "\n")
}

// unwrap takes an output out of the object that legacy revisions want around what is none.
func unwrap(raw []byte, v protocol.Version) []byte {
	if !v.Legacy() {
		return raw
	}
	n := 0
	for range jsonx.Members(raw) {
		n++
	}
	if inner := jsonx.Member(raw, "result"); n == 1 && inner != nil {
		return inner
	}
	return raw
}

// A buffer holds a log.
type buffer struct {
	mu   sync.Mutex
	data bytes.Buffer // guarded by mu
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.Write(p)
}

func (b *buffer) len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.Len()
}

func (b *buffer) since(n int) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.data.Bytes()[n:])
}

// Package mcptest tests services. It calls them as a client does and reports differences.
//
//	s := mcptest.New(t, &Notes{})
//	s.Call("add", AddInput{ID: "tea", Text: "Green"}).OK().Text("kept tea")
//	s.As(&oauth.Principal{Subject: "eve"}).Call("delete", map[string]any{"id": "tea"}).Error("not yours")
//
// Each request passes the client, the protocol and all middleware. A test fails if goroutines that
// it started still run when it ends, or if an answer of [Server.Answer] was never asked for.
//
// [EachVersion] runs a test on every protocol version and transport. [Golden] compares what clients
// see with a file, and [Server.Replay] whole conversations.
package mcptest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/stdio"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

// A transportKind is how the client reaches the server.
type transportKind int

const (
	memory transportKind = iota
	http
	standardIO
)

// A Server is a view of a server under test: the server as one client sees it. [New] returns the
// first view; [Server.As], [Server.Answer], [Server.Handlers], [Server.Version], [Server.HTTP],
// [Server.Stdio] and [Server.Tasks] return further views of the same server. Each view connects at its
// first request. Call its methods from the goroutine of the test only.
type Server struct {
	t         testing.TB
	srv       *mcpkit.Server
	log       *buffer
	principal *oauth.Principal
	handlers  any
	answers   []*answer
	version   protocol.Version
	tasks     bool // the client supports tasks
	transport transportKind
	client    *client.Client
	lastRound *lastRound
}

// New returns a server for the service, reached in memory with the newest protocol version. opts
// are options of [mcpkit.New]. If the service cannot be served, the test ends. The server is closed
// at the end of the test.
//
// The service can be a *mcpkit.Server, for example one with other servers mounted in it. It is closed,
// too, and failures do not show its log.
//
// As everywhere, the first request calls the Start methods of the services, those of mounted
// servers included. Call [mcpkit.Server.Start] on [Server.Unwrap] to test that it fails.
func New(t testing.TB, service any, opts ...mcpkit.Option) *Server {
	t.Helper()
	checkLeaks(t)
	s := &Server{t: t, log: &buffer{}, lastRound: new(lastRound)}
	srv, made := service.(*mcpkit.Server)
	switch {
	case !made:
		var err error
		logger := slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		srv, err = mcpkit.New(service, append([]mcpkit.Option{mcpkit.Logger(logger)}, opts...)...)
		if err != nil {
			t.Fatalf("mcptest: the service cannot be served:\n%v", err)
		}
	case srv == nil:
		t.Fatalf("mcptest: the server is nil; make one with mcpkit.New, and look at its error")
	case len(opts) > 0:
		t.Fatalf("mcptest: the server has its options already; pass them to mcpkit.New")
	}
	s.srv = srv
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Errorf("mcptest: closing the server: %v", err)
		}
	})
	return s
}

// with returns a copy that is changed and not connected.
func (s *Server) with(change func(view *Server)) *Server {
	v := *s
	v.client, v.lastRound = nil, new(lastRound)
	change(&v)
	return &v
}

// As returns a view whose requests come from the principal p. Nil means unauthenticated.
func (s *Server) As(p *oauth.Principal) *Server {
	return s.with(func(v *Server) { v.principal = p })
}

// Version returns a view whose client speaks only version v of the protocol.
func (s *Server) Version(v protocol.Version) *Server {
	return s.with(func(view *Server) { view.version = v })
}

// HTTP returns a view that uses Streamable HTTP on a loopback address.
func (s *Server) HTTP() *Server { return s.with(func(v *Server) { v.transport = http }) }

// Stdio returns a view that uses the stdio transport on a pipe.
func (s *Server) Stdio() *Server { return s.with(func(v *Server) { v.transport = standardIO }) }

// Handlers returns a view whose client has the handlers h; see [client.Handlers]. They replace all
// answers of [Server.Answer].
func (s *Server) Handlers(h any) *Server {
	return s.with(func(v *Server) { v.handlers, v.answers = h, nil })
}

// Unwrap returns the server itself.
func (s *Server) Unwrap() *mcpkit.Server { return s.srv }

// Client returns the client of this view, for requests without a method here. The test closes it at
// its end.
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
	if s.tasks {
		opts = append(opts, client.Tasks())
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
	if c.Version() < protocol.V20250618 {
		for _, a := range s.answers {
			a.used.Store(true) // this version has no elicitation
		}
	}
	s.t.Cleanup(func() {
		if err := c.Close(); err != nil {
			s.t.Errorf("mcptest: closing the client: %v", err)
		}
	})
}

// target serves the server on its transport until the end of the test.
func (s *Server) target() any {
	h := s.handler()
	switch s.transport {
	case http:
		web := streamable.NewHandler(h, &streamable.Options{Logger: slog.New(slog.DiscardHandler)})
		server := httptest.NewServer(web)
		s.t.Cleanup(func() {
			web.Close()
			server.Close()
		})
		return server.URL
	case standardIO:
		ours, theirs := net.Pipe()
		served := make(chan error, 1)
		// Ends when the client closes its end.
		go func() {
			served <- stdio.NewIO(theirs, theirs, &stdio.Options{Logger: slog.New(slog.DiscardHandler)}).Serve(context.Background(), h)
		}()
		s.t.Cleanup(func() {
			_ = ours.Close() // the client did, unless it could not be made
			if err := <-served; err != nil {
				s.t.Errorf("mcptest: serving on a pipe: %v", err)
			}
		})
		return ours
	}
	return h
}

// handler returns what a transport serves.
func (s *Server) handler() transport.Handler {
	return asPrincipal{s.srv, s.principal, s.lastRound}
}

// asPrincipal is the server for requests of the principal.
type asPrincipal struct {
	*mcpkit.Server
	principal *oauth.Principal
	lastRound *lastRound
}

// ServeRPC calls the server with the principal in ctx.
func (a asPrincipal) ServeRPC(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
	if a.principal != nil {
		ctx = oauth.NewContext(ctx, a.principal)
	}
	noteRound(a.lastRound, req)
	return a.Server.ServeRPC(ctx, req, peer)
}

// Call calls a tool. The arguments in must encode as a JSON object; nil means none.
func (s *Server) Call(tool string, in any) *Result {
	s.t.Helper()
	return s.do("call "+tool, in, func(r *Result, opts []client.CallOption) {
		if s.tasks && s.Client().Version().Modern() {
			r.take(s.callAsTask(r, tool, in, opts))
			return
		}
		r.take(s.Client().CallTool(s.t.Context(), tool, in, opts...))
	})
}

// Read reads a resource.
func (s *Server) Read(uri string) *Result {
	s.t.Helper()
	return s.do("read "+uri, nil, func(r *Result, opts []client.CallOption) {
		r.take(s.Client().ReadResource(s.t.Context(), uri, opts...))
	})
}

// Prompt gets a prompt. The text of its result is a line "role: text" for each message.
func (s *Server) Prompt(name string, args map[string]string) *Result {
	s.t.Helper()
	return s.do("prompt "+name, args, func(r *Result, opts []client.CallOption) {
		r.take(s.Client().GetPrompt(s.t.Context(), name, args, opts...))
	})
}

// Complete asks for the values of an argument that begin with prefix. target is the name of a
// prompt, or the URI template of a resource. others are the values of other arguments; nil means
// none. Check the result with [Result.Values].
func (s *Server) Complete(target, argument, prefix string, others map[string]string) *Result {
	s.t.Helper()
	ref := protocol.CompletionRef{Type: protocol.RefPrompt, Name: target}
	if strings.Contains(target, "://") || strings.Contains(target, "{") {
		ref = protocol.CompletionRef{Type: protocol.RefResource, URI: target}
	}
	return s.do(fmt.Sprintf("complete %q of %s", argument, target), others, func(r *Result, opts []client.CallOption) {
		r.take(s.Client().Complete(s.t.Context(), ref, argument, prefix, others, opts...))
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
	return collect(s.t, "tools/list", s.Client().Tools(s.t.Context()))
}

// do sends one request and collects the result, progress and log.
func (s *Server) do(what string, in any, request func(*Result, []client.CallOption)) *Result {
	s.t.Helper()
	r := &Result{t: s.t, what: what, server: s}
	if in != nil {
		r.arguments, _ = jsonx.Marshal(in) // the request returns the same error
	}
	from := s.log.len()
	s.lastRound.Store(nil)
	request(r, []client.CallOption{
		client.LogLevel(protocol.LevelDebug),
		client.OnProgress(func(p *protocol.ProgressParams) { r.addProgress(p) }),
		client.OnLog(func(p *protocol.LoggingMessageParams) { r.addMessage(p) }),
	})
	r.log, r.last = s.log.since(from), s.lastRound.Load()
	r.unanswered = s.handlers == nil && len(s.answers) == 0 && s.Client().Version() >= protocol.V20250618
	return r
}

// EachVersion runs the test on every protocol version: in memory, over stdio and, from 2025-03-26
// on, over Streamable HTTP. make returns a new server for each run.
func EachVersion(t *testing.T, make func(t *testing.T) *Server, test func(t *testing.T, s *Server)) {
	t.Helper()
	for _, v := range protocol.Supported {
		t.Run("memory/"+string(v), func(t *testing.T) { test(t, make(t).Version(v)) })
		t.Run("stdio/"+string(v), func(t *testing.T) { test(t, make(t).Version(v).Stdio()) })
		if v >= protocol.V20250326 {
			t.Run("http/"+string(v), func(t *testing.T) { test(t, make(t).Version(v).HTTP()) })
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

// lastJSON returns the last text block that is JSON; nil if there is none.
func lastJSON(blocks []protocol.Content) []byte {
	for _, b := range slices.Backward(blocks) {
		if text, ok := b.(*protocol.TextContent); ok && jsonx.Valid([]byte(text.Text)) {
			return []byte(text.Text)
		}
	}
	return nil
}

// unwrap returns the output without the object around it, which legacy versions require for outputs
// that are not objects.
func unwrap(raw []byte, v protocol.Version) []byte {
	if !v.Legacy() {
		return raw
	}
	var all map[string]json.RawMessage
	if jsonx.Unmarshal(raw, &all) == nil && len(all) == 1 && all["result"] != nil {
		return all["result"]
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

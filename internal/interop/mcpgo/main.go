// Command mcpgo is the test server built with github.com/mark3labs/mcp-go. It has the tools,
// resources and prompts that the doc comment of internal/interop/client lists.
//
//	mcpgo stdio
//	mcpgo http|sse ADDR            Streamable HTTP at /mcp, HTTP+SSE at /sse
//	mcpgo http ADDR stateless      Streamable HTTP without sessions
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// A testServer holds the server and the state of its handlers. It serves one client at a time.
type testServer struct {
	server       *server.MCPServer
	cancelled    chan struct{} // a call of wait was cancelled
	rootsChanged chan struct{} // the roots of the client changed
	reads        int           // how often the counter was read
	extra        int           // how many things were added
	owed         int           // how often pay_first was called
}

func newTestServer() *testServer {
	s := &testServer{cancelled: make(chan struct{}, 10), rootsChanged: make(chan struct{}, 10)}
	s.server = server.NewMCPServer("interop", "1.0.0",
		server.WithInstructions("Ask at the desk."),
		server.WithToolCapabilities(true), server.WithPromptCapabilities(true), server.WithResourceCapabilities(true, true),
		server.WithLogging(), server.WithCompletions(), server.WithElicitation(), server.WithRoots(),
		server.WithTaskCapabilities(true, true, true), server.WithInputSchemaValidation(), server.WithPaginationLimit(3),
		server.WithPromptCompletionProvider(completions{}), server.WithResourceCompletionProvider(completions{}),
		server.WithMethodCacheHints(mcp.MethodResourcesRead, 60_000, mcp.CacheScopePublic))
	s.server.EnableSampling()
	s.server.AddNotificationHandler(mcp.MethodNotificationRootsListChanged, func(context.Context, mcp.JSONRPCNotification) { s.rootsChanged <- struct{}{} })
	s.addTools()
	s.addQuestions()
	s.addResources()
	s.addPrompts()
	return s
}

func main() {
	log.SetFlags(0)
	s := newTestServer()
	var err error
	switch {
	case len(os.Args) == 2 && os.Args[1] == "stdio":
		err = server.ServeStdio(s.server)
	case len(os.Args) >= 3:
		err = s.listen(os.Args[2], len(os.Args) == 4 && os.Args[3] == "stateless")
	default:
		err = errors.New("usage: mcpgo stdio | mcpgo http|sse ADDR [stateless]")
	}
	if err != nil {
		log.Fatal(err)
	}
}

func (s *testServer) listen(addr string, stateless bool) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	opts := []server.StreamableHTTPOption{server.WithStateful(true), server.WithEventStore(server.NewInMemoryEventStore())}
	if stateless {
		opts = []server.StreamableHTTPOption{server.WithStateLess(true)}
	}
	streamable := server.NewStreamableHTTPServer(s.server, opts...)
	sse := server.NewSSEServer(s.server)
	mux := http.NewServeMux()
	mux.Handle("/mcp", streamable)
	mux.Handle("/sse", sse.SSEHandler())
	mux.Handle("/message", sse.MessageHandler())
	web := &http.Server{Addr: addr, Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = web.Close() })
	if err := web.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (s *testServer) addResources() {
	for uri, mime := range map[string]string{"test://menu": "text/plain", "test://photo": "image/png", "test://guestbook": "", "test://counter": "", "test://safe": ""} {
		s.server.AddResource(mcp.NewResource(uri, strings.TrimPrefix(uri, "test://"), mcp.WithMIMEType(mime)), s.read)
	}
	s.server.AddResourceTemplate(mcp.NewResourceTemplate("test://rooms/{number}", "room", mcp.WithTemplateMIMEType("application/json")), s.read)
}

func (s *testServer) read(_ context.Context, req mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
	text := mcp.TextResourceContents{URI: req.Params.URI}
	switch text.URI {
	case "test://menu":
		text.MIMEType, text.Text = "text/plain", "Soup"
	case "test://photo":
		return []mcp.ResourceContents{mcp.BlobResourceContents{URI: text.URI, MIMEType: "image/png", Blob: encode("\x89PNG")}}, nil
	case "test://guestbook":
		text.Text = "Ann was here."
	case "test://counter":
		s.reads++
		text.Text = fmt.Sprint(s.reads)
	case "test://safe":
		return nil, errors.New("a handler of this SDK cannot ask for the code")
	default:
		number, ok := strings.CutPrefix(text.URI, "test://rooms/")
		if !ok {
			text.Text = "extra"
			break
		}
		text.MIMEType, text.Text = "application/json", fmt.Sprintf(`{"number":%q}`, number)
	}
	return []mcp.ResourceContents{text}, nil
}

func (s *testServer) addPrompts() {
	s.server.AddPrompt(mcp.NewPrompt("greet", mcp.WithPromptDescription("Greets somebody."),
		mcp.WithArgument("name", mcp.RequiredArgument()), mcp.WithArgument("style")), greet)
	s.server.AddPrompt(mcp.NewPrompt("welcome"), func(_ context.Context, req mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		answer := server.ElicitationResponse(req.Params.InputResponses, "name")
		if answer == nil {
			return server.NewInputRequestBuilder("").Elicit("name", form("name", "Who are you?")).PromptResult(), nil
		}
		return greeting("Welcome, " + field(answer, "name")), nil
	})
	for _, name := range []string{"breakfast", "lunch"} {
		s.server.AddPrompt(mcp.NewPrompt(name), greet)
	}
}

func greet(_ context.Context, req mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	return greeting("Greet " + req.Params.Arguments["name"] + ", " + req.Params.Arguments["style"]), nil
}

func greeting(text string) *mcp.GetPromptResult {
	return mcp.NewGetPromptResult("", []mcp.PromptMessage{
		mcp.NewPromptMessage(mcp.RoleUser, mcp.NewTextContent(text)),
		mcp.NewPromptMessage(mcp.RoleAssistant, mcp.NewTextContent("I do.")),
	})
}

// completions completes styles (only the formal one for Ann) and room numbers.
type completions struct{}

func (completions) CompletePromptArgument(_ context.Context, _ string, argument mcp.CompleteArgument, known mcp.CompleteContext) (*mcp.Completion, error) {
	if known.Arguments["name"] == "Ann" {
		return starting(argument.Value, "formal"), nil
	}
	return starting(argument.Value, "formal", "friendly", "short"), nil
}

func (completions) CompleteResourceArgument(_ context.Context, _ string, argument mcp.CompleteArgument, _ mcp.CompleteContext) (*mcp.Completion, error) {
	return starting(argument.Value, "10", "11", "20"), nil
}

func starting(with string, values ...string) *mcp.Completion {
	c := &mcp.Completion{Values: []string{}}
	for _, v := range values {
		if strings.HasPrefix(v, with) {
			c.Values = append(c.Values, v)
		}
	}
	return c
}

// Command mcpgo is an inn by github.com/mark3labs/mcp-go, which interop/visitor visits; the doc
// comment there says what an inn offers.
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

// An inn is the server and what its handlers keep; one visitor comes at a time.
type inn struct {
	server *server.MCPServer
	left   chan struct{} // a call of wait was cancelled
	moved  chan struct{} // the roots of the client changed
	rung   int           // how often the bell was read
	extra  int           // how many things were added
	owed   int           // how often pay_first was called
}

func newInn() *inn {
	i := &inn{left: make(chan struct{}, 10), moved: make(chan struct{}, 10)}
	i.server = server.NewMCPServer("inn", "1.0.0",
		server.WithInstructions("Ask at the desk."),
		server.WithToolCapabilities(true), server.WithPromptCapabilities(true), server.WithResourceCapabilities(true, true),
		server.WithLogging(), server.WithCompletions(), server.WithElicitation(), server.WithRoots(),
		server.WithTaskCapabilities(true, true, true), server.WithInputSchemaValidation(), server.WithPaginationLimit(3),
		server.WithPromptCompletionProvider(completions{}), server.WithResourceCompletionProvider(completions{}),
		server.WithMethodCacheHints(mcp.MethodResourcesRead, 60_000, mcp.CacheScopePublic))
	i.server.EnableSampling()
	i.server.AddNotificationHandler(mcp.MethodNotificationRootsListChanged, func(context.Context, mcp.JSONRPCNotification) { i.moved <- struct{}{} })
	i.addTools()
	i.addQuestions()
	i.addResources()
	i.addPrompts()
	return i
}

func main() {
	log.SetFlags(0)
	i := newInn()
	var err error
	switch {
	case len(os.Args) == 2 && os.Args[1] == "stdio":
		err = server.ServeStdio(i.server)
	case len(os.Args) >= 3:
		err = i.listen(os.Args[2], len(os.Args) == 4 && os.Args[3] == "stateless")
	default:
		err = errors.New("usage: mcpgo stdio | mcpgo http|sse ADDR [stateless]")
	}
	if err != nil {
		log.Fatal(err)
	}
}

func (i *inn) listen(addr string, stateless bool) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	opts := []server.StreamableHTTPOption{server.WithStateful(true), server.WithEventStore(server.NewInMemoryEventStore())}
	if stateless {
		opts = []server.StreamableHTTPOption{server.WithStateLess(true)}
	}
	streamable := server.NewStreamableHTTPServer(i.server, opts...)
	sse := server.NewSSEServer(i.server)
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

func (i *inn) addResources() {
	for uri, mime := range map[string]string{"inn://menu": "text/plain", "inn://photo": "image/png", "inn://guestbook": "", "inn://bell": "", "inn://safe": ""} {
		i.server.AddResource(mcp.NewResource(uri, strings.TrimPrefix(uri, "inn://"), mcp.WithMIMEType(mime)), i.read)
	}
	i.server.AddResourceTemplate(mcp.NewResourceTemplate("inn://rooms/{number}", "room", mcp.WithTemplateMIMEType("application/json")), i.read)
}

func (i *inn) read(_ context.Context, req mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
	text := mcp.TextResourceContents{URI: req.Params.URI}
	switch text.URI {
	case "inn://menu":
		text.MIMEType, text.Text = "text/plain", "Soup"
	case "inn://photo":
		return []mcp.ResourceContents{mcp.BlobResourceContents{URI: text.URI, MIMEType: "image/png", Blob: encode("\x89PNG")}}, nil
	case "inn://guestbook":
		text.Text = "Ann was here."
	case "inn://bell":
		i.rung++
		text.Text = fmt.Sprint(i.rung)
	case "inn://safe":
		return nil, errors.New("a handler of this SDK cannot ask for the code")
	default:
		number, ok := strings.CutPrefix(text.URI, "inn://rooms/")
		if !ok {
			text.Text = "extra"
			break
		}
		text.MIMEType, text.Text = "application/json", fmt.Sprintf(`{"number":%q}`, number)
	}
	return []mcp.ResourceContents{text}, nil
}

func (i *inn) addPrompts() {
	i.server.AddPrompt(mcp.NewPrompt("greet", mcp.WithPromptDescription("Greets a guest."),
		mcp.WithArgument("name", mcp.RequiredArgument()), mcp.WithArgument("style")), greet)
	i.server.AddPrompt(mcp.NewPrompt("welcome"), func(_ context.Context, req mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		answer := server.ElicitationResponse(req.Params.InputResponses, "name")
		if answer == nil {
			return server.NewInputRequestBuilder("").Elicit("name", form("name", "Who are you?")).PromptResult(), nil
		}
		return greeting("Welcome, " + field(answer, "name")), nil
	})
	for _, name := range []string{"breakfast", "lunch"} {
		i.server.AddPrompt(mcp.NewPrompt(name), greet)
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

// completions knows styles, of which Ann is only told the formal ones, and numbers of rooms.
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

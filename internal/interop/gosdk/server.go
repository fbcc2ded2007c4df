package main

//lint:file-ignore SA1019 sampling, roots and logging are deprecated and still tested.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A testServer has the tools, resources and prompts that the doc comment of internal/interop/client lists.
// It serves one client at a time.
type testServer struct {
	server       *mcp.Server
	cancelled    chan struct{} // a call of wait was cancelled
	rootsChanged chan struct{} // the roots of the client changed
	reads        int           // how often the counter was read
	extra        int           // how many things were added
	owed         int           // how often pay_first was called
}

func newTestServer() *testServer {
	s := &testServer{cancelled: make(chan struct{}, 10), rootsChanged: make(chan struct{}, 10)}
	subscribed := func(context.Context, *mcp.SubscribeRequest) error { return nil }
	s.server = mcp.NewServer(&mcp.Implementation{Name: "interop", Version: "1.0.0"}, &mcp.ServerOptions{
		Instructions:            "Ask at the desk.",
		PageSize:                3,
		CompletionHandler:       s.complete,
		SubscribeHandler:        subscribed,
		UnsubscribeHandler:      func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
		RootsListChangedHandler: func(context.Context, *mcp.RootsListChangedRequest) { s.rootsChanged <- struct{}{} },
		SetCacheable: func(_ context.Context, req mcp.Request, c *mcp.Cacheable) {
			if read, ok := req.GetParams().(*mcp.ReadResourceParams); ok && read.URI == "test://counter" {
				c.TTLMs, c.CacheScope = 60_000, "public"
			}
		},
	})
	s.addTools()
	s.addQuestions()
	s.addResources()
	s.addPrompts()
	return s
}

// serve runs the server over a transport until the input ends (stdio) or a signal arrives (HTTP).
// Over HTTP the SDK serves 2026-07-28 only if it is stateless, and a stateless server cannot ask
// legacy clients questions. With json the response to a call is not a stream; its notifications
// arrive on the stream of the session.
func (s *testServer) serve(transport, addr string, stateless, json bool) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if transport == "stdio" {
		return s.server.Run(ctx, &mcp.StdioTransport{})
	}
	pick := func(*http.Request) *mcp.Server { return s.server }
	mux := http.NewServeMux()
	mux.Handle("/mcp", mcp.NewStreamableHTTPHandler(pick, &mcp.StreamableHTTPOptions{
		Stateless: stateless, JSONResponse: json, EventStore: mcp.NewMemoryEventStore(nil), PropagateRequestCancellation: true,
	}))
	mux.Handle("/sse", mcp.NewSSEHandler(pick, nil))
	web := &http.Server{Addr: addr, Handler: mux, ReadHeaderTimeout: checkTimeout}
	context.AfterFunc(ctx, func() { _ = web.Close() })
	if err := web.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func say(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

type none struct{}

// tool adds a tool without an output schema.
func tool[In any](s *testServer, name string, h func(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, error)) {
	mcp.AddTool(s.server, &mcp.Tool{Name: name}, func(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
		result, err := h(ctx, req, in)
		return result, nil, err
	})
}

func (s *testServer) addTools() {
	type sum struct {
		A int `json:"a"`
		B int `json:"b"`
	}
	type total struct {
		Sum int `json:"sum"`
	}
	mcp.AddTool(s.server, &mcp.Tool{Name: "add", Title: "Add up", Description: "Adds two numbers.", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}, InputSchema: json.RawMessage(
		`{"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}`)},
		func(_ context.Context, _ *mcp.CallToolRequest, in sum) (*mcp.CallToolResult, total, error) {
			return nil, total{in.A + in.B}, nil
		})
	// Up to 2025-11-25, structured output is always an object.
	s.server.AddTool(&mcp.Tool{Name: "rooms", InputSchema: json.RawMessage(`{"type": "object"}`), OutputSchema: json.RawMessage(
		`{"type": "array", "items": {"type": "integer"}}`)},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "[10,11]"}}, StructuredContent: []int{10, 11}}, nil
		})
	s.server.AddTool(&mcp.Tool{Name: "locate", InputSchema: json.RawMessage(
		`{"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}`)},
		func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			var in struct {
				Region string `json:"region"`
			}
			if err := json.Unmarshal(req.Params.Arguments, &in); err != nil {
				return nil, err
			}
			return say("Region: " + in.Region), nil
		})
	tool(s, "content", func(context.Context, *mcp.CallToolRequest, none) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{
			&mcp.TextContent{Text: "a text"},
			&mcp.ImageContent{MIMEType: "image/png", Data: []byte("image")},
			&mcp.AudioContent{MIMEType: "audio/wav", Data: []byte("audio")},
			&mcp.ResourceLink{URI: "test://menu", Name: "menu"},
			&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "test://menu", MIMEType: "text/plain", Text: "Soup"}},
		}}, nil
	})
	tool(s, "fail", func(context.Context, *mcp.CallToolRequest, none) (*mcp.CallToolResult, error) {
		return nil, errors.New("the kitchen is closed")
	})
	tool(s, "caller_meta", func(_ context.Context, req *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, error) {
		return say(fmt.Sprint(req.Params.Meta["example.com/caller"])), nil
	})
	tool(s, "work", s.work)
	tool(s, "wait", s.wait)
	tool(s, "cancelled", func(ctx context.Context, _ *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, error) {
		return after(ctx, s.cancelled, "cancelled")
	})
	tool(s, "roots_changed", func(ctx context.Context, _ *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, error) {
		return after(ctx, s.rootsChanged, "roots changed")
	})
	tool(s, "resume", func(_ context.Context, req *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, error) {
		if req.Extra == nil || req.Extra.CloseSSEStream == nil {
			return say("there is no stream"), nil
		}
		req.Extra.CloseSSEStream(mcp.CloseSSEStreamArgs{RetryAfter: 10 * time.Millisecond})
		return say("still here"), nil
	})
	tool(s, "update_resource", func(ctx context.Context, _ *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, error) {
		return say("touched"), s.server.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: "test://guestbook"})
	})
	tool(s, "change", s.change)
}

// after returns the text once the event has happened.
func after(ctx context.Context, event <-chan struct{}, text string) (*mcp.CallToolResult, error) {
	select {
	case <-event:
		return say(text), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// work sends progress and log messages.
func (s *testServer) work(ctx context.Context, req *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, error) {
	for step := 1; step <= 3; step++ {
		if err := s.progress(ctx, req, float64(step), 3); err != nil {
			return nil, err
		}
	}
	for _, level := range []mcp.LoggingLevel{"debug", "info"} {
		if err := req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: level, Logger: "interop", Data: "told at " + string(level)}); err != nil {
			return nil, err
		}
	}
	return say("done"), nil
}

func (s *testServer) progress(ctx context.Context, req *mcp.CallToolRequest, n, total float64) error {
	token := req.Params.GetProgressToken()
	if token == nil {
		return nil
	}
	return req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: n, Total: total, Message: fmt.Sprint("step ", n)})
}

// wait returns when it is cancelled.
func (s *testServer) wait(ctx context.Context, req *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, error) {
	if err := s.progress(ctx, req, 1, 0); err != nil {
		return nil, err
	}
	<-ctx.Done()
	s.cancelled <- struct{}{}
	return nil, ctx.Err()
}

// change adds an item to one of the lists.
func (s *testServer) change(_ context.Context, _ *mcp.CallToolRequest, in struct {
	List string `json:"list"`
}) (*mcp.CallToolResult, error) {
	s.extra++
	name := fmt.Sprint("extra", s.extra)
	switch in.List {
	case "tools":
		tool(s, name, func(context.Context, *mcp.CallToolRequest, none) (*mcp.CallToolResult, error) {
			return say("here"), nil
		})
	case "prompts":
		s.server.AddPrompt(&mcp.Prompt{Name: name}, s.greet)
	case "resources":
		s.server.AddResource(&mcp.Resource{URI: "test://" + name, Name: name}, s.read)
	}
	return say(name), nil
}

func (s *testServer) addResources() {
	for uri, mime := range map[string]string{"test://menu": "text/plain", "test://photo": "image/png", "test://guestbook": "", "test://counter": "", "test://safe": ""} {
		s.server.AddResource(&mcp.Resource{URI: uri, Name: strings.TrimPrefix(uri, "test://"), MIMEType: mime}, s.read)
	}
	s.server.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "test://rooms/{number}", Name: "room", MIMEType: "application/json"}, s.read)
}

func (s *testServer) read(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	uri := req.Params.URI
	contents := &mcp.ResourceContents{URI: uri}
	switch uri {
	case "test://menu":
		contents.MIMEType, contents.Text = "text/plain", "Soup"
	case "test://photo":
		contents.MIMEType, contents.Blob = "image/png", []byte{0x89, 'P', 'N', 'G'}
	case "test://guestbook":
		contents.Text = "Ann was here."
	case "test://counter":
		s.reads++
		contents.Text = fmt.Sprint(s.reads)
	case "test://safe":
		code, ok := req.Params.InputResponses["code"].(*mcp.ElicitResult)
		if !ok {
			return &mcp.ReadResourceResult{InputRequests: question("code", "Which code?")}, nil
		}
		contents.Text = fmt.Sprint("opened by ", code.Content["code"])
	default:
		number, ok := strings.CutPrefix(uri, "test://rooms/")
		if !ok {
			contents.Text = "extra"
			break
		}
		contents.MIMEType, contents.Text = "application/json", fmt.Sprintf(`{"number":%q}`, number)
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{contents}}, nil
}

func (s *testServer) addPrompts() {
	s.server.AddPrompt(&mcp.Prompt{Name: "greet", Description: "Greets somebody.", Arguments: []*mcp.PromptArgument{
		{Name: "name", Required: true}, {Name: "style"},
	}}, s.greet)
	s.server.AddPrompt(&mcp.Prompt{Name: "welcome"}, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		name, ok := req.Params.InputResponses["name"].(*mcp.ElicitResult)
		if !ok {
			return &mcp.GetPromptResult{InputRequests: question("name", "Who are you?")}, nil
		}
		return greeting(fmt.Sprint("Welcome, ", name.Content["name"])), nil
	})
	for _, name := range []string{"breakfast", "lunch"} { // more than one page
		s.server.AddPrompt(&mcp.Prompt{Name: name}, s.greet)
	}
}

func (s *testServer) greet(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	name, style := req.Params.Arguments["name"], req.Params.Arguments["style"]
	return greeting("Greet " + name + ", " + style), nil
}

func greeting(text string) *mcp.GetPromptResult {
	return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{
		{Role: "user", Content: &mcp.TextContent{Text: text}},
		{Role: "assistant", Content: &mcp.TextContent{Text: "I do."}},
	}}
}

// complete completes styles (only the formal one for Ann) and room numbers.
func (s *testServer) complete(_ context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	values := []string{"formal", "friendly", "short"}
	if req.Params.Ref.Type == "ref/resource" {
		values = []string{"10", "11", "20"}
	} else if known := req.Params.Context; known != nil && known.Arguments["name"] == "Ann" {
		values = []string{"formal"}
	}
	values = slices.DeleteFunc(values, func(v string) bool { return !strings.HasPrefix(v, req.Params.Argument.Value) })
	return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: values, Total: len(values)}}, nil
}

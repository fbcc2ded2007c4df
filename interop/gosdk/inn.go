package main

//lint:file-ignore SA1019 sampling, roots and logging are deprecated, and served all the same.

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

// An inn is what interop/visitor visits; its doc comment says what an inn offers.
type inn struct {
	server *mcp.Server
	left   chan struct{} // a call of wait was cancelled
	moved  chan struct{} // the roots of the client changed
	rung   int           // how often the bell was read; one visitor comes at a time
	extra  int           // how many things were added
	owed   int           // how often pay_first was called
}

func newInn() *inn {
	i := &inn{left: make(chan struct{}, 10), moved: make(chan struct{}, 10)}
	subscribed := func(context.Context, *mcp.SubscribeRequest) error { return nil }
	i.server = mcp.NewServer(&mcp.Implementation{Name: "inn", Version: "1.0.0"}, &mcp.ServerOptions{
		Instructions:            "Ask at the desk.",
		PageSize:                3,
		CompletionHandler:       i.complete,
		SubscribeHandler:        subscribed,
		UnsubscribeHandler:      func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
		RootsListChangedHandler: func(context.Context, *mcp.RootsListChangedRequest) { i.moved <- struct{}{} },
		SetCacheable: func(_ context.Context, req mcp.Request, c *mcp.Cacheable) {
			if read, ok := req.GetParams().(*mcp.ReadResourceParams); ok && read.URI == "inn://bell" {
				c.TTLMs, c.CacheScope = 60_000, "public"
			}
		},
	})
	i.addTools()
	i.addQuestions()
	i.addResources()
	i.addPrompts()
	return i
}

// open lets visitors in, by a transport, until there are none any more or a signal comes. Over HTTP
// the SDK serves 2026-07-28 to nobody unless it is stateless, and then it asks legacy clients
// nothing. With json the answer to a call is no stream: what its handler has to say comes on that
// of the session.
func (i *inn) open(transport, addr string, stateless, json bool) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if transport == "stdio" {
		return i.server.Run(ctx, &mcp.StdioTransport{})
	}
	pick := func(*http.Request) *mcp.Server { return i.server }
	mux := http.NewServeMux()
	mux.Handle("/mcp", mcp.NewStreamableHTTPHandler(pick, &mcp.StreamableHTTPOptions{
		Stateless: stateless, JSONResponse: json, EventStore: mcp.NewMemoryEventStore(nil), PropagateRequestCancellation: true,
	}))
	mux.Handle("/sse", mcp.NewSSEHandler(pick, nil))
	web := &http.Server{Addr: addr, Handler: mux, ReadHeaderTimeout: patience}
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

// tool adds a tool that answers by text.
func tool[In any](i *inn, name string, h func(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, error)) {
	mcp.AddTool(i.server, &mcp.Tool{Name: name}, func(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
		result, err := h(ctx, req, in)
		return result, nil, err
	})
}

func (i *inn) addTools() {
	type sum struct {
		A int `json:"a"`
		B int `json:"b"`
	}
	type total struct {
		Sum int `json:"sum"`
	}
	mcp.AddTool(i.server, &mcp.Tool{Name: "add", Title: "Add up", Description: "Adds two numbers.", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}, InputSchema: json.RawMessage(
		`{"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}`)},
		func(_ context.Context, _ *mcp.CallToolRequest, in sum) (*mcp.CallToolResult, total, error) {
			return nil, total{in.A + in.B}, nil
		})
	// Versions before 2026-07-28 have no output but objects.
	i.server.AddTool(&mcp.Tool{Name: "rooms", InputSchema: json.RawMessage(`{"type": "object"}`), OutputSchema: json.RawMessage(
		`{"type": "array", "items": {"type": "integer"}}`)},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "[10,11]"}}, StructuredContent: []int{10, 11}}, nil
		})
	i.server.AddTool(&mcp.Tool{Name: "locate", InputSchema: json.RawMessage(
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
	tool(i, "content", func(context.Context, *mcp.CallToolRequest, none) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{
			&mcp.TextContent{Text: "a text"},
			&mcp.ImageContent{MIMEType: "image/png", Data: []byte("image")},
			&mcp.AudioContent{MIMEType: "audio/wav", Data: []byte("audio")},
			&mcp.ResourceLink{URI: "inn://menu", Name: "menu"},
			&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "inn://menu", MIMEType: "text/plain", Text: "Soup"}},
		}}, nil
	})
	tool(i, "fail", func(context.Context, *mcp.CallToolRequest, none) (*mcp.CallToolResult, error) {
		return nil, errors.New("the kitchen is closed")
	})
	tool(i, "whisper", func(_ context.Context, req *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, error) {
		return say(fmt.Sprint(req.Params.Meta["example.com/guest"])), nil
	})
	tool(i, "work", i.work)
	tool(i, "wait", i.wait)
	tool(i, "cancelled", func(ctx context.Context, _ *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, error) {
		return after(ctx, i.left, "cancelled")
	})
	tool(i, "moved", func(ctx context.Context, _ *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, error) {
		return after(ctx, i.moved, "moved")
	})
	tool(i, "resume", func(_ context.Context, req *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, error) {
		if req.Extra == nil || req.Extra.CloseSSEStream == nil {
			return say("there is no stream"), nil
		}
		req.Extra.CloseSSEStream(mcp.CloseSSEStreamArgs{RetryAfter: 10 * time.Millisecond})
		return say("still here"), nil
	})
	tool(i, "touch", func(ctx context.Context, _ *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, error) {
		return say("touched"), i.server.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: "inn://guestbook"})
	})
	tool(i, "change", i.change)
}

// after answers once something has happened.
func after(ctx context.Context, happened <-chan struct{}, answer string) (*mcp.CallToolResult, error) {
	select {
	case <-happened:
		return say(answer), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// work says what it does.
func (i *inn) work(ctx context.Context, req *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, error) {
	for step := 1; step <= 3; step++ {
		if err := i.progress(ctx, req, float64(step), 3); err != nil {
			return nil, err
		}
	}
	for _, level := range []mcp.LoggingLevel{"debug", "info"} {
		if err := req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: level, Logger: "inn", Data: "told at " + string(level)}); err != nil {
			return nil, err
		}
	}
	return say("done"), nil
}

func (i *inn) progress(ctx context.Context, req *mcp.CallToolRequest, n, total float64) error {
	token := req.Params.GetProgressToken()
	if token == nil {
		return nil
	}
	return req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: n, Total: total, Message: fmt.Sprint("step ", n)})
}

// wait ends when it is cancelled.
func (i *inn) wait(ctx context.Context, req *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, error) {
	if err := i.progress(ctx, req, 1, 0); err != nil {
		return nil, err
	}
	<-ctx.Done()
	i.left <- struct{}{}
	return nil, ctx.Err()
}

// change adds something to one of the lists.
func (i *inn) change(_ context.Context, _ *mcp.CallToolRequest, in struct {
	List string `json:"list"`
}) (*mcp.CallToolResult, error) {
	i.extra++
	name := fmt.Sprint("extra", i.extra)
	switch in.List {
	case "tools":
		tool(i, name, func(context.Context, *mcp.CallToolRequest, none) (*mcp.CallToolResult, error) {
			return say("here"), nil
		})
	case "prompts":
		i.server.AddPrompt(&mcp.Prompt{Name: name}, i.greet)
	case "resources":
		i.server.AddResource(&mcp.Resource{URI: "inn://" + name, Name: name}, i.read)
	}
	return say(name), nil
}

func (i *inn) addResources() {
	for uri, mime := range map[string]string{"inn://menu": "text/plain", "inn://photo": "image/png", "inn://guestbook": "", "inn://bell": "", "inn://safe": ""} {
		i.server.AddResource(&mcp.Resource{URI: uri, Name: strings.TrimPrefix(uri, "inn://"), MIMEType: mime}, i.read)
	}
	i.server.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "inn://rooms/{number}", Name: "room", MIMEType: "application/json"}, i.read)
}

func (i *inn) read(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	uri := req.Params.URI
	contents := &mcp.ResourceContents{URI: uri}
	switch uri {
	case "inn://menu":
		contents.MIMEType, contents.Text = "text/plain", "Soup"
	case "inn://photo":
		contents.MIMEType, contents.Blob = "image/png", []byte{0x89, 'P', 'N', 'G'}
	case "inn://guestbook":
		contents.Text = "Ann was here."
	case "inn://bell":
		i.rung++
		contents.Text = fmt.Sprint(i.rung)
	case "inn://safe":
		code, ok := req.Params.InputResponses["code"].(*mcp.ElicitResult)
		if !ok {
			return &mcp.ReadResourceResult{InputRequests: question("code", "Which code?")}, nil
		}
		contents.Text = fmt.Sprint("opened by ", code.Content["code"])
	default:
		number, ok := strings.CutPrefix(uri, "inn://rooms/")
		if !ok {
			contents.Text = "extra"
			break
		}
		contents.MIMEType, contents.Text = "application/json", fmt.Sprintf(`{"number":%q}`, number)
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{contents}}, nil
}

func (i *inn) addPrompts() {
	i.server.AddPrompt(&mcp.Prompt{Name: "greet", Description: "Greets a guest.", Arguments: []*mcp.PromptArgument{
		{Name: "name", Required: true}, {Name: "style"},
	}}, i.greet)
	i.server.AddPrompt(&mcp.Prompt{Name: "welcome"}, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		name, ok := req.Params.InputResponses["name"].(*mcp.ElicitResult)
		if !ok {
			return &mcp.GetPromptResult{InputRequests: question("name", "Who are you?")}, nil
		}
		return greeting(fmt.Sprint("Welcome, ", name.Content["name"])), nil
	})
	for _, name := range []string{"breakfast", "lunch"} { // so that there are pages
		i.server.AddPrompt(&mcp.Prompt{Name: name}, i.greet)
	}
}

func (i *inn) greet(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	name, style := req.Params.Arguments["name"], req.Params.Arguments["style"]
	return greeting("Greet " + name + ", " + style), nil
}

func greeting(text string) *mcp.GetPromptResult {
	return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{
		{Role: "user", Content: &mcp.TextContent{Text: text}},
		{Role: "assistant", Content: &mcp.TextContent{Text: "I do."}},
	}}
}

// complete knows styles, of which Ann is only told the formal ones, and numbers of rooms.
func (i *inn) complete(_ context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	values := []string{"formal", "friendly", "short"}
	if req.Params.Ref.Type == "ref/resource" {
		values = []string{"10", "11", "20"}
	} else if known := req.Params.Context; known != nil && known.Arguments["name"] == "Ann" {
		values = []string{"formal"}
	}
	values = slices.DeleteFunc(values, func(v string) bool { return !strings.HasPrefix(v, req.Params.Argument.Value) })
	return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: values, Total: len(values)}}, nil
}

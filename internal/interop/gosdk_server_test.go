package interop

//lint:file-ignore SA1019 sampling, roots and logging are deprecated and still tested.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpkit/mcpkit-go/client"
)

func TestOurClientAtGoSDKServers(t *testing.T) {
	at := func(transport, version string) {
		row(t, func(t *testing.T) {
			s := newGoSDKServer()
			cannot := map[string]string{}
			if version != modern {
				cannot["a resource that asks"] = "with legacy clients, the SDK treats the question as empty contents"
			}
			switch transport {
			case "stdio":
				visit(t, s.overPipes(t), transport, version, cannot)
			case "sse":
				web := httptest.NewServer(mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s.Server }, nil))
				t.Cleanup(web.Close)
				visit(t, client.HTTPSSE(web.URL), transport, version, cannot)
			default:
				web := httptest.NewServer(s.handler(version))
				t.Cleanup(web.Close)
				visit(t, client.URL(web.URL), transport, version, cannot)
			}
		}, "mcpkit at go-sdk", transport, version)
	}
	for _, version := range versions {
		at("stdio", version)
		at("http", version)
	}
	at("sse", latest)
}

// A goSDKServer has the features that visitor lists. It serves one client.
type goSDKServer struct {
	*mcp.Server
	cancelled    chan struct{} // a call of wait was cancelled
	rootsChanged chan struct{} // the roots of the client changed
	reads        int           // how often the counter was read
	extra        int           // how many things were added
	owed         int           // how often pay_first was called
}

func newGoSDKServer() *goSDKServer {
	s := &goSDKServer{cancelled: make(chan struct{}, 10), rootsChanged: make(chan struct{}, 10)}
	s.Server = mcp.NewServer(&mcp.Implementation{Name: "interop", Version: "1.0.0"}, &mcp.ServerOptions{
		Instructions:            "Ask at the desk.",
		PageSize:                3,
		CompletionHandler:       s.complete,
		SubscribeHandler:        func(context.Context, *mcp.SubscribeRequest) error { return nil },
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

// handler serves HTTP. The SDK serves 2026-07-28 only if it is stateless, and a stateless server
// cannot ask legacy clients questions.
func (s *goSDKServer) handler(version string) http.Handler {
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.Server }, &mcp.StreamableHTTPOptions{
		Stateless: version == modern, EventStore: mcp.NewMemoryEventStore(nil), PropagateRequestCancellation: true,
	})
}

// A pipe is one end of a connection.
type pipe struct {
	*io.PipeReader
	*io.PipeWriter
}

// Close closes both directions.
func (p pipe) Close() error { return errors.Join(p.PipeWriter.Close(), p.PipeReader.Close()) }

// overPipes serves the messages of stdio, and returns the client's end. The server must end when the
// client closes it.
func (s *goSDKServer) overPipes(t *testing.T) io.ReadWriteCloser {
	toServer, requests := io.Pipe()
	fromServer, responses := io.Pipe()
	var ended sync.WaitGroup
	ended.Go(func() {
		_ = s.Run(context.Background(), &mcp.IOTransport{Reader: toServer, Writer: responses})
		_ = responses.Close()
	})
	t.Cleanup(ended.Wait)
	return pipe{fromServer, requests}
}

func say(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

type none struct{}

// tool adds a tool without arguments and without an output schema.
func (s *goSDKServer) tool(name string, f func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error)) {
	mcp.AddTool(s.Server, &mcp.Tool{Name: name},
		func(ctx context.Context, req *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, any, error) {
			result, err := f(ctx, req)
			return result, nil, err
		})
}

func (s *goSDKServer) addTools() {
	mcp.AddTool(s.Server, &mcp.Tool{
		Name: "add", Title: "Add up", Description: "Adds two numbers.", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true},
	}, func(_ context.Context, _ *mcp.CallToolRequest, in sum) (*mcp.CallToolResult, total, error) {
		return nil, total{in.A + in.B}, nil
	})
	// Up to 2025-11-25, structured output is always an object.
	s.AddTool(&mcp.Tool{Name: "rooms", InputSchema: json.RawMessage(`{"type":"object"}`),
		OutputSchema: json.RawMessage(`{"type":"array","items":{"type":"integer"}}`)},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			result := say("[10,11]")
			result.StructuredContent = []int{10, 11}
			return result, nil
		})
	s.AddTool(&mcp.Tool{Name: "locate", InputSchema: json.RawMessage(
		`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}`)},
		func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			var in struct{ Region string }
			err := json.Unmarshal(req.Params.Arguments, &in)
			return say("Region: " + in.Region), err
		})
	s.tool("content", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{
			&mcp.TextContent{Text: "a text"},
			&mcp.ImageContent{MIMEType: "image/png", Data: []byte("image")},
			&mcp.AudioContent{MIMEType: "audio/wav", Data: []byte("audio")},
			&mcp.ResourceLink{URI: "test://menu", Name: "menu"},
			&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "test://menu", MIMEType: "text/plain", Text: "Soup"}},
		}}, nil
	})
	s.tool("fail", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, errors.New("the kitchen is closed")
	})
	s.tool("caller_meta", func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return say(fmt.Sprint(req.Params.Meta["example.com/caller"])), nil
	})
	s.tool("work", s.work)
	s.tool("wait", func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if err := progress(ctx, req, 1, 0); err != nil {
			return nil, err
		}
		<-ctx.Done()
		s.cancelled <- struct{}{}
		return nil, ctx.Err()
	})
	s.tool("cancelled", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		<-s.cancelled
		return say("cancelled"), nil
	})
	s.tool("roots_changed", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		<-s.rootsChanged
		return say("roots changed"), nil
	})
	s.tool("resume", func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		req.Extra.CloseSSEStream(mcp.CloseSSEStreamArgs{RetryAfter: 10 * time.Millisecond})
		return say("still here"), nil
	})
	s.tool("update_resource", func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return say("touched"), s.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: "test://guestbook"})
	})
	mcp.AddTool(s.Server, &mcp.Tool{Name: "change"}, s.change)
}

// work sends progress and log messages.
func (s *goSDKServer) work(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	for step := range 3 {
		if err := progress(ctx, req, float64(step+1), 3); err != nil {
			return nil, err
		}
	}
	for _, level := range []mcp.LoggingLevel{"debug", "info"} {
		note := &mcp.LoggingMessageParams{Level: level, Logger: "interop", Data: "told at " + string(level)}
		if err := req.Session.Log(ctx, note); err != nil {
			return nil, err
		}
	}
	return say("done"), nil
}

func progress(ctx context.Context, req *mcp.CallToolRequest, n, total float64) error {
	token := req.Params.GetProgressToken()
	if token == nil {
		return nil
	}
	return req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: n, Total: total})
}

// change adds an item to one of the lists.
func (s *goSDKServer) change(_ context.Context, _ *mcp.CallToolRequest, in struct {
	List string `json:"list"`
}) (*mcp.CallToolResult, any, error) {
	s.extra++
	name := fmt.Sprint("extra", s.extra)
	switch in.List {
	case "tools":
		s.tool(name, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return say("here"), nil })
	case "prompts":
		s.AddPrompt(&mcp.Prompt{Name: name}, greet)
	case "resources":
		s.AddResource(&mcp.Resource{URI: "test://" + name, Name: name}, s.read)
	}
	return say(name), nil, nil
}

// form asks for one text. The field room has a default, which the client fills in.
func form(field, message string) *mcp.ElicitParams {
	return &mcp.ElicitParams{Message: message, RequestedSchema: object{
		"type": "object", "required": []string{field}, "properties": object{
			field:  object{"type": "string"},
			"room": object{"type": "string", "default": "blue"},
		},
	}}
}

func sampling() *mcp.CreateMessageParams {
	return &mcp.CreateMessageParams{MaxTokens: 100, SystemPrompt: "Be short.", Messages: []*mcp.SamplingMessage{
		{Role: "user", Content: &mcp.TextContent{Text: "a word"}},
	}}
}

// asking adds a tool that asks the questions and returns a text made from the answers. The SDK sends
// the questions as requests to legacy clients.
func (s *goSDKServer) asking(name string, questions mcp.InputRequestMap, f func(answers mcp.InputResponseMap) string) {
	s.tool(name, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if req.Params.InputResponses == nil {
			return &mcp.CallToolResult{InputRequests: questions}, nil
		}
		return say(f(req.Params.InputResponses)), nil
	})
}

func (s *goSDKServer) addQuestions() {
	name, page := form("name", "Who are you?"), page()
	s.asking("ask", mcp.InputRequestMap{"name": name}, func(answers mcp.InputResponseMap) string {
		answer := answers["name"].(*mcp.ElicitResult)
		if answer.Action != "accept" {
			return answer.Action
		}
		return fmt.Sprintf("Hello, %s in %s!", answer.Content["name"], answer.Content["room"])
	})
	s.asking("pay", mcp.InputRequestMap{"page": page}, func(answers mcp.InputResponseMap) string {
		return answers["page"].(*mcp.ElicitResult).Action
	})
	s.asking("sample", mcp.InputRequestMap{"thought": sampling()}, thought)
	s.asking("list_roots", mcp.InputRequestMap{"roots": &mcp.ListRootsParams{}}, rootsText)
	several := mcp.InputRequestMap{"name": name, "thought": sampling(), "roots": &mcp.ListRootsParams{}}
	s.asking("ask_several", several, func(answers mcp.InputResponseMap) string {
		return fmt.Sprintf("%s, %s, %s", answers["name"].(*mcp.ElicitResult).Content["name"], thought(answers), rootsText(answers))
	})
	s.tool("register", s.register)
	s.tool("pay_first", s.payFirst)
}

func page() *mcp.ElicitParams {
	return &mcp.ElicitParams{Mode: "url", Message: "Please pay.", URL: "https://pay.example.com/bill?n=1", ElicitationID: "bill-1"}
}

// thought returns the text of a sampling result. The SDK uses the type with tools for requests that
// it sends on behalf of a handler.
func thought(answers mcp.InputResponseMap) string {
	var content mcp.Content
	switch answer := answers["thought"].(type) {
	case *mcp.CreateMessageResult:
		content = answer.Content
	case *mcp.CreateMessageWithToolsResult:
		content = answer.Content[0]
	}
	return content.(*mcp.TextContent).Text
}

func rootsText(answers mcp.InputResponseMap) string {
	root := answers["roots"].(*mcp.ListRootsResult).Roots[0]
	return root.Name + " at " + root.URI
}

// register asks a second question that depends on the answer to the first. The SDK sends input
// requests to legacy clients only once for a call, so the tool asks those itself.
func (s *goSDKServer) register(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	second := func(name any) *mcp.ElicitParams { return form("colour", fmt.Sprintf("Which colour, %s?", name)) }
	if req.ProtocolVersion() < modern {
		name, err := req.Session.Elicit(ctx, form("name", "Who are you?"))
		if err != nil {
			return nil, err
		}
		colour, err := req.Session.Elicit(ctx, second(name.Content["name"]))
		if err != nil {
			return nil, err
		}
		return say(fmt.Sprintf("%s likes %s", name.Content["name"], colour.Content["colour"])), nil
	}
	in := req.Params.InputResponses
	if colour, ok := in["colour"].(*mcp.ElicitResult); ok {
		return say(fmt.Sprintf("%s likes %s", req.Params.RequestState, colour.Content["colour"])), nil
	}
	if name, ok := in["name"].(*mcp.ElicitResult); ok {
		who := name.Content["name"]
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"colour": second(who)}, RequestState: fmt.Sprint(who)}, nil
	}
	return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"name": form("name", "Who are you?")}}, nil
}

// payFirst fails until the bill is paid. The server reports the payment soon after the second call
// (2025-11-25 only).
func (s *goSDKServer) payFirst(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if s.owed++; s.owed > 2 {
		return say("paid"), nil
	}
	if s.owed == 2 {
		time.AfterFunc(50*time.Millisecond, func() {
			paid := &mcp.ElicitationCompleteParams{ElicitationID: "bill-1"}
			_ = req.Session.NotifyElicitationComplete(context.Background(), paid)
		})
	}
	return nil, mcp.URLElicitationRequiredError([]*mcp.ElicitParams{page()})
}

func (s *goSDKServer) addResources() {
	for _, name := range []string{"menu", "photo", "guestbook", "counter", "safe"} {
		s.AddResource(&mcp.Resource{URI: "test://" + name, Name: name}, s.read)
	}
	s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "test://rooms/{number}", Name: "room"}, s.read)
}

func (s *goSDKServer) read(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	contents := &mcp.ResourceContents{URI: req.Params.URI, Text: "extra"}
	switch name := strings.TrimPrefix(req.Params.URI, "test://"); name {
	case "menu":
		contents.MIMEType, contents.Text = "text/plain", "Soup"
	case "photo":
		contents.MIMEType, contents.Text, contents.Blob = "image/png", "", []byte("\x89PNG")
	case "counter":
		s.reads++
		contents.Text = fmt.Sprint(s.reads)
	case "safe":
		code, ok := req.Params.InputResponses["code"].(*mcp.ElicitResult)
		if !ok {
			return &mcp.ReadResourceResult{InputRequests: mcp.InputRequestMap{"code": form("code", "Which code?")}}, nil
		}
		contents.Text = fmt.Sprint("opened by ", code.Content["code"])
	case "rooms/7":
		contents.Text = `{"number":"7"}`
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{contents}}, nil
}

func (s *goSDKServer) addPrompts() {
	args := []*mcp.PromptArgument{{Name: "name", Required: true}, {Name: "style"}}
	s.AddPrompt(&mcp.Prompt{Name: "greet", Arguments: args}, greet)
	s.AddPrompt(&mcp.Prompt{Name: "welcome"}, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		name, ok := req.Params.InputResponses["name"].(*mcp.ElicitResult)
		if !ok {
			return &mcp.GetPromptResult{InputRequests: mcp.InputRequestMap{"name": form("name", "Who are you?")}}, nil
		}
		return greeting(fmt.Sprint("Welcome, ", name.Content["name"])), nil
	})
	for _, name := range []string{"breakfast", "lunch"} { // more than one page
		s.AddPrompt(&mcp.Prompt{Name: name}, greet)
	}
}

func greet(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
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
func (s *goSDKServer) complete(_ context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	values := []string{"formal", "friendly", "short"}
	if req.Params.Ref.Type == "ref/resource" {
		values = []string{"10", "11", "20"}
	} else if known := req.Params.Context; known != nil && known.Arguments["name"] == "Ann" {
		values = []string{"formal"}
	}
	values = slices.DeleteFunc(values, func(v string) bool { return !strings.HasPrefix(v, req.Params.Argument.Value) })
	return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: values, Total: len(values)}}, nil
}

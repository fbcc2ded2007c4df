package interop

//lint:file-ignore SA1019 sampling, roots and logging are deprecated and still tested.

import (
	"context"
	"fmt"
	"os/exec"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

func TestGoSDKClientAtOurServers(t *testing.T) {
	at := func(transport, version string) {
		row(t, func(t *testing.T) {
			guest := newGuest(t, transport, version)
			guest.connect(fixture(t, transport))
			for _, part := range []func(){
				guest.tools, guest.questions, guest.notifications, guest.changes, guest.resources, guest.prompts, guest.cancellation,
			} {
				part()
			}
			require.NoError(t, guest.session.Close())
			if transport == "sse" {
				return // examples/notes does not serve HTTP+SSE
			}
			guest = newGuest(t, transport, version)
			guest.connect(notes(t, transport))
			guest.structured()
			require.NoError(t, guest.session.Close())
		}, "go-sdk at mcpkit", transport, version)
	}
	for _, version := range versions {
		at("stdio", version)
		at("http", version)
	}
	at("sse", latest)
}

func (s target) goSDK() mcp.Transport {
	switch {
	case s.SSE:
		return &mcp.SSEClientTransport{Endpoint: s.URL}
	case s.URL != "":
		return &mcp.StreamableClientTransport{Endpoint: s.URL}
	}
	return &mcp.CommandTransport{Command: exec.Command(s.Command, s.Args...)}
}

// A guest calls the methods of our servers with go-sdk's client.
type guest struct {
	*testing.T
	transport, version string
	session            *mcp.ClientSession

	answers  chan mcp.ElicitResult  // the next answers of the user
	asked    chan *mcp.ElicitParams // the questions so far
	received chan string            // the notifications so far
}

func newGuest(t *testing.T, transport, version string) *guest {
	return &guest{T: t, transport: transport, version: version,
		answers: make(chan mcp.ElicitResult, 10), asked: make(chan *mcp.ElicitParams, 10), received: make(chan string, 100)}
}

func (g *guest) connect(server target) {
	c := mcp.NewClient(&mcp.Implementation{Name: "interop", Version: "1.0.0"}, &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{RootsV2: &mcp.RootCapabilities{}},
		ElicitationHandler: func(ctx context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			g.asked <- req.Params
			select {
			case answer := <-g.answers:
				return &answer, nil
			case <-ctx.Done():
				g.received <- "question cancelled"
				return nil, ctx.Err()
			}
		},
		CreateMessageHandler: func(_ context.Context, req *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			text := req.Params.Messages[0].Content.(*mcp.TextContent).Text
			return &mcp.CreateMessageResult{Role: "assistant", Model: "m", Content: &mcp.TextContent{Text: "echo of " + text}}, nil
		},
		ToolListChangedHandler:   func(context.Context, *mcp.ToolListChangedRequest) { g.received <- "tools" },
		PromptListChangedHandler: func(context.Context, *mcp.PromptListChangedRequest) { g.received <- "prompts" },
		LoggingMessageHandler: func(_ context.Context, req *mcp.LoggingMessageRequest) {
			g.received <- fmt.Sprint(req.Params.Level, " ", req.Params.Data)
		},
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
			g.received <- fmt.Sprint(req.Params.ProgressToken, " ", req.Params.Progress)
		},
	})
	c.AddRoots(&mcp.Root{URI: "file:///home", Name: "home"})
	session, err := c.Connect(g.Context(), server.goSDK(), &mcp.ClientSessionOptions{ProtocolVersion: g.version})
	require.NoError(g, err)
	require.Equal(g, g.version, session.InitializeResult().ProtocolVersion)
	g.session = session
}

func (g *guest) check(name string, f func(t *testing.T, ctx context.Context)) {
	g.Run(name, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()
		f(t, ctx)
	})
}

// text calls a tool and returns its first content.
func (g *guest) text(t *testing.T, params *mcp.CallToolParams) string {
	t.Helper()
	result, err := g.session.CallTool(t.Context(), params)
	require.NoError(t, err)
	return result.Content[0].(*mcp.TextContent).Text
}

func (g *guest) returns(t *testing.T, tool string, arguments object, want string) {
	t.Helper()
	params := &mcp.CallToolParams{Name: tool}
	if arguments != nil {
		params.Arguments = arguments // a nil map would be sent as null
	}
	require.Equal(t, want, g.text(t, params))
}

// expect waits for notifications.
func (g *guest) expect(t *testing.T, ctx context.Context, want ...string) {
	t.Helper()
	for _, note := range want {
		select {
		case got := <-g.received:
			require.Equal(t, note, got)
		case <-ctx.Done():
			require.Fail(t, "a notification is missing", note)
		}
	}
}

func refusedByServer(t *testing.T, err error, code int64, text string) {
	t.Helper()
	var wire *jsonrpc.Error
	require.ErrorAs(t, err, &wire)
	require.Equal(t, code, wire.Code)
	require.Contains(t, wire.Message, text)
}

func (g *guest) tools() {
	g.check("tools/list", func(t *testing.T, ctx context.Context) {
		n := 0
		for tool, err := range g.session.Tools(ctx, nil) {
			require.NoError(t, err)
			require.Equal(t, "object", tool.InputSchema.(object)["type"], tool.Name)
			n++
		}
		require.Greater(t, n, 25)
	})
	g.check("content: text, image, audio, resource", func(t *testing.T, ctx context.Context) {
		g.returns(t, "test_simple_text", nil, "This is a simple text response for testing.")
		mixed, err := g.session.CallTool(ctx, &mcp.CallToolParams{Name: "test_multiple_content_types"})
		require.NoError(t, err)
		sound, err := g.session.CallTool(ctx, &mcp.CallToolParams{Name: "test_audio_content"})
		require.NoError(t, err)
		require.IsType(t, &mcp.ImageContent{}, mixed.Content[1])
		require.IsType(t, &mcp.EmbeddedResource{}, mixed.Content[2])
		if g.version >= "2025-03-26" { // older versions have no audio content
			require.IsType(t, &mcp.AudioContent{}, sound.Content[0])
		}
	})
	g.check("an argument mirrored by a header, not ASCII", func(t *testing.T, _ context.Context) {
		g.returns(t, "test_x_mcp_header", object{"region": "Zürich, 東京"}, "Region: Zürich, 東京")
	})
	g.check("a closed stream is resumed", func(t *testing.T, _ context.Context) {
		want := "This connection cannot be resumed."
		if g.transport == "http" && g.version == latest {
			want = "Reconnection test completed successfully"
		}
		g.returns(t, "test_reconnection", nil, want)
	})
}

func (g *guest) answer(content object) {
	g.answers <- mcp.ElicitResult{Action: "accept", Content: content}
}

func (g *guest) questions() {
	g.check("sampling", func(t *testing.T, _ context.Context) {
		g.returns(t, "test_sampling", object{"prompt": "a word"}, "LLM response: echo of a word")
	})
	g.check("roots", func(t *testing.T, _ context.Context) {
		got := g.text(t, &mcp.CallToolParams{Name: "test_input_required_result_list_roots"})
		require.Contains(t, got, "1 roots: ")
		require.Contains(t, got, "file:///home")
	})
	if g.version < "2025-06-18" { // the first version with elicitation
		return
	}
	who := object{"message": "Who are you?"}
	g.check("elicitation: accepted, declined, cancelled", func(t *testing.T, _ context.Context) {
		g.answer(object{"username": "ann", "email": "ann@example.com"})
		g.returns(t, "test_elicitation", who, "User response: ann <ann@example.com>")
		asked := <-g.asked
		require.Equal(t, "Who are you?", asked.Message)
		require.Equal(t, []any{"username", "email"}, asked.RequestedSchema.(object)["required"])
		g.answers <- mcp.ElicitResult{Action: "decline"}
		g.returns(t, "test_elicitation", who, "User response: declined")
		g.answers <- mcp.ElicitResult{Action: "cancel"}
		g.returns(t, "test_elicitation", who, "User response: cancelled")
	})
	g.check("elicitation: two questions in a row", func(t *testing.T, _ context.Context) {
		g.answer(object{"name": "Ann"})
		g.answer(object{"color": "green"})
		g.returns(t, "test_input_required_result_multi_round", nil, "Ann likes green")
	})
	g.check("three questions at once", func(t *testing.T, _ context.Context) {
		g.answer(object{"name": "Ann"})
		g.returns(t, "test_input_required_result_multiple_inputs", nil, "echo of Write a greeting., Ann (1 roots)")
	})
}

func (g *guest) notifications() {
	g.check("progress", func(t *testing.T, ctx context.Context) {
		params := &mcp.CallToolParams{Name: "test_tool_with_progress", Meta: mcp.Meta{"progressToken": "whole"}}
		require.Equal(t, "Tool with progress executed successfully", g.text(t, params))
		g.expect(t, ctx, "whole 0", "whole 50", "whole 100")
	})
	g.check("logging", func(t *testing.T, ctx context.Context) {
		for _, level := range []mcp.LoggingLevel{"error", "info"} { // first the level at which no log message is due
			params := &mcp.CallToolParams{Name: "test_tool_with_logging"}
			if g.version == modern {
				params.Meta = mcp.Meta{mcp.MetaKeyLogLevel: level}
			} else {
				require.NoError(t, g.session.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: level}))
			}
			g.text(t, params)
		}
		g.expect(t, ctx, "info Tool execution started", "info Tool processing data", "info Tool execution completed")
	})
}

// changes checks list changes. In 2026-07-28, the client subscribed when it connected.
func (g *guest) changes() {
	g.check("changed lists", func(t *testing.T, ctx context.Context) {
		g.returns(t, "test_trigger_tool_change", nil, "added")
		g.expect(t, ctx, "tools")
		g.returns(t, "test_comes_and_goes", nil, "here")
		g.returns(t, "test_trigger_prompt_change", nil, "added")
		g.expect(t, ctx, "prompts")
	})
	g.check("subscribe and unsubscribe", func(t *testing.T, ctx context.Context) {
		require.NoError(t, g.session.Subscribe(ctx, &mcp.SubscribeParams{URI: "test://watched-resource"}))
		require.NoError(t, g.session.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: "test://watched-resource"}))
	})
}

func (g *guest) read(t *testing.T, uri string) *mcp.ResourceContents {
	t.Helper()
	result, err := g.session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
	require.NoError(t, err)
	return result.Contents[0]
}

func (g *guest) resources() {
	g.check("resources/list, templates/list", func(t *testing.T, ctx context.Context) {
		var uris []string
		for r, err := range g.session.Resources(ctx, nil) {
			require.NoError(t, err)
			uris = append(uris, r.URI)
		}
		for r, err := range g.session.ResourceTemplates(ctx, nil) {
			require.NoError(t, err)
			uris = append(uris, r.URITemplate)
		}
		require.Equal(t, []string{"skill://pdf-processing/SKILL.md", "test://static-binary", "test://static-text",
			"test://watched-resource", "test://template/{id}/data"}, uris)
	})
	g.check("resources/read: text, binary, template", func(t *testing.T, _ context.Context) {
		require.Equal(t, "This is the content of the static text resource.", g.read(t, "test://static-text").Text)
		require.Equal(t, "PNG", string(g.read(t, "test://static-binary").Blob[1:4]))
		require.JSONEq(t, `{"id":"7 8","templateTest":true,"data":"Data for ID: 7 8"}`, g.read(t, "test://template/7%208/data").Text)
	})
	g.check("resources/read: unknown", func(t *testing.T, ctx context.Context) {
		_, err := g.session.ReadResource(ctx, &mcp.ReadResourceParams{URI: "test://nowhere"})
		code := int64(-32002)
		if g.version == modern {
			code = jsonrpc.CodeInvalidParams
		}
		refusedByServer(t, err, code, `"test://nowhere" not found`)
	})
}

func (g *guest) prompts() {
	const prompt = "test_prompt_with_arguments"
	get := func(ctx context.Context, name string, args map[string]string) (*mcp.GetPromptResult, error) {
		return g.session.GetPrompt(ctx, &mcp.GetPromptParams{Name: name, Arguments: args})
	}
	g.check("prompts/list, prompts/get", func(t *testing.T, ctx context.Context) {
		n := 0
		for _, err := range g.session.Prompts(ctx, nil) {
			require.NoError(t, err)
			n++
		}
		require.GreaterOrEqual(t, n, 5)
		result, err := get(ctx, prompt, map[string]string{"arg1": "a", "arg2": "b"})
		require.NoError(t, err)
		require.Equal(t, &mcp.TextContent{Text: "Prompt with arguments: arg1='a', arg2='b'"}, result.Messages[0].Content)
		_, err = get(ctx, prompt, map[string]string{"arg1": "a"})
		refusedByServer(t, err, jsonrpc.CodeInvalidParams, "arg2")
	})
	if g.version >= "2025-06-18" {
		g.check("a prompt that asks", func(t *testing.T, ctx context.Context) {
			g.answer(object{"context": "tests"})
			result, err := get(ctx, "test_input_required_result_prompt", nil)
			require.NoError(t, err)
			require.Equal(t, &mcp.TextContent{Text: "Use this context: tests"}, result.Messages[0].Content)
		})
	}
	g.check("completion of a prompt argument", func(t *testing.T, ctx context.Context) {
		result, err := g.session.Complete(ctx, &mcp.CompleteParams{
			Ref:      &mcp.CompleteReference{Type: "ref/prompt", Name: prompt},
			Argument: mcp.CompleteParamsArgument{Name: "arg1", Value: "par"},
		})
		require.NoError(t, err)
		require.Equal(t, []string{"paris", "park", "party"}, result.Completion.Values)
	})
}

func (g *guest) cancellation() {
	g.check("cancellation ends the call", func(t *testing.T, ctx context.Context) {
		for n := 0; !g.cancelOne(t, ctx, fmt.Sprint("cancelled", n)); n++ {
			require.Less(t, n, 20) // on a busy machine the call may end before the cancellation arrives
		}
	})
	if g.version == modern || g.version < "2025-06-18" {
		return // there is no request that could be cancelled
	}
	g.check("cancelling a call cancels its question", func(t *testing.T, ctx context.Context) {
		for len(g.asked) > 0 {
			<-g.asked
		}
		one, cancel := context.WithCancel(ctx)
		defer cancel()
		ended := make(chan error, 1)
		// Ends with the call.
		go func() {
			_, err := g.session.CallTool(one, &mcp.CallToolParams{Name: "test_elicitation", Arguments: object{"message": "Who?"}})
			ended <- err
		}()
		<-g.asked
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
		if g.transport == "http" {
			// The client has closed the stream that would carry the cancellation, so it answers late.
			g.answers <- mcp.ElicitResult{Action: "cancel"}
		} else {
			g.expect(t, ctx, "question cancelled")
		}
		require.NoError(t, g.session.Ping(ctx, nil))
	})
}

// cancelOne cancels a call at its first progress, and reports whether it got no further.
func (g *guest) cancelOne(t *testing.T, ctx context.Context, token string) bool {
	one, cancel := context.WithCancel(ctx)
	defer cancel()
	call := func(ctx context.Context, token string) error {
		params := &mcp.CallToolParams{Name: "test_tool_with_progress", Meta: mcp.Meta{"progressToken": token}}
		_, err := g.session.CallTool(ctx, params)
		return err
	}
	ended := make(chan error, 1)
	// Ends with the call.
	go func() { ended <- call(one, token) }()
	g.expect(t, ctx, token+" 0")
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	// A second call takes as long as the first. When it ends, the first would have ended, too.
	require.NoError(t, call(ctx, "after "+token))
	stopped := true
	for got := ""; got != "after "+token+" 100"; {
		select {
		case got = <-g.received:
			stopped = stopped && got != token+" 100"
		case <-ctx.Done():
			require.Fail(t, "a notification is missing")
		}
	}
	return stopped
}

// structured checks examples/notes.
func (g *guest) structured() {
	g.check("structured output", func(t *testing.T, ctx context.Context) {
		result, err := g.session.CallTool(ctx, &mcp.CallToolParams{Name: "search", Arguments: object{"query": "first"}})
		require.NoError(t, err)
		hits := []any{object{"id": "welcome", "text": "# Welcome\n\nThis is your first note."}}
		switch {
		case g.version == modern:
			require.Equal(t, hits, result.StructuredContent)
		case g.version >= "2025-06-18":
			require.Equal(t, object{"result": hits}, result.StructuredContent)
		}
		require.Contains(t, result.Content[0].(*mcp.TextContent).Text, `"id":"welcome"`)
	})
	g.check("bad arguments are a tool error", func(t *testing.T, ctx context.Context) {
		args := object{"query": "x", "limit": 99, "limits": 1}
		result, err := g.session.CallTool(ctx, &mcp.CallToolParams{Name: "search", Arguments: args})
		require.NoError(t, err)
		require.True(t, result.IsError)
		for _, word := range []string{"/query", "/limit", `did you mean "limit"?`} {
			require.Contains(t, result.Content[0].(*mcp.TextContent).Text, word)
		}
	})
	g.check("an unknown tool", func(t *testing.T, ctx context.Context) {
		_, err := g.session.CallTool(ctx, &mcp.CallToolParams{Name: "serach"})
		refusedByServer(t, err, jsonrpc.CodeInvalidParams, `"serach"`)
	})
	g.check("completion of a template variable", func(t *testing.T, ctx context.Context) {
		result, err := g.session.Complete(ctx, &mcp.CompleteParams{
			Ref:      &mcp.CompleteReference{Type: "ref/resource", URI: "note://{id}"},
			Argument: mcp.CompleteParamsArgument{Name: "id", Value: "w"},
		})
		require.NoError(t, err)
		require.Equal(t, []string{"welcome"}, result.Completion.Values)
		require.Equal(t, "text/markdown", g.read(t, "note://welcome").MIMEType)
	})
}

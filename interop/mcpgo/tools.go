package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

func encode(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// tool adds a tool without arguments.
func (i *inn) tool(name string, h func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error)) {
	i.server.AddTool(mcp.NewTool(name), h)
}

func (i *inn) addTools() {
	add := mcp.NewToolWithRawSchema("add", "Adds two numbers.", json.RawMessage(
		`{"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}`))
	readOnly := true
	add.Title, add.Annotations.ReadOnlyHint = "Add up", &readOnly
	add.RawOutputSchema = json.RawMessage(`{"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}`)
	i.server.AddTool(add, func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		total := req.GetInt("a", 0) + req.GetInt("b", 0)
		return mcp.NewToolResultStructured(map[string]int{"sum": total}, fmt.Sprintf(`{"sum":%d}`, total)), nil
	})
	rooms := mcp.NewTool("rooms")
	rooms.RawOutputSchema = json.RawMessage(`{"type": "array", "items": {"type": "integer"}}`) // for 2026-07-28
	i.server.AddTool(rooms, func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultStructured([]int{10, 11}, "[10,11]"), nil
	})
	locate := mcp.NewToolWithRawSchema("locate", "", json.RawMessage(
		`{"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}`))
	i.server.AddTool(locate, func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("Region: " + req.GetString("region", "")), nil
	})
	i.tool("content", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{
			mcp.NewTextContent("a text"),
			mcp.NewImageContent(encode("image"), "image/png"),
			mcp.NewAudioContent(encode("audio"), "audio/wav"),
			mcp.NewResourceLink("inn://menu", "menu", "", ""),
			mcp.NewEmbeddedResource(mcp.TextResourceContents{URI: "inn://menu", MIMEType: "text/plain", Text: "Soup"}),
		}}, nil
	})
	i.tool("fail", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultError("the kitchen is closed"), nil
	})
	i.tool("whisper", func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(fmt.Sprint(req.Params.Meta.AdditionalFields["example.com/guest"])), nil
	})
	bake := mcp.NewTool("bake")
	bake.Execution = &mcp.ToolExecution{TaskSupport: mcp.TaskSupportOptional} // 2025-11-25 alone
	i.server.AddTool(bake, func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("baked"), nil
	})
	i.tool("work", i.work)
	i.tool("wait", i.wait)
	i.tool("cancelled", func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return after(ctx, i.left, "cancelled")
	})
	i.tool("moved", func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return after(ctx, i.moved, "moved")
	})
	i.tool("touch", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		i.server.SendNotificationToAllClients(mcp.MethodNotificationResourceUpdated, map[string]any{"uri": "inn://guestbook"})
		return mcp.NewToolResultText("touched"), nil
	})
	i.server.AddTool(mcp.NewTool("change", mcp.WithString("list", mcp.Required())), i.change)
}

// after answers once something has happened.
func after(ctx context.Context, happened <-chan struct{}, answer string) (*mcp.CallToolResult, error) {
	select {
	case <-happened:
		return mcp.NewToolResultText(answer), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// work says what it does.
func (i *inn) work(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	for step := 1; step <= 3; step++ {
		if err := i.progress(ctx, req, map[string]any{"progress": step, "total": 3, "message": fmt.Sprint("step ", step)}); err != nil {
			return nil, err
		}
	}
	for _, level := range []mcp.LoggingLevel{mcp.LoggingLevelDebug, mcp.LoggingLevelInfo} {
		if err := i.server.SendLogMessageToClient(ctx, mcp.NewLoggingMessageNotification(level, "inn", "told at "+string(level))); err != nil {
			return nil, err
		}
	}
	if err := i.flush(ctx); err != nil {
		return nil, err
	}
	return mcp.NewToolResultText("done"), nil
}

// flush waits until all notifications so far are sent. The SDK has a queue for them, which results
// overtake: what comes after them, and is of no meaning to anybody, leaves it when they are
// written.
func (i *inn) flush(ctx context.Context) error {
	if err := i.server.SendNotificationToClient(ctx, "notifications/interop/filler", nil); err != nil {
		return err
	}
	queue := server.ClientSessionFromContext(ctx).NotificationChannel()
	for len(queue) > 0 {
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (i *inn) progress(ctx context.Context, req mcp.CallToolRequest, params map[string]any) error {
	if req.Params.Meta == nil || req.Params.Meta.ProgressToken == nil {
		return nil
	}
	params["progressToken"] = req.Params.Meta.ProgressToken
	return i.server.SendNotificationToClient(ctx, "notifications/progress", params)
}

// wait ends when it is cancelled.
func (i *inn) wait(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if err := i.progress(ctx, req, map[string]any{"progress": 1}); err != nil {
		return nil, err
	}
	<-ctx.Done()
	i.left <- struct{}{}
	return nil, ctx.Err()
}

// change adds something to one of the lists.
func (i *inn) change(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	i.extra++
	name := fmt.Sprint("extra", i.extra)
	switch req.GetString("list", "") {
	case "tools":
		i.tool(name, func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText("here"), nil
		})
	case "prompts":
		i.server.AddPrompt(mcp.NewPrompt(name), greet)
	case "resources":
		i.server.AddResource(mcp.NewResource("inn://"+name, name), i.read)
	}
	return mcp.NewToolResultText(name), nil
}

// form asks for one text; where there is a default, the user may leave it out.
func form(field, message string) mcp.ElicitationParams {
	return mcp.ElicitationParams{Message: message, RequestedSchema: map[string]any{
		"type": "object", "required": []string{field}, "properties": map[string]any{
			field:  map[string]any{"type": "string"},
			"room": map[string]any{"type": "string", "default": "blue"},
		},
	}}
}

func field(answer *mcp.ElicitationResult, name string) string {
	content, _ := answer.Content.(map[string]any)
	return fmt.Sprint(content[name])
}

func sampling() mcp.CreateMessageParams {
	return mcp.CreateMessageParams{MaxTokens: 100, SystemPrompt: "Be short.", Messages: []mcp.SamplingMessage{
		{Role: mcp.RoleUser, Content: mcp.NewTextContent("a word")},
	}}
}

func said(answer *mcp.CreateMessageResult) string {
	switch content := answer.Content.(type) {
	case mcp.TextContent:
		return content.Text
	case map[string]any: // which the SDK does not decode
		return fmt.Sprint(content["text"])
	}
	return fmt.Sprintf("a %T", answer.Content)
}

func places(answer *mcp.ListRootsResult) string {
	text := ""
	for _, root := range answer.Roots {
		text += root.Name + " at " + root.URI
	}
	return text
}

func page() mcp.ElicitationParams {
	return mcp.ElicitationParams{Mode: mcp.ElicitationModeURL, Message: "Please pay.", URL: "https://pay.example.com/bill?n=1", ElicitationID: "bill-1"}
}

// addQuestions adds the tools that ask. They return what they want to know, which the SDK turns
// into requests where the client is a legacy one.
func (i *inn) addQuestions() {
	need := func() *server.InputRequestBuilder { return server.NewInputRequestBuilder("") }
	i.tool("ask", func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		answer := server.ElicitationResponse(req.Params.InputResponses, "name")
		switch {
		case answer == nil:
			return need().Elicit("name", form("name", "Who are you?")).ToolResult(), nil
		case answer.Action != mcp.ElicitationResponseActionAccept:
			return mcp.NewToolResultText(string(answer.Action)), nil
		}
		return mcp.NewToolResultText(fmt.Sprintf("Hello, %s in %s!", field(answer, "name"), field(answer, "room"))), nil
	})
	i.tool("register", func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if colour := server.ElicitationResponse(req.Params.InputResponses, "colour"); colour != nil {
			return mcp.NewToolResultText(req.Params.RequestState + " likes " + field(colour, "colour")), nil
		}
		if name := server.ElicitationResponse(req.Params.InputResponses, "name"); name != nil {
			who := field(name, "name")
			return need().RequestState(who).Elicit("colour", form("colour", "Which colour, "+who+"?")).ToolResult(), nil
		}
		return need().Elicit("name", form("name", "Who are you?")).ToolResult(), nil
	})
	i.tool("pay", func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		answer := server.ElicitationResponse(req.Params.InputResponses, "page")
		if answer == nil {
			return need().Elicit("page", page()).ToolResult(), nil
		}
		return mcp.NewToolResultText(string(answer.Action)), nil
	})
	i.tool("pay_first", i.payFirst)
	i.tool("think", func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		answer := server.SamplingResponse(req.Params.InputResponses, "thought")
		if answer == nil {
			return need().Sample("thought", sampling()).ToolResult(), nil
		}
		return mcp.NewToolResultText(said(answer)), nil
	})
	i.tool("look", func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		answer := server.RootsResponse(req.Params.InputResponses, "roots")
		if answer == nil {
			return need().Roots("roots").ToolResult(), nil
		}
		return mcp.NewToolResultText(places(answer)), nil
	})
	i.tool("many", func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		in := req.Params.InputResponses
		name, thought, roots := server.ElicitationResponse(in, "name"), server.SamplingResponse(in, "thought"), server.RootsResponse(in, "roots")
		if name == nil || thought == nil || roots == nil {
			return need().Elicit("name", form("name", "Who are you?")).Sample("thought", sampling()).Roots("roots").ToolResult(), nil
		}
		return mcp.NewToolResultText(fmt.Sprintf("%s, %s, %s", field(name, "name"), said(thought), places(roots))), nil
	})
}

// payFirst is refused until the bill is paid, which is told soon after the second call (2025-11-25
// alone).
func (i *inn) payFirst(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if i.owed++; i.owed > 2 {
		return mcp.NewToolResultText("paid"), nil
	}
	if i.owed == 2 {
		i.server.SendNotificationToAllClients(string(mcp.MethodNotificationElicitationComplete), map[string]any{"elicitationId": "bill-1"})
	}
	return nil, mcp.URLElicitationRequiredError{Elicitations: []mcp.ElicitationParams{page()}}
}

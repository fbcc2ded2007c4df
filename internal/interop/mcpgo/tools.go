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
func (s *testServer) tool(name string, h func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error)) {
	s.server.AddTool(mcp.NewTool(name), h)
}

func (s *testServer) addTools() {
	add := mcp.NewToolWithRawSchema("add", "Adds two numbers.", json.RawMessage(
		`{"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}`))
	readOnly := true
	add.Title, add.Annotations.ReadOnlyHint = "Add up", &readOnly
	add.RawOutputSchema = json.RawMessage(`{"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}`)
	s.server.AddTool(add, func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		total := req.GetInt("a", 0) + req.GetInt("b", 0)
		return mcp.NewToolResultStructured(map[string]int{"sum": total}, fmt.Sprintf(`{"sum":%d}`, total)), nil
	})
	rooms := mcp.NewTool("rooms")
	rooms.RawOutputSchema = json.RawMessage(`{"type": "array", "items": {"type": "integer"}}`) // for 2026-07-28
	s.server.AddTool(rooms, func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultStructured([]int{10, 11}, "[10,11]"), nil
	})
	locate := mcp.NewToolWithRawSchema("locate", "", json.RawMessage(
		`{"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}`))
	s.server.AddTool(locate, func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("Region: " + req.GetString("region", "")), nil
	})
	s.tool("content", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{
			mcp.NewTextContent("a text"),
			mcp.NewImageContent(encode("image"), "image/png"),
			mcp.NewAudioContent(encode("audio"), "audio/wav"),
			mcp.NewResourceLink("test://menu", "menu", "", ""),
			mcp.NewEmbeddedResource(mcp.TextResourceContents{URI: "test://menu", MIMEType: "text/plain", Text: "Soup"}),
		}}, nil
	})
	s.tool("fail", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultError("the kitchen is closed"), nil
	})
	s.tool("caller_meta", func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(fmt.Sprint(req.Params.Meta.AdditionalFields["example.com/caller"])), nil
	})
	bake := mcp.NewTool("bake")
	bake.Execution = &mcp.ToolExecution{TaskSupport: mcp.TaskSupportOptional} // 2025-11-25 alone
	s.server.AddTool(bake, func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("baked"), nil
	})
	s.tool("work", s.work)
	s.tool("wait", s.wait)
	s.tool("cancelled", func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return after(ctx, s.cancelled, "cancelled")
	})
	s.tool("roots_changed", func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return after(ctx, s.rootsChanged, "roots changed")
	})
	s.tool("update_resource", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		s.server.SendNotificationToAllClients(mcp.MethodNotificationResourceUpdated, map[string]any{"uri": "test://guestbook"})
		return mcp.NewToolResultText("touched"), nil
	})
	s.server.AddTool(mcp.NewTool("change", mcp.WithString("list", mcp.Required())), s.change)
}

// after returns the text once the event has happened.
func after(ctx context.Context, event <-chan struct{}, text string) (*mcp.CallToolResult, error) {
	select {
	case <-event:
		return mcp.NewToolResultText(text), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// work sends progress and log messages.
func (s *testServer) work(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	for step := 1; step <= 3; step++ {
		if err := s.progress(ctx, req, map[string]any{"progress": step, "total": 3, "message": fmt.Sprint("step ", step)}); err != nil {
			return nil, err
		}
	}
	for _, level := range []mcp.LoggingLevel{mcp.LoggingLevelDebug, mcp.LoggingLevelInfo} {
		if err := s.server.SendLogMessageToClient(ctx, mcp.NewLoggingMessageNotification(level, "interop", "told at "+string(level))); err != nil {
			return nil, err
		}
	}
	if err := s.flush(ctx); err != nil {
		return nil, err
	}
	return mcp.NewToolResultText("done"), nil
}

// flush waits until all earlier notifications are sent. The SDK queues notifications, and results
// overtake them. flush adds a filler notification: when the filler has left the queue, the earlier
// ones are written.
func (s *testServer) flush(ctx context.Context) error {
	if err := s.server.SendNotificationToClient(ctx, "notifications/interop/filler", nil); err != nil {
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

func (s *testServer) progress(ctx context.Context, req mcp.CallToolRequest, params map[string]any) error {
	if req.Params.Meta == nil || req.Params.Meta.ProgressToken == nil {
		return nil
	}
	params["progressToken"] = req.Params.Meta.ProgressToken
	return s.server.SendNotificationToClient(ctx, "notifications/progress", params)
}

// wait returns when it is cancelled.
func (s *testServer) wait(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if err := s.progress(ctx, req, map[string]any{"progress": 1}); err != nil {
		return nil, err
	}
	<-ctx.Done()
	s.cancelled <- struct{}{}
	return nil, ctx.Err()
}

// change adds an item to one of the lists.
func (s *testServer) change(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	s.extra++
	name := fmt.Sprint("extra", s.extra)
	switch req.GetString("list", "") {
	case "tools":
		s.tool(name, func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText("here"), nil
		})
	case "prompts":
		s.server.AddPrompt(mcp.NewPrompt(name), greet)
	case "resources":
		s.server.AddResource(mcp.NewResource("test://"+name, name), s.read)
	}
	return mcp.NewToolResultText(name), nil
}

// form asks for one text. The field room has a default, which the client fills in.
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

func sampledText(answer *mcp.CreateMessageResult) string {
	switch content := answer.Content.(type) {
	case mcp.TextContent:
		return content.Text
	case map[string]any: // the SDK does not decode it
		return fmt.Sprint(content["text"])
	}
	return fmt.Sprintf("a %T", answer.Content)
}

func rootsText(answer *mcp.ListRootsResult) string {
	text := ""
	for _, root := range answer.Roots {
		text += root.Name + " at " + root.URI
	}
	return text
}

func page() mcp.ElicitationParams {
	return mcp.ElicitationParams{Mode: mcp.ElicitationModeURL, Message: "Please pay.", URL: "https://pay.example.com/bill?n=1", ElicitationID: "bill-1"}
}

// addQuestions adds the tools that ask questions. They return input requests, which the SDK sends
// as requests to legacy clients.
func (s *testServer) addQuestions() {
	need := func() *server.InputRequestBuilder { return server.NewInputRequestBuilder("") }
	s.tool("ask", func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		answer := server.ElicitationResponse(req.Params.InputResponses, "name")
		switch {
		case answer == nil:
			return need().Elicit("name", form("name", "Who are you?")).ToolResult(), nil
		case answer.Action != mcp.ElicitationResponseActionAccept:
			return mcp.NewToolResultText(string(answer.Action)), nil
		}
		return mcp.NewToolResultText(fmt.Sprintf("Hello, %s in %s!", field(answer, "name"), field(answer, "room"))), nil
	})
	s.tool("register", func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if colour := server.ElicitationResponse(req.Params.InputResponses, "colour"); colour != nil {
			return mcp.NewToolResultText(req.Params.RequestState + " likes " + field(colour, "colour")), nil
		}
		if name := server.ElicitationResponse(req.Params.InputResponses, "name"); name != nil {
			who := field(name, "name")
			return need().RequestState(who).Elicit("colour", form("colour", "Which colour, "+who+"?")).ToolResult(), nil
		}
		return need().Elicit("name", form("name", "Who are you?")).ToolResult(), nil
	})
	s.tool("pay", func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		answer := server.ElicitationResponse(req.Params.InputResponses, "page")
		if answer == nil {
			return need().Elicit("page", page()).ToolResult(), nil
		}
		return mcp.NewToolResultText(string(answer.Action)), nil
	})
	s.tool("pay_first", s.payFirst)
	s.tool("sample", func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		answer := server.SamplingResponse(req.Params.InputResponses, "thought")
		if answer == nil {
			return need().Sample("thought", sampling()).ToolResult(), nil
		}
		return mcp.NewToolResultText(sampledText(answer)), nil
	})
	s.tool("list_roots", func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		answer := server.RootsResponse(req.Params.InputResponses, "roots")
		if answer == nil {
			return need().Roots("roots").ToolResult(), nil
		}
		return mcp.NewToolResultText(rootsText(answer)), nil
	})
	s.tool("ask_several", func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		in := req.Params.InputResponses
		name, thought, roots := server.ElicitationResponse(in, "name"), server.SamplingResponse(in, "thought"), server.RootsResponse(in, "roots")
		if name == nil || thought == nil || roots == nil {
			return need().Elicit("name", form("name", "Who are you?")).Sample("thought", sampling()).Roots("roots").ToolResult(), nil
		}
		return mcp.NewToolResultText(fmt.Sprintf("%s, %s, %s", field(name, "name"), sampledText(thought), rootsText(roots))), nil
	})
}

// payFirst fails until the bill is paid. The server reports the payment soon after the second call
// (2025-11-25 only).
func (s *testServer) payFirst(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if s.owed++; s.owed > 2 {
		return mcp.NewToolResultText("paid"), nil
	}
	if s.owed == 2 {
		s.server.SendNotificationToAllClients(string(mcp.MethodNotificationElicitationComplete), map[string]any{"elicitationId": "bill-1"})
	}
	return nil, mcp.URLElicitationRequiredError{Elicitations: []mcp.ElicitationParams{page()}}
}

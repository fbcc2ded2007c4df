package main

//lint:file-ignore SA1019 sampling and roots are deprecated and still tested.

import (
	"context"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// form asks for one text. The field room has a default, which the client fills in.
func form(field, message string) *mcp.ElicitParams {
	return &mcp.ElicitParams{Message: message, RequestedSchema: object{
		"type": "object", "required": []string{field}, "properties": object{
			field:  object{"type": "string"},
			"room": object{"type": "string", "default": "blue"},
		},
	}}
}

// question returns the form as an input request.
func question(field, message string) mcp.InputRequestMap {
	return mcp.InputRequestMap{field: form(field, message)}
}

func sampling() *mcp.CreateMessageParams {
	return &mcp.CreateMessageParams{MaxTokens: 100, SystemPrompt: "Be short.", Messages: []*mcp.SamplingMessage{
		{Role: "user", Content: &mcp.TextContent{Text: "a word"}},
	}}
}

func sampledText(result *mcp.CreateMessageResult) string {
	text, ok := result.Content.(*mcp.TextContent)
	if !ok {
		return fmt.Sprintf("a %T", result.Content)
	}
	return text.Text
}

func rootsText(result *mcp.ListRootsResult) string {
	text := ""
	for _, root := range result.Roots {
		text += root.Name + " at " + root.URI
	}
	return text
}

// addQuestions adds the tools that ask questions. Most return input requests, which the SDK sends
// as requests to legacy clients. It does so only once for a call, so register sends its requests to
// legacy clients itself.
func (s *testServer) addQuestions() {
	tool(s, "ask", func(_ context.Context, req *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, error) {
		answer, ok := req.Params.InputResponses["name"].(*mcp.ElicitResult)
		if !ok {
			return &mcp.CallToolResult{InputRequests: question("name", "Who are you?")}, nil
		}
		if answer.Action != "accept" {
			return say(answer.Action), nil
		}
		return say(fmt.Sprintf("Hello, %s in %s!", answer.Content["name"], answer.Content["room"])), nil
	})
	tool(s, "pay", func(_ context.Context, req *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, error) {
		answer, ok := req.Params.InputResponses["page"].(*mcp.ElicitResult)
		if !ok {
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"page": page()}}, nil
		}
		return say(answer.Action), nil
	})
	tool(s, "sample", func(_ context.Context, req *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, error) {
		answer, ok := req.Params.InputResponses["thought"]
		if !ok {
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"thought": sampling()}}, nil
		}
		return say(thought(answer)), nil
	})
	tool(s, "list_roots", func(_ context.Context, req *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, error) {
		answer, ok := req.Params.InputResponses["roots"].(*mcp.ListRootsResult)
		if !ok {
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"roots": &mcp.ListRootsParams{}}}, nil
		}
		return say(rootsText(answer)), nil
	})
	tool(s, "ask_several", func(_ context.Context, req *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, error) {
		in := req.Params.InputResponses
		if in == nil {
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{
				"name": form("name", "Who are you?"), "thought": sampling(), "roots": &mcp.ListRootsParams{},
			}}, nil
		}
		name, okName := in["name"].(*mcp.ElicitResult)
		roots, okRoots := in["roots"].(*mcp.ListRootsResult)
		if !okName || !okRoots {
			return nil, fmt.Errorf("the answers are a %T and a %T", in["name"], in["roots"])
		}
		return say(fmt.Sprintf("%s, %s, %s", name.Content["name"], thought(in["thought"]), rootsText(roots))), nil
	})
	tool(s, "register", s.register)
	tool(s, "pay_first", s.payFirst)
}

func page() *mcp.ElicitParams {
	return &mcp.ElicitParams{Mode: "url", Message: "Please pay.", URL: "https://pay.example.com/bill?n=1", ElicitationID: "bill-1"}
}

// thought returns the text of a sampling result. The SDK uses the type with tools for requests that
// it sends on behalf of a handler.
func thought(answer mcp.InputResponse) string {
	switch answer := answer.(type) {
	case *mcp.CreateMessageResult:
		return sampledText(answer)
	case *mcp.CreateMessageWithToolsResult:
		return sampledText(&mcp.CreateMessageResult{Content: answer.Content[0]})
	}
	return fmt.Sprintf("a %T", answer)
}

// register asks a second question that depends on the answer to the first.
func (s *testServer) register(ctx context.Context, req *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, error) {
	second := func(name any) *mcp.ElicitParams { return form("colour", fmt.Sprintf("Which colour, %s?", name)) }
	if req.ProtocolVersion() < "2026-07-28" {
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
	return &mcp.CallToolResult{InputRequests: question("name", "Who are you?")}, nil
}

// payFirst fails until the bill is paid. The server reports the payment soon after the second call
// (2025-11-25 only).
func (s *testServer) payFirst(_ context.Context, req *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, error) {
	if s.owed++; s.owed > 2 {
		return say("paid"), nil
	}
	if s.owed == 2 {
		time.AfterFunc(50*time.Millisecond, func() {
			_ = req.Session.NotifyElicitationComplete(context.Background(), &mcp.ElicitationCompleteParams{ElicitationID: "bill-1"})
		})
	}
	return nil, mcp.URLElicitationRequiredError([]*mcp.ElicitParams{page()})
}

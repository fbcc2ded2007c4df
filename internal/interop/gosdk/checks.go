package main

//lint:file-ignore SA1019 sampling, roots and logging are deprecated and still tested.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type object = map[string]any

// text calls a tool and returns the text of its first content.
func (s *scenario) text(ctx context.Context, params *mcp.CallToolParams) (string, error) {
	result, err := s.session.CallTool(ctx, params)
	if err != nil {
		return "", err
	}
	text, ok := result.Content[0].(*mcp.TextContent)
	if !ok {
		return "", fmt.Errorf("the content is a %T", result.Content[0])
	}
	return text.Text, nil
}

// returns calls a tool and checks that it returns the text want.
func (s *scenario) returns(ctx context.Context, tool string, arguments object, want string) error {
	params := &mcp.CallToolParams{Name: tool}
	if arguments != nil {
		params.Arguments = arguments // a nil map would be sent as null
	}
	got, err := s.text(ctx, params)
	if err != nil {
		return err
	}
	return same(got, want)
}

// refused checks that err is a protocol error with the code and text.
func refused(err error, code int64, text string) error {
	wire, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok || wire.Code != code || !strings.Contains(wire.Message, text) {
		return fmt.Errorf("got the error %v, want code %d and %q", err, code, text)
	}
	return nil
}

func (s *scenario) tools() {
	s.check("tools/list", func(ctx context.Context) error {
		n := 0
		for tool, err := range s.session.Tools(ctx, nil) {
			if err != nil {
				return err
			}
			if schema, _ := tool.InputSchema.(object); schema["type"] != "object" {
				return fmt.Errorf("the input schema of %s is %v", tool.Name, tool.InputSchema)
			}
			n++
		}
		if n <= 25 {
			return fmt.Errorf("there are only %d tools", n)
		}
		return nil
	})
	s.check("tools/call", func(ctx context.Context) error {
		return s.returns(ctx, "test_simple_text", nil, "This is a simple text response for testing.")
	})
	s.check("content: text, image, audio, resource", func(ctx context.Context) error {
		mixed, err := s.session.CallTool(ctx, &mcp.CallToolParams{Name: "test_multiple_content_types"})
		if err != nil {
			return err
		}
		sound, err := s.session.CallTool(ctx, &mcp.CallToolParams{Name: "test_audio_content"})
		if err != nil {
			return err
		}
		want := "*mcp.TextContent" // older versions have no audio content
		if s.since("2025-03-26") {
			want = "*mcp.AudioContent"
		}
		var types []string
		for _, c := range append(mixed.Content, sound.Content...) {
			types = append(types, fmt.Sprintf("%T", c))
		}
		return same(types, []string{"*mcp.TextContent", "*mcp.ImageContent", "*mcp.EmbeddedResource", want})
	})
	s.check("an argument mirrored by a header, not ASCII", func(ctx context.Context) error {
		return s.returns(ctx, "test_x_mcp_header", object{"region": "Zürich, 東京"}, "Region: Zürich, 東京")
	})
	s.check("a closed stream is resumed", func(ctx context.Context) error {
		want := "This connection cannot be resumed."
		if s.Transport == "http" && s.Version == "2025-11-25" {
			want = "Reconnection test completed successfully"
		}
		return s.returns(ctx, "test_reconnection", nil, want)
	})
}

func (s *scenario) answer(content object) {
	s.answers <- mcp.ElicitResult{Action: "accept", Content: content}
}

func (s *scenario) questions() {
	s.check("sampling", func(ctx context.Context) error {
		return s.returns(ctx, "test_sampling", object{"prompt": "a word"}, "LLM response: echo of a word")
	})
	s.check("roots", func(ctx context.Context) error {
		got, err := s.text(ctx, &mcp.CallToolParams{Name: "test_input_required_result_list_roots"})
		if err == nil && !regexp.MustCompile(`^1 roots: .*file:///home`).MatchString(got) {
			err = fmt.Errorf("got %q", got)
		}
		return err
	})
	if s.since("2025-06-18") {
		s.forms()
	} else {
		s.check("elicitation: none before 2025-06-18", func(ctx context.Context) error {
			err := s.returns(ctx, "test_elicitation", object{"message": "Who are you?"}, "this client cannot be asked that: its protocol version has no questions, which exist from 2025-06-18")
			return errors.Join(err, same(len(s.asked), 0))
		})
	}
}

// forms checks elicitation, which exists from 2025-06-18.
func (s *scenario) forms() {
	who := object{"message": "Who are you?"}
	s.check("elicitation: accepted", func(ctx context.Context) error {
		s.answer(object{"username": "ann", "email": "ann@example.com"})
		if err := s.returns(ctx, "test_elicitation", who, "User response: ann <ann@example.com>"); err != nil {
			return err
		}
		asked := <-s.asked
		schema, _ := asked.RequestedSchema.(object)
		return same([]any{asked.Message, schema["required"]}, []any{"Who are you?", []string{"username", "email"}})
	})
	s.check("elicitation: declined, cancelled", func(ctx context.Context) error {
		s.answers <- mcp.ElicitResult{Action: "decline"}
		s.answers <- mcp.ElicitResult{Action: "cancel"}
		return errors.Join(
			s.returns(ctx, "test_elicitation", who, "User response: declined"),
			s.returns(ctx, "test_elicitation", who, "User response: cancelled"))
	})
	s.check("elicitation: two questions in a row", func(ctx context.Context) error {
		s.answer(object{"name": "Ann"})
		s.answer(object{"color": "green"})
		return s.returns(ctx, "test_input_required_result_multi_round", nil, "Ann likes green")
	})
	s.check("three questions at once", func(ctx context.Context) error {
		s.answer(object{"name": "Ann"})
		return s.returns(ctx, "test_input_required_result_multiple_inputs", nil, "echo of Write a greeting., Ann (1 roots)")
	})
}

// expect waits for as many notifications as want has, and checks that they are those.
func (s *scenario) expect(ctx context.Context, want ...string) error {
	var got []string
	for range want {
		select {
		case msg := <-s.received:
			got = append(got, msg)
		case <-ctx.Done():
			return fmt.Errorf("received %q, want %q: %w", got, want, ctx.Err())
		}
	}
	return same(got, want)
}

func (s *scenario) notifications() {
	s.check("progress", func(ctx context.Context) error {
		got, err := s.text(ctx, &mcp.CallToolParams{Name: "test_tool_with_progress", Meta: mcp.Meta{"progressToken": "whole"}})
		if err != nil {
			return err
		}
		return errors.Join(same(got, "Tool with progress executed successfully"), s.expect(ctx, "whole 0", "whole 50", "whole 100"))
	})
	s.check("logging", func(ctx context.Context) error {
		for _, level := range []mcp.LoggingLevel{"error", "info"} { // first the level at which no log message is due
			params := &mcp.CallToolParams{Name: "test_tool_with_logging"}
			if s.modern() {
				params.Meta = mcp.Meta{mcp.MetaKeyLogLevel: level}
			} else if err := s.session.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: level}); err != nil {
				return err
			}
			if _, err := s.text(ctx, params); err != nil {
				return err
			}
		}
		return s.expect(ctx, "info Tool execution started", "info Tool processing data", "info Tool execution completed")
	})
}

func (s *scenario) changes() {
	name := "list_changed"
	if s.modern() {
		name = "subscriptions/listen" // the client subscribed when it connected
	}
	s.check(name, func(ctx context.Context) error {
		if err := s.returns(ctx, "test_trigger_tool_change", nil, "added"); err != nil {
			return err
		}
		if err := s.expect(ctx, "tools"); err != nil {
			return err
		}
		if err := s.returns(ctx, "test_comes_and_goes", nil, "here"); err != nil {
			return err
		}
		if err := s.returns(ctx, "test_trigger_prompt_change", nil, "added"); err != nil {
			return err
		}
		return s.expect(ctx, "prompts")
	})
	s.check("subscribe and unsubscribe", func(ctx context.Context) error {
		err := s.session.Subscribe(ctx, &mcp.SubscribeParams{URI: "test://watched-resource"})
		if err != nil {
			return err
		}
		return s.session.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: "test://watched-resource"})
	})
}

func (s *scenario) read(ctx context.Context, uri string) (*mcp.ResourceContents, error) {
	result, err := s.session.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
	if err != nil {
		return nil, err
	}
	return result.Contents[0], nil
}

func (s *scenario) resources() {
	s.check("resources/list, templates/list", func(ctx context.Context) error {
		var uris []string
		for r, err := range s.session.Resources(ctx, nil) {
			if err != nil {
				return err
			}
			uris = append(uris, r.URI)
		}
		for r, err := range s.session.ResourceTemplates(ctx, nil) {
			if err != nil {
				return err
			}
			uris = append(uris, r.URITemplate)
		}
		return same(uris, []string{"skill://pdf-processing/SKILL.md", "test://static-binary", "test://static-text", "test://watched-resource", "test://template/{id}/data"})
	})
	s.check("resources/read: text, binary, template", func(ctx context.Context) error {
		text, err := s.read(ctx, "test://static-text")
		if err != nil {
			return err
		}
		image, err := s.read(ctx, "test://static-binary")
		if err != nil {
			return err
		}
		made, err := s.read(ctx, "test://template/7%208/data")
		if err != nil {
			return err
		}
		return same([]any{text.Text, string(image.Blob[1:4]), json.RawMessage(made.Text)},
			[]any{"This is the content of the static text resource.", "PNG", object{"data": "Data for ID: 7 8", "id": "7 8", "templateTest": true}})
	})
	s.check("resources/read: unknown", func(ctx context.Context) error {
		_, err := s.read(ctx, "test://nowhere")
		code := int64(-32002)
		if s.modern() {
			code = jsonrpc.CodeInvalidParams
		}
		return refused(err, code, `"test://nowhere" not found`)
	})
}

func (s *scenario) prompts() {
	s.check("prompts/list, prompts/get", func(ctx context.Context) error {
		n := 0
		for _, err := range s.session.Prompts(ctx, nil) {
			if err != nil {
				return err
			}
			n++
		}
		result, err := s.session.GetPrompt(ctx, &mcp.GetPromptParams{Name: "test_prompt_with_arguments", Arguments: map[string]string{"arg1": "a", "arg2": "b"}})
		if err != nil {
			return err
		}
		return same([]any{n >= 5, result.Messages}, []any{true, []*mcp.PromptMessage{
			{Role: "user", Content: &mcp.TextContent{Text: "Prompt with arguments: arg1='a', arg2='b'"}},
		}})
	})
	s.check("prompts/get: a missing argument", func(ctx context.Context) error {
		_, err := s.session.GetPrompt(ctx, &mcp.GetPromptParams{Name: "test_prompt_with_arguments", Arguments: map[string]string{"arg1": "a"}})
		return refused(err, jsonrpc.CodeInvalidParams, "arg2")
	})
	if s.since("2025-06-18") {
		s.check("a prompt that asks", func(ctx context.Context) error {
			s.answer(object{"context": "tests"})
			result, err := s.session.GetPrompt(ctx, &mcp.GetPromptParams{Name: "test_input_required_result_prompt"})
			if err != nil {
				return err
			}
			return same(result.Messages[0].Content, &mcp.TextContent{Text: "Use this context: tests"})
		})
	}
	s.check("completion of a prompt argument", func(ctx context.Context) error {
		result, err := s.session.Complete(ctx, &mcp.CompleteParams{
			Ref:      &mcp.CompleteReference{Type: "ref/prompt", Name: "test_prompt_with_arguments"},
			Argument: mcp.CompleteParamsArgument{Name: "arg1", Value: "par"},
		})
		if err != nil {
			return err
		}
		return same(result.Completion.Values, []string{"paris", "park", "party"})
	})
}

func (s *scenario) cancellation() {
	s.check("cancellation ends the call", func(ctx context.Context) error {
		var err error
		for i := range 5 { // on a busy machine the call may end before the cancellation arrives
			if err = s.cancelOne(ctx, fmt.Sprint("cancelled", i)); err == nil || ctx.Err() != nil {
				break
			}
		}
		return err
	})
	if s.modern() || !s.since("2025-06-18") { // there is no request that could be cancelled
		return
	}
	s.check("cancelling a call cancels its question", func(ctx context.Context) error {
		for len(s.asked) > 0 {
			<-s.asked
		}
		one, cancel := context.WithCancel(ctx)
		defer cancel()
		ended := make(chan error, 1)
		go func() {
			_, err := s.session.CallTool(one, &mcp.CallToolParams{Name: "test_elicitation", Arguments: object{"message": "Who?"}})
			ended <- err
		}()
		<-s.asked
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			return fmt.Errorf("the call ended with %v", err)
		}
		if s.Transport == "http" {
			// The client has closed the stream that would carry the cancellation, so it responds
			// late.
			s.answers <- mcp.ElicitResult{Action: "cancel"}
		} else if err := s.expect(ctx, "question cancelled"); err != nil {
			return err
		}
		return s.session.Ping(ctx, nil)
	})
}

// cancelOne cancels a call at its first progress.
func (s *scenario) cancelOne(ctx context.Context, token string) error {
	one, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := s.session.CallTool(one, &mcp.CallToolParams{Name: "test_tool_with_progress", Meta: mcp.Meta{"progressToken": token}})
		ended <- err
	}()
	if err := s.expect(ctx, token+" 0"); err != nil {
		return err
	}
	cancel()
	err := <-ended
	// A second call takes as long as the first. When it ends, the first would have ended, too.
	if _, err := s.text(ctx, &mcp.CallToolParams{Name: "test_tool_with_progress", Meta: mcp.Meta{"progressToken": "after " + token}}); err != nil {
		return err
	}
	for got := ""; got != "after "+token+" 100"; {
		select {
		case got = <-s.received:
		case <-ctx.Done():
			return ctx.Err()
		}
		if got == token+" 100" {
			err = errors.New("the call ran to its end")
		}
	}
	if !errors.Is(err, context.Canceled) {
		return fmt.Errorf("the call ended with: %v", err)
	}
	return nil
}

func (s *scenario) structured() {
	s.check("structured output", func(ctx context.Context) error {
		result, err := s.session.CallTool(ctx, &mcp.CallToolParams{Name: "search", Arguments: object{"query": "first"}})
		if err != nil {
			return err
		}
		hits := []object{{"id": "welcome", "text": "# Welcome\n\nThis is your first note."}}
		var want any = object{"result": hits}
		switch {
		case s.modern():
			want = hits
		case !s.since("2025-06-18"):
			want = nil
		}
		text := result.Content[0].(*mcp.TextContent).Text
		return same([]any{result.StructuredContent, json.RawMessage(text)}, []any{want, hits})
	})
}

func (s *scenario) failures() {
	s.check("bad arguments are a tool error", func(ctx context.Context) error {
		result, err := s.session.CallTool(ctx, &mcp.CallToolParams{Name: "search", Arguments: object{"query": "x", "limit": 99, "limits": 1}})
		if err != nil {
			return err
		}
		text := result.Content[0].(*mcp.TextContent).Text
		for _, word := range []string{"/query", "/limit", "/limits", `did you mean "limit"?`} {
			if !result.IsError || !strings.Contains(text, word) {
				return fmt.Errorf("isError is %t, no %s in %s", result.IsError, word, text)
			}
		}
		return nil
	})
	s.check("the error of a method is a tool error", func(ctx context.Context) error {
		result, err := s.session.CallTool(ctx, &mcp.CallToolParams{Name: "add", Arguments: object{"id": "welcome", "text": "again"}})
		if err != nil {
			return err
		}
		return same([]any{result.IsError, result.Content},
			[]any{true, []mcp.Content{&mcp.TextContent{Text: `there is a note "welcome" already; choose another id`}}})
	})
	s.check("an unknown tool", func(ctx context.Context) error {
		_, err := s.session.CallTool(ctx, &mcp.CallToolParams{Name: "serach"})
		return refused(err, jsonrpc.CodeInvalidParams, `"serach"`)
	})
}

func (s *scenario) completion() {
	s.check("completion of a template variable", func(ctx context.Context) error {
		result, err := s.session.Complete(ctx, &mcp.CompleteParams{
			Ref:      &mcp.CompleteReference{Type: "ref/resource", URI: "note://{id}"},
			Argument: mcp.CompleteParamsArgument{Name: "id", Value: "w"},
		})
		if err != nil {
			return err
		}
		note, err := s.read(ctx, "note://welcome")
		if err != nil {
			return err
		}
		return same([]any{result.Completion.Values, note.MIMEType}, []any{[]string{"welcome"}, "text/markdown"})
	})
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

type object = map[string]any

// returns calls a tool and checks that it returns the text want.
func (s *scenario) returns(ctx context.Context, tool string, args any, want string) error {
	got, err := client.Call[string](ctx, s.c, tool, args)
	if err != nil {
		return err
	}
	return same(got, want)
}

// refused checks that err is a protocol error with the code.
func refused(err error, code int) error {
	wire, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok || int(wire.Code) != code {
		return fmt.Errorf("got the error %v, want code %d", err, code)
	}
	return nil
}

// refusedWith checks that err is a tool error, or a protocol error for invalid params, whose text
// contains all words.
func refusedWith(err error, words ...string) error {
	text, notTool := toolError(err)
	if notTool != nil {
		if bad := refused(err, jsonrpc.CodeInvalidParams); bad != nil {
			return bad
		}
		text = err.Error()
	}
	for _, word := range words {
		if !strings.Contains(text, word) {
			return fmt.Errorf("no %q in %q", word, text)
		}
	}
	return nil
}

func (s *scenario) initialize() {
	s.check("instructions and capabilities", func(context.Context) error {
		caps := s.c.Capabilities()
		if caps.Tools == nil || caps.Prompts == nil || caps.Resources == nil {
			return fmt.Errorf("the capabilities are %+v", caps)
		}
		return same(s.c.Instructions(), "Ask at the desk.")
	})
	s.check("ping", func(ctx context.Context) error { return s.c.Ping(ctx) })
}

type sum struct {
	A int `json:"a"`
	B int `json:"b"`
}

type total struct {
	Sum int `json:"sum"`
}

func (s *scenario) tools() {
	s.check("tools/list", func(ctx context.Context) error {
		var names []string
		for tool, err := range s.c.Tools(ctx) {
			if err != nil {
				return err
			}
			names = append(names, tool.Name)
		}
		if len(names) < 10 || !slices.Contains(names, "add") || !slices.Contains(names, "work") {
			return fmt.Errorf("the tools are %q", names)
		}
		slices.Sort(names)
		return same(slices.Compact(slices.Clone(names)), names)
	})
	s.check("pages of tools", func(ctx context.Context) error {
		var page protocol.ListToolsResult
		if err := s.c.Request(ctx, protocol.MethodToolsList, nil, &page); err != nil {
			return err
		}
		if page.NextCursor == nil {
			return errors.New("the first page is the only one")
		}
		return same(len(page.Tools), 3)
	})
	s.check("a tool is described", func(ctx context.Context) error {
		tool, err := s.c.Tool(ctx, "add")
		if err != nil {
			return err
		}
		var in struct{ Required []string }
		if err := json.Unmarshal(tool.InputSchema, &in); err != nil {
			return err
		}
		if err := same([]any{tool.Description, in.Required}, []any{"Adds two numbers.", []string{"a", "b"}}); err != nil {
			return err
		}
		if tool.Annotations == nil || tool.Annotations.ReadOnlyHint == nil || !*tool.Annotations.ReadOnlyHint {
			return fmt.Errorf("the annotations are %+v", tool.Annotations)
		}
		if !s.since(protocol.V20250618) {
			return nil
		}
		return same(tool.Title, "Add up")
	})
	s.check("structured output", func(ctx context.Context) error {
		got, err := client.Call[total](ctx, s.c, "add", sum{1, 2})
		if err != nil {
			return err
		}
		return same(got, total{3})
	})
	s.check("a bound function", func(ctx context.Context) error {
		var bound struct {
			Add func(context.Context, sum) (total, error) `mcp:"add"`
		}
		if err := s.c.Bind(&bound); err != nil {
			return err
		}
		got, err := bound.Add(ctx, sum{20, 22})
		if err != nil {
			return err
		}
		return same(got, total{42})
	})
	if s.modern() {
		s.check("output that is an array", func(ctx context.Context) error {
			got, err := client.Call[[]int](ctx, s.c, "rooms", nil)
			if err != nil {
				return err
			}
			return same(got, []int{10, 11})
		})
	}
}

func (s *scenario) results() {
	s.check("content: text, image, audio, link, resource", func(ctx context.Context) error {
		result, err := s.c.CallTool(ctx, "content", nil)
		if err != nil {
			return err
		}
		var types []string
		for _, c := range result.Content {
			types = append(types, protocol.ContentType(c))
		}
		if err := same(types, []string{"text", "image", "audio", "resource_link", "resource"}); err != nil {
			return err
		}
		image, sound, inside := result.Content[1].(*protocol.ImageContent), result.Content[2].(*protocol.AudioContent), result.Content[4].(*protocol.EmbeddedResource)
		return same([]any{string(image.Data), string(sound.Data), result.Content[3].(*protocol.ResourceLink).URI, inside.Resource.Text},
			[]any{"image", "audio", "test://menu", "Soup"})
	})
	s.check("an argument mirrored by a header, not ASCII", func(ctx context.Context) error {
		return s.returns(ctx, "locate", object{"region": "Zürich, 東京"}, "Region: Zürich, 東京")
	})
	s.check("_meta of the caller", func(ctx context.Context) error {
		result, err := s.c.CallTool(ctx, "caller_meta", nil, client.Meta("example.com/caller", "Ann"))
		if err != nil {
			return err
		}
		return same(result.Content, protocol.Contents{&protocol.TextContent{Text: "Ann"}})
	})
	s.check("twenty calls at once", func(ctx context.Context) error {
		ended := make(chan error)
		for n := range 20 {
			go func() { // ends with the call
				got, err := client.Call[total](ctx, s.c, "add", sum{n, 1})
				ended <- errors.Join(err, same(got, total{n + 1}))
			}()
		}
		var errs []error
		for range 20 {
			errs = append(errs, <-ended)
		}
		return errors.Join(errs...)
	})
}

// tasks calls the methods of tasks by Request: they exist only in 2025-11-25, and the client has no
// functions for them.
func (s *scenario) tasks() {
	if s.Version != protocol.V20251125 {
		return
	}
	if s.c.Capabilities().Tasks == nil {
		none("tasks", "the server does not offer them")
		return
	}
	type task struct {
		ID     string `json:"taskId"`
		Status string `json:"status"`
	}
	var id string
	s.check("a task", func(ctx context.Context) error {
		var made struct {
			Task task `json:"task"`
		}
		if err := s.c.Request(ctx, protocol.MethodToolsCall, object{"name": "bake", "arguments": object{}, "task": object{}}, &made); err != nil {
			return err
		}
		id = made.Task.ID
		var result protocol.CallToolResult
		if err := s.c.Request(ctx, protocol.MethodTasksResult, object{"taskId": id}, &result); err != nil {
			return err
		}
		var now task
		if err := s.c.Request(ctx, protocol.MethodTasksGet, object{"taskId": id}, &now); err != nil {
			return err
		}
		return same([]any{result.Content, now}, []any{protocol.Contents{&protocol.TextContent{Text: "baked"}}, task{id, "completed"}})
	})
	s.check("tasks/list, tasks/cancel", func(ctx context.Context) error {
		var page struct {
			Tasks []task `json:"tasks"`
		}
		if err := s.c.Request(ctx, protocol.MethodTasksList, nil, &page); err != nil {
			return err
		}
		if err := same(page.Tasks, []task{{id, "completed"}}); err != nil {
			return err
		}
		return refused(s.c.Request(ctx, protocol.MethodTasksCancel, object{"taskId": id}, nil), jsonrpc.CodeInvalidParams)
	})
}

func (s *scenario) failures() {
	s.check("a tool that fails", func(ctx context.Context) error {
		_, err := s.c.CallTool(ctx, "fail", nil)
		text, err := toolError(err)
		if err != nil {
			return err
		}
		if !strings.Contains(text, "the kitchen is closed") {
			return fmt.Errorf("the text is %q", text)
		}
		return nil
	})
	s.check("bad arguments", func(ctx context.Context) error {
		_, err := s.c.CallTool(ctx, "add", object{"a": "one", "b": 2})
		return refusedWith(err, "a")
	})
	s.check("an unknown tool", func(ctx context.Context) error {
		_, err := s.c.CallTool(ctx, "ad", nil)
		return refusedWith(err, "ad")
	})
	s.check("an unknown method", func(ctx context.Context) error {
		err := s.c.Request(ctx, "rooms/burn", nil, nil)
		// go-sdk refuses the whole message with status 400 and plain text.
		if err != nil && strings.Contains(err.Error(), `"JSON RPC not handled: \"rooms/burn\" unsupported"`) {
			return nil
		}
		return refused(err, jsonrpc.CodeMethodNotFound)
	})
	s.check("an unknown prompt", func(ctx context.Context) error {
		_, err := s.c.GetPrompt(ctx, "dinner", nil)
		return refusedWith(err, "dinner")
	})
	s.check("an unknown resource", func(ctx context.Context) error {
		_, err := s.c.ReadResource(ctx, "test://cellar")
		if wire, ok := errors.AsType[*jsonrpc.Error](err); !ok || !strings.Contains(wire.Message, "not found") {
			return fmt.Errorf("got the error %v, want not found", err)
		}
		return nil
	})
	s.check("an unknown resource has an error of its own", func(ctx context.Context) error {
		_, err := s.c.ReadResource(ctx, "test://cellar")
		if !protocol.IsResourceNotFound(err) {
			return fmt.Errorf("got the error %v, want a resource-not-found error", err)
		}
		return nil
	})
}

// notifications checks logging first: some servers send logs of all levels until the client sets a
// level.
func (s *scenario) notifications() {
	s.check("logging", func(ctx context.Context) error {
		if err := s.c.SetLogLevel(ctx, protocol.LevelInfo); err != nil {
			return err
		}
		if err := s.returns(ctx, "work", nil, "done"); err != nil {
			return err
		}
		if err := s.handlers.expect(ctx, `log info "told at info"`); err != nil {
			return err
		}
		if err := s.c.SetLogLevel(ctx, protocol.LevelError); err != nil {
			return err
		}
		if err := s.returns(ctx, "work", nil, "done"); err != nil {
			return err
		}
		if err := s.c.SetLogLevel(ctx, protocol.LevelDebug); err != nil {
			return err
		}
		if err := s.returns(ctx, "work", nil, "done"); err != nil {
			return err
		}
		if err := s.handlers.expectAnyOrder(ctx, `log debug "told at debug"`, `log info "told at info"`); err != nil {
			return err
		}
		return s.c.SetLogLevel(ctx, protocol.LevelEmergency)
	})
	if s.modern() {
		s.check("logging of one call", func(ctx context.Context) error {
			var logs []protocol.LoggingLevel
			_, err := s.c.CallTool(ctx, "work", nil, client.LogLevel(protocol.LevelInfo),
				client.OnLog(func(p *protocol.LoggingMessageParams) { logs = append(logs, p.Level) }))
			if err != nil {
				return err
			}
			return errors.Join(same(logs, []string{"info"}), s.handlers.expect(ctx, `log info "told at info"`))
		})
	}
	s.progress()
}

func (s *scenario) progress() {
	s.check("progress", func(ctx context.Context) error {
		var steps []float64
		var last protocol.ProgressParams
		_, err := s.c.CallTool(ctx, "work", nil, client.OnProgress(func(p *protocol.ProgressParams) {
			steps, last = append(steps, p.Progress), *p
		}))
		if err != nil {
			return err
		}
		if err := same([]any{steps, last.Total}, []any{[]int{1, 2, 3}, 3}); err != nil {
			return err
		}
		if !s.since(protocol.V20250326) {
			return nil
		}
		return same(last.Message, "step 3")
	})
}

func (s *scenario) read(ctx context.Context, uri string, opts ...client.CallOption) (protocol.ResourceContents, error) {
	result, err := s.c.ReadResource(ctx, uri, opts...)
	if err != nil {
		return protocol.ResourceContents{}, err
	}
	if len(result.Contents) != 1 {
		return protocol.ResourceContents{}, fmt.Errorf("%s has %d contents", uri, len(result.Contents))
	}
	return result.Contents[0], nil
}

// reads checks the text of a resource.
func (s *scenario) reads(ctx context.Context, uri, want string, opts ...client.CallOption) error {
	got, err := s.read(ctx, uri, opts...)
	if err != nil {
		return err
	}
	return same(got.Text, want)
}

func (s *scenario) resources() {
	s.check("resources/list, templates/list", func(ctx context.Context) error {
		var uris []string
		for r, err := range s.c.Resources(ctx) {
			if err != nil {
				return err
			}
			uris = append(uris, r.URI)
		}
		slices.Sort(uris)
		for r, err := range s.c.Templates(ctx) {
			if err != nil {
				return err
			}
			uris = append(uris, r.URITemplate)
		}
		return same(uris, []string{"test://counter", "test://guestbook", "test://menu", "test://photo", "test://safe", "test://rooms/{number}"})
	})
	s.check("resources/read: text, binary, template", func(ctx context.Context) error {
		text, err := s.read(ctx, "test://menu")
		if err != nil {
			return err
		}
		image, err := s.read(ctx, "test://photo")
		if err != nil {
			return err
		}
		made, err := s.read(ctx, "test://rooms/7")
		if err != nil {
			return err
		}
		return same([]any{text.Text, text.MIMEType, string(image.Blob[1:]), made.Text, made.MIMEType},
			[]any{"Soup", "text/plain", "PNG", `{"number":"7"}`, "application/json"})
	})
	if s.modern() {
		s.check("a resource that may be cached", func(ctx context.Context) error {
			return errors.Join(s.reads(ctx, "test://counter", "1"), s.reads(ctx, "test://counter", "1"), s.reads(ctx, "test://counter", "2", client.Fresh()))
		})
	}
}

func (s *scenario) prompts() {
	s.check("prompts/list", func(ctx context.Context) error {
		var names []string
		var args []protocol.PromptArgument
		for p, err := range s.c.Prompts(ctx) {
			if err != nil {
				return err
			}
			names = append(names, p.Name)
			if p.Name == "greet" {
				args = p.Arguments
			}
		}
		slices.Sort(names)
		if len(args) != 2 {
			return fmt.Errorf("the arguments of greet are %+v", args)
		}
		return same([]any{names, args[0].Name, args[0].Required, args[1].Name},
			[]any{[]string{"breakfast", "greet", "lunch", "welcome"}, "name", true, "style"})
	})
	s.check("prompts/get", func(ctx context.Context) error {
		result, err := s.c.GetPrompt(ctx, "greet", map[string]string{"name": "Ann", "style": "formal"})
		if err != nil {
			return err
		}
		return same(result.Messages, []protocol.PromptMessage{
			{Role: "user", Content: &protocol.TextContent{Text: "Greet Ann, formal"}},
			{Role: "assistant", Content: &protocol.TextContent{Text: "I do."}},
		})
	})
	complete := func(ctx context.Context, ref protocol.CompletionRef, name, value string, known map[string]string, want ...string) error {
		got, err := s.c.Complete(ctx, ref, name, value, known)
		if err != nil {
			return err
		}
		return same(got.Values, want)
	}
	prompt := protocol.CompletionRef{Type: protocol.RefPrompt, Name: "greet"}
	s.check("completion of a prompt argument", func(ctx context.Context) error {
		return complete(ctx, prompt, "style", "f", nil, "formal", "friendly")
	})
	if s.since(protocol.V20250618) {
		s.check("completion by the other arguments", func(ctx context.Context) error {
			return complete(ctx, prompt, "style", "f", map[string]string{"name": "Ann"}, "formal")
		})
	}
	s.check("completion of a template variable", func(ctx context.Context) error {
		return complete(ctx, protocol.CompletionRef{Type: protocol.RefResource, URI: "test://rooms/{number}"}, "number", "1", nil, "10", "11")
	})
}

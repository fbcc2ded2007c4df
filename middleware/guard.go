package middleware

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// GuardArguments calls f with the arguments of every tool call and prompt, before they are
// validated. f returns the arguments, other arguments in their place, which are then validated, or
// an error, which ends the call like an error of the method. args is {} if the client sent none; do
// not change it. Server.UseFor limits the guard to a part of the server.
func GuardArguments(f func(ctx context.Context, call *mcpkit.Call, args json.RawMessage) (json.RawMessage, error)) mcpkit.Middleware {
	return func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
			if m := call.Method(); m != protocol.MethodToolsCall && m != protocol.MethodPromptsGet || call.Target() == "" {
				return next(ctx, call)
			}
			args := call.Arguments()
			if args == nil {
				args = json.RawMessage("{}")
			}
			guarded, err := f(ctx, call, args)
			if err != nil {
				return nil, err
			}
			if len(guarded) != len(args) || &guarded[0] != &args[0] {
				if err := call.SetArguments(guarded); err != nil {
					return nil, fmt.Errorf("middleware: arguments of a guard: %w", err)
				}
			}
			return next(ctx, call)
		}
	}
}

// GuardResult calls f with every result. f returns the result, another one in its place, or an
// error. Do not change a result: it may be cached or shared. See [mcpkit.Result] for its types.
func GuardResult(f func(ctx context.Context, call *mcpkit.Call, result mcpkit.Result) (mcpkit.Result, error)) mcpkit.Middleware {
	return func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
			result, err := next(ctx, call)
			if err != nil {
				return nil, err
			}
			return f(ctx, call, result)
		}
	}
}

// GuardText calls f with every text that tools, prompts and resources return: text contents, texts
// of resources, and strings in structured content except member names. f returns the text, another
// one in its place, or an error instead of the whole result. Images, audio and blobs pass
// unchecked. A result that cannot be inspected, such as a resource that is sent from a reader, is
// an error.
func GuardText(f func(ctx context.Context, call *mcpkit.Call, text string) (string, error)) mcpkit.Middleware {
	return GuardResult(func(ctx context.Context, call *mcpkit.Call, result mcpkit.Result) (mcpkit.Result, error) {
		switch call.Method() {
		case protocol.MethodToolsCall, protocol.MethodPromptsGet, protocol.MethodResourcesRead:
			if _, isObject := result.(*mcpkit.ObjectResult); isObject && call.Detached() {
				return result, nil // a task: f sees the texts when it runs
			}
			g := textGuard{func(text string) (string, error) { return f(ctx, call, text) }}
			return g.result(result)
		}
		return result, nil
	})
}

// A textGuard copies results and rewrites their texts.
type textGuard struct {
	f func(text string) (string, error)
}

func (g textGuard) result(result mcpkit.Result) (mcpkit.Result, error) {
	switch r := result.(type) {
	case *mcpkit.ToolResult:
		guarded := *r
		var err error
		if guarded.Content, err = mapSlice(r.Content, g.content); err != nil {
			return nil, err
		}
		structured, err := g.appendJSON(nil, r.StructuredContent.Raw())
		if err == nil {
			guarded.StructuredContent, err = mcpkit.ParseJSON(structured)
		}
		if err != nil {
			return nil, err
		}
		return &guarded, nil
	case *mcpkit.PromptResult:
		guarded := *r
		var err error
		guarded.Messages, err = mapSlice(r.Messages, func(m protocol.PromptMessage) (protocol.PromptMessage, error) {
			content, err := g.content(m.Content)
			return protocol.PromptMessage{Role: m.Role, Content: content}, err
		})
		return &guarded, err
	case *mcpkit.ResourceResult:
		guarded := *r
		var err error
		guarded.Contents, err = mapSlice(r.Contents, g.contents)
		return &guarded, err
	case *mcpkit.InputRequiredResult:
		return r, nil // questions to the client, and sealed state
	}
	return nil, fmt.Errorf("middleware: a result of type %T cannot be inspected", result)
}

func (g textGuard) content(c protocol.Content) (protocol.Content, error) {
	switch c := c.(type) {
	case *protocol.TextContent:
		guarded := *c
		var err error
		guarded.Text, err = g.f(c.Text)
		return &guarded, err
	case *protocol.EmbeddedResource:
		guarded := *c
		var err error
		guarded.Resource, err = g.contents(c.Resource)
		return &guarded, err
	case *protocol.ImageContent, *protocol.AudioContent, *protocol.ResourceLink:
		return c, nil
	}
	return nil, fmt.Errorf("middleware: content of type %T cannot be inspected", c)
}

func (g textGuard) contents(c protocol.ResourceContents) (protocol.ResourceContents, error) {
	if c.Text == nil {
		return c, nil
	}
	text, err := g.f(*c.Text)
	c.Text = &text
	return c, err
}

// appendJSON appends a JSON value with its strings rewritten.
func (g textGuard) appendJSON(b, value []byte) ([]byte, error) {
	switch jsonx.Kind(value) {
	case '"':
		text, err := g.f(jsonx.String(value))
		return jsonx.AppendString(b, text), err
	case '{':
		b = append(b, '{')
		for name, member := range jsonx.Members(value) {
			var err error
			if b, err = g.appendJSON(append(append(jsonx.AppendComma(b), name...), ':'), member); err != nil {
				return nil, err
			}
		}
		return append(b, '}'), nil
	case '[':
		b = append(b, '[')
		for element := range jsonx.Elements(value) {
			var err error
			if b, err = g.appendJSON(jsonx.AppendComma(b), element); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	}
	return append(b, value...), nil // nil stays nil
}

// mapSlice returns the results of f for each element. Nil stays nil.
func mapSlice[T any](list []T, f func(T) (T, error)) ([]T, error) {
	if list == nil {
		return nil, nil
	}
	mapped := make([]T, len(list))
	for i, v := range list {
		var err error
		if mapped[i], err = f(v); err != nil {
			return nil, err
		}
	}
	return mapped, nil
}

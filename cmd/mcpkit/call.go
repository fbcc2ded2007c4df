package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/internal/nearest"
	"github.com/mcpkit/mcpkit-go/jsonrpc"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// toolArguments reads name=text and name:=json.
func toolArguments(words []string) (map[string]any, error) {
	args := map[string]any{}
	for _, w := range words {
		name, value, found := strings.Cut(w, "=")
		raw := strings.HasSuffix(name, ":")
		name = strings.TrimSuffix(name, ":")
		if !found || name == "" {
			return nil, fmt.Errorf("%q is not an argument; write name=text or name:=json", w)
		}
		if _, twice := args[name]; twice {
			return nil, fmt.Errorf("the argument %q is given twice", name)
		}
		if !raw {
			args[name] = value
			continue
		}
		if !json.Valid([]byte(value)) {
			return nil, fmt.Errorf("argument %q: %q is not valid JSON; write %s=%s to send it as text", name, value, name, value)
		}
		args[name] = json.RawMessage(value)
	}
	return args, nil
}

// runCall is the command call.
func runCall(ctx context.Context, args []string, std streams) int {
	r, code, ok := newRemote("call", "call [flags] SERVER [--] TOOL [name=text | name:=json ...]\n\nCalls a tool. name=3, name=true, name=[1] and name={} are JSON where the tool wants a number, a bool,\nan array or an object.\n", args, std)
	if !ok {
		return code
	}
	if len(r.rest) == 0 {
		return r.usage("the name of the tool is missing; mcpkit list %s shows all tools", r.target)
	}
	named, err := toolArguments(r.rest[1:])
	var in any = named
	if err == nil && r.arguments != "" {
		switch {
		case len(r.rest) > 1:
			err = errors.New("use -json or arguments after the tool, not both")
		case !json.Valid([]byte(r.arguments)) || !strings.HasPrefix(strings.TrimSpace(r.arguments), "{"):
			err = fmt.Errorf(`-json %q is not a JSON object; write for example {"name": "value"}`, r.arguments)
		}
		in = json.RawMessage(r.arguments)
	}
	if err != nil {
		return r.usage("%v", err)
	}
	return r.with(ctx, func(c *client.Client) error {
		if err := asWanted(named, r.rest[0], c.Tools(ctx)); err != nil {
			return err
		}
		res, err := c.CallTool(ctx, r.rest[0], in, r.callOptions()...)
		if is[*jsonrpc.Error](err) {
			err = hint(err, r.rest[0], c.Tools(ctx), func(t *protocol.Tool) string { return t.Name })
		}
		if res == nil || err != nil && !r.asJSON {
			return err
		}
		return errors.Join(err, r.write(res, func() { r.writeContents(res.Content...) }))
	})
}

// asWanted replaces texts by the numbers, bools, arrays and objects that they spell, where the tool
// wants those. It asks the server for its tools only if there is such a text.
func asWanted(args map[string]any, name string, tools iter.Seq2[*protocol.Tool, error]) error {
	spelled := map[string]string{} // the type that the text of an argument spells
	for arg, value := range args {
		text, isText := value.(string)
		switch {
		case !isText || !json.Valid([]byte(text)):
		case text == "true" || text == "false":
			spelled[arg] = "boolean"
		case strings.HasPrefix(text, "["):
			spelled[arg] = "array"
		case strings.HasPrefix(text, "{"):
			spelled[arg] = "object"
		case strings.Trim(text[:1], "-0123456789") == "":
			spelled[arg] = "number"
		}
	}
	if len(spelled) == 0 {
		return nil
	}
	for tool, err := range tools {
		if err != nil {
			return err
		}
		if tool.Name != name {
			continue
		}
		var schema struct {
			Properties map[string]struct{ Type any }
		}
		if json.Unmarshal(tool.InputSchema, &schema) != nil {
			return nil // the server checks the arguments
		}
		for arg, kind := range spelled {
			if want := schema.Properties[arg].Type; want == kind || want == "integer" && kind == "number" {
				args[arg] = json.RawMessage(args[arg].(string))
			}
		}
		return nil
	}
	return nil
}

// hint adds to the error of a request what may have been meant, if the server lists nothing of the
// name.
func hint[T any](err error, name string, list iter.Seq2[T, error], nameOf func(T) string) error {
	var names []string
	for v, e := range list {
		if e != nil || nameOf(v) == name {
			return err
		}
		names = append(names, nameOf(v))
	}
	if hint := nearest.Hint(name, names); !strings.Contains(err.Error(), hint) {
		return fmt.Errorf("%w%s", err, hint)
	}
	return err
}

// runRead is the command read.
func runRead(ctx context.Context, args []string, std streams) int {
	r, code, ok := newRemote("read", "read [flags] SERVER URI\n\nReads a resource.\n", args, std)
	if !ok {
		return code
	}
	if len(r.rest) != 1 {
		return r.usage("write one URI after the server; mcpkit list %s shows the resources", r.target)
	}
	return r.with(ctx, func(c *client.Client) error {
		res, err := c.ReadResource(ctx, r.rest[0], r.callOptions()...)
		if is[*jsonrpc.Error](err) {
			return hint(err, r.rest[0], c.Resources(ctx), func(v *protocol.Resource) string { return v.URI })
		}
		if err != nil {
			return err
		}
		return r.write(res, func() {
			for _, part := range res.Contents {
				if part.Text != nil {
					r.out.printf("%s\n", clean(*part.Text))
				} else {
					r.out.printf("[%d bytes of %s]\n", len(part.Blob), clean(part.MIMEType))
				}
			}
		})
	})
}

// runPrompt is the command prompt.
func runPrompt(ctx context.Context, args []string, std streams) int {
	r, code, ok := newRemote("prompt", "prompt [flags] SERVER PROMPT [name=text ...]\n\nGets the messages of a prompt.\n", args, std)
	if !ok {
		return code
	}
	if len(r.rest) == 0 {
		return r.usage("the name of the prompt is missing; mcpkit list %s shows all prompts", r.target)
	}
	texts := map[string]string{}
	for _, w := range r.rest[1:] {
		name, value, found := strings.Cut(w, "=")
		if !found || name == "" {
			return r.usage("%q is not an argument; write name=text", w)
		}
		texts[name] = value
	}
	return r.with(ctx, func(c *client.Client) error {
		res, err := c.GetPrompt(ctx, r.rest[0], texts, r.callOptions()...)
		if is[*jsonrpc.Error](err) {
			return hint(err, r.rest[0], c.Prompts(ctx), func(p *protocol.Prompt) string { return p.Name })
		}
		if err != nil {
			return err
		}
		return r.write(res, func() {
			for _, m := range res.Messages {
				r.out.printf("%s\n", r.out.paint(bold, clean(string(m.Role))+":"))
				r.writeContents(m.Content)
			}
		})
	})
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/naming"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
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

func callCommand(std streams) *cobra.Command {
	var object string
	var start bool
	cmd := remoteCommand(std, &cobra.Command{
		Use:   "call SERVER TOOL [name=text | name:=json ...]",
		Short: "Call a tool of a server",
		Long: `Calls a tool. name=3, name=true, name=[1] and name={} are JSON where the tool
wants a number, a bool, an array or an object.

A server may run the tool as a task. The command follows it to its end, unless
--start is given; an interrupt cancels it.`,
	}, func(ctx context.Context, r *remote) error { return runCall(ctx, r, object, start) }, answerFlags, saveFlag)
	cmd.Flags().StringVar(&object, "json", "", "the arguments as a JSON `object`, instead of name=text and name:=json")
	cmd.Flags().BoolVar(&start, "start", false, "if the server makes a task of the call, print its ID and do not wait; mcpkit tasks shows the task")
	return cmd
}

// runCall is the command call. The object holds the arguments as JSON; it may be empty. Start says
// not to wait for a task.
func runCall(ctx context.Context, r *remote, object string, start bool) error {
	if len(r.rest) == 0 {
		return r.usage("the name of the tool is missing; mcpkit list %s shows all tools", r.target)
	}
	name := r.rest[0]
	named, err := toolArguments(r.rest[1:])
	var in any = named
	if err == nil && object != "" {
		switch {
		case len(r.rest) > 1:
			err = errors.New("use --json or arguments after the tool, not both")
		case !json.Valid([]byte(object)) || !strings.HasPrefix(strings.TrimSpace(object), "{"):
			err = fmt.Errorf(`--json %q is not a JSON object; write for example {"name": "value"}`, object)
		}
		in = json.RawMessage(object)
	}
	if err != nil {
		return r.usage("%v", err)
	}
	r.opts, r.later = append(r.opts, client.Tasks()), start
	return r.with(ctx, func(c *client.Client) error {
		if err := asWanted(named, name, c.Tools(ctx)); err != nil {
			return err
		}
		call := c.CallTool
		if start && c.Version().Modern() {
			call = func(ctx context.Context, name string, in any, opts ...client.CallOption) (*protocol.CallToolResult, error) {
				return r.start(ctx, c, name, in, opts)
			}
		}
		res, err := call(ctx, name, in, r.callOptions()...)
		if res == nil || err != nil && !r.asJSON {
			return err
		}
		return errors.Join(err, r.write(res, func() { r.writeToolResult(res) }, res.Content...))
	})
}

// writeToolResult writes a result as text. Servers repeat structured content as text, but need not.
func (r *remote) writeToolResult(res *protocol.CallToolResult) {
	r.writeContents(res.Content...)
	if len(res.Content) == 0 && res.StructuredContent != nil {
		r.out.printf("%s\n", clean(string(res.StructuredContent)))
	}
}

// asWanted replaces texts by the numbers, bools, arrays and objects that they spell, where the tool
// wants those. It asks the server for its tools only if there is such a text.
func asWanted(args map[string]any, name string, tools iter.Seq2[*protocol.Tool, error]) error {
	spelled := map[string]string{} // the type that the text of an argument spells
	for arg, value := range args {
		text, isText := value.(string)
		kind := map[byte]string{'t': "boolean", 'f': "boolean", '[': "array", '{': "object", '0': "number"}[jsonx.Kind([]byte(text))]
		if isText && json.Valid([]byte(text)) && kind != "" {
			spelled[arg] = kind
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
		for arg, kind := range spelled {
			want := jsonx.String(jsonx.Member(jsonx.Member(jsonx.Member(tool.InputSchema, "properties"), arg), "type"))
			if want == kind || want == "integer" && kind == "number" {
				args[arg] = json.RawMessage(args[arg].(string))
			}
		}
	}
	return nil
}

func readCommand(std streams) *cobra.Command {
	var watch bool
	cmd := remoteCommand(std, &cobra.Command{
		Use:   "read SERVER URI",
		Short: "Read a resource of a server",
		Long:  "Reads a resource.",
	}, func(ctx context.Context, r *remote) error { return runRead(ctx, r, watch) }, answerFlags, saveFlag)
	cmd.Flags().BoolVar(&watch, "watch", false, "read it again after each update, until it is interrupted")
	return cmd
}

// runRead is the command read.
func runRead(ctx context.Context, r *remote, watch bool) error {
	if len(r.rest) != 1 {
		return r.usage("write one URI after the server; mcpkit list %s shows the resources", r.target)
	}
	return r.with(ctx, func(c *client.Client) error {
		if !watch {
			return r.nearest(ctx, c, r.read(ctx, c))
		}
		updates, err := c.Listen(ctx, protocol.SubscriptionFilter{ResourceSubscriptions: r.rest})
		if err != nil {
			return err
		}
		defer updates.Close()
		if err := r.read(ctx, c); err != nil {
			return err
		}
		if len(updates.Filter().ResourceSubscriptions) == 0 {
			return fmt.Errorf("the server sends no updates of %s", r.rest[0])
		}
		for _, err := range updates.All(ctx) {
			if err != nil {
				return err
			}
			if err := r.read(ctx, c); err != nil {
				return err
			}
		}
		return nil
	})
}

// nearest adds to the error for an unknown URI the one that it may stand for.
func (r *remote) nearest(ctx context.Context, c *client.Client, err error) error {
	if rpc, ok := errors.AsType[*jsonrpc.Error](err); !ok || !strings.Contains(rpc.Message, "not found") {
		return err
	}
	var known []string
	l, _ := listAll(ctx, c) // without the lists there is no advice
	for _, v := range l.Resources {
		known = append(known, v.URI)
	}
	for _, v := range l.Templates {
		before, _, _ := strings.Cut(v.URITemplate, "{")
		known = append(known, before+path.Base(r.rest[0]))
	}
	hint := ""
	if !slices.Contains(known, r.rest[0]) {
		hint = naming.Hint(r.rest[0], known)
	}
	return fmt.Errorf("%w%s; mcpkit list %s shows the resources", err, hint, r.target)
}

// read reads the resource and writes its contents.
func (r *remote) read(ctx context.Context, c *client.Client) error {
	res, err := c.ReadResource(ctx, r.rest[0], r.callOptions()...)
	if err != nil {
		return err
	}
	var blocks []protocol.Content
	for _, part := range res.Contents {
		blocks = append(blocks, &protocol.EmbeddedResource{Resource: part})
	}
	return r.write(res, func() {
		if len(res.Contents) == 1 && res.Contents[0].Text != nil {
			r.out.printf("%s\n", clean(*res.Contents[0].Text))
			return
		}
		r.writeContents(blocks...)
	}, blocks...)
}

func promptCommand(std streams) *cobra.Command {
	return remoteCommand(std, &cobra.Command{
		Use:   "prompt SERVER PROMPT [name=text ...]",
		Short: "Get the messages of a prompt of a server",
		Long:  "Gets the messages of a prompt.",
	}, runPrompt, answerFlags, saveFlag)
}

// runPrompt is the command prompt.
func runPrompt(ctx context.Context, r *remote) error {
	if len(r.rest) == 0 {
		return r.usage("the name of the prompt is missing; mcpkit list %s shows all prompts", r.target)
	}
	named, err := toolArguments(r.rest[1:])
	if err != nil {
		return r.usage("%v", err)
	}
	args := map[string]string{}
	for name, value := range named {
		args[name] = fmt.Sprintf("%s", value)
	}
	return r.with(ctx, func(c *client.Client) error {
		res, err := c.GetPrompt(ctx, r.rest[0], args, r.callOptions()...)
		if err != nil {
			return err
		}
		var blocks []protocol.Content
		for _, m := range res.Messages {
			blocks = append(blocks, m.Content)
		}
		return r.write(res, func() {
			for _, m := range res.Messages {
				r.out.printf("%s\n", r.out.paint(bold, clean(string(m.Role))+":"))
				r.writeContents(m.Content)
			}
		}, blocks...)
	})
}

package main

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol"
)

func completeCommand(std streams) *cobra.Command {
	return remoteCommand(std, &cobra.Command{
		Use:   "complete SERVER PROMPT|TEMPLATE name=text [name=text ...]",
		Short: "complete an argument of a prompt or a resource template",
		Long: `Prints what the server suggests for the first argument, which may be empty so
far (name=). Further arguments are those that have a value already. A template
is the URI template of a resource, such as note://{id}.`,
	}, runComplete, completes(completePrompt))
}

// runComplete is the command complete.
func runComplete(ctx context.Context, r *remote) error {
	if len(r.rest) < 2 {
		return r.usage("write the name of a prompt or a URI template after the server, and name=text for the argument to complete")
	}
	args, err := texts(r.rest[1:])
	if err != nil {
		return r.usage("%v", err)
	}
	name, _, _ := strings.Cut(r.rest[1], "=")
	value := args[name]
	delete(args, name)
	return r.with(ctx, func(c *client.Client) error {
		res, err := c.Complete(ctx, reference(r.rest[0]), name, value, args)
		if err != nil {
			return err
		}
		return r.write(res, func() {
			for _, v := range res.Values {
				r.out.line(cleanLine(v))
			}
			if more := res.HasMore != nil && *res.HasMore; more && res.Total != nil {
				r.say("these are %d of %d values", len(res.Values), *res.Total)
			} else if more {
				r.say("the server has more values")
			}
		})
	})
}

// reference returns the reference to a prompt, or to the resource template with a URI template.
func reference(name string) protocol.CompletionRef {
	if strings.Contains(name, "{") || strings.Contains(name, "://") {
		return protocol.CompletionRef{Type: protocol.RefResource, URI: name}
	}
	return protocol.CompletionRef{Type: protocol.RefPrompt, Name: name}
}

func completionCommand(std streams) *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "print the script that completes commands in a shell",
		Long: `Prints a script for a shell that completes the commands and flags of mcpkit,
and names of tools, prompts, resources and arguments, which it requests from
the server. The shell must find mcpkit in PATH, and bash needs the package
bash-completion of the system.

  bash         source <(mcpkit completion bash)
  zsh          source <(mcpkit completion zsh)
  fish         mcpkit completion fish | source
  powershell   mcpkit completion powershell | Out-String | Invoke-Expression`,
		GroupID:   groupSetup,
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch root := cmd.Root(); args[0] {
			case "bash":
				return root.GenBashCompletionV2(std.out, true)
			case "zsh":
				return root.GenZshCompletion(std.out)
			case "fish":
				return root.GenFishCompletion(std.out, true)
			default:
				return root.GenPowerShellCompletionWithDesc(std.out)
			}
		},
	}
}

// completionTimeout limits how long a shell waits for a server.
const completionTimeout = 10 * time.Second

// A completer returns the words that may follow the complete words r.rest, from the server. The
// word so far is text.
type completer func(ctx context.Context, r *remote, c *client.Client, text string) ([]cobra.Completion, error)

// completes makes the shell complete the words after SERVER with f.
func completes(f completer) func(*remote, *cobra.Command) {
	return func(r *remote, cmd *cobra.Command) {
		cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, text string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return nil, cobra.ShellCompDirectiveDefault // a program
			}
			if f == nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			words, err := r.ask(cmd.Context(), args, func(ctx context.Context, c *client.Client) ([]cobra.Completion, error) { return f(ctx, r, c, text) })
			directive := cobra.ShellCompDirectiveNoFileComp
			if err != nil {
				return nil, directive | cobra.ShellCompDirectiveError
			}
			words = slices.DeleteFunc(words, func(w cobra.Completion) bool { return !strings.HasPrefix(w, text) })
			if slices.ContainsFunc(words, func(w cobra.Completion) bool { name, _, _ := strings.Cut(w, "\t"); return strings.HasSuffix(name, "=") }) {
				directive |= cobra.ShellCompDirectiveNoSpace
			}
			return words, directive
		}
	}
}

// ask dials for a shell: it prints nothing, asks nothing and opens no browser.
func (r *remote) ask(ctx context.Context, args []string, f func(ctx context.Context, c *client.Client) ([]cobra.Completion, error)) (words []cobra.Completion, err error) {
	if err := r.finish(args); err != nil {
		return nil, err
	}
	r.timeout = min(r.timeout, completionTimeout)
	if r.timeout == 0 {
		r.timeout = completionTimeout
	}
	r.err = newScreen(io.Discard)
	r.stdin, r.answers = nil, answers{}
	r.login.never = true
	err = r.with(ctx, func(c *client.Client) (err error) {
		words, err = f(ctx, c)
		return err
	})
	return words, err
}

// described returns a completion with a description.
func described(word, description string) cobra.Completion {
	first, _, _ := strings.Cut(strings.TrimSpace(description), "\n")
	return cobra.CompletionWithDesc(word, cleanLine(first))
}

// completeTool completes the name of a tool, and its arguments.
func completeTool(ctx context.Context, r *remote, c *client.Client, text string) (words []cobra.Completion, err error) {
	for tool, err := range c.Tools(ctx) {
		switch {
		case err != nil:
			return nil, err
		case len(r.rest) == 0:
			words = append(words, described(tool.Name, tool.Description))
		case tool.Name == r.rest[0]:
			return toolWords(tool, r.rest[1:], text), nil
		}
	}
	return words, nil
}

// toolWords completes an argument of a tool: its name, or its value if the schema lists the values.
func toolWords(tool *protocol.Tool, before []string, text string) (words []cobra.Completion) {
	var schema struct {
		Properties json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(tool.InputSchema, &schema) != nil {
		return nil
	}
	typed, _, hasValue := strings.Cut(text, "=")
	for key, raw := range jsonx.Members(schema.Properties) {
		name := jsonx.String(key)
		given := slices.ContainsFunc(before, func(w string) bool { return strings.HasPrefix(w, name+"=") || strings.HasPrefix(w, name+":=") })
		var member struct {
			Type        any               `json:"type"`
			Description string            `json:"description"`
			Enum        []json.RawMessage `json:"enum"`
		}
		if given || json.Unmarshal(raw, &member) != nil {
			continue
		}
		if !hasValue {
			words = append(words, described(name+"=", member.Description))
			continue
		}
		if name != typed {
			continue
		}
		if member.Type == "boolean" {
			member.Enum = []json.RawMessage{[]byte("true"), []byte("false")}
		}
		for _, v := range member.Enum {
			words = append(words, described(name+"="+plain(v), ""))
		}
	}
	return words
}

// completePrompt completes the name of a prompt, and its arguments.
func completePrompt(ctx context.Context, r *remote, c *client.Client, text string) (words []cobra.Completion, err error) {
	for prompt, err := range c.Prompts(ctx) {
		switch {
		case err != nil:
			return nil, err
		case len(r.rest) == 0:
			words = append(words, described(prompt.Name, prompt.Description))
		case prompt.Name == r.rest[0]:
			return promptWords(ctx, c, prompt, r.rest[1:], text)
		}
	}
	return words, nil
}

// promptWords completes an argument of a prompt: its name, or its value with the server's help.
func promptWords(ctx context.Context, c *client.Client, prompt *protocol.Prompt, before []string, text string) (words []cobra.Completion, err error) {
	known, err := texts(before)
	if err != nil {
		return nil, err
	}
	name, value, hasValue := strings.Cut(text, "=")
	if hasValue {
		return suggestions(ctx, c, reference(prompt.Name), name, value, known, name+"=", "")
	}
	for _, a := range prompt.Arguments {
		if _, given := known[a.Name]; !given {
			words = append(words, described(a.Name+"=", a.Description))
		}
	}
	return words, nil
}

// suggestions returns the server's completions of an argument, between the texts before and after.
func suggestions(ctx context.Context, c *client.Client, ref protocol.CompletionRef, name, value string, known map[string]string, before, after string) (words []cobra.Completion, err error) {
	if c.Capabilities().Completions == nil {
		return nil, nil
	}
	res, err := c.Complete(ctx, ref, name, value, known)
	if err != nil {
		return nil, err
	}
	for _, v := range res.Values {
		if v == cleanLine(v) { // others cannot be typed
			words = append(words, described(before+v+after, ""))
		}
	}
	return words, nil
}

// completeURI completes the URI of a resource, and the last variable of a resource template.
func completeURI(ctx context.Context, r *remote, c *client.Client, text string) (words []cobra.Completion, err error) {
	if r.name == "read" && len(r.rest) > 0 {
		return nil, nil
	}
	for v, err := range c.Resources(ctx) {
		if err != nil {
			return nil, err
		}
		words = append(words, described(v.URI, v.Description))
	}
	for v, err := range c.Templates(ctx) {
		if err != nil {
			return nil, err
		}
		before, rest, _ := strings.Cut(v.URITemplate, "{")
		name, after, _ := strings.Cut(rest, "}")
		value, begun := strings.CutPrefix(text, before)
		if begun && !strings.ContainsAny(name, "+#./;?&*:,") && !strings.Contains(after, "{") {
			more, err := suggestions(ctx, c, protocol.CompletionRef{Type: protocol.RefResource, URI: v.URITemplate}, name, value, nil, before, after)
			if err != nil {
				return nil, err
			}
			words = append(words, more...)
		}
	}
	return words, nil
}

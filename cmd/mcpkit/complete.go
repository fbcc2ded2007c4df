package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/protocol"
)

func completeCommand(std streams) *cobra.Command {
	return remoteCommand(std, &cobra.Command{
		Use:   "complete SERVER PROMPT|TEMPLATE name=text [name=text ...]",
		Short: "Complete an argument of a prompt or a resource template",
		Long: `Prints what the server suggests for the first argument, which may be empty so
far (name=). Further arguments are those that have a value already. A template
is the URI template of a resource, such as note://{id}.`,
	}, runComplete)
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

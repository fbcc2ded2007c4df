package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/protocol"
)

func pingCommand(std streams) *cobra.Command {
	return remoteCommand(std, &cobra.Command{
		Use:   "ping SERVER",
		Short: "Check that a server responds",
		Long: `Connects to a server, sends ping (server/discover to modern servers) and prints
how long the response took.`,
	}, runPing)
}

// A pong is the result of ping.
type pong struct {
	Server       protocol.Implementation `json:"server"`
	Version      protocol.Version        `json:"protocolVersion"`
	Milliseconds float64                 `json:"milliseconds"`
}

// runPing is the command ping.
func runPing(ctx context.Context, r *remote) error {
	return r.with(ctx, func(c *client.Client) error {
		begun := time.Now()
		if err := c.Ping(ctx); err != nil {
			return err
		}
		took := time.Since(begun)
		p := pong{c.Server(), c.Version(), float64(took.Microseconds()) / 1000}
		return r.write(p, func() {
			r.out.line(r.out.paint(bold, cleanLine(p.Server.Name)), cleanLine(p.Server.Version), fmt.Sprintf("responded in %.1f ms (%s)", p.Milliseconds, cleanLine(string(p.Version))))
		})
	})
}

func subscribeCommand(std streams) *cobra.Command {
	var count int
	cmd := remoteCommand(std, &cobra.Command{
		Use:   "subscribe SERVER [URI ...]",
		Short: "Print the changes of a server's lists and resources",
		Long: `Prints a line for each change until it is interrupted: changes of the lists of
tools, prompts and resources, and updates of the resources with the URIs. As
JSON, each line is an object.`,
	}, func(ctx context.Context, r *remote) error { return runSubscribe(ctx, r, count) })
	cmd.Flags().IntVar(&count, "count", 0, "end after this `number` of changes; 0 means never")
	return cmd
}

// A changeReport is a line of subscribe.
type changeReport struct {
	Changed string `json:"changed"` // tools, prompts, resources or resource
	URI     string `json:"uri,omitempty"`
}

// changeNames are the names of changes.
var changeNames = map[client.ChangeKind]string{
	client.ToolsChanged: "tools", client.PromptsChanged: "prompts", client.ResourcesChanged: "resources", client.ResourceUpdated: "resource",
}

// runSubscribe is the command subscribe. It ends after count changes, or never if count is zero.
func runSubscribe(ctx context.Context, r *remote, count int) error {
	if count < 0 {
		return r.usage("--count %d is negative", count)
	}
	return r.with(ctx, func(c *client.Client) error {
		has := c.Capabilities()
		s, err := c.Listen(ctx, protocol.SubscriptionFilter{
			ToolsListChanged:      has.Tools != nil,
			PromptsListChanged:    has.Prompts != nil,
			ResourcesListChanged:  has.Resources != nil,
			ResourceSubscriptions: r.rest,
		})
		if err != nil {
			return err
		}
		defer s.Close()
		r.saySubscribed(s.Filter())
		seen := 0
		for change, err := range s.All(ctx) {
			if err != nil {
				return err
			}
			if err := r.writeChange(changeReport{changeNames[change.Kind], change.URI}); err != nil {
				return err
			}
			if seen++; seen == count {
				return nil
			}
		}
		return nil
	})
}

// saySubscribed says what the server agreed to send.
func (r *remote) saySubscribed(f protocol.SubscriptionFilter) {
	text := ""
	for _, list := range []struct {
		agreed bool
		name   string
	}{{f.ToolsListChanged, "tools"}, {f.PromptsListChanged, "prompts"}, {f.ResourcesListChanged, "resources"}} {
		if list.agreed {
			text = joined(", ", text, "changes of the list of "+list.name)
		}
	}
	for _, uri := range f.ResourceSubscriptions {
		text = joined(", ", text, "updates of "+uri)
	}
	if text == "" {
		text = "nothing; the server sends none of these notifications"
	}
	r.say("subscribed to %s", clean(text))
}

func (r *remote) writeChange(change changeReport) error {
	if !r.asJSON {
		text := "the list of " + change.Changed + " changed"
		if change.URI != "" {
			text = "updated " + cleanLine(change.URI)
		}
		r.out.line(text)
		return nil
	}
	line, err := json.Marshal(change)
	if err == nil {
		r.out.printf("%s\n", cleanJSON(line))
	}
	return err
}

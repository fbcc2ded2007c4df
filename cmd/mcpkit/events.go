package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/ext/events"
	"github.com/mcpkit/mcpkit-go/protocol"
)

func eventsCommand(std streams) *cobra.Command {
	return remoteCommand(std, &cobra.Command{
		Use:   "events SERVER [NAME [name=text | name:=json ...]]",
		Short: "List the events of a server, or show one as it happens",
		Long: `Lists the events that a server tells of, and how: poll, push or webhook. With the
name of one, the command shows it each time that it happens, until it is
interrupted. The arguments say which occurrences: they are those of mcpkit call.`,
	}, runEvents)
}

// runEvents is the command events.
func runEvents(ctx context.Context, r *remote) error {
	args, err := toolArguments(r.rest[min(1, len(r.rest)):])
	if err != nil {
		return r.usage("%v", err)
	}
	return r.with(ctx, func(c *client.Client) error {
		all, err := collect(events.List(ctx, c))
		switch {
		case err != nil:
			return err
		case len(r.rest) > 0:
			return r.followEvent(ctx, c, all, args)
		}
		return r.write(all, func() {
			for _, d := range all {
				r.listed(cleanLine(strings.Join(d.Delivery, ",")), d.Name, d.Description)
			}
		})
	})
}

// followEvent shows an event, one of all, until an error.
func (r *remote) followEvent(ctx context.Context, c *client.Client, all []*events.Descriptor, args map[string]any) error {
	name := r.rest[0]
	for _, d := range all {
		like := &protocol.Tool{Name: d.Name, InputSchema: d.Input} // arguments are read as those of tools
		if err := asWanted(args, name, func(yield func(*protocol.Tool, error) bool) { yield(like, nil) }); err != nil {
			return err
		}
	}
	feed, err := events.Follow(ctx, c, "", name, args, events.Position{})
	if err != nil {
		return err
	}
	for e, err := range feed {
		if err == nil {
			err = r.write(e, func() { r.out.line(moment(e.Timestamp), clean(string(e.Data))) })
		}
		if errors.Is(err, events.ErrGap) {
			r.say("%v", err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

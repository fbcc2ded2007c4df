package main

import (
	"context"
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

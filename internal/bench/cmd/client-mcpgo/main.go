// Command client-mcpgo calls the floor server's tools with mcp-go's client.
package main

import (
	"github.com/mcpkit/mcpkit-go/internal/bench/internal/calls"
	"github.com/mcpkit/mcpkit-go/internal/bench/internal/mcpgo"
)

func main() { calls.Main(mcpgo.Connect) }

// Command client-floor calls the floor server's tools with a minimal client.
package main

import (
	"github.com/mcpkit/mcpkit-go/internal/bench/internal/calls"
	"github.com/mcpkit/mcpkit-go/internal/bench/internal/floor"
)

func main() { calls.Main(floor.Connect) }

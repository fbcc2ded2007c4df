// Command client-wire calls the floor server's tools with a minimal client that does not use
// net/http.
package main

import (
	"github.com/mcpkit/mcpkit-go/internal/bench/internal/calls"
	"github.com/mcpkit/mcpkit-go/internal/bench/internal/floor"
)

func main() { calls.Main(floor.ConnectWire) }

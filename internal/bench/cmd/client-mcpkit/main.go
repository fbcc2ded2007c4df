// Command client-mcpkit calls the floor server's tools with this project's client.
package main

import (
	"github.com/mcpkit/mcpkit-go/internal/bench/internal/calls"
	"github.com/mcpkit/mcpkit-go/internal/bench/internal/oursclient"
)

func main() { calls.Main(oursclient.Connect) }

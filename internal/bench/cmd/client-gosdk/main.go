// Command client-gosdk calls the floor server's tools with go-sdk's client.
package main

import (
	"github.com/mcpkit/mcpkit-go/internal/bench/internal/calls"
	"github.com/mcpkit/mcpkit-go/internal/bench/internal/gosdk"
)

func main() { calls.Main(gosdk.Connect) }

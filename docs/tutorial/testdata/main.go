// Command todo keeps a list of things to do.
package main

import (
	"log"

	"github.com/mcpkit/mcpkit-go/mcpkit"
)

func main() {
	if err := mcpkit.Serve(&Todo{}); err != nil {
		log.Fatal(err)
	}
}

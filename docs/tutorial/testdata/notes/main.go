// Command notes keeps short notes.
package main

import (
	"log"

	"github.com/mcpkit/mcpkit-go/mcpkit"
)

func main() {
	if err := mcpkit.Serve(NewNotes()); err != nil {
		log.Fatal(err)
	}
}

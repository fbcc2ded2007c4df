// Command mcpkit is a program with one tool, on stdio.
package main

import (
	"context"
	"log"

	"github.com/mcpkit/mcpkit-go/internal/bench/work"
	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// One is the service.
type One struct {
	_ mcpkit.Info `name:"one" version:"1"`
}

// Add adds.
func (*One) Add(in work.AddInput) work.AddOutput { return work.Add(in) }

func main() {
	if err := mcpkit.MustNew(&One{}).Serve(context.Background()); err != nil {
		log.Fatal(err)
	}
}

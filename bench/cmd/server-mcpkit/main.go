// Command server-mcpkit serves the benchmark's tools with this project.
package main

import (
	"context"
	"log"
	"net/http"

	"github.com/mcpkit/mcpkit-go/bench/internal/work"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

// Bench is the benchmark's service.
type Bench struct {
	_ mcpkit.Info `name:"bench" version:"1"`
}

// Add adds.
func (*Bench) Add(in work.AddInput) work.AddOutput { return work.Add(in) }

// Echo returns its text.
func (*Bench) Echo(in work.EchoInput) string { return in.Text }

// Search finds hits.
func (*Bench) Search(in work.SearchInput) work.SearchOutput { return work.Search(in) }

// Blob returns n bytes.
func (*Bench) Blob(in work.BlobInput) string { return work.Blob(in) }

func main() {
	srv, err := mcpkit.New(&Bench{})
	if err != nil {
		log.Fatal(err)
	}
	work.Main(
		func() http.Handler { return streamable.NewHandler(srv, nil) },
		func() error { return srv.Serve(context.Background()) },
	)
}

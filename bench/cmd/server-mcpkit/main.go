// Command server-mcpkit serves the benchmark's tools with this project.
package main

import (
	"context"
	"net/http"

	"github.com/mcpkit/mcpkit-go/bench/internal/ours"
	"github.com/mcpkit/mcpkit-go/bench/internal/work"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

func main() {
	s := ours.NewServer()
	work.Main(
		func() http.Handler { return streamable.NewHandler(s, nil) },
		func() error { return s.Serve(context.Background()) },
	)
}

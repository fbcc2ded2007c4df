// Command server-mcpkit serves the benchmark's tools with this project.
package main

import (
	"context"
	"net/http"

	"github.com/mcpkit/mcpkit-go/internal/bench/internal/ours"
	"github.com/mcpkit/mcpkit-go/internal/bench/internal/program"
	"github.com/mcpkit/mcpkit-go/internal/bench/internal/work"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

func main() {
	program.Main(func(tools int) program.Program {
		s := ours.NewServer()
		ours.Wide(s, tools-len(work.Names))
		return program.Program{
			HTTP: func(stateless bool) http.Handler {
				return streamable.NewHandler(s, &streamable.Options{Stateless: stateless, MaxSessions: 100_000, MaxSubscriptions: 100_000, MaxSubscriptionsTotal: 200_000})
			},
			Stdio:  func() error { return s.Serve(context.Background()) },
			Notify: func() { s.ResourceUpdated(work.URI) },
		}
	})
}

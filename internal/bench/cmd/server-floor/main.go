// Command server-floor serves the benchmark's tools with minimal, hand-written code.
package main

import (
	"net/http"
	"os"

	"github.com/mcpkit/mcpkit-go/internal/bench/internal/floor"
	"github.com/mcpkit/mcpkit-go/internal/bench/internal/program"
)

func main() {
	program.Main(func(tools int) program.Program {
		h := &floor.Handler{Server: floor.New(tools)}
		return program.Program{
			HTTP:   func(bool) http.Handler { return h },
			Stdio:  func() error { return h.Stdio(os.Stdin, os.Stdout) },
			Notify: h.Notify,
		}
	})
}

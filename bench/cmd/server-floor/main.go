// Command server-floor serves the benchmark's tools with minimal, hand-written code.
package main

import (
	"os"

	"github.com/mcpkit/mcpkit-go/bench/internal/floor"
	"github.com/mcpkit/mcpkit-go/bench/internal/work"
)

func main() {
	work.Main(floor.HTTP, func() error { return floor.Stdio(os.Stdin, os.Stdout) })
}

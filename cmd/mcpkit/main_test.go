package main

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"golang.org/x/tools/go/analysis/unitchecker"

	"github.com/mcpkit/mcpkit-go/internal/leaktest"
	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// asServer is the argument that makes the test program a server on standard input and output.
const asServer = "serve-notes"

func TestMain(m *testing.M) {
	switch {
	case slices.Contains(os.Args[1:], asServer):
		if err := mcpkit.Serve(newNotes()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	case calledByGoVet(os.Args[1:]):
		unitchecker.Main(analyzer)
	}
	// The modules that tests write must not download anything.
	for key, value := range map[string]string{"GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOWORK": "off"} {
		if err := os.Setenv(key, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	leaktest.VerifyTestMain(m)
}

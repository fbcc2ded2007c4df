package main

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// These arguments make the test program a server on standard input and output, a program that only
// fails, or the command line itself.
const (
	asCommand = "run-mcpkit"
	asServer  = "serve-notes"
	asLab     = "serve-lab"
	asFailure = "fail-at-once"
)

func TestMain(m *testing.M) {
	services := map[string]any{asServer: newNotes(), asLab: &Lab{}}
	for name, service := range services {
		if !slices.Contains(os.Args[1:], name) {
			continue
		}
		if err := mcpkit.Serve(service); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	switch {
	case len(os.Args) > 1 && os.Args[1] == asCommand:
		os.Args = os.Args[1:]
		main()
	case slices.Contains(os.Args[1:], asFailure):
		fmt.Fprintln(os.Stderr, time.Now().Format(time.RFC3339Nano), "cannot open the database; set MCPKIT_TEST_DSN")
		os.Exit(3)
	}
	// The modules that tests write must not download anything.
	for key, value := range map[string]string{"GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOWORK": "off"} {
		if err := os.Setenv(key, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	testkit.VerifyTestMain(m)
}

package dev

import (
	"fmt"
	"os"
	"testing"

	"github.com/mcpkit/mcpkit-go/internal/testkit"
)

func TestMain(m *testing.M) {
	// The modules that tests write must not download anything.
	for key, value := range map[string]string{"GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOWORK": "off"} {
		if err := os.Setenv(key, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	testkit.VerifyTestMain(m)
}

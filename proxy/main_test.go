package proxy_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// asChild is the argument that makes this binary a stdio server.
const asChild = "-serve-child"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == asChild {
		if err := mcpkit.Serve(&desk{waiting: make(chan struct{}, 64), ended: make(chan error, 64)}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	testkit.VerifyTestMain(m)
}

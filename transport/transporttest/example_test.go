package transporttest_test

import (
	"testing"

	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/inmem"
	"github.com/mcpkit/mcpkit-go/transport/transporttest"
)

// In a test of your transport, Run checks the whole contract. connect opens a connection to a server
// that serves h.
func ExampleRun() {
	_ = func(t *testing.T, connect transporttest.Connect) { // TestContract
		transporttest.Run(t, connect)
	}
	_ = func(t *testing.T, h transport.Handler) *inmem.Conn { // an end without bytes in between
		return inmem.Connect(t.Context(), h)
	}
}

//go:build !race

package client_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
)

// The number of allocations is nearly the same on every machine. It includes those of the canned
// server. The race detector adds more.
func TestCallsAllocateNoMoreThanTheyNeed(t *testing.T) {
	for _, test := range []struct {
		name   string
		target any
		opts   []client.DialOption
		most   float64
	}{
		{"HTTP", "http://example.com/mcp", []client.DialOption{client.HTTPClient(&http.Client{Transport: sums})}, 59},
		{"stream", client.Stream(sums.stream()), nil, 40},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := dialCanned(t, test.target, test.opts...)
			require.LessOrEqual(t, testing.AllocsPerRun(500, func() { callSum(t, c) }), test.most)
		})
	}
}

//go:build !race && !mcpkit_plain

package client_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
)

// Allocations are nearly the same on every machine, so they are held to what they are: those of the
// client and of the canned server, whose output is held to its schema. The race detector adds some
// of its own.
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

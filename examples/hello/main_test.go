package main

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcptest"
)

func TestGreet(t *testing.T) {
	mcptest.EachVersion(t, func(t *testing.T) *mcptest.Server { return mcptest.New(t, &Greeter{}) }, func(t *testing.T, s *mcptest.Server) {
		require.Equal(t, []string{"greet"}, s.List())
		s.Call("greet", map[string]any{"Name": "Ada"}).OK().Text("Hello, Ada!")
		s.Call("greet", nil).ErrorContains("/Name: ")
	})
}

// The program has ten lines of code, without blank lines and comments.
func TestTenLines(t *testing.T) {
	source, err := os.ReadFile("main.go")
	require.NoError(t, err)
	require.Len(t, regexp.MustCompile(`(?m)^\s*[^\s/].*$`).FindAll(source, -1), 10)
}

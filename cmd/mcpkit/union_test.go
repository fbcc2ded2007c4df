package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/cmd/mcpkit/internal/services"
)

// Unions are no fault to vet, and the words of their cases, of structs without a name and of parameters are generated.
func TestUnionsAndDescriptionsOfWhatHasNoName(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs")
	}
	dir := program(t, "union")
	found, costs, err := vetted(t, dir, ".")
	require.NoError(t, err)
	require.Empty(t, found)
	require.Len(t, costs, 1)
	require.Contains(t, costs[0], "example.com/prog.Canvas: 2 tools; tools/list is ")

	tools := listedTools(t, dir)
	require.Contains(t, tools, `"description":"A Circle is round."`)
	require.Contains(t, tools, `"description":"from the left"`)
	require.Contains(t, tools, `"times":{"type":"integer","description":"how often"}`)
	_, err = generator{}.in(t, dir, ".")
	require.NoError(t, err)
	file, err := os.ReadFile(filepath.Join(dir, services.GeneratedFile))
	require.NoError(t, err)
	for _, key := range []string{`"Circle.Radius"`, `"Group.Members"`, `"Canvas.Draw.Shape"`, `"Canvas.Draw.At.X"`} {
		require.Contains(t, string(file), key)
	}
	// The generated file says what the source says: the source's words are gone here.
	source := filepath.Join(dir, "main.go")
	text, err := os.ReadFile(source)
	require.NoError(t, err)
	var kept []string
	for line := range strings.Lines(string(text)) {
		code, _, _ := strings.Cut(line, "//")
		kept = append(kept, strings.TrimRight(code, " \t\n"))
	}
	require.NoError(t, os.WriteFile(source, []byte(strings.Join(kept, "\n")), 0o644))
	require.Equal(t, tools, listedTools(t, dir))
}

// listedTools runs the program and returns its answer to tools/list.
func listedTools(t *testing.T, dir string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "run", ".")
	cmd.Dir = dir
	cmd.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}` + "\n")
	out, err := cmd.Output()
	require.NoError(t, err)
	return string(out)
}

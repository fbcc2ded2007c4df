package main

import (
	"encoding/json"
	"encoding/xml"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcptest"
)

// TestPictureShowsTheProgram checks that each line of code, JSON and text in docs/walk.svg is one
// of this program, or of what it sends.
func TestPictureShowsTheProgram(t *testing.T) {
	file, err := os.ReadFile("../../docs/walk.svg")
	require.NoError(t, err)
	var picture struct {
		Texts []struct {
			Class string `xml:"class,attr"`
			Text  string `xml:",chardata"`
		} `xml:"text"`
	}
	require.NoError(t, xml.Unmarshal(file, &picture))

	source, err := os.ReadFile("notes.go")
	require.NoError(t, err)
	s := mcptest.New(t, NewNotes())
	var tools strings.Builder
	for tool, err := range s.Client().Tools(t.Context()) {
		require.NoError(t, err)
		require.NoError(t, json.NewEncoder(&tools).Encode(tool))
	}
	result, err := s.Client().CallTool(t.Context(), "search", map[string]any{"query": "first"})
	require.NoError(t, err)
	_, mistakes := s.Client().CallTool(t.Context(), "search", map[string]any{"querry": "first", "limit": 99})
	require.Error(t, mistakes)
	where := map[string]string{
		"go":     string(source),
		"json":   spaceless(tools.String()),
		"error":  mistakes.Error(),
		"result": string(result.StructuredContent),
	}
	seen := map[string]int{}
	for _, line := range picture.Texts {
		text := strings.TrimSpace(line.Text)
		if line.Class == "json" {
			text = spaceless(text)
		}
		if all, is := where[line.Class]; is {
			require.Contains(t, all, text)
			seen[line.Class]++
		}
	}
	require.Equal(t, map[string]int{"go": 8, "json": 6, "error": 3, "result": 1}, seen)
}

func spaceless(text string) string { return strings.ReplaceAll(text, " ", "") }

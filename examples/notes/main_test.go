package main

import (
	"flag"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/mcptest"
)

var _ = flag.Bool("update", false, "update the responses in the transcripts")

func TestMain(m *testing.M) { testkit.VerifyTestMain(m) }

// The transcripts contain the messages of client and server, in one folder for each family of
// versions.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "*", "*.txtar"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.ToSlash(file), func(t *testing.T) {
			srv, err := newServer(slog.New(slog.DiscardHandler))
			require.NoError(t, err)
			mcptest.New(t, srv).Replay(file)
		})
	}
}

func TestNotesAreAddedFoundAndDeleted(t *testing.T) {
	mcptest.EachVersion(t, func(t *testing.T) *mcptest.Server { return mcptest.New(t, NewNotes()) }, func(t *testing.T, s *mcptest.Server) {
		s.Call("add", AddInput{ID: "tea", Text: "Green tea: 80 degrees"}).OK().Text("kept tea")
		s.Call("add", AddInput{ID: "tea", Text: "x"}).Error(`there is a note "tea" already; choose another id`)
		s.Call("search", SearchInput{Query: "tea GREEN"}).OK().JSON(`[{"id": "tea", "text": "Green tea: 80 degrees"}]`)
		s.Call("delete", map[string]any{"id": "tea"}).OK()
		s.Call("search", SearchInput{Query: "tea"}).OK().JSON(`[]`)
	})
}

package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/ext/apps"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/mcptest"
)

func TestMain(m *testing.M) { testkit.VerifyTestMain(m) }

func serve(t *testing.T) *mcptest.Server { return mcptest.New(t, newBoard(), page) }

func TestTheBoardOnEachVersion(t *testing.T) {
	mcptest.EachVersion(t, serve, func(t *testing.T, s *mcptest.Server) {
		const start = `{"cards":[{"id":1,"title":"Write the page","column":"todo"},{"id":2,"title":"Test it in a browser","column":"todo"},{"id":3,"title":"Choose a name","column":"done"}]}`
		s.Call("show_board", nil).JSON(start)
		s.Call("move_card", map[string]any{"id": 1, "to": "done", "before": 3}).JSON(`{"cards":[{"id":2,"title":"Test it in a browser","column":"todo"},{"id":1,"title":"Write the page","column":"done"},{"id":3,"title":"Choose a name","column":"done"}]}`)
		s.Call("move_card", map[string]any{"id": 1, "to": "todo", "before": 2}).JSON(start)
		s.Call("move_card", map[string]any{"id": 1, "to": "todo", "before": 1}).JSON(start)
		s.Call("add_card", map[string]any{"title": " Rest "}).JSON(`{"cards":[{"id":1,"title":"Write the page","column":"todo"},{"id":2,"title":"Test it in a browser","column":"todo"},{"id":3,"title":"Choose a name","column":"done"},{"id":4,"title":"Rest","column":"todo"}]}`)
		s.Call("rename", map[string]any{"id": 4, "title": "Sleep"})
		s.Call("move_card", map[string]any{"id": 4, "to": "doing"})
		s.Call("show_board", nil).TextContains("## todo\n\n- 1: Write the page\n- 2: Test it in a browser\n\n## doing\n\n- 4: Sleep\n\n## done\n\n- 3: Choose a name\n")
	})
}

func TestMistakesOnTheBoard(t *testing.T) {
	s := serve(t)
	s.Call("add_card", map[string]any{"title": " "}).ErrorContains("a card needs a title")
	s.Call("move_card", map[string]any{"id": 9, "to": "done"}).ErrorContains("there is no card 9")
	s.Call("move_card", map[string]any{"id": 1, "to": "done", "before": 9}).ErrorContains("there is no card 9")
	s.Call("move_card", map[string]any{"id": 1, "to": "done", "before": 2}).ErrorContains("card 2 is in the column todo")
	s.Call("move_card", map[string]any{"id": 1, "to": "nowhere"}).ErrorContains(`want one of "todo", "doing" or "done"`)
	s.Call("rename", map[string]any{"id": 9, "title": "x"}).ErrorContains("there is no card 9")
}

func TestHostsThatShowThePageGetAShortText(t *testing.T) {
	srv, err := mcpkit.New(newBoard(), page)
	require.NoError(t, err)
	c, err := client.Dial(t.Context(), srv, client.Extension(apps.ID, map[string]any{"mimeTypes": []string{apps.MIMEType}}))
	require.NoError(t, err)
	defer c.Close()
	result, err := c.CallTool(t.Context(), "show_board", nil)
	require.NoError(t, err)
	require.Contains(t, string(result.StructuredContent), `"Choose a name"`)
	read, err := c.ReadResource(t.Context(), "ui://board")
	require.NoError(t, err)
	require.Contains(t, *read.Contents[0].Text, "mcpApp.connect")
	require.NotContains(t, *read.Contents[0].Text, `src=`, "the page is one document")
}

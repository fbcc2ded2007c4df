package protocol_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/protocol"
)

func TestServerCard(t *testing.T) {
	notes := protocol.Implementation{Name: "com.example/notes", Title: "Notes", Version: "1.2.0", Description: "Keeps."}
	card, err := protocol.ServerCard(notes, "https://example.com/mcp", []protocol.Version{protocol.V20260728})
	require.NoError(t, err)
	require.JSONEq(t, `{"$schema": "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
		"name": "com.example/notes", "title": "Notes", "version": "1.2.0", "description": "Keeps.", "remotes": [
		{"type": "streamable-http", "url": "https://example.com/mcp", "supportedProtocolVersions": ["2026-07-28"]}]}`, string(card))
	for _, test := range []struct{ name, version, description, title, url, want string }{
		{"notes", "1", "d", "", "", "is not like com.example/notes"},
		{"com.example/a/b", "1", "d", "", "", "is not like com.example/notes"},
		{"com.example/my notes", "1", "d", "", "", "is not like com.example/notes"},
		{"a/" + strings.Repeat("b", 199), "1", "d", "", "", "is not like com.example/notes"},
		{"a/b", "^1.2.0", "d", "", "", "is not one version"},
		{"a/b", "1", "", "", "", "the description needs 1 to 100"},
		{"a/b", "1", strings.Repeat("ä", 101), "", "", "the description needs 1 to 100"},
		{"a/b", "1", "d", strings.Repeat("a", 101), "", "a title at most 100"},
		{"a/b", "1", strings.Repeat("ä", 100), "", "example.com/mcp", "does not begin with http"},
	} {
		info := protocol.Implementation{Name: test.name, Version: test.version, Description: test.description, Title: test.title}
		_, err := protocol.ServerCard(info, test.url, nil)
		require.ErrorContains(t, err, test.want)
	}
}

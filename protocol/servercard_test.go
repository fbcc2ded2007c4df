package protocol_test

import (
	"cmp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/protocol"
)

func TestServerCard(t *testing.T) {
	notes := protocol.Implementation{Name: "com.example/notes", Title: "Notes", Version: "1.2.0", Description: "Keeps."}
	card, err := protocol.ServerCard(notes, "https://example.com/mcp", []protocol.Version{protocol.V20260728})
	require.NoError(t, err)
	require.JSONEq(t, `{
		"$schema": "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
		"name": "com.example/notes", "title": "Notes", "version": "1.2.0", "description": "Keeps.",
		"remotes": [{
			"type": "streamable-http", "url": "https://example.com/mcp", "supportedProtocolVersions": ["2026-07-28"]
		}]
	}`, string(card))
	for want, broken := range map[string][]protocol.Implementation{
		"is not like com.example/notes": {
			{Name: "notes"}, {Name: "/notes"}, {Name: "com.example/a/b"}, {Name: "com.example/my notes"},
			{Name: "a/" + strings.Repeat("b", 199)},
		},
		"is not one version": {{Version: "^1.2.0"}, {Version: strings.Repeat("1", 256)}},
		"the description needs 1 to 100": {
			{Description: "none"}, {Description: strings.Repeat("ä", 101)}, {Title: strings.Repeat("a", 101)},
		},
	} {
		for _, b := range broken {
			b.Name, b.Version = cmp.Or(b.Name, notes.Name), cmp.Or(b.Version, notes.Version)
			b.Description = strings.TrimPrefix(cmp.Or(b.Description, notes.Description), "none")
			_, err := protocol.ServerCard(b, "", nil)
			require.ErrorContains(t, err, want, "%+v", b)
		}
	}
	_, err = protocol.ServerCard(notes, "example.com/mcp", nil)
	require.ErrorContains(t, err, "does not begin with http")
	notes.Description = strings.Repeat("ä", 100)
	_, err = protocol.ServerCard(notes, "", nil)
	require.NoError(t, err)
}

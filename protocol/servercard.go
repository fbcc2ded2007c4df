package protocol

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

const alphanumeric = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// ServerCard returns the server card (SEP-2127), a JSON object that describes a server to clients that
// have not connected to it. If url is not "", the card names it as the address over Streamable HTTP. The
// error says which rule of the card's schema the server breaks.
func ServerCard(server Implementation, url string, supported []Version) ([]byte, error) {
	card := struct {
		Schema string `json:"$schema"`
		Implementation
		Remotes []map[string]any `json:"remotes,omitzero"`
	}{Schema: "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json", Implementation: server}
	if url != "" {
		card.Remotes = []map[string]any{{"type": "streamable-http", "url": url, "supportedProtocolVersions": supported}}
	}
	domain, name, _ := strings.Cut(server.Name, "/")
	named := domain != "" && name != "" && len(server.Name) <= 200 &&
		strings.Trim(domain, alphanumeric+".-") == "" && strings.Trim(name, alphanumeric+"._-") == ""
	described := utf8.RuneCountInString(server.Description)
	switch {
	case !named:
		return nil, fmt.Errorf("no server card: the name %q is not like com.example/notes", server.Name)
	case server.Version == "" || len(server.Version) > 255 || strings.ContainsAny(server.Version, "^~<>=*|"):
		return nil, fmt.Errorf("no server card: %q is not one version of at most 255 characters", server.Version)
	case described == 0 || described > 100 || utf8.RuneCountInString(server.Title) > 100:
		return nil, errors.New("no server card: the description needs 1 to 100 characters, and a title at most 100")
	case url != "" && !strings.HasPrefix(url, "http://") && !strings.HasPrefix(url, "https://"):
		return nil, fmt.Errorf("no server card: the URL %q does not begin with http:// or https://", url)
	}
	return jsonx.Marshal(card)
}

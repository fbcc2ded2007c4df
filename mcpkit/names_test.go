package mcpkit_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// disk is a service whose tools have names with a slash.
type disk struct {
	_ struct {
		Read  mcpkit.Tool   `name:"filesystem/read"`
		About mcpkit.Prompt `name:"filesystem/about"`
	}
}

func (*disk) Read() string  { return "read" }
func (*disk) About() string { return "about" }

func TestNamesWithASlashAreAccepted(t *testing.T) {
	long := strings.Repeat("a", 65)
	var log bytes.Buffer
	srv := newServer(t, &disk{}, mcpkit.Logger(slog.New(slog.NewTextHandler(&log, nil))))
	require.NoError(t, srv.Add(
		mcpkit.NewTool("größe", func() string { return "size" }), mcpkit.NewTool(long, func() string { return "long" }),
		mcpkit.NewTool("plain", func() string { return "" })))
	require.ErrorContains(t, srv.Add(mcpkit.NewTool("a\nb", func() {})), `name "a\nb" contains '\n'`)
	srv.MustMount("m", newServer(t, &disk{}))
	require.Empty(t, log.String(), "New, Add and Mount log nothing")
	for _, p := range []*peer{modern(t, srv), legacy(t, srv, protocol.V20251125)} {
		require.ElementsMatch(t, []string{long, "filesystem/read", "größe", "m_filesystem/read", "plain"}, names(t, p, "tools/list", "tools", "name"))
		require.Contains(t, p.result("tools/call", `{"name":"filesystem/read"}`), `"read"`)
		require.Contains(t, p.result("tools/call", `{"name":"m_filesystem/read"}`), `"read"`)
		require.Contains(t, p.result("tools/call", `{"name":"größe"}`), `"size"`)
		require.Contains(t, p.result("prompts/get", `{"name":"filesystem/about"}`), `"about"`)
	}
}

package mcpkit_test

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// A bakery has descriptions that a generated file has, too.
type bakery struct{}

// Bake bakes bread.
func (*bakery) Bake() {}

// Sell sells bread.
func (*bakery) Sell() {}

// Programs that run beside their source, as under go run, say that the generated file says something else.
func TestStaleDescriptionsAreLogged(t *testing.T) {
	const stale = `level=WARN msg="mcpkit: generated descriptions are stale; run go generate, or mcpkit gen" packages=[github.com/mcpkit/mcpkit-go/mcpkit_test]`
	logged := func(words map[string]string) string {
		mcpkit.RegisterWords("github.com/mcpkit/mcpkit-go/mcpkit_test", words)
		var log bytes.Buffer
		srv := newServer(t, &bakery{}, mcpkit.Logger(slog.New(slog.NewTextHandler(&log, nil))))
		require.NoError(t, srv.Start(t.Context()))
		require.NoError(t, srv.Close())
		return log.String()
	}
	require.Contains(t, logged(map[string]string{"bakery": "A bakery has descriptions that a generated file has, too."}), stale, "methods are new")
	require.Contains(t, logged(map[string]string{"bakery.Bake": "Bake baked bread.", "bakery.Sell": "Sell sells bread."}), stale, "a comment has changed")
	require.NotContains(t, logged(map[string]string{"bakery.Bake": "Bake bakes bread."}), "stale")
}

package boltfleet_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/fleet"
	_ "github.com/mcpkit/mcpkit-go/fleet/boltfleet"
)

func TestURLsOpenFiles(t *testing.T) {
	e, err := fleet.Open(t.Context(), "bolt://"+filepath.ToSlash(filepath.Join(t.TempDir(), "fleet.db")))
	require.NoError(t, err)
	require.NoError(t, e.Ping(t.Context()))
	require.NoError(t, e.Close())
	for _, wrong := range []string{"bolt:", "bolt://host/file", "bolt:///file?x=1"} {
		_, err := fleet.Open(t.Context(), wrong)
		require.ErrorContains(t, err, "write bolt:///path/of/the/file")
	}
}

package config_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/config"
)

// The settings for authorization servers that docs/howto/authorization-servers.md shows are valid.
func TestSettingsForAuthorizationServersAreValid(t *testing.T) {
	files, err := filepath.Glob("testdata/auth/*.yaml")
	require.NoError(t, err)
	require.Len(t, files, 4)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			c, err := config.Load(file)
			require.NoError(t, err)
			transports, err := c.Transports()
			require.NoError(t, err)
			require.Len(t, transports, 1)
		})
	}
}

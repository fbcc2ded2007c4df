package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/longtest"
)

func TestFaultsOfOtherPlatformsAreFound(t *testing.T) {
	longtest.Mark(t, "checks the standard library for three platforms")
	root := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
	}
	write("go.mod", "module example.com/m\n\ngo 1.26\n")
	write("m.go", "package m\n\nimport \"os\"\n\nvar _ = os.Getpid\n")
	for _, platform := range []string{"linux/386", "linux/arm64", "windows/amd64"} {
		faults, err := check(root, platform)
		require.NoError(t, err)
		assert.Empty(t, faults, platform)
	}

	write("big.go", "package m\n\nconst big int = 1 << 40\n")
	write("m_windows_test.go", "package m\n\nvar _ = missing\n")
	for platform, want := range map[string]string{"linux/386": "1 << 40", "windows/amd64": "undefined: missing"} {
		faults, err := check(root, platform)
		require.NoError(t, err)
		require.Len(t, faults, 1, platform)
		assert.Contains(t, faults[0], want)
	}
	faults, err := check(root, "linux/arm64")
	require.NoError(t, err)
	assert.Empty(t, faults)

	_, err = check(root, "linux")
	assert.EqualError(t, err, `platform "linux": write it as linux/386`)
}

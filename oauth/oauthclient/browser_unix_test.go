//go:build unix

package oauthclient_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/oauth/oauthclient"
)

func TestBrowserStartsWithoutAShell(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for _, name := range []string{"xdg-open", "open"} {
		script := "#!/bin/sh\nprintf '%s\\n' \"$#\" \"$1\" > '" + pipe + "'\n"
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(script), 0o700))
	}
	t.Setenv("PATH", dir)
	page := "https://as.example/authorize?state=$(id)`id`;id&x='\"|id>y"
	require.NoError(t, oauthclient.OpenBrowser(t.Context(), page))
	got, err := os.ReadFile(pipe) // returns when the program ends
	require.NoError(t, err)
	count, shown, _ := strings.Cut(strings.TrimSpace(string(got)), "\n")
	require.Equal(t, "1", count)
	require.Equal(t, page, shown)

	t.Setenv("PATH", filepath.Join(dir, "none"))
	err = oauthclient.OpenBrowser(t.Context(), page)
	require.ErrorContains(t, err, "executable file not found in $PATH")
	require.NotContains(t, err.Error(), "state")
}

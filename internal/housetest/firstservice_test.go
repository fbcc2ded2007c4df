package housetest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/testkit"
)

// step matches a file that the reader saves, or commands that the reader runs in the module.
var step = regexp.MustCompile("(?m)^<!-- (?:from (docs/tutorial/\\S+)|in the module, prints (\".*\")) -->\n```\\w*\n((?s:.*?))^```$")

// TestFirstServiceCanBeFollowed does what the page says, from top to bottom, in a new module: it saves
// each file as the page shows it, and runs each command. Only the files go.mod and go.sum are those
// of docs/tutorial, so that no command needs the network.
func TestFirstServiceCanBeFollowed(t *testing.T) {
	testkit.MarkLong(t, "builds programs")
	page, err := os.ReadFile(filepath.Join(root, "docs", "first-service.md"))
	require.NoError(t, err)
	clone, err := filepath.Abs(root)
	require.NoError(t, err)

	module := t.TempDir()
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(root, "docs", "tutorial", name))
		require.NoError(t, err)
		save(t, module, name, strings.Replace(string(text), "=> ../..", "=> "+clone, 1))
	}

	files, commands := map[string]bool{}, 0
	for _, m := range step.FindAllStringSubmatch(string(page), -1) {
		if m[1] != "" {
			name := filepath.Base(m[1])
			save(t, module, name, m[3])
			files[name] = true
			continue
		}
		var want string
		_, err := fmt.Sscanf(m[2], "%q", &want)
		require.NoError(t, err)
		out, err := inModule(t.Context(), module, m[3])
		require.NoError(t, err, "%s\n%s", m[3], out)
		require.Contains(t, out, want, m[3])
		commands++
	}
	require.Equal(t, 4, commands)

	// The page shows all files of the folder but main_test.go, which tests the echo app.
	sources, err := filepath.Glob(filepath.Join(root, "docs", "tutorial", "*.go"))
	require.NoError(t, err)
	require.Len(t, sources, len(files)+1)
	for _, file := range sources {
		name := filepath.Base(file)
		require.True(t, files[name] || name == "main_test.go", "docs/first-service.md does not show %s", file)
	}
}

func save(t *testing.T, folder, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644))
}

// inModule runs a script in a module outside of the repository, and returns its output.
func inModule(ctx context.Context, folder, script string) (string, error) {
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

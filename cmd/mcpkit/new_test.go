package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"

	"github.com/mcpkit/mcpkit-go/cmd/mcpkit/internal/scaffold"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
)

// A new module compiles and passes its tests, and vet and gen find nothing.
func TestNewModulesWork(t *testing.T) {
	t.Parallel()
	testkit.MarkLong(t, "builds a program")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	dir = filepath.Join(dir, "my shop")
	out, _ := said(t, exitOK, "new", dir, "--module", "example.com/my-shop", "--no-tidy")
	require.Contains(t, out, "wrote "+dir+"; next:\n")
	require.Contains(t, out, "\n  cd \""+dir+"\"\n")
	for _, args := range [][]string{{"vet", "./..."}, {"test", "./..."}} {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = dir
		output, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", output)
	}
	found, costs, err := vetted(t, dir, ".")
	require.NoError(t, err)
	require.Empty(t, found)
	require.Len(t, costs, 4)
	require.NoError(t, (&generator{dir: dir, check: true, stdout: os.Stderr}).run([]string{"."}))

	workflow, err := os.ReadFile(filepath.Join(dir, ".github", "workflows", "ci.yml"))
	require.NoError(t, err)
	var ci struct {
		Jobs map[string]struct{ Steps []map[string]any }
	}
	require.NoError(t, yaml.Load(workflow, &ci))
	require.Len(t, ci.Jobs["test"].Steps, 6)
	docker, err := os.ReadFile(filepath.Join(dir, "Dockerfile"))
	require.NoError(t, err)
	require.Contains(t, string(docker), `ENTRYPOINT ["/my-shop", "-http", ":8080"]`)

	manifest, err := os.ReadFile(filepath.Join(dir, "bundle", "manifest.json"))
	require.NoError(t, err)
	require.JSONEq(t, `{"manifest_version": "0.3", "name": "my-shop", "version": "0.1.0",
		"description": "Keeps items with a price, and finds them again.", "author": {"name": "The authors of example.com/my-shop"},
		"server": {"type": "binary", "entry_point": "my-shop", "mcp_config": {"command": "${__dirname}/my-shop"}}}`, string(manifest))

	for _, flag := range []string{"--echo", "--oauth"} {
		said(t, exitOK, "new", dir+flag, "--module", "example.com/my-shop", "--no-tidy", flag)
		cmd := exec.CommandContext(t.Context(), "go", "vet", "./...")
		cmd.Dir = dir + flag
		output, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", output)
	}

	_, errs := said(t, exitFault, "new", dir)
	require.Equal(t, "mcpkit new: "+dir+" is not empty; name a new folder\n", errs)
}

func TestWrongModulesAreNotWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "shop")
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{dir, "--module", "a b"}, `mcpkit new: "a b" is not a module path; write for example --module example.com/shop` + "\n"},
		{[]string{dir, "--module", "net/http"}, `mcpkit new: "net/http" is not a module path; write for example --module example.com/shop` + "\n"},
		{[]string{filepath.Join(dir, "-")}, `mcpkit new: "example.com/" is not a module path`},
		{[]string{dir, "--library", t.TempDir()}, " is not a clone of mcpkit; its go.mod should say module github.com/mcpkit/mcpkit-go\n"},
	} {
		_, errs := said(t, exitFault, append([]string{"new"}, test.args...)...)
		require.Contains(t, errs, test.want)
		require.NoDirExists(t, dir)
	}
	said(t, exitUsage, "new")
}

func TestNamesComeFromTheModulePath(t *testing.T) {
	for path, want := range map[string][2]string{
		"shop":                   {"Shop", "shop"},
		"example.com/my-shop.v2": {"MyShopV2", "my-shop-v2"},
		"example.com/2nd":        {"Service2nd", "2nd"},
		"item":                   {"ServiceItem", "item"},
	} {
		m := scaffold.Module{Path: path}
		require.Equal(t, want, [2]string{m.Type(), m.Name()})
	}
}

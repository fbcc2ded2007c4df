package main

import (
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/mcptest"
	"github.com/mcpkit/mcpkit-go/protocol"
)

func TestMain(m *testing.M) { testkit.VerifyTestMain(m) }

// workplace returns a module in a git repository with two commits. A file with a secret is beside
// the repository.
func workplace(t *testing.T) (root string) {
	parent, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	root = filepath.Join(parent, "root")
	write(t, parent, "secret", "not for you")
	write(t, root, "go.mod", "module example.com/sum\n\ngo 1.26\n")
	write(t, root, "sum.go", "// Package sum adds.\npackage sum\n\n// Add adds.\nfunc Add(a, b int) int { return a + b }\n")
	write(t, root, "data.bin", "\x00\x01\x02\xff")
	git(t, root, "init", "-q", "-b", "main")
	git(t, root, "add", "-A")
	git(t, root, "commit", "-q", "-m", "Add numbers")
	write(t, root, "doc/notes.txt", "one\ntwo\n")
	git(t, root, "add", "-A")
	git(t, root, "commit", "-q", "-m", "Take notes")
	require.NoError(t, os.Symlink("../secret", filepath.Join(root, "leak")))
	return root
}

func write(t *testing.T, dir, name, content string) {
	path := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
}

func git(t *testing.T, dir string, args ...string) {
	author := []string{"-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "commit.gpgsign=false"}
	cmd := exec.Command("git", append(author, args...)...)
	cmd.Dir, cmd.Env = dir, withoutGit(cmd.Environ())
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

func serve(t *testing.T, root string) *mcptest.Server {
	srv, err := newServer(root, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	return mcptest.New(t, srv)
}

type object = map[string]any

func TestFilesAreListedReadAndSearched(t *testing.T) {
	s := serve(t, workplace(t))
	s.Call("files_list", object{"path": "doc"}).OK().JSON(`[{"name":"notes.txt","dir":false}]`)
	s.Call("files_read", object{"path": "doc/notes.txt"}).OK().Text("one\ntwo\n")
	s.Call("files_search", object{"pattern": "^func A", "glob": "*.go"}).OK().
		JSON(`[{"path":"sum.go","line":5,"text":"func Add(a, b int) int { return a + b }"}]`)
	contents, err := s.Client().ReadResource(t.Context(), "file:///doc/notes.txt")
	require.NoError(t, err)
	require.Equal(t, "one\ntwo\n", *contents.Contents[0].Text)
}

func TestPathsThatLeaveTheRootAreRefused(t *testing.T) {
	s := serve(t, workplace(t))
	for _, path := range []string{"../secret", "/etc/passwd", "leak", "doc/../../secret"} {
		s.Call("files_read", object{"path": path}).ErrorContains("")
	}
	s.Call("files_list", object{"path": ".."}).ErrorContains("")
	_, err := s.Client().ReadResource(t.Context(), "file:///leak")
	require.Error(t, err)
	s.Call("files_search", object{"pattern": "not for you"}).OK().JSON(`[]`)
}

func TestGitReturnsTheHistory(t *testing.T) {
	s := serve(t, workplace(t))
	commits, err := client.Call[[]Commit](t.Context(), s.Client(), "git_log", object{"path": "sum.go"})
	require.NoError(t, err)
	require.Len(t, commits, 1)
	require.Equal(t, "Add numbers", commits[0].Subject)
	patch, err := client.Call[string](t.Context(), s.Client(), "git_show", object{})
	require.NoError(t, err)
	require.Contains(t, patch, "+two")
	s.Call("git_show", object{"revision": "HEAD:doc/notes.txt"}).OK().Text("one\ntwo\n")
	s.Call("git_log", object{"revision": "--output=x"}).ErrorContains("git ended with exit code 128")
	s.Call("git_log", object{"path": "../secret"}).ErrorContains("git ended with exit code 128")
}

func TestGitKeepsToItsDirectory(t *testing.T) {
	root := workplace(t)
	t.Setenv("GIT_DIR", filepath.Join(root, ".git"))
	s := serve(t, t.TempDir())
	s.Call("git_log", object{}).ErrorContains("not a git repository")
	s = serve(t, filepath.Join(root, "doc"))
	s.Call("git_log", object{}).ErrorContains("not a git repository")
}

func TestRepositoriesCannotRunPrograms(t *testing.T) {
	root := workplace(t)
	ran := filepath.Join(t.TempDir(), "ran")
	for _, key := range []string{"diff.x.textconv", "diff.x.command", "core.fsmonitor", "diff.external"} {
		git(t, root, "config", key, "touch "+ran+" #")
	}
	write(t, root, ".gitattributes", "* diff=x\n")
	s := serve(t, root)
	s.Call("git_show", object{}).OK()
	s.Call("git_log", object{}).OK()
	require.NoFileExists(t, ran)
}

func TestGoTestReportsFailuresAndProgress(t *testing.T) {
	testkit.MarkLong(t, "runs go test")
	root := workplace(t)
	write(t, root, "sum_test.go", `package sum

import "testing"

func TestAdd(t *testing.T) {
	if Add(1, 2) != 4 {
		t.Fatal(Add(1, 2))
	}
}
`)
	s := serve(t, root)
	var told []string
	out, err := client.Call[Output](t.Context(), s.Client(), "go_test", object{"run": "Add"},
		client.OnProgress(func(p *protocol.ProgressParams) { told = append(told, p.Message) }))
	require.NoError(t, err)
	require.Equal(t, 1, out.ExitCode)
	require.Contains(t, out.Output, "--- FAIL: TestAdd")
	require.Contains(t, strings.Join(told, "\n"), "--- FAIL: TestAdd")
}

func TestGoStaysInTheModule(t *testing.T) {
	s := serve(t, workplace(t))
	for _, pattern := range []string{"-exec=touch", "fmt", "../...", "./../x", "x@latest", "./sum.go"} {
		s.Call("go_test", object{"packages": []string{pattern}}).ErrorContains("is not a package of this module")
	}
}

package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/examples/internal/rawclient"
	"github.com/mcpkit/mcpkit-go/internal/leaktest"
)

// asProgram makes the test binary run as the program.
const asProgram = "WORKSTATION_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	leaktest.VerifyTestMain(m, func() { _ = os.RemoveAll(templates) })
}

// A lockedBuffer receives the log of a server.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) lines(containing string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var lines []string
	for line := range strings.Lines(b.buf.String()) {
		if strings.Contains(line, containing) {
			lines = append(lines, line)
		}
	}
	return lines
}

// serveOverHTTP serves root in the echo app and returns the app's address.
func serveOverHTTP(t *testing.T, root string) (url string, log *lockedBuffer) {
	log = &lockedBuffer{}
	logger := slog.New(slog.NewTextHandler(log, nil))
	srv, err := newServer(root, logger)
	require.NoError(t, err)
	app, handler := newApp(srv, logger)
	server := httptest.NewServer(app)
	t.Cleanup(func() {
		handler.Close()
		server.Close()
		require.NoError(t, srv.Close())
	})
	return server.URL, log
}

func overHTTP(t *testing.T, version, root string) *rawclient.Client {
	url, _ := serveOverHTTP(t, root)
	return rawclient.HTTP(t, version, url+"/mcp")
}

func overStdio(t *testing.T, version, root string) *rawclient.Client {
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self, "-root", root)
	cmd.Env = append(cmd.Environ(), asProgram+"=1")
	return rawclient.Stdio(t, version, cmd)
}

// everyWay runs facts for each family of versions on each transport, with a new server and
// workplace each time.
func everyWay(t *testing.T, facts func(t *testing.T, c *rawclient.Client, root string)) {
	ways := map[string]func(*testing.T, string, string) *rawclient.Client{"http": overHTTP, "stdio": overStdio}
	for name, connect := range ways {
		for _, version := range []string{rawclient.Legacy, rawclient.Modern} {
			t.Run(name+" "+version, func(t *testing.T) {
				t.Parallel()
				root := workplace(t)
				facts(t, connect(t, version, root), root)
			})
		}
	}
}

// workplace returns a module in a git repository with two commits and a change. A file with a
// secret is beside the repository.
func workplace(t *testing.T) string {
	template, err := firstWorkplace()
	require.NoError(t, err)
	parent, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, os.CopyFS(parent, os.DirFS(template)))
	root := filepath.Join(parent, "root")
	require.NoError(t, os.Symlink("../secret", filepath.Join(root, "leak")))
	require.NoError(t, os.Symlink("..", filepath.Join(root, "up")))
	return root
}

// templates is the folder of firstWorkplace. TestMain removes it.
var templates string

// firstWorkplace creates the files of a workplace once. Copying them is faster than running git
// again.
var firstWorkplace = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "workplace-*")
	templates = dir
	if err != nil {
		return "", err
	}
	root := filepath.Join(dir, "root")
	steps := []func() error{
		func() error { return writeFile(dir, "secret", "not for you") },
		func() error { return writeFile(root, "go.mod", "module example.com/sum\n\ngo 1.26\n") },
		func() error {
			return writeFile(root, "sum.go", "// Package sum adds.\npackage sum\n\n// Add adds.\nfunc Add(a, b int) int { return a + b }\n")
		},
		func() error {
			return writeFile(root, "sum_test.go", "package sum\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) {\n\tif Add(1, 2) != 3 {\n\t\tt.Fatal(Add(1, 2))\n\t}\n}\n")
		},
		func() error { return writeFile(root, "data.bin", "\x00\x01\x02\xff") },
		func() error { return runGit(root, "init", "-q", "-b", "main") },
		func() error { return runGit(root, "add", "-A") },
		func() error { return runGit(root, "commit", "-q", "-m", "Add numbers") },
		func() error { return writeFile(root, "doc/notes.txt", "one\ntwo\n") },
		func() error { return runGit(root, "add", "-A") },
		func() error { return runGit(root, "commit", "-q", "-m", "Take notes") },
		func() error { return writeFile(root, "doc/notes.txt", "one\nthree\n") },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return "", err
		}
	}
	return dir, nil
})

func write(t *testing.T, root, name, content string) {
	t.Helper()
	require.NoError(t, writeFile(root, name, content))
}

func writeFile(root, name, content string) error {
	path := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(content), 0o644)
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	require.NoError(t, runGit(dir, args...))
}

func runGit(dir string, args ...string) error {
	cmd := exec.Command("git", append([]string{"-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "commit.gpgsign=false"}, args...)...)
	cmd.Dir = dir
	cmd.Env = withoutGit(cmd.Environ())
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git %q: %w\n%s", args, err, out)
	}
	return nil
}

// refusal calls a tool that must fail, and returns the text of the tool error.
func refusal(t *testing.T, c *rawclient.Client, tool, args string) string {
	t.Helper()
	result := c.CallTool(tool, args)
	require.True(t, result.IsError, "%s %s", tool, args)
	return result.Text()
}

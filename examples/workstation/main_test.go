package main

import (
	"bytes"
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

// asProgram makes the test binary the program that it tests.
const asProgram = "WORKSTATION_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	leaktest.VerifyTestMain(m)
}

// A lockedBuffer is where servers log to.
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

// everyWay runs facts for a client of each era on each binding, every one with a server and a workplace of its own.
func everyWay(t *testing.T, facts func(t *testing.T, c *rawclient.Client, root string)) {
	ways := map[string]func(*testing.T, string, string) *rawclient.Client{"http": overHTTP, "stdio": overStdio}
	for name, connect := range ways {
		for _, version := range []string{rawclient.Legacy, rawclient.Modern} {
			t.Run(name+" "+version, func(t *testing.T) {
				root := workplace(t)
				facts(t, connect(t, version, root), root)
			})
		}
	}
}

// bothBindings is everyWay for facts that take long and that the era has no part in.
func bothBindings(t *testing.T, facts func(t *testing.T, c *rawclient.Client, root string)) {
	t.Run("http", func(t *testing.T) {
		root := workplace(t)
		facts(t, overHTTP(t, rawclient.Modern, root), root)
	})
	t.Run("stdio", func(t *testing.T) {
		root := workplace(t)
		facts(t, overStdio(t, rawclient.Legacy, root), root)
	})
}

// workplace is a module in a git repository with two commits and a change, and beside it a secret.
func workplace(t *testing.T) string {
	parent, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	root := filepath.Join(parent, "root")
	write(t, parent, "secret", "not for you")
	write(t, root, "go.mod", "module example.com/sum\n\ngo 1.26\n")
	write(t, root, "sum.go", "// Package sum adds.\npackage sum\n\n// Add adds.\nfunc Add(a, b int) int { return a + b }\n")
	write(t, root, "sum_test.go", "package sum\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) {\n\tif Add(1, 2) != 3 {\n\t\tt.Fatal(Add(1, 2))\n\t}\n}\n")
	write(t, root, "data.bin", "\x00\x01\x02\xff")
	git(t, root, "init", "-q", "-b", "main")
	commit(t, root, "Add numbers")
	write(t, root, "doc/notes.txt", "one\ntwo\n")
	commit(t, root, "Take notes")
	write(t, root, "doc/notes.txt", "one\nthree\n")
	require.NoError(t, os.Symlink("../secret", filepath.Join(root, "leak")))
	require.NoError(t, os.Symlink("..", filepath.Join(root, "up")))
	return root
}

func write(t *testing.T, root, name, content string) {
	t.Helper()
	path := filepath.Join(root, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "commit.gpgsign=false"}, args...)...)
	cmd.Dir = dir
	cmd.Env = withoutGit(cmd.Environ())
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
}

func commit(t *testing.T, root, subject string) {
	git(t, root, "add", "-A")
	git(t, root, "commit", "-q", "-m", subject)
}

// refusal is the text of the tool error that a call has to end with.
func refusal(t *testing.T, c *rawclient.Client, tool, args string) string {
	t.Helper()
	result := c.CallTool(tool, args)
	require.True(t, result.IsError, "%s %s", tool, args)
	return result.Text()
}

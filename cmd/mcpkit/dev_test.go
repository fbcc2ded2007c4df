package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
)

// A line is both ends of a connection.
type line struct {
	io.Reader
	io.WriteCloser
}

func TestDevServesOverStdioAndHTTP(t *testing.T) {
	t.Parallel()
	testkit.MarkLong(t, "builds a program")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	dir = filepath.Join(dir, "shop")
	said(t, exitOK, "new", dir, "--no-tidy")

	require.NoError(t, os.WriteFile(filepath.Join(dir, "arguments.go"),
		[]byte("package main\n\nimport (\n\t\"fmt\"\n\t\"os\"\n)\n\nfunc init() { fmt.Fprintf(os.Stderr, \"arguments %q\\n\", os.Args[1:]) }\n"), 0o644))

	// From another folder, as a chat client starts it.
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	var log testkit.Buffer
	ended := make(chan int)
	go func() {
		ended <- run(t.Context(), []string{"dev", dir, "--stdio", "--http", "127.0.0.1:0", "--", "-http", ""}, streams{in: in, out: out, err: &log})
	}()
	first, err := client.Dial(t.Context(), client.Stream(line{fromServer, toServer}), client.ProbeTimeout(3*time.Minute), client.Timeout(3*time.Minute))
	require.NoError(t, err)
	require.Equal(t, "shop", first.Server().Name)
	url := regexp.MustCompile(`\. in .*shop; clients connect to (http://127\.0\.0\.1:\d+/mcp)\n`).FindStringSubmatch(log.String())
	require.NotNil(t, url, "%s", &log)
	second, err := client.Dial(t.Context(), url[1])
	require.NoError(t, err)
	for _, c := range []*client.Client{first, second} {
		_, err := c.CallTool(t.Context(), "find", nil)
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool {
		return strings.Contains(log.String(), "mcpkit dev: ready: built in ")
	}, time.Minute, time.Millisecond)

	require.Contains(t, log.String(), `arguments ["-http" ""]`+"\n")

	source, err := os.ReadFile(filepath.Join(dir, "service.go"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "service.go"), append(source, "func broken() int { return nothing }\n"...), 0o644))
	require.Eventually(t, func() bool {
		return regexp.MustCompile(`mcpkit dev: the program does not build:\n# .*\n\./service\.go:\d+:28: undefined: nothing\n`).MatchString(log.String())
	}, 3*time.Minute, time.Millisecond, "%s", &log)
	_, err = second.CallTool(t.Context(), "find", nil)
	require.ErrorContains(t, err, "undefined: nothing")

	require.NoError(t, second.Close())
	require.NoError(t, first.Close())
	require.Equal(t, exitOK, <-ended, "it ends when the client on standard input disconnects")
}

// TestDevEndsWithAnInterrupt also opens the playground, whose stream must not delay the end.
func TestDevEndsWithAnInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var log testkit.Buffer
	ended := make(chan int)
	go func() {
		ended <- run(ctx, []string{"dev", "--http", "127.0.0.1:0", "."}, streams{in: strings.NewReader(""), out: io.Discard, err: &log})
	}()
	tryIt := regexp.MustCompile(`try it at (http://\S+/)#token=(\S+)\n`)
	require.Eventually(t, func() bool { return tryIt.MatchString(log.String()) }, time.Minute, time.Millisecond)
	found := tryIt.FindStringSubmatch(log.String())
	resp, err := http.Get(found[1])
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.StatusCode)
	_ = resp.Body.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, found[1]+"timeline", nil)
	require.NoError(t, err)
	req.Header.Set("Playground-Token", found[2])
	stream, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, stream.StatusCode)
	defer stream.Body.Close()
	cancel()
	require.Equal(t, exitOK, <-ended)
}

func TestWrongArgumentsOfDev(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	none := t.TempDir()
	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"a", "b"}, exitUsage, `mcpkit dev: "b" is one argument too many; write arguments of the program after --` + "\n"},
		{[]string{"go", "run", "./none"}, exitFault, "mcpkit dev: ./none is not a folder; name the folder of a package main\n"},
		{[]string{none}, exitFault, "mcpkit dev: " + none + " is in no module: neither it nor a folder above has a go.mod\n"},
		{[]string{"--login", "."}, exitFault, `mcpkit dev: --login and --logout need a server at an http or https URL; "." is not one` + "\n"},
		{[]string{"--http", "8080"}, exitFault, `mcpkit dev: --http "8080" is not an address; write for example 127.0.0.1:8080` + "\n"},
		{[]string{"--http", ":8080"}, exitFault, `mcpkit dev: --http ":8080" is not a loopback address, and dev lets everybody in who reaches it; write for example 127.0.0.1:8080` + "\n"},
		{[]string{"--http", "192.0.2.1:80"}, exitFault, "is not a loopback address"},
		{[]string{"--http", taken.Addr().String()}, exitFault, "address already in use"},
		{[]string{"--watch", "none"}, exitFault, "cannot watch "},
	} {
		_, errs := said(t, test.code, append([]string{"dev"}, test.args...)...)
		require.Contains(t, errs, test.want, "%q", test.args)
	}
}

func TestDevFindsTheProgram(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	shop, other := filepath.Join(root, "shop"), filepath.Join(root, "other")
	for _, dir := range []string{filepath.Join(shop, "cmd", "x"), other} {
		require.NoError(t, os.MkdirAll(dir, 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(shop, "go.mod"), []byte("module shop\n"), 0o644))
	for _, test := range []struct{ in, folder, named, dir, pkg string }{
		{shop, "", ".", shop, "."},
		{shop, "", "./cmd/x", shop, "./cmd/x"},
		{shop, "", "cmd/x", shop, "./cmd/x"},
		{filepath.Join(shop, "cmd"), "", ".", filepath.Join(shop, "cmd"), "."},
		{filepath.Join(shop, "cmd"), "", "..", filepath.Join(shop, "cmd"), ".."},
		{other, "", filepath.Join(shop, "cmd", "x"), shop, "./cmd/x"},
		{other, "", "../shop", shop, "."},
		{other, "../shop", "./cmd/x", shop, "./cmd/x"},
		{other, "../shop", "example.com/x", shop, "example.com/x"},
	} {
		t.Chdir(test.in)
		dir, pkg, err := findProgram(test.folder, test.named)
		require.NoError(t, err)
		require.Equal(t, [2]string{test.dir, test.pkg}, [2]string{dir, pkg}, "%v", test)
	}
}

package docsnippets

import (
	"crypto/tls"
	"crypto/x509"
	"debug/elf"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/internal/longtest"
)

// rooted matches an absolute path in a command.
var rooted = regexp.MustCompile(`(^|[\s=])(/[\w./-]*)`)

// dockerBuild does what a Dockerfile says without Docker: each stage is a folder, RUN is a command of
// this machine, and absolute paths are within the folder of the stage. It returns the folder of the
// last stage and its ENTRYPOINT. The images of FROM are not used, but that of the build must have the
// version of Go that go.mod asks for.
func dockerBuild(t *testing.T, file, from string, env ...string) (image string, entrypoint []string) {
	t.Helper()
	stages, work := map[string]string{}, ""
	within := func(stage, path string) string {
		if !filepath.IsAbs(path) {
			path = filepath.Join(work, path)
		}
		return filepath.Join(stage, path)
	}
	for line := range strings.Lines(file) {
		line = strings.TrimSpace(line)
		verb, rest, _ := strings.Cut(line, " ")
		args := strings.Fields(rest)
		switch verb {
		case "", "#", "EXPOSE":
		case "FROM":
			image, work = t.TempDir(), "/"
			if len(args) == 3 {
				require.Equal(t, "AS", args[1])
				stages[args[2]] = image
				gomod, err := os.ReadFile(filepath.Join(from, "go.mod"))
				require.NoError(t, err)
				version, ok := strings.CutPrefix(args[0], "golang:")
				require.True(t, ok, line)
				require.Contains(t, string(gomod), "\ngo "+version+".", "the image has the version of go.mod")
			}
		case "WORKDIR":
			work = args[0]
			require.NoError(t, os.MkdirAll(within(image, work), 0o755))
		case "COPY":
			source := from
			if name, ok := strings.CutPrefix(args[0], "--from="); ok {
				source, args = stages[name], args[1:]
				require.NotEmpty(t, source, line)
			}
			to := within(image, args[len(args)-1])
			for _, path := range args[:len(args)-1] {
				info, err := os.Stat(filepath.Join(source, path))
				require.NoError(t, err, line)
				if info.IsDir() {
					copyTree(t, source, path, to)
					continue
				}
				target := to
				if strings.HasSuffix(args[len(args)-1], "/") {
					target = filepath.Join(to, filepath.Base(path))
				}
				require.NoError(t, copyFile(filepath.Join(source, path), target))
			}
		case "RUN":
			cmd := exec.CommandContext(t.Context(), "sh", "-c", rooted.ReplaceAllString(rest, "${1}"+image+"$2"))
			cmd.Dir = within(image, work)
			cmd.Env = append(os.Environ(), append([]string{"GOWORK=off", "GOFLAGS="}, env...)...)
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s\n%s", line, out)
		case "ENTRYPOINT":
			require.NoError(t, json.Unmarshal([]byte(rest), &entrypoint), line)
		default:
			require.Fail(t, "this test does not know "+line)
		}
	}
	require.NotEmpty(t, entrypoint)
	entrypoint[0] = filepath.Join(image, entrypoint[0])
	return image, entrypoint
}

// copyTree copies the folder path of source, without what .dockerignore names. It replaces files.
func copyTree(t *testing.T, source, path, to string) {
	t.Helper()
	ignored := map[string]bool{}
	text, err := os.ReadFile(filepath.Join(source, ".dockerignore"))
	require.True(t, err == nil || os.IsNotExist(err), err)
	for line := range strings.Lines(string(text)) {
		ignored[strings.TrimSpace(line)] = true
	}
	from := filepath.Join(source, path)
	require.NoError(t, filepath.WalkDir(from, func(file string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, file)
		if err != nil {
			return err
		}
		if within, err := filepath.Rel(source, file); err != nil || ignored[within] {
			if e.IsDir() {
				return filepath.SkipDir
			}
			return err
		}
		target := filepath.Join(to, name)
		if e.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		return copyFile(file, target)
	}))
}

func copyFile(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	_ = os.Remove(to)
	return os.WriteFile(to, text, info.Mode().Perm())
}

// checkout copies the files of the repository that git knows or would add.
func checkout(t *testing.T, to string) {
	t.Helper()
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	files, err := list.Output()
	if err != nil {
		t.Skip("this is not a clone of the repository")
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(files), "\x00"), "\x00") {
		if _, err := os.Stat(filepath.Join(root, name)); err == nil { // else it is deleted, and not committed
			require.NoError(t, copyFile(filepath.Join(root, name), filepath.Join(to, name)))
		}
	}
}

// requireStatic checks that a program needs no files of the system, which the image does not have.
func requireStatic(t *testing.T, program string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		return
	}
	f, err := elf.Open(program)
	require.NoError(t, err)
	defer f.Close()
	for _, p := range f.Progs {
		require.NotEqual(t, elf.PT_INTERP, p.Type, "the program needs a dynamic linker")
	}
}

// TestDockerfileOfOpsWorks runs the program that the Dockerfile of the guide builds, with the arguments
// and the environment of the container, asks for what the probes of Kubernetes ask for, and calls a
// tool through nginx and Caddy.
func TestDockerfileOfOpsWorks(t *testing.T) {
	longtest.Mark(t, "builds programs")
	clone := t.TempDir()
	checkout(t, clone)
	_, entry := dockerBuild(t, deployFile(t, "Dockerfile"), clone)
	requireStatic(t, entry[0])
	addr := containerAddr(t, entry)
	const key = "OPS_KEY=0123456789abcdef0123456789abcdef"
	ops := exec.Command(entry[0], entry[1:]...)
	ops.Env, ops.Dir = []string{key}, "/"
	background(t, ops, t.TempDir())
	await(t, addr)

	paths := regexp.MustCompile(`httpGet: \{path: (\S+), port: http\}`).FindAllStringSubmatch(deployFile(t, "kubernetes.yaml"), -1)
	require.Len(t, paths, 3)
	for _, m := range paths {
		resp, err := http.Get("http://" + addr + m[1])
		require.NoError(t, err)
		_, _ = io.Copy(io.Discard, resp.Body)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.StatusOK, resp.StatusCode, m[1])
	}

	maker := exec.CommandContext(t.Context(), entry[0], "-token", "ann")
	maker.Env = []string{key}
	token, err := maker.Output()
	require.NoError(t, err)
	bearer := client.Header("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	find := func(t *testing.T, url string, opts ...client.DialOption) {
		t.Helper()
		_, err := client.Dial(t.Context(), url, opts...)
		require.ErrorContains(t, err, "401", "without a token")
		c, err := client.Dial(t.Context(), url, append(opts, bearer)...)
		require.NoError(t, err)
		defer c.Close()
		cents, err := client.Call[int](t.Context(), c, "find", map[string]string{"id": "A1"})
		require.NoError(t, err)
		require.Equal(t, 1999, cents)
	}
	find(t, "http://"+addr+"/mcp")
	for file, start := range map[string]func(t *testing.T, file string, addrs []string) (string, *x509.CertPool){"nginx.conf": startNginx, "Caddyfile": startCaddy} {
		t.Run(file, func(t *testing.T) {
			url, authority := start(t, file, []string{addr})
			transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authority, ServerName: "orders.example.com"}}
			defer transport.CloseIdleConnections()
			find(t, url, client.HTTPClient(&http.Client{Transport: named{transport}}))
		})
	}
	http.DefaultClient.CloseIdleConnections()
}

// containerAddr replaces the address of the entrypoint by a free one of this machine, and returns it.
func containerAddr(t *testing.T, entry []string) (addr string) {
	t.Helper()
	for i, arg := range entry {
		if arg == ":8080" {
			addr = freePort(t)
			entry[i] = addr
		}
	}
	require.NotEmpty(t, addr, "%q", entry)
	return addr
}

// TestDockerfileOfNewModulesWorks builds a module of mcpkit new as its Dockerfile says. The build gets
// neither a module cache nor the network, so it uses vendored modules only.
func TestDockerfileOfNewModulesWorks(t *testing.T) {
	longtest.Mark(t, "builds programs")
	shop := filepath.Join(t.TempDir(), "shop")
	for _, args := range [][]string{{root, "go", "run", "./cmd/mcpkit", "new", shop}, {shop, "go", "mod", "vendor"}} {
		cmd := exec.CommandContext(t.Context(), args[1], args[2:]...)
		cmd.Dir = args[0]
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	file, err := os.ReadFile(filepath.Join(shop, "Dockerfile"))
	require.NoError(t, err)
	require.Contains(t, string(file), "run this first: go mod vendor")
	image, entry := dockerBuild(t, string(file), shop, "GOMODCACHE="+t.TempDir(), "GOPROXY=off")
	require.Equal(t, filepath.Join(image, "shop"), entry[0])
	requireStatic(t, entry[0])
	addr := containerAddr(t, entry)
	program := exec.Command(entry[0], entry[1:]...)
	program.Env, program.Dir = []string{}, "/"
	background(t, program, t.TempDir())
	await(t, addr)
	c, err := client.Dial(t.Context(), "http://"+addr+"/mcp")
	require.NoError(t, err)
	defer c.Close()
	found := 0
	for tool, err := range c.Tools(t.Context()) {
		require.NoError(t, err)
		found++
		require.NotEmpty(t, tool.Description, "the program has its descriptions without its source")
	}
	require.NotZero(t, found)
}

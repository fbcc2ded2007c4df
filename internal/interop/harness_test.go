// Package interop tests this project with other SDKs, in both directions. Its tests are rows: a
// client at a server, over a transport, in a version of the protocol. The rows with the TypeScript
// SDKs need what run.sh installs.
package interop

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	modern = "2026-07-28"
	latest = "2025-11-25" // of the legacy versions
)

var versions = []string{"2024-11-05", "2025-03-26", "2025-06-18", latest, modern}

// timeout ends a row, or the start or end of a server, that hangs. It is long because the machine
// may be busy.
const timeout = 5 * time.Minute

var (
	binaries string // the folder of the programs
	rows     atomic.Int32
)

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if binaries, err = os.MkdirTemp("", "interop"); err != nil {
			panic(err)
		}
		defer os.RemoveAll(binaries)
		code := m.Run()
		if rows.Load() == 0 {
			fmt.Printf("no row has all of %q in its name\n", os.Getenv("INTEROP_ROWS"))
			return 1
		}
		return code
	}())
}

// row runs f as a subtest, if INTEROP_ROWS is empty or each of its lines occurs in the name.
func row(t *testing.T, f func(t *testing.T), words ...string) {
	name := strings.Join(words, " ")
	for word := range strings.SplitSeq(os.Getenv("INTEROP_ROWS"), "\n") {
		if !strings.Contains(name, word) {
			return
		}
	}
	rows.Add(1)
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		f(t)
	})
}

// A target is a server for a client: a command to start, or a URL.
type target struct {
	Command string   `json:"command,omitempty"`
	Args    []string `json:"args,omitempty"`
	URL     string   `json:"url,omitempty"`
	SSE     bool     `json:"sse,omitempty"` // the URL is that of HTTP+SSE
}

var (
	building sync.Mutex
	built    = map[string]string{} // by package; guarded by building
)

// program builds a program of this repository, once, and returns its path.
func program(t *testing.T, pkg string) string {
	building.Lock()
	defer building.Unlock()
	if built[pkg] == "" {
		path := filepath.Join(binaries, filepath.Base(pkg))
		cmd := exec.Command("go", "build", "-o", path, "./"+pkg)
		cmd.Dir = "../.."
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		built[pkg] = path
	}
	return built[pkg]
}

// fixture starts internal/conformance/server for a row.
func fixture(t *testing.T, transport string) target {
	path := program(t, "internal/conformance/server")
	if transport == "stdio" {
		return target{Command: path, Args: []string{"-stdio"}}
	}
	addr := serve(t, func(addr string) *exec.Cmd { return exec.Command(path, "-addr", addr) })
	if transport == "sse" {
		return target{URL: "http://" + addr + "/sse", SSE: true}
	}
	return target{URL: "http://" + addr + "/mcp"}
}

// notes starts examples/notes for a row.
func notes(t *testing.T, transport string) target {
	path := program(t, "examples/notes")
	if transport == "stdio" {
		return target{Command: path}
	}
	addr := serve(t, func(addr string) *exec.Cmd { return exec.Command(path, "-http", addr) })
	return target{URL: "http://" + addr + "/mcp"}
}

// serve starts a program that serves HTTP, waits until it accepts connections, and returns its
// address. At the end of the test the program must end on a signal, with exit code 0.
func serve(t *testing.T, command func(addr string) *exec.Cmd) (addr string) {
	return serveUntil(t, syscall.SIGTERM, command)
}

func serveUntil(t *testing.T, stop os.Signal, command func(addr string) *exec.Cmd) (addr string) {
	addr = freeAddr(t)
	cmd := command(addr)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	// Ends with the program.
	go func() { ended <- cmd.Wait() }()
	for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			require.NoError(t, conn.Close())
			break
		}
		select {
		case err := <-ended:
			t.Fatalf("%v ended: %v: %s", cmd.Args, err, &out)
		default:
			require.Less(t, time.Since(begun), timeout, "%v does not accept connections", cmd.Args)
		}
	}
	t.Cleanup(func() {
		require.NoError(t, cmd.Process.Signal(stop))
		defer time.AfterFunc(timeout, func() { _ = cmd.Process.Kill() }).Stop()
		require.NoError(t, <-ended, "%v: %s", cmd.Args, &out)
	})
	return addr
}

// freeAddr returns a loopback address whose port is free now.
func freeAddr(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}

// node returns a command that runs a script of ts with a task. Without what run.sh installs, it
// skips the test.
func node(t *testing.T, script string, task any) *exec.Cmd {
	scripts := os.Getenv("INTEROP_NODE")
	if scripts == "" {
		t.Skip("the TypeScript SDKs are missing; run internal/interop/run.sh")
	}
	text, err := json.Marshal(task)
	require.NoError(t, err)
	path, err := exec.LookPath("node")
	require.NoError(t, err)
	return exec.Command(path, filepath.Join(scripts, script), string(text))
}

// runNode runs a script of ts, whose tests must pass.
func runNode(t *testing.T, script string, task any) {
	cmd := node(t, script, task)
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	limited := exec.CommandContext(ctx, cmd.Path, cmd.Args[1:]...)
	out, err := limited.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

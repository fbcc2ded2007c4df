package mcpkit_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

// streamMemory makes the test binary the server of TestLargeResourcesNeedLittleMemory.
const streamMemory = "MCPKIT_STREAM_MEMORY"

// A lake has a resource of one GiB, which is nowhere in memory.
type lake struct {
	_ struct {
		Water mcpkit.Resource `uri:"lake://water" mime:"application/octet-stream" timeout:"0"`
	}
}

const lakeBytes = 1 << 30

func (*lake) Water() io.Reader { return io.LimitReader(water{}, lakeBytes) }

type water struct{}

func (water) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// TestServeLake is the server, in a process of its own so that nobody else's memory counts. It prints its URL and ends with
// its input.
func TestServeLake(t *testing.T) {
	if os.Getenv(streamMemory) != "serve" {
		t.Skip("the server of TestLargeResourcesNeedLittleMemory")
	}
	handler := streamable.NewHandler(newServer(t, &lake{}), nil)
	server := httptest.NewServer(handler)
	fmt.Printf("URL %s\n", server.URL)
	_, _ = io.Copy(io.Discard, os.Stdin)
	handler.Close()
	server.Close()
}

// A resource that is an io.Reader is sent as it is read: a GiB of it, 1.33 GiB as base64 on the wire, leaves the server's
// peak below 64 MiB.
func TestLargeResourcesNeedLittleMemory(t *testing.T) {
	if os.Getenv(streamMemory) == "" {
		t.Skip("takes some seconds of two processors; set " + streamMemory + "=1")
	}
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("the peak is read from /proc")
	}
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestServeLake$", "-test.v")
	cmd.Env = append(os.Environ(), streamMemory+"=serve")
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(stdout)
	url := ""
	for url == "" && lines.Scan() {
		_, url, _ = strings.Cut(lines.Text(), "URL ")
	}
	require.NotEmpty(t, url)

	n := readLake(t, url)
	require.Greater(t, n, int64(lakeBytes)/3*4)
	peak := peakKiB(t, cmd.Process.Pid)
	t.Logf("%d bytes on the wire; the server's peak was %d KiB", n, peak)
	require.Less(t, peak, 64<<10)

	require.NoError(t, stdin.Close())
	_, _ = io.Copy(io.Discard, stdout)
	require.NoError(t, cmd.Wait())
}

// readLake reads the resource to its end and returns how long the answer was.
func readLake(t *testing.T, url string) int64 {
	t.Helper()
	const read = `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"lake://water","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(read))
	require.NoError(t, err)
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "resources/read", "Mcp-Name": "lake://water",
	} {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	var head, tail bytes.Buffer
	first, err := io.CopyN(&head, resp.Body, 200)
	require.NoError(t, err, head.String())
	require.Contains(t, head.String(), `"blob":"AAAA`)
	n, err := io.Copy(&lastBytes{&tail}, resp.Body)
	require.NoError(t, err)
	require.Contains(t, tail.String(), `"resultType":"complete"`)
	return first + n
}

// lastBytes keeps the end of what is written.
type lastBytes struct{ kept *bytes.Buffer }

func (l *lastBytes) Write(p []byte) (int, error) {
	const enough = 1 << 10
	l.kept.Write(p[max(0, len(p)-enough):])
	if over := l.kept.Len() - enough; over > 0 {
		l.kept.Next(over)
	}
	return len(p), nil
}

// peakKiB is the most memory that a process ever had resident.
func peakKiB(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, err := strconv.Atoi(strings.Fields(rest)[0])
			require.NoError(t, err)
			return n
		}
	}
	t.Fatal("no VmHWM in /proc/PID/status")
	return 0
}

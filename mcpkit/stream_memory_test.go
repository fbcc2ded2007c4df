//go:build !race

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

	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

// streamMemory makes the test binary the server of TestLargeResourcesNeedLittleMemory.
const streamMemory = "MCPKIT_STREAM_MEMORY"

// A lake has a resource of one GiB, which is never in memory as a whole.
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

// TestServeLake is the server. It runs in a process of its own, so that only its memory counts. It
// serves over HTTP and prints its URL, or on its standard streams, and ends with its input.
func TestServeLake(t *testing.T) {
	srv := newServer(t, &lake{})
	switch os.Getenv(streamMemory) {
	case "http":
		handler := streamable.NewHandler(srv, nil)
		server := httptest.NewServer(handler)
		fmt.Printf("URL %s\n", server.URL)
		_, _ = io.Copy(io.Discard, os.Stdin)
		handler.Close()
		server.Close()
	case "stdio":
		require.NoError(t, srv.Serve(t.Context()))
	default:
		t.Skip("the server of TestLargeResourcesNeedLittleMemory")
	}
}

// A resource that is an io.Reader is sent while it is read. For a GiB, which is 1.33 GiB as base64,
// the peak of the server's memory stays below 64 MiB, and so does its heap.
func TestLargeResourcesNeedLittleMemory(t *testing.T) {
	testkit.MarkLong(t, "takes some seconds of two processors")
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("the peak is read from /proc")
	}
	const params = `{"uri":"lake://water","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}`
	const read = `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":` + params + "}\n"
	for way, ask := range map[string]func(stdin io.Writer, stdout *bufio.Reader) io.ReadCloser{
		"http": func(_ io.Writer, stdout *bufio.Reader) io.ReadCloser {
			line, err := stdout.ReadString('\n')
			require.NoError(t, err)
			url, ok := strings.CutPrefix(strings.TrimSpace(line), "URL ")
			require.True(t, ok, line)
			return postLake(t, url, read)
		},
		"stdio": func(stdin io.Writer, stdout *bufio.Reader) io.ReadCloser {
			_, err := io.WriteString(stdin, read)
			require.NoError(t, err)
			return io.NopCloser(&oneLine{r: stdout})
		},
	} {
		t.Run(way, func(t *testing.T) {
			self, err := os.Executable()
			require.NoError(t, err)
			cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestServeLake$")
			cmd.Env = append(os.Environ(), streamMemory+"="+way)
			stdin, err := cmd.StdinPipe()
			require.NoError(t, err)
			pipe, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			stdout := bufio.NewReaderSize(pipe, 64<<10)

			response := ask(stdin, stdout)
			n := readLake(t, response)
			require.NoError(t, response.Close())
			require.Greater(t, n, int64(lakeBytes)/3*4)
			peak := peakKiB(t, cmd.Process.Pid)
			t.Logf("%d bytes on the wire; the server's peak was %d KiB", n, peak)
			require.Less(t, peak, 64<<10)

			require.NoError(t, stdin.Close())
			_, _ = io.Copy(io.Discard, stdout)
			require.NoError(t, cmd.Wait())
		})
	}
}

// oneLine reads r to the end of a line.
type oneLine struct {
	r    *bufio.Reader
	over bool
}

func (l *oneLine) Read(p []byte) (int, error) {
	if l.over {
		return 0, io.EOF
	}
	if _, err := l.r.Peek(1); err != nil {
		return 0, io.ErrUnexpectedEOF
	}
	n := min(len(p), l.r.Buffered())
	ahead, _ := l.r.Peek(n) // it is buffered
	if i := bytes.IndexByte(ahead, '\n'); i >= 0 {
		ahead, l.over = ahead[:i+1], true
	}
	n = copy(p, ahead)
	_, _ = l.r.Discard(n)
	return n, nil
}

// postLake asks for the resource over HTTP.
func postLake(t *testing.T, url, read string) io.ReadCloser {
	t.Helper()
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
	require.Equal(t, http.StatusOK, resp.StatusCode)
	return resp.Body
}

// readLake reads the response to its end and returns how long it was.
func readLake(t *testing.T, response io.Reader) int64 {
	t.Helper()
	var head, tail bytes.Buffer
	first, err := io.CopyN(&head, response, 200)
	require.NoError(t, err, head.String())
	require.Contains(t, head.String(), `"blob":"AAAA`)
	n, err := io.Copy(&lastBytes{&tail}, response)
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

// peakKiB returns the peak of the resident memory of a process.
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

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/ext/tasks"
	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/fleet/boltfleet"
	_ "github.com/mcpkit/mcpkit-go/fleet/redisfleet"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

// stores returns functions that open another engine of one store.
func stores(b *testing.B) map[string]func() fleet.Engine {
	must := func(e fleet.Engine, err error) fleet.Engine {
		require.NoError(b, err)
		return e
	}
	memory := fleet.NewMemory(fleet.MemoryOptions{})
	b.Cleanup(func() { require.NoError(b, memory.Close()) })
	all := map[string]func() fleet.Engine{
		"none":   func() fleet.Engine { return nil },
		"memory": func() fleet.Engine { return memory.Open() },
		"bbolt":  func() fleet.Engine { return must(boltfleet.Open(filepath.Join(b.TempDir(), "fleet"), nil)) },
	}
	if _, err := exec.LookPath("redis-server"); err == nil {
		address, end, err := startRedis(b.Context())
		require.NoError(b, err)
		b.Cleanup(end)
		all["redis"] = func() fleet.Engine { return must(fleet.Open(b.Context(), address)) }
	}
	return all
}

// serveDesk serves a desk that is a replica if engine is not nil.
func serveDesk(b *testing.B, engine fleet.Engine) (*Desk, string) {
	desk := &Desk{replica: "r"}
	opts := []mcpkit.Option{mcpkit.StateKeys([]byte(strings.Repeat("k", 32))), mcpkit.Logger(slog.New(slog.DiscardHandler)), tasks.New()}
	if engine != nil {
		opts = append(opts, mcpkit.Fleet(engine))
	}
	srv, err := mcpkit.New(desk, opts...)
	require.NoError(b, err)
	desk.changed = srv.ResourceUpdated
	require.NoError(b, srv.Start(context.Background()))
	h := streamable.NewHandler(srv, &streamable.Options{MaxSessions: 1 << 20, MaxSubscriptions: 1 << 20, MaxSubscriptionsTotal: 1 << 21, Logger: slog.New(slog.DiscardHandler)})
	web := httptest.NewServer(h)
	b.Cleanup(func() {
		h.Close()
		web.CloseClientConnections()
		web.Close()
		require.NoError(b, srv.Close())
	})
	return desk, web.URL
}

var order = []string{"none", "memory", "bbolt", "redis"}

// BenchmarkCall measures a call of a legacy session and of a modern client: without a store, and
// with each.
func BenchmarkCall(b *testing.B) {
	all := stores(b)
	for _, v := range []protocol.Version{protocol.V20251125, protocol.V20260728} {
		for _, name := range order {
			if all[name] == nil {
				continue
			}
			b.Run(fmt.Sprintf("%s/%s", v, name), func(b *testing.B) {
				_, url := serveDesk(b, all[name]())
				c, err := client.Dial(b.Context(), url, client.Version(v), client.Logger(slog.New(slog.DiscardHandler)))
				require.NoError(b, err)
				defer c.Close()
				measure(b, func() {
					_, err := client.Call[string](b.Context(), c, "where", nil)
					require.NoError(b, err)
				})
			})
		}
	}
}

// BenchmarkReplicas measures calls of 16 clients that spread over replicas with one store in memory:
// legacy sessions, each called at its own replica.
func BenchmarkReplicas(b *testing.B) {
	for _, n := range []int{1, 2, 4, 8} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			memory := fleet.NewMemory(fleet.MemoryOptions{})
			b.Cleanup(func() { require.NoError(b, memory.Close()) })
			urls := make([]string, n)
			for i := range urls {
				_, urls[i] = serveDesk(b, memory.Open())
			}
			clients := make([]*client.Client, 16)
			for i := range clients {
				c, err := client.Dial(b.Context(), urls[i%n], client.Version(protocol.V20251125), client.Logger(slog.New(slog.DiscardHandler)))
				require.NoError(b, err)
				b.Cleanup(func() { _ = c.Close() })
				clients[i] = c
			}
			measure(b, func() { // one call of each client
				var calls sync.WaitGroup
				for _, c := range clients {
					calls.Go(func() {
						_, err := client.Call[string](b.Context(), c, "where", nil)
						assert.NoError(b, err)
					})
				}
				calls.Wait()
			})
		})
	}
}

// BenchmarkSessions measures the heap of a process for each idle legacy session: the session itself
// without a store; with the store in memory also its record; with others the copy of the replica.
func BenchmarkSessions(b *testing.B) {
	const sessions = 2000
	all := stores(b)
	heap := func() float64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	for _, name := range order {
		if all[name] == nil {
			continue
		}
		b.Run(name, func(b *testing.B) {
			_, url := serveDesk(b, all[name]())
			post := func(session, body string) string {
				req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, url, strings.NewReader(body))
				require.NoError(b, err)
				for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Session-Id": session} {
					if value != "" {
						req.Header.Set(name, value)
					}
				}
				resp, err := http.DefaultClient.Do(req)
				require.NoError(b, err)
				defer resp.Body.Close()
				_, err = io.Copy(io.Discard, resp.Body)
				require.NoError(b, err)
				require.Less(b, resp.StatusCode, 300)
				return resp.Header.Get("Mcp-Session-Id")
			}
			open := func() {
				id := post("", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
				post(id, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			}
			open()
			for b.Loop() {
				before := heap()
				for range sessions {
					open()
				}
				b.ReportMetric((heap()-before)/sessions, "B/session")
			}
		})
	}
}

// measure runs f as a benchmark and reports the CPU time of this process, its clients included. The
// processes of stores are not.
func measure(b *testing.B, f func()) {
	before := cpu()
	for b.Loop() {
		f()
	}
	if now := cpu(); now > 0 {
		b.ReportMetric(float64(now-before)/1e3/float64(b.N), "cpu-µs/op")
	}
}

// cpu returns the CPU time of this process, in steps of 10 ms, or 0 if the system is not Linux.
func cpu() time.Duration {
	stat, _ := os.ReadFile("/proc/self/stat")
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// BenchmarkFanOut measures the time in which one change at a replica reaches 1,000 and 10,000
// subscribers of three replicas.
func BenchmarkFanOut(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) { fanOut(b, n) })
	}
}

func fanOut(b *testing.B, subscribers int) {
	all := stores(b)
	for _, name := range order[1:] {
		if all[name] == nil || name == "bbolt" { // a file has one process
			continue
		}
		b.Run(name, func(b *testing.B) {
			desks, urls := make([]*Desk, 3), make([]string, 3)
			for i := range desks {
				desks[i], urls[i] = serveDesk(b, all[name]())
			}
			listeners := exec.CommandContext(b.Context(), os.Args[0])
			listeners.Env = append(os.Environ(), envListen+"="+strings.Join(urls, " "), fmt.Sprintf("%s_COUNT=%d", envListen, subscribers))
			listeners.Stderr = os.Stderr
			out, err := listeners.StdoutPipe()
			require.NoError(b, err)
			require.NoError(b, listeners.Start())
			rounds := bufio.NewReader(out)
			round := func() {
				_, err := rounds.ReadString('\n')
				require.NoError(b, err)
			}
			round() // all listen
			measure(b, func() {
				desks[0].changed(boardURI)
				round()
			})
			require.NoError(b, listeners.Process.Kill())
			_ = listeners.Wait()
		})
	}
}

// envListen makes the test program listen to the board at these URLs, so that the CPU time of listeners
// is not that of the replicas, and each process has half of the open files.
const envListen = "FLEET_TEST_LISTEN"

// listen opens streams and prints a line when all are open, and each time a change has arrived on all.
func listen() error {
	urls := strings.Fields(os.Getenv(envListen))
	count, err := strconv.Atoi(os.Getenv(envListen + "_COUNT"))
	if err != nil {
		return err
	}
	arrived := make(chan error, count)
	for i := range count {
		stream, err := subscribe(urls[i%len(urls)])
		if err != nil {
			return err
		}
		go func() { // ends with the process
			buf := make([]byte, 4096)
			for {
				n, err := stream.Read(buf)
				if err != nil {
					arrived <- err
					return
				}
				for range strings.Count(string(buf[:n]), "notifications/resources/updated") {
					arrived <- nil
				}
			}
		}()
	}
	for {
		fmt.Println()
		for range count {
			if err := <-arrived; err != nil {
				return err
			}
		}
	}
}

// subscribe opens a modern stream that listens to the board, and waits for the acknowledgement.
func subscribe(url string) (io.Reader, error) {
	body := `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["` + boardURI + `"]},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}}}}`
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "subscriptions/listen"} {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	buf := make([]byte, 4096)
	n, err := resp.Body.Read(buf)
	if err != nil || !strings.Contains(string(buf[:n]), "acknowledged") {
		return nil, fmt.Errorf("%s: %s %w", resp.Status, buf[:n], err)
	}
	return resp.Body, nil
}

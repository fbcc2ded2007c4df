package dev

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/cmd/mcpkit/internal/scaffold"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport/stdio"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

// patience is how long a test waits for a build on a busy machine.
const patience = 3 * time.Minute

// shop is the service of the program. VERSION differs between edits.
//
//go:embed testdata/shop.go
var shop string

//go:embed testdata/main.go
var program string

// source returns the service of a version.
func version(v string) string { return strings.ReplaceAll(shop, "VERSION", v) }

// newModule writes a module with the program, and returns its folder.
func newModule(t *testing.T) string {
	t.Helper()
	testkit.MarkLong(t, "builds a program")
	library, err := filepath.Abs("../../../..")
	require.NoError(t, err)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	dir = filepath.Join(dir, "my shop")
	m := scaffold.Module{Dir: dir, Path: "example.com/shop", Version: "v0.0.0", Library: library}
	require.NoError(t, m.Write())
	for _, file := range []string{"service_test.go", "service.go"} {
		require.NoError(t, os.Remove(filepath.Join(dir, file)))
	}
	put(t, dir, "main.go", program)
	put(t, dir, "shop.go", version("v1"))
	return dir
}

// put writes a file at once.
func put(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

// rename writes a file as vim does: it moves the old one away and a new one in its place.
func rename(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	put(t, dir, "4913", "")
	require.NoError(t, os.Remove(filepath.Join(dir, "4913")))
	require.NoError(t, os.Rename(path, path+"~"))
	put(t, dir, name, text)
	require.NoError(t, os.Remove(path+"~"))
}

// replace writes a file as many editors do: into a temporary file that replaces it.
func replace(t *testing.T, dir, name, text string) {
	t.Helper()
	put(t, dir, "."+name+".tmp", text)
	require.NoError(t, os.Rename(filepath.Join(dir, "."+name+".tmp"), filepath.Join(dir, name)))
}

// truncate writes a file in parts.
func truncate(t *testing.T, dir, name, text string) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, name))
	require.NoError(t, err)
	for part := range slices.Chunk([]byte(text), 400) {
		_, err = f.Write(part)
		require.NoError(t, err)
	}
	require.NoError(t, f.Close())
}

// burst writes several files, the wrong one first.
func burst(t *testing.T, dir, name, text string) {
	t.Helper()
	put(t, dir, name, "package main\n")
	for i := range 5 {
		put(t, dir, fmt.Sprintf("more%d.go", i), "package main\n\n// "+strconv.Itoa(len(text))+"\n")
	}
	put(t, dir, name, text)
}

// A bench is a running Server, and what it reported.
type bench struct {
	*Server
	dir string

	mu     sync.Mutex
	events []Event      // guarded by mu
	built  time.Time    // the end of the last build; guarded by mu
	said   bytes.Buffer // guarded by mu
	traced []string     // guarded by mu
}

func (b *bench) trace(e mcpkit.TraceEvent) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.traced = append(b.traced, fmt.Sprint(e.Ref, " ", e.Kind, " ", e.Name, e.Text))
}

func (b *bench) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.said.Write(p)
}

func (b *bench) report(e Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events = append(b.events, e)
	if e.Kind == Built || e.Kind == NotBuilt {
		b.built = time.Now()
	}
}

// sinceBuild returns how long ago the last build ended.
func (b *bench) sinceBuild() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return time.Since(b.built)
}

// await waits for an event after the first skip events, and returns how many there were by then.
func (b *bench) await(t *testing.T, skip int, kind Kind) (e Event, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		for i, got := range b.events {
			if i >= skip && got.Kind == kind {
				e, n = got, i+1
				return true
			}
		}
		return false
	}, patience, 5*time.Millisecond, "%s", b)
	return e, n
}

// String returns the events, for messages of tests.
func (b *bench) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return fmt.Sprintf("%+v\n%s", b.events, &b.said)
}

// settled waits until the last round is over, and returns how many events there were.
func (b *bench) settled(t *testing.T) (n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		n = len(b.events)
		return n > 0 && b.events[n-1].Kind != Building && b.events[n-1].Kind != Built
	}, patience, 5*time.Millisecond)
	return n
}

// count returns how many events there were.
func (b *bench) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.events)
}

// running runs a Server of a module until the end of the test.
func running(t *testing.T, opts Options) *bench {
	t.Helper()
	b := &bench{dir: opts.Dir}
	opts.Stderr, opts.Report = b, b.report
	if opts.Package == "" {
		opts.Package = "."
	}
	if opts.Wait == 0 {
		opts.Wait = patience
	}
	s, err := New(opts)
	require.NoError(t, err)
	b.Server, s.Trace = s, b.trace
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	// Ends when the test cancels ctx.
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	return b
}

// A pipe is both ends of a connection.
type pipe struct {
	io.Reader
	io.WriteCloser
}

// overStdio connects a client as over standard input and output.
func (b *bench) overStdio(t *testing.T, opts ...client.DialOption) *client.Client {
	t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ended := make(chan error)
	// Ends when the client disconnects.
	go func() { ended <- stdio.NewIO(in, out, nil).Serve(t.Context(), b) }()
	c := dialled(t, client.Stream(pipe{fromServer, toServer}), opts)
	t.Cleanup(func() {
		require.NoError(t, c.Close())
		require.NoError(t, <-ended)
	})
	return c
}

// overHTTP connects a client over HTTP.
func (b *bench) overHTTP(t *testing.T, opts ...client.DialOption) *client.Client {
	t.Helper()
	h := streamable.NewHandler(b, nil)
	s := httptest.NewServer(h)
	c := dialled(t, s.URL, opts)
	t.Cleanup(func() {
		require.NoError(t, c.Close())
		h.Close()
		s.Close()
	})
	return c
}

func dialled(t *testing.T, target any, opts []client.DialOption) *client.Client {
	t.Helper()
	c, err := client.Dial(t.Context(), target, append([]client.DialOption{client.Timeout(2 * patience), client.ProbeTimeout(patience), client.NoCache()}, opts...)...)
	require.NoError(t, err)
	return c
}

// calls returns the text of a tool.
func calls(t *testing.T, c *client.Client, tool string) string {
	t.Helper()
	got, err := client.Call[string](t.Context(), c, tool, nil)
	require.NoError(t, err)
	return got
}

// becomes waits until the tool version returns v, and returns how long after the build that was.
func (b *bench) becomes(t *testing.T, c *client.Client, v string) time.Duration {
	t.Helper()
	var last string
	for limit := time.Now().Add(patience); last != v; {
		require.True(t, time.Now().Before(limit), "want %q, got %s", v, last)
		got, err := client.Call[string](t.Context(), c, "version", nil)
		<-time.After(5 * time.Millisecond) // the program is another process
		if last = got; err != nil {
			last = err.Error()
		}
	}
	return b.sinceBuild()
}

// names returns the names of the tools.
func names(t *testing.T, c *client.Client) (names []string) {
	t.Helper()
	for tool, err := range c.Tools(t.Context()) {
		require.NoError(t, err)
		names = append(names, tool.Name)
	}
	return names
}

func TestClientsStayConnectedThroughEdits(t *testing.T) {
	t.Parallel()
	b := running(t, Options{Dir: newModule(t)})
	type user struct {
		name    string
		c       *client.Client
		changes *client.Subscription
	}
	var users []*user
	for _, v := range []protocol.Version{protocol.V20250618, protocol.V20251125, protocol.V20260728} {
		for name, c := range map[string]*client.Client{"stdio": b.overStdio(t, client.Version(v)), "HTTP": b.overHTTP(t, client.Version(v))} {
			require.Equal(t, protocol.Implementation{Name: "shop", Version: "v1"}, c.Server())
			changes, err := c.Listen(t.Context(), protocol.SubscriptionFilter{ToolsListChanged: true})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, changes.Close()) })
			users = append(users, &user{name + " " + string(v), c, changes})
		}
	}
	ways := []func(t *testing.T, dir, name, text string){put, rename, replace, truncate, burst}
	var visible []time.Duration
	for i := range 6 {
		v := "v" + strconv.Itoa(i+2)
		write := ways[i%len(ways)]
		broken := i%3 == 1
		if broken {
			before, seen := names(t, users[0].c), b.count()
			write(t, b.dir, "shop.go", strings.Replace(version(v), `return "`+v+`" }`, `return nowhere }`, 1))
			b.await(t, seen, NotBuilt)
			for _, u := range users {
				_, err := u.c.CallTool(t.Context(), "version", nil)
				fault, ok := err.(*client.ToolError) // the error itself
				require.True(t, ok, "%v", err)
				require.Equal(t, "the program does not build:\n# example.com/shop\n./shop.go:19:40: undefined: nowhere", fault.Error()[len(`tool "version": `):], u.name)
				require.Equal(t, before, names(t, u.c), "lists stay as they were")
			}
		}
		write(t, b.dir, "shop.go", version(v))
		visible = append(visible, b.becomes(t, users[0].c, v))
		for _, u := range users {
			require.Equal(t, v, calls(t, u.c, "only_"+v), u.name)
			_, err := u.changes.Next(t.Context())
			require.NoError(t, err, u.name)
			require.Contains(t, names(t, u.c), "only_"+v, u.name)
			require.NoError(t, u.c.Ping(t.Context()), u.name)
		}
	}
	slices.Sort(visible)
	t.Logf("%d edits; a change is visible after its build within %s (median), %s (longest)", len(visible), visible[len(visible)/2], visible[len(visible)-1])
}

func TestMain(m *testing.M) {
	// The modules that tests write must not download anything.
	for key, value := range map[string]string{"GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOWORK": "off"} {
		if err := os.Setenv(key, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	testkit.VerifyTestMain(m)
}

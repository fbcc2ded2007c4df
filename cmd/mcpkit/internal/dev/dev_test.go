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
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/cmd/mcpkit/internal/scaffold"
	"github.com/mcpkit/mcpkit-go/cmd/mcpkit/internal/services"
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

func TestAProgramThatEndsAtStartIsAToolError(t *testing.T) {
	t.Parallel()
	b := running(t, Options{Dir: newModule(t)})
	c := b.overStdio(t)
	require.Equal(t, "v1", calls(t, c, "version"))
	for _, test := range []struct{ name, main, want string }{
		{"panic", strings.Replace(program, "if err", "panic(\"no database\")\n\tif err", 1), "the program does not start: it ended (exit status 2)\npanic: no database\n\ngoroutine 1 [running]:\nmain.main()\n\t"},
		{"exit", "package main\n\nimport (\n\t\"fmt\"\n\t\"os\"\n)\n\nfunc main() {\n\tfmt.Fprintln(os.Stderr, \"set SHOP_DSN\", os.Getpid())\n\tos.Exit(3)\n}\n", "the program does not start: it ended (exit status 3)\nset SHOP_DSN "},
		{"success", "package main\n\nfunc main() {}\n", "the program does not start: it ended (exit status 0)"},
	} {
		seen := b.count()
		put(t, b.dir, "main.go", test.main)
		e, _ := b.await(t, seen, NotReady)
		require.True(t, strings.HasPrefix(e.Fault, test.want), "%s: %q", test.name, e.Fault)
		_, err := c.CallTool(t.Context(), "version", nil)
		require.ErrorContains(t, err, `tool "version": `+test.want)
		_, err = c.GetPrompt(t.Context(), "sell", nil)
		require.ErrorContains(t, err, test.want)
		_, err = c.ReadResource(t.Context(), "shop://stock")
		require.ErrorContains(t, err, test.want)
		require.Equal(t, []string{"ask", "only_v1", "version"}, names(t, c), "lists stay as they were")
	}
	put(t, b.dir, "main.go", program)
	b.becomes(t, c, "v1")
}

func TestTheFirstProgramMayNotBuild(t *testing.T) {
	t.Parallel()
	dir := newModule(t)
	put(t, dir, "shop.go", "package main\n\nfunc {\n")
	b := running(t, Options{Dir: dir})
	c := b.overHTTP(t)
	require.Equal(t, "my shop", c.Server().Name)
	require.Empty(t, names(t, c))
	_, err := c.CallTool(t.Context(), "version", nil)
	require.ErrorContains(t, err, "the program does not build:\n")
	require.ErrorContains(t, err, "shop.go:3:6: syntax error: unexpected {")
	changes, err := c.Listen(t.Context(), protocol.SubscriptionFilter{ToolsListChanged: true, PromptsListChanged: true, ResourcesListChanged: true})
	require.NoError(t, err)
	defer changes.Close()
	put(t, dir, "shop.go", version("v1"))
	for range 3 {
		_, err = changes.Next(t.Context())
		require.NoError(t, err)
	}
	require.Equal(t, []string{"ask", "only_v1", "version"}, names(t, c))
	require.Equal(t, "v1", calls(t, c, "version"))
}

func TestCallsOfTheProgramAreTraced(t *testing.T) {
	t.Parallel()
	dir := newModule(t)
	put(t, dir, "shop.go", strings.Replace(version("v1"), `return ""`, `panic("no ink")`, 1))
	b := running(t, Options{Dir: dir})
	_, err := b.overHTTP(t).CallTool(t.Context(), "ask", nil)
	require.Error(t, err)
	ref := regexp.MustCompile(`\(ref (\w+)\)`).FindStringSubmatch(err.Error())[1]
	require.Eventually(t, func() bool { return strings.Contains(b.String(), " ref="+ref+" ") }, patience, time.Millisecond, "the log has the reference")
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Equal(t, []string{ref + " handler Shop.Ask (shop.go:27)", ref + " end panic: no ink"}, b.traced)
	require.NotContains(t, b.said.String(), `"kind"`)
}

func TestEventsAreTakenOutOfWhatTheProgramSays(t *testing.T) {
	var out bytes.Buffer
	var events []string
	w := &words{to: &out, begin: []byte("EVENT"), trace: func(e mcpkit.TraceEvent) { events = append(events, e.Name) }}
	for _, part := range []string{"a", "b\ncEVENT{\"name\":\"x\"}\nEVENT{\"na", "me\"", ":\"y\"}\nEVENT{}}\nd"} {
		n, err := w.Write([]byte(part))
		require.NoError(t, err)
		require.Equal(t, len(part), n)
	}
	require.Equal(t, []string{"x", "y"}, events)
	require.Equal(t, "ab\ncd", out.String())
	require.Equal(t, "ab\ncd", w.text())
}

func TestWhatIsNotAProgramIsReported(t *testing.T) {
	t.Parallel()
	dir := newModule(t)
	put(t, dir, "lib/lib.go", "package lib\n")
	put(t, dir, "other/main.go", "package main\n\nfunc main() {}\n")
	for pkg, want := range map[string]string{
		"./lib":  "example.com/shop/lib is not a program; name the folder of a package main",
		"./...":  "./... are several programs (example.com/shop, example.com/shop/other); name one of them",
		"./none": "the program does not build:\nno required module provides package",
	} {
		b := running(t, Options{Dir: dir, Package: pkg})
		e, _ := b.await(t, 0, NotBuilt)
		if pkg == "./none" {
			require.Contains(t, e.Fault, "the program does not build:\n", pkg)
			require.Contains(t, e.Fault, "none", pkg)
			continue
		}
		require.Equal(t, want, e.Fault)
	}
}

func TestNewFoldersAndEmbeddedFilesAreWatched(t *testing.T) {
	t.Parallel()
	dir := newModule(t)
	put(t, dir, "pages/a.txt", "a1")
	put(t, dir, "data.txt", "runtime 1")
	put(t, dir, "extra/x", "")
	put(t, dir, "shop.go", strings.Replace(strings.Replace(version("v1"), `import (`, "import (\n\t\"embed\"\n\t\"os\"", 1), `string { return "v1" }`, `string {
	b, _ := pages.ReadFile("pages/a.txt")
	d, _ := os.ReadFile("data.txt")
	return string(b) + " " + string(d) + " " + more()
}

//go:embed pages
var pages embed.FS

func more() string { return "" }
`, 1))
	b := running(t, Options{Dir: dir, Watch: []string{"data.txt", "extra"}})
	c := b.overStdio(t)
	b.becomes(t, c, "a1 runtime 1 ")
	put(t, dir, "pages/a.txt", "a2")
	b.becomes(t, c, "a2 runtime 1 ")
	seen := b.settled(t)
	rename(t, dir, "data.txt", "runtime 2")
	_, seen = b.await(t, seen, Ready)
	b.becomes(t, c, "a2 runtime 2 ")
	put(t, dir, "extra/y", "")
	b.await(t, seen, Ready)

	// A package in a new folder, imported before it exists.
	text, err := os.ReadFile(filepath.Join(dir, "shop.go"))
	require.NoError(t, err)
	seen = b.count()
	put(t, dir, "shop.go", strings.NewReplacer(`func more() string { return "" }`, `func more() string { return deep.Say() }`,
		"\"embed\"", "\"embed\"\n\t\"example.com/shop/far/deep\"").Replace(string(text)))
	e, _ := b.await(t, seen, NotBuilt)
	require.Contains(t, e.Fault, "example.com/shop/far/deep")
	put(t, dir, "far/deep/deep.go", "package deep\n\nfunc Say() string { return \"deep 1\" }\n")
	b.becomes(t, c, "a2 runtime 2 deep 1")
	put(t, dir, "far/deep/deep.go", "package deep\n\nfunc Say() string { return \"deep 2\" }\n")
	b.becomes(t, c, "a2 runtime 2 deep 2")

	// What is not part of the program builds nothing.
	seen = b.settled(t)
	for _, name := range []string{"shop_test.go", "notes.txt", ".git/index", ".shop.go.swp", "#shop.go#", ".hidden/a.go", "node_modules/a.go", "testdata/a.go"} {
		put(t, dir, name, "package main\n")
	}
	put(t, dir, "far/deep/deep.go", "package deep\n\nfunc Say() string { return \"deep 3\" }\n")
	b.becomes(t, c, "a2 runtime 2 deep 3")
	_, after := b.await(t, seen, Ready)
	require.Equal(t, seen+3, after, "one build")

	// The go command reads the beginning of tests.
	put(t, dir, "shop_test.go", "x\n")
	put(t, dir, "far/deep/deep.go", "package deep\n\nfunc Say() string { return \"deep 4\" }\n")
	_, seen = b.await(t, after, NotBuilt)
	put(t, dir, "shop_test.go", "package main\n")
	b.await(t, seen, Ready)
	b.becomes(t, c, "a2 runtime 2 deep 4")
}

// The comments and signatures in a generated file are older than the source.
func TestStaleDescriptionsDoNotMatter(t *testing.T) {
	t.Parallel()
	dir := newModule(t)
	put(t, dir, services.GeneratedFile, "package main\n\nvar _ func(*Shop) int = (*Shop).Version\n")
	b := running(t, Options{Dir: dir})
	c := b.overHTTP(t)
	require.Equal(t, "v1", calls(t, c, "version"))
	tool, err := c.Tool(t.Context(), "ask")
	require.NoError(t, err)
	require.Equal(t, "Asks the user.", tool.Description)
	put(t, dir, "shop.go", strings.Replace(version("v2"), "// Ask asks the user.", "// Ask bothers the user.", 1))
	b.becomes(t, c, "v2")
	tool, err = c.Tool(t.Context(), "ask")
	require.NoError(t, err)
	require.Equal(t, "Bothers the user.", tool.Description)
	left, err := os.ReadFile(filepath.Join(dir, services.GeneratedFile))
	require.NoError(t, err)
	require.Contains(t, string(left), "func(*Shop) int", "the file is not changed")
}

func TestLongFaultsAreShortened(t *testing.T) {
	require.Equal(t, "a\nb", Shorten("a\nb", 3))
	require.Equal(t, "éé…", Shorten("ééééé", 5))
}

package dev

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/cmd/mcpkit/internal/services"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

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

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/cmd/mcpkit/internal/services"
	"github.com/mcpkit/mcpkit-go/internal/longtest"
)

// vetted runs vet on the packages and returns the faults and costs.
func vetted(t *testing.T, dir string, patterns ...string) (faults, costs []string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	c := checker{dir: dir, stdout: &stdout, stderr: &stderr}
	err = c.run(t.Context(), patterns)
	lines := func(b *bytes.Buffer) []string {
		return strings.FieldsFunc(b.String(), func(r rune) bool { return r == '\n' })
	}
	require.Len(t, lines(&stderr), c.found)
	return lines(&stderr), lines(&stdout), err
}

var position = regexp.MustCompile(`^[\w/\\]+\.go:\d+:\d+: `)

// Vet reports every startup error, with the same text.
func TestVetReportsStartupErrors(t *testing.T) {
	t.Parallel()
	longtest.Mark(t, "builds programs")
	dir := program(t, "faults")
	out := ask(t, built(t, dir), "")
	started := strings.Split(strings.TrimSpace(out), "\n")
	require.Greater(t, len(started), 15, out)

	found, costs, err := vetted(t, dir, ".")
	require.NoError(t, err)
	require.Empty(t, costs, "services with faults publish nothing")
	for i, line := range found {
		require.Regexp(t, position, line)
		found[i] = position.ReplaceAllString(line, "")
	}
	slices.Sort(started)
	slices.Sort(found)
	require.Equal(t, strings.Join(started, "\n"), strings.Join(found, "\n"))
}

// The services of the example cannot start without the directory that the program gives them.
func TestVetDoesNotStartServices(t *testing.T) {
	t.Parallel()
	longtest.Mark(t, "builds programs")
	found, costs, err := vetted(t, "../../examples/workstation", ".")
	require.NoError(t, err)
	require.Empty(t, found)
	require.Len(t, costs, 3)
}

func TestVetReportsMistakesBeyondStartupErrors(t *testing.T) {
	t.Parallel()
	longtest.Mark(t, "loads packages")
	dir := program(t, "silent")
	// A stale generated file is a fault; a missing one is not.
	require.NoError(t, os.WriteFile(filepath.Join(dir, services.GeneratedFile), []byte("package main\n"), 0o644))
	found, costs, err := vetted(t, dir, "./...")
	require.NoError(t, err)
	require.Equal(t, []string{
		`main.go:25:14: Shop.SendAll: it has no description; write a doc comment, or a desc tag in the annotation block`,
		`main.go:25:14: Shop.SendAll: the name suggests that it may do harm, and it has no hints; write for example hints:"destructive", or hints:"additive" if it is harmless`,
		`main.go:30:14: Shop.BulkDelete: the name suggests that it may do harm, and it has no hints; write for example hints:"destructive", or hints:"additive" if it is harmless`,
		`main.go:37:2: field Name of Input: it has no description; write a comment, or a desc tag`,
		`main.go:47:2: field Deep of Inner: it has no description; write a comment, or a desc tag`,
		`main.go:59:2: field Missing of Colors: oneof lists red, and the constants of Color are red, blue; write validate:"enum" to allow the constants`,
		`main.go:67:2: field Level of Colors: oneof lists 1, 2, 3, and the constants of Level are 1, 2; write validate:"enum" to allow the constants`,
		`main.go:71:2: the error of mcpkit.Serve(…), which says what is wrong with the service, is dropped; write if err := mcpkit.Serve(…); err != nil { log.Fatal(err) }`,
		`main.go:73:5: the error of mcpkit.Serve(…), which says what is wrong with the service, is dropped; write if err := mcpkit.Serve(…); err != nil { log.Fatal(err) }`,
		filepath.Join("other", "other.go") + `:25:2: field Silent of Input: it has no description; write a comment, or a desc tag`,
		"example.com/prog: zz_mcpkit_docs.go is stale; run go generate, or mcpkit gen example.com/prog",
	}, found)
	require.Len(t, costs, 3, "Shop, its warning, and desk")
	require.Equal(t, `example.com/prog.Shop: warning: some clients refuse the tool name "shop/remove"; all clients accept up to 64 letters, digits, '_' and '-'`,
		costs[1], "a warning, not a fault: the specification allows the name")
}

// Methods run again from their beginning when an answer arrives. Vet runs no code of the package.
func TestVetReportsChangesBeforeQuestions(t *testing.T) {
	t.Parallel()
	longtest.Mark(t, "builds programs")
	dir := program(t, "rounds")
	found, costs, err := vetted(t, dir, "./...")
	require.NoError(t, err)
	const end = " comes before a question, and runs again when the answer comes; put it into mcpkit.Once, or ask first"
	file := filepath.Join("trips", "trips.go")
	books := filepath.Join("books", "books.go")
	require.Equal(t, []string{
		books + `:65:2: Shop.Pay: s.take(…)` + end,
		books + `:66:2: Shop.Pay: s.hold(…)` + end,
		books + `:67:12: Shop.Pay: s.stock.Book(…)` + end,
		books + `:81:2: a //lint:ignore mcpkit comment needs a reason after "mcpkit"`,
		books + `:82:2: Shop.Silence: s.stock.Book(…)` + end,
		file + `:61:2: agency.Early: the assignment to a.count` + end,
		file + `:62:2: agency.Early: the assignment to a.seats["1A"]` + end,
		file + `:63:12: agency.Early: a.api.SaveSeat(…)` + end,
		file + `:66:12: agency.Early: os.Remove(…)` + end,
		file + `:75:2: agency.Helped: a.api.SaveSeat(…)` + end,
		file + `:92:3: agency.Loop: a.api.SaveSeat(…)` + end,
	}, found)
	require.Len(t, costs, 2)
	require.Regexp(t, `^example\.com/prog/trips\.agency: 5 tools; tools/list is \d+ bytes`, costs[1], "those that demand scopes count, too")
}

func TestVetReportsPackagesThatDoNotBuildOrStart(t *testing.T) {
	t.Parallel()
	longtest.Mark(t, "builds programs")
	dir := program(t, "rounds")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "noisy"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "noisy", "noisy.go"), []byte("// Package noisy ends programs.\npackage noisy\n\nfunc init() { panic(\"not today\") }\n"), 0o644))
	replace(t, filepath.Join(dir, "trips", "trips.go"), `import (`, "import (\n\t_ \"example.com/prog/noisy\"\n")
	_, _, err := vetted(t, dir, "./...")
	require.ErrorContains(t, err, "example.com/prog/trips: registering its services failed: exit status 2\npanic: not today")
}

// go vet runs the same checks for one package at a time. The test program itself is the tool; see
// TestMain.
func TestVetTool(t *testing.T) {
	t.Parallel()
	longtest.Mark(t, "builds programs")
	dir := outlined(t, "silent")
	tool, err := os.Executable()
	require.NoError(t, err)
	goVet := func() string {
		cmd := exec.CommandContext(t.Context(), "go", "vet", "-vettool="+tool, "./...")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GORACE=atexit_sleep_ms=0")
		out, err := cmd.CombinedOutput()
		require.Error(t, err)
		return string(out)
	}
	out := goVet()
	for _, want := range []string{
		`main.go:25:14: Shop.SendAll: it has no description; write a doc comment, or a desc tag in the annotation block`,
		`main.go:37:2: field Name of Input: it has no description; write a comment, or a desc tag`,
	} {
		require.Contains(t, out, want)
	}
	require.NotContains(t, out, "other.go", "fields of other packages are for the vet of those")
	require.NotContains(t, out, "stale")

	_, err = generator{}.in(t, dir, ".")
	require.NoError(t, err)
	require.NotContains(t, goVet(), "stale")
	const stale = `zz_mcpkit_docs.go:3:1: example.com/prog: zz_mcpkit_docs.go is stale; run go generate, or mcpkit gen example.com/prog`
	replace(t, filepath.Join(dir, "main.go"), "// Remove takes something", "// Remove takes anything")
	require.Contains(t, goVet(), stale)
	replace(t, filepath.Join(dir, "main.go"), "// Remove takes anything", "// Remove takes something")
	require.NotContains(t, goVet(), "stale")
	// go vet does not check this package again because of comments in another one.
	replace(t, filepath.Join(dir, "other", "other.go"), "// Kind says of which", "// Kind tells of which")
	replace(t, filepath.Join(dir, "main.go"), "func main() {", "func main() {\n\t// Another comment.")
	require.Contains(t, goVet(), stale)
}

func TestVetCompilesSchemasByHandIfTheProgramDoes(t *testing.T) {
	t.Parallel()
	longtest.Mark(t, "builds programs")
	found, costs, err := vetted(t, program(t, "schemas"), "./...")
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Contains(t, found[0], "Broken.Run (main.go:22): input: the schema is not valid JSON")
	require.Len(t, costs, 1)
	require.Contains(t, costs[0], "Reports")
}

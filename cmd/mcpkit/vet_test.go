package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/cmd/mcpkit/internal/services"
	"github.com/mcpkit/mcpkit-go/cmd/mcpkit/internal/vet"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
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
	testkit.MarkLong(t, "builds programs")
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

// The services of one example cannot start without the directory that the program gives them, and those
// of the other have variants, which the program shows.
func TestVetDoesNotStartServices(t *testing.T) {
	t.Parallel()
	testkit.MarkLong(t, "builds programs")
	found, costs, err := vetted(t, "../../examples", "./workstation", "./catalog")
	require.NoError(t, err)
	require.Empty(t, found)
	require.Len(t, costs, 24)
}

func TestVetReportsMistakesBeyondStartupErrors(t *testing.T) {
	t.Parallel()
	testkit.MarkLong(t, "loads packages")
	dir := program(t, "silent")
	require.NoError(t, os.WriteFile(filepath.Join(dir, services.GeneratedFile), []byte("package main\n"), 0o644))
	found, costs, err := vetted(t, dir, "./...")
	require.NoError(t, err)
	require.Equal(t, []string{
		`main.go:25:14: Shop.SendAll: it has no description; write a doc comment, or a desc tag in the annotation block`,
		`main.go:37:2: field Name of Input: it has no description; write a comment, or a desc tag`,
		`main.go:47:2: field Deep of Inner: it has no description; write a comment, or a desc tag`,
		filepath.Join("other", "other.go") + `:17:2: field Silent of Input: it has no description; write a comment, or a desc tag`,
		"example.com/prog: zz_mcpkit_docs.go is stale; run go generate, or mcpkit gen example.com/prog",
	}, found)
	require.Contains(t, costs, `example.com/prog.Shop: warning: some clients refuse the tool name "shop/remove"; all clients accept up to 64 letters, digits, '_' and '-'`,
		"a warning, not a fault: the specification allows the name")
	require.Equal(t, `main.go:47:2: note: field Deep of Inner: it has no json tag, so clients write "Deep"; for another name, write one such as json:"deep"`, costs[0])

	replace(t, filepath.Join(dir, "main.go"), "Serve(&Shop{})", "Serve(Shop{})")
	found, _, err = vetted(t, dir, ".")
	require.NoError(t, err)
	require.Contains(t, found, "main.go:61:25: Shop{} is no service, since a service is a pointer to a struct; write &Shop{}")
}

// Without a generated file, a program knows the constants of its types only from its source.
func TestVetReportsValuesMissingInBinaries(t *testing.T) {
	t.Parallel()
	testkit.MarkLong(t, "loads packages")
	dir := program(t, "silent")
	missing := func() (found []string) {
		pkgs, err := services.Load(dir, []string{"."})
		require.NoError(t, err)
		pkgs[0].Find()
		for _, d := range vet.Check(pkgs[0]) {
			if strings.Contains(d.Message, "does not know") {
				found = append(found, d.Message)
			}
		}
		return found
	}
	require.Equal(t, []string{
		"field All of Colors: a program that runs without its source does not know the values of example.com/prog/other.Color; run mcpkit gen",
	}, missing())
	require.NoError(t, os.WriteFile(filepath.Join(dir, services.GeneratedFile), []byte("package main\n"), 0o644))
	require.Empty(t, missing())
}

func TestVetReportsPackagesThatDoNotStart(t *testing.T) {
	t.Parallel()
	testkit.MarkLong(t, "builds a program")
	dir := program(t, "silent")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "noisy"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "noisy", "noisy.go"), []byte("// Package noisy ends programs.\npackage noisy\n\nfunc init() { panic(\"not today\") }\n"), 0o644))
	replace(t, filepath.Join(dir, "main.go"), `import (`, "import (\n\t_ \"example.com/prog/noisy\"\n")
	_, _, err := vetted(t, dir, "./...")
	require.ErrorContains(t, err, "example.com/prog: registering its services failed: exit status 2\npanic: not today")
}

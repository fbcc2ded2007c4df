package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"github.com/mcpkit/mcpkit-go/cmd/mcpkit/internal/services"
)

// program writes the files of testdata/NAME.txtar into a module of their own, one that uses this library.
func program(t *testing.T, name string) string {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("testdata", name+".txtar"))
	require.NoError(t, err)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	for _, f := range archive.Files {
		path := filepath.Join(dir, filepath.FromSlash(f.Name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, f.Data, 0o644))
	}
	here, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	gomod, err := os.ReadFile(filepath.Join(here, "go.mod"))
	require.NoError(t, err)
	gosum, err := os.ReadFile(filepath.Join(here, "go.sum"))
	require.NoError(t, err)
	requires := strings.Join(regexp.MustCompile(`(?s)require \(.*?\n\)\n`).FindAllString(string(gomod), -1), "")
	require.NotEmpty(t, requires)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.sum"), gosum, 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.com/prog\n\ngo 1.26.0\n\n"+
		"require github.com/mcpkit/mcpkit-go v0.0.0\n\nreplace github.com/mcpkit/mcpkit-go => "+filepath.ToSlash(here)+"\n\n"+requires), 0o644))
	for _, v := range []string{"GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off"} {
		key, value, _ := strings.Cut(v, "=")
		t.Setenv(key, value)
	}
	return dir
}

// in runs the generator in dir. It returns what that says, with paths below dir.
func (g generator) in(t *testing.T, dir string, patterns ...string) (wrote string, err error) {
	t.Helper()
	var out bytes.Buffer
	g.dir, g.stdout = dir, &out
	err = g.run(patterns)
	return strings.ReplaceAll(out.String(), dir+string(filepath.Separator), ""), err
}

// asked is what a client sends to learn all words.
const asked = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
{"jsonrpc":"2.0","id":3,"method":"prompts/list"}
{"jsonrpc":"2.0","id":4,"method":"resources/templates/list"}
`

// answers runs the server with what is asked. Answers may come in any order, so they are sorted.
func answers(t *testing.T, dir, program string, args ...string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = dir
	cmd.Stdin = strings.NewReader(asked)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	require.Len(t, lines, 4, string(out))
	byID := make([]string, 4)
	for _, line := range lines {
		id := regexp.MustCompile(`"id":([1-4])`).FindStringSubmatch(line)
		require.NotNil(t, id, line)
		byID[id[1][0]-'1'] = line
	}
	return byID
}

func replace(t *testing.T, file, old, new string) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(text), old)
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(text), old, new, 1)), 0o644))
}

// A program that has nothing but its generated file says what it says beside its source, byte for byte.
func TestGeneratedDescriptionsAreThoseOfTheSource(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs")
	}
	dir := program(t, "prog")
	source := answers(t, dir, "go", "run", ".")
	for _, words := range []string{
		"Keeps the shop open.", "Looks for wares.", "What to look for.", "How dear it may be.", "the sort that is sold most",
		"Where it is kept.", "Answers.", "The first one.", "Fills the shelf", "A name to call it by.", "Begins a note.",
	} {
		require.Contains(t, strings.Join(source, "\n"), words)
	}

	wrote, err := generator{}.in(t, dir, ".")
	require.NoError(t, err)
	require.Equal(t, "wrote "+services.GeneratedFile+"\n", wrote)
	first, err := os.ReadFile(filepath.Join(dir, services.GeneratedFile))
	require.NoError(t, err)

	// Not by -trimpath, for which everything down to the standard library would be compiled once more.
	elsewhere := filepath.Join(t.TempDir(), "shop.exe")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", elsewhere, ".")
	build.Dir = dir
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	require.NoError(t, os.Rename(dir, dir+"-hidden"))
	require.Equal(t, source, answers(t, filepath.Dir(elsewhere), elsewhere))
	require.NoError(t, os.Rename(dir+"-hidden", dir))

	// Again, nothing changes.
	wrote, err = generator{}.in(t, dir, ".")
	require.NoError(t, err)
	require.Empty(t, wrote)
	_, err = generator{check: true}.in(t, dir, "./...")
	require.NoError(t, err)
	second, err := os.ReadFile(filepath.Join(dir, services.GeneratedFile))
	require.NoError(t, err)
	require.Equal(t, string(first), string(second))
}

func TestStaleFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs")
	}
	dir := program(t, "prog")
	check := func() error {
		_, err := generator{check: true}.in(t, dir, ".")
		return err
	}
	require.EqualError(t, check(), "example.com/prog has no zz_mcpkit_docs.go; run go generate, or mcpkit gen example.com/prog")
	_, err := generator{}.in(t, dir, ".")
	require.NoError(t, err)

	// A comment in another package.
	replace(t, filepath.Join(dir, "wares", "wares.go"), "Where it is kept.", "Where it lies.")
	require.EqualError(t, check(), "example.com/prog: zz_mcpkit_docs.go is stale; run go generate, or mcpkit gen example.com/prog")
	_, err = generator{}.in(t, dir, ".")
	require.NoError(t, err)
	require.NoError(t, check())

	// A signature: the build ends, and generating anew mends it.
	replace(t, filepath.Join(dir, "main.go"), "func (s *Shop) Restock(ctx context.Context, name string)", "func (s *Shop) Restock(name string, ctx context.Context)")
	build := func() (string, error) {
		cmd := exec.CommandContext(t.Context(), "go", "list", "-export", ".") // compiles, and links nothing
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := build()
	require.Error(t, err, out)
	require.Contains(t, out, "cannot use (*Shop).Restock")
	require.EqualError(t, check(), "example.com/prog: zz_mcpkit_docs.go is stale; run go generate, or mcpkit gen example.com/prog")
	_, err = generator{}.in(t, dir, ".")
	require.NoError(t, err)
	out, err = build()
	require.NoError(t, err, out)
}

func TestGenSaysWhatIsMissing(t *testing.T) {
	if testing.Short() {
		t.Skip("loads packages")
	}
	dir := program(t, "prog")
	_, err := generator{}.in(t, dir, "./wares")
	require.EqualError(t, err, "./wares has no service: no struct with an annotation block or an Info field, and none that is handed to mcpkit; name one with -type")
	_, err = generator{names: []string{"Gone"}}.in(t, dir, "./wares")
	require.EqualError(t, err, "example.com/prog/wares has no type Gone")
	_, err = generator{names: []string{"Sort"}}.in(t, dir, "./wares")
	require.EqualError(t, err, "example.com/prog/wares.Sort is no struct")

	wrote, err := generator{names: []string{"Base"}}.in(t, dir, "./wares")
	require.NoError(t, err)
	require.Equal(t, "wrote "+filepath.Join("wares", services.GeneratedFile)+"\n", wrote)

	// A file that is no longer needed goes.
	_, err = generator{check: true}.in(t, dir, "./wares", ".")
	require.ErrorContains(t, err, "example.com/prog/wares: zz_mcpkit_docs.go is stale")
	wrote, err = generator{}.in(t, dir, "./wares", ".")
	require.NoError(t, err)
	require.Equal(t, "wrote zz_mcpkit_docs.go\nremoved "+filepath.Join("wares", services.GeneratedFile)+"\n", wrote)

	replace(t, filepath.Join(dir, "main.go"), "return name, nil", "return nam, nil")
	_, err = generator{}.in(t, dir, ".")
	require.ErrorContains(t, err, "example.com/prog does not compile: ")
	require.ErrorContains(t, err, "undefined: nam")
}

func TestUsage(t *testing.T) {
	var out, errs bytes.Buffer
	require.Equal(t, exitUsage, run(t.Context(), nil, streams{out: &out, err: &errs}))
	require.Contains(t, errs.String(), "usage: mcpkit command [flags] [arguments]")
	errs.Reset()
	require.Equal(t, exitUsage, run(t.Context(), []string{"gne"}, streams{out: &out, err: &errs}))
	require.Contains(t, errs.String(), `mcpkit: there is no command "gne"; did you mean "gen"?`)
	errs.Reset()
	require.Equal(t, exitOK, run(t.Context(), []string{"gen", "-h"}, streams{out: &out, err: &errs}))
	require.Contains(t, errs.String(), "usage: mcpkit gen [flags] [packages]")
	require.Equal(t, exitUsage, run(t.Context(), []string{"gen", "-nosuch"}, streams{out: &out, err: &errs}))
	require.Empty(t, out.String())
}

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"github.com/mcpkit/mcpkit-go/cmd/mcpkit/internal/gen"
	"github.com/mcpkit/mcpkit-go/cmd/mcpkit/internal/services"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// unpack writes the files of testdata/NAME.txtar into a folder.
func unpack(t *testing.T, name, dir string) {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("testdata", name+".txtar"))
	require.NoError(t, err)
	files, err := txtar.FS(archive)
	require.NoError(t, err)
	require.NoError(t, os.CopyFS(dir, files))
}

// program writes the files of testdata/NAME.txtar into a new module that uses this library, and
// returns its directory.
func program(t *testing.T, name string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	unpack(t, name, dir)
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
	return dir
}

// outlined is like program, with testdata/library.txtar in place of this library.
func outlined(t *testing.T, name string) string {
	t.Helper()
	dir := program(t, name)
	unpack(t, "library", filepath.Join(dir, "library"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.com/prog\n\ngo 1.26.0\n\n"+
		"require github.com/mcpkit/mcpkit-go v0.0.0\n\nreplace github.com/mcpkit/mcpkit-go => ./library\n"), 0o644))
	return dir
}

// built builds the program in dir and returns its path.
func built(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program.exe")
	// With -trimpath, the go command would compile all imports and the standard library again.
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", path, ".")
	build.Dir = dir
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	return path
}

// in runs the generator in dir and returns its output, with paths relative to dir.
func (g generator) in(t *testing.T, dir string, patterns ...string) (wrote string, err error) {
	t.Helper()
	var out bytes.Buffer
	g.dir, g.stdout = dir, &out
	err = g.run(patterns)
	return strings.ReplaceAll(out.String(), dir+string(filepath.Separator), ""), err
}

// askAll has the messages of a client that requests all descriptions.
const askAll = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
{"jsonrpc":"2.0","id":3,"method":"prompts/list"}
{"jsonrpc":"2.0","id":4,"method":"resources/templates/list"}
`

// descriptions runs the server and returns its responses to askAll, in the order of their ids.
func descriptions(t *testing.T, program string) string {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(ask(t, program, askAll)), "\n")
	require.Len(t, lines, 4)
	byID := make([]string, 4)
	for _, line := range lines {
		id := regexp.MustCompile(`"id":([1-4])`).FindStringSubmatch(line)
		require.NotNil(t, id, line)
		byID[id[1][0]-'1'] = line
	}
	return strings.Join(byID, "\n")
}

// ask runs the server with the messages as its input and returns its output.
func ask(t *testing.T, program, messages string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Stdin = strings.NewReader(messages)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	return string(out)
}

func replace(t *testing.T, file, old, new string) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(text), old)
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(text), old, new, 1)), 0o644))
}

// A program with a generated file sends the same bytes with its source and without. Vet reports the
// size of what the program sends.
func TestGeneratedDescriptionsEqualThoseOfTheSource(t *testing.T) {
	t.Parallel()
	testkit.MarkLong(t, "builds programs")
	dir := program(t, "prog")
	beside := built(t, dir)
	source := descriptions(t, beside)
	for _, text := range []string{
		"Keeps the shop open.", "Looks for wares.", "What to look for.", "How dear it may be.", "the sort that is sold most",
		"Answers.", "The first one.", "Fills the shelf", "A name to call it by.", "Begins a note.",
		`"description":"from the left"`, `"times":{"type":"integer","description":"how often"}`,
	} {
		require.Contains(t, source, text)
	}

	found, costs, err := vetted(t, dir, ".")
	require.NoError(t, err)
	require.Equal(t, []string{
		`main.go:37:2: field Near of Query: it has no description; write a comment, or a desc tag`,
	}, found)
	listed := func(service string) (lines []string) {
		var response struct {
			Result struct{ Tools []*protocol.Tool }
		}
		out := ask(t, beside, listTools, strings.ToLower(service))
		require.NoError(t, json.Unmarshal([]byte(out), &response), out)
		require.NotEmpty(t, response.Result.Tools, out)
		lines = append(lines, "example.com/prog."+service+": "+costOf(response.Result.Tools))
		for _, tool := range response.Result.Tools {
			lines = append(lines, fmt.Sprintf("%7d  %s", tokens(tool), tool.Name))
		}
		return lines
	}
	require.Equal(t, append(listed("Canvas"), listed("Shop")...), costs)

	wrote, err := generator{}.in(t, dir, ".")
	require.NoError(t, err)
	require.Equal(t, "wrote "+services.GeneratedFile+"\n", wrote)
	first, err := os.ReadFile(filepath.Join(dir, services.GeneratedFile))
	require.NoError(t, err)
	for _, key := range []string{`"Circle.Radius"`, `"Canvas.Draw.Shape"`, `"Canvas.Draw.At.X"`} {
		require.Contains(t, string(first), key)
	}
	alone := built(t, dir)
	require.NoError(t, os.Rename(dir, dir+"-hidden"))
	require.NotEqual(t, source, descriptions(t, beside), "a program without either has no descriptions")
	require.Equal(t, source, descriptions(t, alone))
	require.NoError(t, os.Rename(dir+"-hidden", dir))

	// A second run changes nothing.
	wrote, err = generator{}.in(t, dir, ".")
	require.NoError(t, err)
	require.Empty(t, wrote)
	_, err = generator{check: true}.in(t, dir, "./...")
	require.NoError(t, err)
	second, err := os.ReadFile(filepath.Join(dir, services.GeneratedFile))
	require.NoError(t, err)
	require.Equal(t, string(first), string(second))
}

// Programs ask users with types that no service leads to.
func TestFormsAreDescribed(t *testing.T) {
	t.Parallel()
	dir := outlined(t, "asks")
	out, err := generator{}.in(t, dir, ".")
	require.NoError(t, err)
	require.Contains(t, out, "main.go:50:15: the source does not show the function; a built program may not describe its arguments\n")
	file, err := os.ReadFile(filepath.Join(dir, services.GeneratedFile))
	require.NoError(t, err)
	for _, line := range []string{
		`"Dates.From": "From is the first day.",`, `"Unit#0":     "\"day\" Day is from midnight to midnight.",`,
	} {
		require.Contains(t, string(file), line)
	}
}

const listTools = `{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
	`"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}` + "\n"

func TestStaleFilesAreReported(t *testing.T) {
	t.Parallel()
	testkit.MarkLong(t, "loads packages")
	dir := outlined(t, "prog")
	check := func() error {
		_, err := generator{check: true}.in(t, dir, ".")
		return err
	}
	require.EqualError(t, check(), "example.com/prog has no zz_mcpkit_docs.go; run go generate, or mcpkit gen example.com/prog")
	_, err := generator{}.in(t, dir, ".")
	require.NoError(t, err)

	// A comment in another package changes.
	replace(t, filepath.Join(dir, "wares", "wares.go"), "the sort that is sold most", "sold most")
	require.EqualError(t, check(), "example.com/prog: zz_mcpkit_docs.go is stale; run go generate, or mcpkit gen example.com/prog")
	_, err = generator{}.in(t, dir, ".")
	require.NoError(t, err)
	require.NoError(t, check())

	// Git for Windows writes all files with other line ends.
	for _, name := range []string{"main.go", services.GeneratedFile} {
		file := filepath.Join(dir, name)
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n")), 0o644))
	}
	require.NoError(t, check())

	// A signature changes: the build fails until the file is generated again.
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

func TestGenReportsMissingServices(t *testing.T) {
	t.Parallel()
	testkit.MarkLong(t, "loads packages")
	dir := outlined(t, "prog")
	_, err := generator{}.in(t, dir, "./wares")
	require.EqualError(t, err, "./wares has no service: no struct with an annotation block or an Info field, and none that is passed to mcpkit")
	_, err = generator{}.in(t, dir, filepath.Join(dir, "wares", "wares.go"))
	require.EqualError(t, err, "name the package, such as . or ./shop, instead of its files")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "wares", services.GeneratedFile), []byte(gen.Header+"\npackage wares\n"), 0o644))

	// A file that is no longer needed is removed.
	_, err = generator{check: true}.in(t, dir, "./wares", ".")
	require.ErrorContains(t, err, "example.com/prog/wares: zz_mcpkit_docs.go is stale")
	wrote, err := generator{}.in(t, dir, "./wares", ".")
	require.NoError(t, err)
	require.Equal(t, "wrote zz_mcpkit_docs.go\nremoved "+filepath.Join("wares", services.GeneratedFile)+"\n", wrote)

	replace(t, filepath.Join(dir, "main.go"), "return name, nil", "return nam, nil")
	_, err = generator{}.in(t, dir, ".")
	require.ErrorContains(t, err, "example.com/prog does not compile: ")
	require.ErrorContains(t, err, "undefined: nam")
}

package archtest

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPackagesSayWhatTheyAreFor(t *testing.T) {
	for path, p := range ours(t) {
		if len(p.GoFiles) == 0 {
			continue // tests alone
		}
		want := "Package " + p.Name + " "
		if p.Name == "main" {
			want = "" // a program may begin as it likes
		}
		if p.Doc == "" || !strings.HasPrefix(p.Doc, want) {
			t.Errorf("package %s needs a doc comment that begins with %q; it has %q", path, want, p.Doc)
		}
	}
}

// goFiles returns the Go files that git knows, or will know, of this repository.
func goFiles(t *testing.T) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", "*.go")
	cmd.Dir = root(t)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("git does not list the files of this source tree: %v %s", err, stderr.String())
	}
	var files []string
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		file := filepath.Join(root(t), name)
		if _, err := os.Stat(file); err == nil { // not one that is deleted but still in the index
			files = append(files, file)
		}
	}
	require.NotEmpty(t, files)
	return files
}

// A test that sleeps is slow, and fails on a busy machine: wait for a signal, or use
// testing/synctest. Inside of a synctest bubble sleeping takes no time, so there it is fine.
func TestTestsDoNotSleep(t *testing.T) {
	for _, file := range goFiles(t) {
		if !strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, at := range sleeps(t, file) {
			t.Errorf("%s sleeps outside of a synctest bubble; wait for a signal instead, or use testing/synctest", at)
		}
	}
}

// sleeps returns the places where a file uses time.Sleep outside of a function given to
// synctest.Test. Helpers of a file that uses synctest may sleep: whether they run in a bubble,
// their callers know.
func sleeps(t *testing.T, file string) []string {
	t.Helper()
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	timeName, synctestName := importName(tree, "time"), importName(tree, "testing/synctest")
	var found []string
	for _, decl := range tree.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && synctestName != "" && !isTest(f) {
			continue
		}
		ast.Inspect(decl, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				return !selects(n.Fun, synctestName, "Test")
			case *ast.SelectorExpr:
				if selects(n, timeName, "Sleep") {
					found = append(found, fset.Position(n.Pos()).String())
				}
			}
			return true
		})
	}
	return found
}

// isTest reports whether the testing package runs f by itself.
func isTest(f *ast.FuncDecl) bool {
	for _, prefix := range []string{"Test", "Benchmark", "Fuzz", "Example"} {
		if f.Recv == nil && strings.HasPrefix(f.Name.Name, prefix) {
			return true
		}
	}
	return false
}

// importName returns the name by which a file knows the package path, and "" where it does not
// import it.
func importName(file *ast.File, path string) string {
	for _, spec := range file.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err != nil || p != path {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path[strings.LastIndex(path, "/")+1:]
	}
	return ""
}

func selects(e ast.Expr, pkg, name string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || pkg == "" || s.Sel.Name != name {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == pkg
}

func TestSleepIsFound(t *testing.T) {
	for _, test := range []struct {
		name, imports, body string
		want                []string // line:column
	}{
		{name: "in a test", imports: `clock "time"`, body: "func TestX(t *testing.T) {\nclock.Sleep(1)\n}", want: []string{"4:1"}},
		{name: "as a value", imports: `"time"`, body: "func TestX(t *testing.T) {\nf := time.Sleep\nf(1)\n}", want: []string{"4:6"}},
		{name: "in a helper", imports: `"time"`, body: "func helper() {\ntime.Sleep(1)\n}", want: []string{"4:1"}},
		{name: "in a variable", imports: `"time"`, body: "var wait = func() {\ntime.Sleep(1)\n}", want: []string{"4:1"}},
		{name: "in a bubble", imports: `"time"; "testing/synctest"`, body: "func TestX(t *testing.T) {\nsynctest.Test(t, func(t *testing.T) { time.Sleep(1) })\n}"},
		{name: "in a helper of bubbles", imports: `"time"; "testing/synctest"`, body: "func helper() {\ntime.Sleep(1)\n}"},
		{name: "beside a bubble", imports: `"time"; "testing/synctest"`, body: "func TestX(t *testing.T) {\nsynctest.Test(t, nil)\ntime.Sleep(1)\n}", want: []string{"5:1"}},
		{name: "another Sleep", imports: `"other/time2"`, body: "func TestX(t *testing.T) {\ntime.Sleep(1)\n}"},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "x_test.go")
			require.NoError(t, os.WriteFile(file, []byte("package x\nimport ("+test.imports+")\n"+test.body+"\n"), 0o600))
			var got []string
			for _, at := range sleeps(t, file) {
				got = append(got, strings.TrimPrefix(at, file+":"))
			}
			require.Equal(t, test.want, got)
		})
	}
}

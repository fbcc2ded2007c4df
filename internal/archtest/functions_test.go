package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNoPackageSetsVariablesOfAnother: a package that sets a function of another one is called by
// it all the same, past the table of who may import whom.
func TestNoPackageSetsVariablesOfAnother(t *testing.T) {
	for _, file := range productionFiles(t) {
		for _, at := range foreignAssignments(t, file) {
			t.Errorf("%s: a package sets a variable of another package; pass the function as an argument, or move the code", at)
		}
	}
}

// productionFiles are the Go files of the module, tests left aside.
func productionFiles(t *testing.T) []string {
	t.Helper()
	root := filepath.Join("..", "..")
	var files []string
	require.NoError(t, filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && path != root):
			return filepath.SkipDir
		case !d.IsDir() && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
			files = append(files, path)
		}
		return nil
	}))
	require.Greater(t, len(files), 100)
	return files
}

// foreignAssignments returns where the file assigns to a variable of another package of this
// module.
func foreignAssignments(t *testing.T, file string) (found []string) {
	t.Helper()
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, file, nil, 0)
	require.NoError(t, err)
	ours := map[string]bool{} // names of imported packages of this module
	for _, spec := range tree.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		require.NoError(t, err)
		if strings.HasPrefix(path, module+"/") {
			ours[importName(tree, path)] = true
		}
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		assign, ok := n.(*ast.AssignStmt)
		if !ok {
			return true
		}
		for _, left := range assign.Lhs {
			sel, ok := left.(*ast.SelectorExpr)
			if !ok {
				continue
			}
			// The parser resolves names that the file declares itself; those of packages stay
			// unresolved.
			if x, ok := sel.X.(*ast.Ident); ok && x.Obj == nil && ours[x.Name] {
				found = append(found, fset.Position(left.Pos()).String())
			}
		}
		return true
	})
	return found
}

func TestForeignAssignmentsAreFound(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.go")
	require.NoError(t, os.WriteFile(file, []byte(`package x
import (
	"os"
	relay "`+module+`/internal/limits"
	"`+module+`/jsonrpc"
)
func init() {
	relay.Run = func() {}
	os.Args = nil
	jsonrpc := struct{ ID int }{}
	jsonrpc.ID = 1
	a, relay.Two = 1, 2
}
`), 0o600))
	got := foreignAssignments(t, file)
	require.Equal(t, []string{file + ":8:2", file + ":12:5"}, got)
}

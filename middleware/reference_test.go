package middleware_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The page that lists the cost of all middleware is complete.
func TestTheReferenceHasEveryMiddleware(t *testing.T) {
	page, err := os.ReadFile("../docs/reference/middleware.md")
	require.NoError(t, err)
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	found := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, decl := range parsed.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || !f.Name.IsExported() || !returnsMiddleware(f) {
				continue
			}
			found++
			require.Contains(t, string(page), "`"+f.Name.Name+"`", "%s is not in docs/reference/middleware.md", f.Name.Name)
		}
	}
	require.Greater(t, found, 15)
}

func returnsMiddleware(f *ast.FuncDecl) bool {
	if f.Type.Results == nil || len(f.Type.Results.List) != 1 {
		return false
	}
	s, ok := f.Type.Results.List[0].Type.(*ast.SelectorExpr)
	return ok && s.Sel.Name == "Middleware"
}

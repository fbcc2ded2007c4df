package housetest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	codeLink = regexp.MustCompile("\\[`([^`]+)`\\]\\(\\.\\./\\.\\./([^)]+\\.go)\\)")
	pictured = regexp.MustCompile(`([a-z0-9_/]+\.go) +(\w+\.\w+)`) // FILE  Type.method, in the picture
)

// TestArchitectureNamesWhatExists checks that each name that the page links to a file, or shows beside
// one in its picture, is declared in that file.
func TestArchitectureNamesWhatExists(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "design", "architecture.md"))
	require.NoError(t, err)
	type named struct{ file, name string }
	var all []named
	for _, m := range codeLink.FindAllStringSubmatch(string(text), -1) {
		all = append(all, named{m[2], m[1]})
	}
	links := len(all)
	for _, m := range pictured.FindAllStringSubmatch(string(text), -1) {
		all = append(all, named{m[1], m[2]})
	}
	require.Greater(t, links, 20)
	require.Greater(t, len(all), links+10)
	known := map[string]map[string]bool{}
	for _, n := range all {
		if known[n.file] == nil {
			known[n.file] = declarations(t, filepath.Join(root, filepath.FromSlash(n.file)))
		}
		require.True(t, known[n.file][n.name], "%s does not declare %s", n.file, n.name)
	}
}

// declarations are the functions ("Type.method" or "function"), types, variables, constants and
// methods of interfaces of a file.
func declarations(t *testing.T, file string) map[string]bool {
	t.Helper()
	tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	names := map[string]bool{}
	for _, decl := range tree.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			names[receiver(decl)+decl.Name.Name] = true
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						names[name.Name] = true
					}
				case *ast.TypeSpec:
					names[spec.Name.Name] = true
					if i, ok := spec.Type.(*ast.InterfaceType); ok {
						for _, m := range i.Methods.List {
							for _, name := range m.Names {
								names[spec.Name.Name+"."+name.Name] = true
							}
						}
					}
				}
			}
		}
	}
	return names
}

// receiver is the type that a method belongs to, with a dot; empty for functions.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	t := f.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if index, ok := t.(*ast.IndexExpr); ok {
		t = index.X
	}
	name, ok := t.(*ast.Ident)
	if !ok {
		return ""
	}
	return name.Name + "."
}

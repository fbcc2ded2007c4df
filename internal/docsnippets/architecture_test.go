package docsnippets

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
	codeLink = regexp.MustCompile("\\[`([^`]+)`\\]\\(([^)]+\\.go)\\)")
	fileName = regexp.MustCompile(`\b[a-z0-9_]+(?:/[a-z0-9_]+)+\.go\b`)
	codeSpan = regexp.MustCompile("`[^`\n]+`")
	method   = regexp.MustCompile("^`[A-Za-z]\\w*\\.[A-Za-z]\\w*`$")
)

// TestArchitectureNamesWhatExists checks that each file that the page and its picture name exists,
// and that each name that links to a file is declared in that file.
func TestArchitectureNamesWhatExists(t *testing.T) {
	folder := filepath.Join(root, "docs", "design")
	text, err := os.ReadFile(filepath.Join(folder, "architecture.md"))
	require.NoError(t, err)
	picture, err := os.ReadFile(filepath.Join(folder, "architecture.svg"))
	require.NoError(t, err)
	page := string(text)

	files := fileName.FindAllString(codeLink.ReplaceAllString(page, "")+string(picture), -1)
	require.Greater(t, len(files), 40)
	for _, name := range files {
		require.FileExists(t, filepath.Join(root, filepath.FromSlash(name)))
	}

	links := codeLink.FindAllStringSubmatch(page, -1)
	require.Greater(t, len(links), 80)
	known := map[string]map[string]bool{}
	for _, link := range links {
		file := filepath.Join(folder, filepath.FromSlash(link[2]))
		if known[file] == nil {
			known[file] = declarations(t, file)
		}
		require.True(t, known[file][link[1]], "%s does not declare %s", link[2], link[1])
	}
}

// TestArchitectureLinksEachFunction checks that a method that the page names is a link, which the
// test above holds to the code.
func TestArchitectureLinksEachFunction(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "design", "architecture.md"))
	require.NoError(t, err)
	for _, span := range codeSpan.FindAllString(codeLink.ReplaceAllString(string(text), ""), -1) {
		require.False(t, method.MatchString(span), "%s is not a link to the file that declares it", span)
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

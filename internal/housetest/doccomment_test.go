package housetest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every doc comment of a function, method, type or ungrouped value, exported or not, follows Go's
// convention: it begins with the name, after "A", "An" or "The" at most. Members of groups are
// free: those of enums describe values to models.
func TestDocCommentsBeginWithTheNameTheyDocument(t *testing.T) {
	var wrong []string
	fset := token.NewFileSet()
	for _, path := range goFiles(t) {
		if strings.HasSuffix(path, "_test.go") || strings.Contains(path, "/testdata/") {
			continue
		}
		file, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(t, err)
		if ast.IsGenerated(file) {
			continue
		}
		check := func(name string, doc *ast.CommentGroup) {
			if doc != nil && name != "_" && name != "init" && name != "main" && !beginsWith(doc.Text(), name) {
				first, _, _ := strings.Cut(doc.Text(), "\n")
				wrong = append(wrong, fset.Position(doc.Pos()).String()+": "+name+": "+first)
			}
		}
		for _, decl := range file.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				check(decl.Name.Name, decl.Doc)
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						check(spec.Name.Name, typeDoc(spec, decl))
					case *ast.ValueSpec:
						if len(spec.Names) == 1 && !decl.Lparen.IsValid() {
							check(spec.Names[0].Name, decl.Doc)
						}
					}
				}
			}
		}
	}
	require.Empty(t, wrong, "doc comments that do not begin with the name they document")
}

// typeDoc is the doc comment of a type: its own, or the declaration's when the type stands alone.
func typeDoc(spec *ast.TypeSpec, decl *ast.GenDecl) *ast.CommentGroup {
	if spec.Doc == nil && !decl.Lparen.IsValid() {
		return decl.Doc
	}
	return spec.Doc
}

// beginsWith reports whether text begins with the name as a word. Directives and "Deprecated:"
// stand on their own.
func beginsWith(text, name string) bool {
	if text == "" || strings.HasPrefix(text, "Deprecated:") {
		return true
	}
	for _, article := range []string{"", "A ", "An ", "The "} {
		if rest, ok := strings.CutPrefix(text, article+name); ok && !isNameByte(rest) {
			return true
		}
	}
	return false
}

// isNameByte reports whether rest goes on with a letter or digit, so that the name before it is a
// longer one.
func isNameByte(rest string) bool {
	return rest != "" && (rest[0] == '_' || rest[0] >= '0' && rest[0] <= '9' || rest[0] >= 'A' && rest[0] <= 'Z' || rest[0] >= 'a' && rest[0] <= 'z')
}

// Every exported name of a public package has a doc comment of its own or of its group, in all
// modules. Methods that implement well-known interfaces need none.
func TestExportedNamesHaveDocComments(t *testing.T) {
	wellKnown := []string{"Error", "Unwrap", "String", "MarshalJSON", "UnmarshalJSON", "Is", "As"}
	var missing []string
	fset := token.NewFileSet()
	for _, path := range goFiles(t) {
		name, err := filepath.Rel(root, path)
		require.NoError(t, err)
		if strings.HasSuffix(path, "_test.go") || !isPublic(filepath.ToSlash(filepath.Dir(name))) {
			continue
		}
		file, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(t, err)
		check := func(name *ast.Ident, docs ...*ast.CommentGroup) {
			if name.IsExported() && !slices.ContainsFunc(docs, func(doc *ast.CommentGroup) bool { return doc.Text() != "" }) {
				missing = append(missing, fset.Position(name.Pos()).String()+": "+name.Name)
			}
		}
		for _, decl := range file.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				if receiver := receiverOf(decl); decl.Recv == nil || ast.IsExported(receiver) && !slices.Contains(wellKnown, decl.Name.Name) {
					check(decl.Name, decl.Doc)
				}
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						check(spec.Name, spec.Doc, decl.Doc)
					case *ast.ValueSpec:
						for _, name := range spec.Names {
							check(name, spec.Doc, decl.Doc, spec.Comment)
						}
					}
				}
			}
		}
	}
	require.Empty(t, missing, "exported names without a doc comment")
}

// receiverOf returns the name of the type of a method; "" for a function.
func receiverOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	t := f.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// isPublic reports whether users import the package in a folder.
func isPublic(folder string) bool {
	for part := range strings.SplitSeq(folder, "/") {
		if part == "internal" || part == "testdata" {
			return false
		}
	}
	first, _, _ := strings.Cut(folder, "/")
	return !slices.Contains([]string{"cmd", "docs", "examples"}, first)
}

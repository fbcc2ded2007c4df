package housetest

import (
	"bytes"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

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
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("git does not list the files of this source tree: %v %s", err, stderr.String())
	}
	var files []string
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		file := filepath.Join(root, name)
		if _, err := os.Stat(file); err == nil { // not one that is deleted but still in the index
			files = append(files, file)
		}
	}
	require.NotEmpty(t, files)
	return files
}

var (
	namedTest  = regexp.MustCompile("`([a-z0-9_/]+)\\.((?:Test|Fuzz)\\w+)`")
	claimStart = regexp.MustCompile(`(?m)^(?:\| |- )`)
)

// TestSecurityPageNamesItsTests checks that each claim of docs/design/security.md names a test, and
// that each of these tests exists. Claims are the rows of its tables and the items of its lists, up
// to the section that lists what the module does not do.
func TestSecurityPageNamesItsTests(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "design", "security.md"))
	require.NoError(t, err)
	promises, _, found := strings.Cut(string(page), "\n## What is left to you\n")
	require.True(t, found)
	claims := claimStart.FindAllStringIndex(promises, -1)
	require.Greater(t, len(claims), 70)
	for i, at := range claims {
		end := len(promises)
		if i+1 < len(claims) {
			end = claims[i+1][0]
		}
		claim, _, _ := strings.Cut(promises[at[0]:end], "\n\n")
		if strings.HasPrefix(claim, "| threat |") {
			continue
		}
		named := namedTest.FindAllStringSubmatch(claim, -1)
		require.NotEmpty(t, named, claim)
		for _, m := range named {
			require.True(t, declares(t, m[1], m[2]), "%s has no test %s", m[1], m[2])
		}
	}
}

// declares reports whether the tests of a folder have a function.
func declares(t *testing.T, folder, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(folder), "*_test.go"))
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		if strings.Contains(string(text), "\nfunc "+name+"(") {
			return true
		}
	}
	return false
}

// limitRow is a row of limits.md: a default, and the folder and name of the constant that enforces it.
var limitRow = regexp.MustCompile("(?m)^\\| [^|]+ \\| ([^|]+) \\|.*\\| `([^`]+)\\.(\\w+)` \\|$")

func TestLimitsOfThePageAreThoseOfTheCode(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "reference", "limits.md"))
	require.NoError(t, err)
	rows := limitRow.FindAllStringSubmatch(string(page), -1)
	require.Len(t, rows, strings.Count(string(page), "\n| ")-strings.Count(string(page), "\n| limit |"), "a row has another form")
	require.LessOrEqual(t, len(rows), 25)
	for _, row := range rows {
		require.Equal(t, amount(t, row[1]), constantIn(t, row[2], row[3]), "%s.%s", row[2], row[3])
	}
}

// amount reads a number ("1,000"), a size ("4 MiB") or a time ("30s", in nanoseconds).
func amount(t *testing.T, text string) int64 {
	t.Helper()
	if d, err := time.ParseDuration(text); err == nil {
		return int64(d)
	}
	number, unit, _ := strings.Cut(strings.ReplaceAll(text, ",", ""), " ")
	n, err := strconv.ParseInt(number, 10, 64)
	require.NoError(t, err)
	return n << map[string]int{"": 0, "KiB": 10, "MiB": 20}[unit]
}

// constantIn evaluates a constant of the package in a folder, which may use package time and nothing else.
func constantIn(t *testing.T, folder, name string) int64 {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(folder), "*.go"))
	require.NoError(t, err)
	units := types.NewPackage("time", "time")
	for unit, d := range map[string]time.Duration{"Second": time.Second, "Minute": time.Minute, "Hour": time.Hour} {
		units.Scope().Insert(types.NewConst(token.NoPos, units, unit, types.Typ[types.Int64], constant.MakeInt64(int64(d))))
	}
	pkg := types.NewPackage("limits", "limits")
	pkg.Scope().Insert(types.NewPkgName(token.NoPos, pkg, "time", units))
	for _, file := range files {
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, decl := range tree.Decls {
			consts, ok := decl.(*ast.GenDecl)
			if !ok || consts.Tok != token.CONST {
				continue
			}
			for _, spec := range consts.Specs {
				spec := spec.(*ast.ValueSpec)
				if spec.Names[0].Name != name {
					continue
				}
				value, err := types.Eval(token.NewFileSet(), pkg, token.NoPos, types.ExprString(spec.Values[0]))
				require.NoError(t, err)
				n, _ := constant.Int64Val(value.Value)
				return n
			}
		}
	}
	t.Fatalf("there is no constant %s in %s", name, folder)
	return 0
}

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
			name := decl.Name.Name
			if decl.Recv != nil {
				name = receiverOf(decl) + "." + name
			}
			names[name] = true
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

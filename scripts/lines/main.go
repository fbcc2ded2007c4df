// Command lines measures how large the library is: lines of Go code without comments and blank
// lines, files, exported names and the structs with the most fields. Tests, examples, benchmarks,
// the fixtures of the conformance suite and the clients of other SDKs do not count, nor do these
// scripts.
//
// usage: lines [DIR]    DIR is the repository, or another work tree of it; "." by default
package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
)

// elsewhere are the directories at the top that are not part of the library.
var elsewhere = []string{"bench", "conformance", "examples", "interop", "scripts"}

// largest is how many structs are listed.
const largest = 15

func main() {
	dir := "."
	if len(os.Args) > 1 {
		dir = os.Args[1]
	}
	if err := run(dir, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "lines:", err)
		os.Exit(1)
	}
}

// size is what is counted of a package or a directory with all that is in it.
type size struct {
	name                   string
	lines, files, exported int
}

func (s *size) add(other size) {
	s.lines += other.lines
	s.files += other.files
	s.exported += other.exported
}

type structure struct {
	name   string
	fields int
}

// run writes the figures of the repository in dir.
func run(dir string, w io.Writer) error {
	packages, structs, err := measure(dir)
	if err != nil {
		return err
	}
	var tops []size
	total := size{name: "total"}
	for _, p := range packages {
		top, _, _ := strings.Cut(p.name, "/")
		if len(tops) == 0 || tops[len(tops)-1].name != top {
			tops = append(tops, size{name: top})
		}
		tops[len(tops)-1].add(p)
		total.add(p)
	}
	printSizes(w, "top package", append(tops, total))
	fmt.Fprintln(w)
	printSizes(w, "package", packages)
	fmt.Fprintln(w)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "fields\tstruct\t")
	for _, s := range structs[:min(largest, len(structs))] {
		fmt.Fprintf(table, "%d\t%s\t\n", s.fields, s.name)
	}
	return table.Flush()
}

func printSizes(w io.Writer, title string, sizes []size) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "lines\tfiles\texported\t%s\t\n", title)
	for _, s := range sizes {
		fmt.Fprintf(table, "%d\t%d\t%d\t%s\t\n", s.lines, s.files, s.exported, s.name)
	}
	table.Flush() // of w, whose errors the last table reports
}

// measure returns the packages by name and the structs, the largest first.
func measure(dir string) (packages []size, structs []structure, err error) {
	byName := map[string]*size{}
	err = filepath.WalkDir(dir, func(file string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		switch {
		case e.IsDir() && name != "." && (strings.HasPrefix(e.Name(), ".") || e.Name() == "testdata" || slices.Contains(elsewhere, name)):
			return fs.SkipDir
		case e.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		source, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, source, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		pkg := filepath.ToSlash(filepath.Dir(name))
		if byName[pkg] == nil {
			byName[pkg] = &size{name: pkg}
		}
		here := size{lines: codeLines(source), files: 1}
		if public := tree.Name.Name != "main" && !slices.Contains(strings.Split(pkg, "/"), "internal"); public {
			here.exported = exported(tree)
		}
		byName[pkg].add(here)
		structs = append(structs, structsOf(pkg, tree)...)
		return nil
	})
	for _, p := range byName {
		packages = append(packages, *p)
	}
	slices.SortFunc(packages, func(a, b size) int { return strings.Compare(a.name, b.name) })
	slices.SortFunc(structs, func(a, b structure) int {
		return cmp.Or(b.fields-a.fields, strings.Compare(a.name, b.name))
	})
	return packages, structs, err
}

// codeLines counts the lines on which something other than a comment stands.
func codeLines(source []byte) int {
	fset := token.NewFileSet()
	file := fset.AddFile("", -1, len(source))
	var s scanner.Scanner
	s.Init(file, source, nil, 0)
	count, last := 0, 0 // the last line that was counted
	for {
		pos, tok, text := s.Scan()
		if tok == token.EOF {
			return count
		}
		if tok == token.SEMICOLON && text == "\n" {
			continue // the scanner's own
		}
		first := file.Line(pos)
		end := first + bytes.Count([]byte(text), []byte("\n")) // a raw string may be long
		count += end - max(first, last+1) + 1
		last = end
	}
}

// exported counts the names that a file exports: of its package, and methods of types that are
// exported themselves.
func exported(tree *ast.File) int {
	count := 0
	add := func(names ...*ast.Ident) {
		for _, n := range names {
			if n.IsExported() {
				count++
			}
		}
	}
	for _, decl := range tree.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil || ast.IsExported(receiver(d.Recv.List[0].Type)) {
				add(d.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					add(spec.Name)
				case *ast.ValueSpec:
					add(spec.Names...)
				}
			}
		}
	}
	return count
}

// receiver returns the name of the type of a method.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// structsOf returns the struct types that a file declares by name.
func structsOf(pkg string, tree *ast.File) []structure {
	var found []structure
	ast.Inspect(tree, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		if s, ok := spec.Type.(*ast.StructType); ok {
			fields := 0
			for _, f := range s.Fields.List {
				fields += max(1, len(f.Names)) // an embedded field has no name
			}
			found = append(found, structure{name: pkg + "." + spec.Name.Name, fields: fields})
		}
		return true
	})
	return found
}

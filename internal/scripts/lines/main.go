// Command lines measures the size of the library: lines of Go code without comments and blank
// lines, files, exported names and the structs with the most fields. It does not count tests and
// the directories bench, conformance, docs, examples, interop and scripts.
//
// usage: lines [DIR]    DIR is the root of the repository, by default "."
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

// excluded lists the top directories that are not part of the library.
var excluded = []string{"bench", "conformance", "docs", "examples", "interop", "scripts"}

// largest is the number of structs to list.
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

// size holds the figures of a package, or of a directory with all its packages.
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

// run writes the figures of the repository in dir to w.
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
	table.Flush() // run reports errors of w when it flushes the last table
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
		case e.IsDir() && name != "." && (strings.HasPrefix(e.Name(), ".") || e.Name() == "testdata" || slices.Contains(excluded, name)):
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

// codeLines counts the lines with code: neither blank nor only a comment.
func codeLines(source []byte) int {
	fset := token.NewFileSet()
	file := fset.AddFile("", -1, len(source))
	var s scanner.Scanner
	s.Init(file, source, nil, 0)
	count, last := 0, 0 // last is the last counted line
	for {
		pos, tok, text := s.Scan()
		if tok == token.EOF {
			return count
		}
		if tok == token.SEMICOLON && text == "\n" {
			continue // inserted by the scanner
		}
		first := file.Line(pos)
		end := first + bytes.Count([]byte(text), []byte("\n")) // raw strings span lines
		count += end - max(first, last+1) + 1
		last = end
	}
}

// exported counts the exported names of a file: of the package, and methods of exported types.
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

// receiver returns the type name of a method's receiver.
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

// structsOf returns the named struct types of a file.
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

// Command platforms checks the types of all packages and their tests for other platforms. It reads
// the sources of all dependencies and compiles nothing, which takes a tenth of the time of go vet.
//
//	go run ./internal/scripts/platforms linux/386 windows/amd64
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	root, err := os.Getwd()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	failed := false
	for _, platform := range os.Args[1:] {
		fmt.Println("types for", platform)
		faults, err := check(root, platform)
		if err != nil {
			faults = append(faults, err.Error())
		}
		for _, fault := range faults {
			fmt.Fprintln(os.Stderr, fault)
			failed = true
		}
	}
	if failed {
		os.Exit(1)
	}
}

// check returns the faults of the packages of a module for a platform such as linux/386.
func check(root, platform string) ([]string, error) {
	system, processor, ok := strings.Cut(platform, "/")
	if !ok {
		return nil, fmt.Errorf("platform %q: write it as linux/386", platform)
	}
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedDeps |
			packages.NeedTypes | packages.NeedTypesSizes | packages.NeedSyntax | packages.NeedModule,
		Dir:   root,
		Env:   append(os.Environ(), "GOOS="+system, "GOARCH="+processor, "CGO_ENABLED=0"),
		Tests: true,
		ParseFile: func(fset *token.FileSet, name string, src []byte) (*ast.File, error) {
			return parse(fset, root, name, src)
		},
	}, "./...")
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	var faults []string
	for _, pkg := range loaded {
		if strings.HasSuffix(pkg.ID, ".test") { // the main package that go test writes
			continue
		}
		for _, fault := range pkg.Errors {
			if text := platform + ": " + fault.Error(); !seen[text] { // a package and its test variant
				seen[text] = true
				faults = append(faults, text)
			}
		}
	}
	return faults, nil
}

// parse parses a file. Functions of dependencies have no bodies, as only their types are needed.
func parse(fset *token.FileSet, root, name string, src []byte) (*ast.File, error) {
	file, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution|parser.ParseComments)
	if file == nil || strings.HasPrefix(name, root+string(filepath.Separator)) {
		return file, err
	}
	for _, decl := range file.Decls {
		if function, ok := decl.(*ast.FuncDecl); ok {
			function.Body = nil
		}
	}
	return file, err
}

// Package services finds in source what mcpkit finds by reflection: the services of a package,
// their methods and the types that these reach. It runs none of the code that it reads.
package services

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// GeneratedFile is the file that "mcpkit gen" writes.
const GeneratedFile = "zz_mcpkit_docs.go"

// module is the import path of what is looked for.
const module = "github.com/mcpkit/mcpkit-go"

// A Package is a package of Go source with types, and what was found in it.
type Package struct {
	// Path is the import path, Dir where the files are.
	Path, Dir string
	Fset      *token.FileSet
	Files     []*ast.File
	Types     *types.Package
	Info      *types.Info
	// Dirs has the directories of this package and of all that it imports, by import path, without
	// the standard library. OneOnly says that this package's alone is known.
	Dirs    map[string]string
	OneOnly bool

	Services []*Service
	// Functions are the signatures of the functions that tools, prompts and resources are built
	// from.
	Functions []*types.Signature
	// Provided are the types that methods are given by mcpkit.Provide.
	Provided []types.Type
	// Unions are the interfaces whose types mcpkit.Union registers.
	Unions []Union
	// OwnRules says that a validator is given to mcpkit, one that may know more rules.
	OwnRules bool
	// Dropped are the calls whose errors nobody looks at, of functions in whose errors mistakes are
	// told.
	Dropped []*ast.CallExpr
}

// A Union is an interface and the types that its values have.
type Union struct {
	// Discriminator is "" where it is not a constant.
	Discriminator string
	Interface     types.Type
	Cases         []types.Type
}

// Load reads the packages that match the patterns of the go command, as seen from dir ("" for the
// current one), without their tests. The generated file of each is left out, since it may be what
// no longer compiles. Packages that do not compile otherwise are an error.
func Load(dir string, patterns []string) ([]*Package, error) {
	// Where the imports are is asked for apart: to have their types as well from source would take
	// seconds.
	listed, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedDeps | packages.NeedModule, Dir: dir,
	}, patterns...)
	if err != nil {
		return nil, err
	}
	imports := map[string]map[string]string{}
	for _, p := range listed {
		imports[p.PkgPath] = dirs(p)
	}
	flags, done, err := without(listed)
	if err != nil {
		return nil, err
	}
	defer done()
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo |
			packages.NeedImports | packages.NeedExportFile,
		Dir: dir, BuildFlags: flags, ParseFile: parse,
	}, patterns...)
	if err != nil {
		return nil, err
	}
	var found []*Package
	var faults []error
	for _, p := range loaded {
		if len(p.Errors) > 0 {
			faults = append(faults, fmt.Errorf("%s does not compile: %v", p.PkgPath, p.Errors[0]))
			continue
		}
		if len(p.GoFiles) == 0 {
			continue
		}
		found = append(found, &Package{
			Path: p.PkgPath, Dir: filepath.Dir(p.GoFiles[0]), Fset: p.Fset, Files: p.Syntax, Types: p.Types, Info: p.TypesInfo, Dirs: imports[p.PkgPath],
		})
	}
	if len(found)+len(faults) == 0 {
		return nil, fmt.Errorf("no packages match %s", strings.Join(patterns, " "))
	}
	slices.SortFunc(found, func(a, b *Package) int { return strings.Compare(a.Path, b.Path) })
	return found, errors.Join(faults...)
}

// without makes the flags with which the go command takes the generated files of the packages for
// empty ones. The Overlay of package packages would have everything down to the standard library
// read from source.
func without(listed []*packages.Package) (flags []string, done func(), err error) {
	replaced := map[string]string{}
	names := map[string]bool{}
	for _, p := range listed {
		for _, file := range p.GoFiles {
			if filepath.Base(file) == GeneratedFile {
				replaced[file] = p.Name
				names[p.Name] = true
			}
		}
	}
	if len(replaced) == 0 {
		return nil, func() {}, nil
	}
	dir, err := os.MkdirTemp("", "mcpkit-*")
	if err != nil {
		return nil, nil, err
	}
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		err = errors.Join(err, os.WriteFile(path, data, 0o600))
		return path
	}
	for name := range names {
		empty := write(name+".go", []byte("package "+name+"\n"))
		for file, of := range replaced {
			if of == name {
				replaced[file] = empty
			}
		}
	}
	overlay, _ := json.Marshal(map[string]any{"Replace": replaced}) // strings encode
	flags = []string{"-overlay=" + write("overlay.json", overlay)}
	done = func() { _ = os.RemoveAll(dir) }
	if err != nil {
		done()
	}
	return flags, done, err
}

// parse reads a file; of a generated one, its name of the package.
func parse(fset *token.FileSet, name string, src []byte) (*ast.File, error) {
	mode := parser.AllErrors | parser.ParseComments
	if filepath.Base(name) == GeneratedFile {
		mode = parser.PackageClauseOnly
	}
	return parser.ParseFile(fset, name, src, mode)
}

// dirs finds the directories of p and its imports. What belongs to no module is of the standard
// library.
func dirs(p *packages.Package) map[string]string {
	found := map[string]string{}
	packages.Visit([]*packages.Package{p}, func(p *packages.Package) bool {
		if p.Module != nil && len(p.GoFiles) > 0 {
			found[p.PkgPath] = filepath.Dir(p.GoFiles[0])
		}
		return p.Module != nil
	}, nil)
	if len(p.GoFiles) > 0 {
		found[p.PkgPath] = filepath.Dir(p.GoFiles[0])
	}
	return found
}

// FindDirs fills Dirs for a package of which only the types of its imports are known, from the
// places of their declarations. It reports whether these are known: -trimpath hides them.
func (p *Package) FindDirs() bool {
	p.Dirs = map[string]string{p.Path: p.Dir}
	all := true
	seen := map[*types.Package]bool{p.Types: true}
	var visit func(list []*types.Package)
	visit = func(list []*types.Package) {
		for _, imported := range list {
			if seen[imported] {
				continue
			}
			seen[imported] = true
			visit(imported.Imports())
			for _, name := range imported.Scope().Names() {
				file := p.Fset.Position(imported.Scope().Lookup(name).Pos()).Filename
				if file == "" {
					continue
				}
				if !filepath.IsAbs(file) && !strings.HasPrefix(file, "$GOROOT") {
					all = false
				} else if !strings.HasPrefix(file, "$GOROOT") && !strings.HasPrefix(file, filepath.Join(build.Default.GOROOT, "src")) {
					p.Dirs[imported.Path()] = filepath.Dir(file)
				}
				break
			}
		}
	}
	visit(p.Types.Imports())
	p.OneOnly = false
	return all
}

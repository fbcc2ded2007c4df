// Package services finds in source what mcpkit finds by reflection: the services of a package,
// their methods, and the types of their arguments and results. It does not run the code.
package services

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
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

// module is the import path of this module.
const module = "github.com/mcpkit/mcpkit-go"

// A Package is a type-checked package of Go source, and what was found in it.
type Package struct {
	// Path is the import path, and Dir the directory of the files.
	Path, Dir string
	Fset      *token.FileSet
	Files     []*ast.File
	Types     *types.Package
	Info      *types.Info
	// Dirs has the directories of this package and of all its imports, by import path, without the
	// standard library.
	Dirs map[string]string

	Services []*Service
	// Functions are the signatures of the functions from which tools, prompts and resources are
	// built.
	Functions []*types.Signature
	// ByValue are structs that are passed as services, of which a pointer is one.
	ByValue []ast.Expr
	// Unknown are the calls with functions that the source does not show.
	Unknown []token.Pos
	// Provided are the types that mcpkit.Provide provides to methods.
	Provided []types.Type
	// Asked are the types of forms that mcpkit.Elicit shows to users.
	Asked []types.Type
	// OwnRules is set if the program passes its own validator, which may have more rules.
	OwnRules bool
}

// Load reads the packages that match the patterns of the go command in dir ("" means the current
// directory), without their tests. It leaves out the generated files, since they may be the reason
// why a package does not compile. A package that does not compile without its generated file is an
// error.
func Load(dir string, patterns []string) ([]*Package, error) {
	// A separate call finds the directories of the imports. One call for both would type-check the
	// source of all imports, which takes seconds.
	listed, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedDeps | packages.NeedModule, Dir: dir,
	}, patterns...)
	if err != nil {
		_, why, _ := strings.Cut(err.Error(), "stderr: ")
		return nil, errors.New(cmp.Or(strings.TrimSpace(why), err.Error()) + "; run it in the folder of a module, and name its packages")
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
		Dir: dir, BuildFlags: flags,
	}, patterns...)
	if err != nil {
		return nil, err
	}
	var found []*Package
	var faults []error
	for _, p := range loaded {
		if p.PkgPath == "command-line-arguments" {
			return nil, errors.New("name the package, such as . or ./shop, instead of its files")
		}
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

// without returns flags for the go command that leave out the generated files of the packages. It
// does not use packages.Config.Overlay, with which all imports, including the standard library, are
// read from source.
func without(listed []*packages.Package) (flags []string, done func(), err error) {
	replaced := map[string]string{}
	for _, p := range listed {
		for _, file := range p.GoFiles {
			if filepath.Base(file) == GeneratedFile {
				replaced[file] = ""
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
	done = func() { _ = os.RemoveAll(dir) }
	flag, err := Overlay(dir, replaced)
	if err != nil {
		done()
	}
	return []string{flag}, done, err
}

// Overlay returns a flag for the go command that gives paths the content of other files, or of none
// for "". It writes a file into dir.
func Overlay(dir string, replace map[string]string) (flag string, err error) {
	text, _ := json.Marshal(map[string]any{"Replace": replace}) // strings encode
	path := filepath.Join(dir, "overlay.json")
	return "-overlay=" + path, os.WriteFile(path, text, 0o600)
}

// dirs returns the directories of p and its imports. A package without a module belongs to the
// standard library.
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

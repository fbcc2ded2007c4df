package reflectx

import (
	"cmp"
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"reflect"
	"strconv"
	"strings"
	"sync"
)

// SourceDescriptions returns the descriptions in the source files on disk that the program was
// built from, as with go run and go test.
//
// It finds a package by one of its files that [Methods] or [Compile] has seen, or in the module of
// such a file; "mcpkit gen" describes packages of other modules. A program built with -trimpath
// contains no directories, so it has no descriptions.
func SourceDescriptions() Descriptions { return keyed(onDisk.of) }

var onDisk = &source{
	locate: seen.find,
	read:   func(dir string) packages { return collect(os.DirFS(dir), ".", true) },
}

// EmbeddedDescriptions returns the descriptions in embedded source files. fsys is the embed.FS of a
// //go:embed *.go in the package pkgPath, and its directories are the packages below. "main" stands
// for the program's own package.
func EmbeddedDescriptions(fsys fs.FS, pkgPath string) Descriptions {
	s := &source{
		locate: func(asked string) string {
			for _, p := range []string{asked, strings.TrimSuffix(asked, "_test"), alias(asked)} {
				if rest, ok := within(p, pkgPath); ok && p != "" {
					return path.Join(".", rest)
				}
			}
			if asked == "main" { // the files themselves show whether the package is main
				return "."
			}
			return ""
		},
		read: func(dir string) packages { return collect(fsys, dir, true) },
	}
	return keyed(s.of)
}

// within returns the part of an import path below root.
func within(pkgPath, root string) (rest string, ok bool) {
	if pkgPath == root {
		return "", true
	}
	return strings.CutPrefix(pkgPath, root+"/")
}

// CollectDescriptions reads the Go files in the root of fsys, except test files, and returns the
// descriptions of the package named pkgName, with the keys of [RegisterDescriptions], for a
// generator to write. They are those of [SourceDescriptions].
func CollectDescriptions(fsys fs.FS, pkgName string) map[string]string {
	descriptions := map[string]string{}
	if found := collect(fsys, ".", false)[pkgName]; found != nil {
		descriptions = found
	}
	return descriptions
}

// packages are the descriptions in a directory, by the name in the package clause and by key.
type packages map[string]map[string]string

// A source finds descriptions in source files. It reads each directory once, since the source of a
// program does not change while it runs.
type source struct {
	locate func(pkgPath string) (dir string) // returns "" if the package is not found
	read   func(dir string) packages

	mu   sync.Mutex
	dirs map[string]packages // guarded by mu
}

// of returns the descriptions of the package of t by key.
func (s *source) of(t reflect.Type) map[string]string {
	if t.PkgPath() == "" || t.Name() == "" {
		return nil
	}
	dir := s.locate(t.PkgPath())
	if dir == "" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.dirs[dir]
	if !ok {
		if s.dirs == nil {
			s.dirs = map[string]packages{}
		}
		found = s.read(dir)
		s.dirs[dir] = found
	}
	name, _, _ := strings.Cut(t.String(), ".") // reflect puts the name in the package clause before that of the type
	return found[name]
}

// collect reads the Go files of a directory. It never fails: without files there are no descriptions,
// and a file with a syntax error has those before the error.
func collect(fsys fs.FS, dir string, tests bool) packages {
	byName := map[string]*sourcePackage{}
	entries, _ := fs.ReadDir(fsys, dir)
	for _, entry := range entries {
		name := entry.Name()
		if entry.IsDir() || !strings.HasSuffix(name, ".go") || !tests && strings.HasSuffix(name, "_test.go") {
			continue
		}
		src, err := fs.ReadFile(fsys, path.Join(dir, name))
		if err != nil {
			continue
		}
		file, _ := parser.ParseFile(token.NewFileSet(), name, src, parser.ParseComments|parser.SkipObjectResolution)
		if file == nil || file.Name == nil {
			continue
		}
		p := byName[file.Name.Name]
		if p == nil {
			p = &sourcePackage{texts: map[string]string{}, fields: map[string][]string{}, bases: map[string]string{}, consts: map[string]*sourceConst{}}
			byName[file.Name.Name] = p
		}
		p.add(file)
	}
	found := packages{}
	for name, p := range byName {
		p.inherit()
		p.addEnums()
		found[name] = p.texts
	}
	return found
}

// A sourcePackage holds the declarations of the files with the same package clause.
type sourcePackage struct {
	texts  map[string]string   // the descriptions, with the keys of RegisterDescriptions
	fields map[string][]string // by type: the paths of the fields of a struct, or the methods of an interface
	bases  map[string]string   // by type: the type that it is defined by
	consts map[string]*sourceConst
	order  []*sourceConst
}

// put adds a description, unless there is one from a file for another system.
func (p *sourcePackage) put(key string, group *ast.CommentGroup) {
	if text := plain(group); text != "" && p.texts[key] == "" {
		p.texts[key] = text
	}
}

// add adds the declarations of a file.
func (p *sourcePackage) add(file *ast.File) {
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Recv == nil || len(decl.Recv.List) == 0 {
				continue
			}
			key := typeName(decl.Recv.List[0].Type) + "." + decl.Name.Name
			p.put(key, decl.Doc)
			for _, param := range decl.Type.Params.List {
				p.addFields(key, param.Type)
			}
		case *ast.GenDecl:
			if decl.Tok == token.CONST {
				p.addConsts(decl)
			}
			for _, spec := range decl.Specs {
				if ts, ok := spec.(*ast.TypeSpec); ok && !ts.Assign.IsValid() {
					p.addType(decl, ts)
				}
			}
		}
	}
}

func (p *sourcePackage) addType(decl *ast.GenDecl, ts *ast.TypeSpec) {
	doc := ts.Doc
	if doc == nil && len(decl.Specs) == 1 {
		doc = decl.Doc
	}
	p.put(ts.Name.Name, cmp.Or(doc, ts.Comment))
	p.bases[ts.Name.Name] = typeName(ts.Type)
	p.addFields(ts.Name.Name, ts.Type)
}

// addFields adds the comments of the fields of a struct, or of the elements of a list or map of them,
// at the key. A field whose type is a struct without a name has fields of its own.
func (p *sourcePackage) addFields(key string, typ ast.Expr) {
	var list *ast.FieldList
	switch t := typ.(type) {
	case *ast.ParenExpr:
		p.addFields(key, t.X)
	case *ast.StarExpr:
		p.addFields(key, t.X)
	case *ast.ArrayType:
		p.addFields(key, t.Elt)
	case *ast.MapType:
		p.addFields(key, t.Value)
	case *ast.StructType:
		list = t.Fields
	case *ast.InterfaceType:
		list = t.Methods
	}
	if list == nil {
		return
	}
	owner, at, _ := strings.Cut(key, ".")
	for _, f := range list.List {
		names := f.Names
		if names == nil {
			names = []*ast.Ident{{Name: typeName(f.Type)}}
		}
		for _, name := range names {
			if name.Name == "_" || name.Name == "" {
				continue
			}
			p.fields[owner] = append(p.fields[owner], strings.TrimPrefix(at+"."+name.Name, "."))
			p.put(key+"."+name.Name, cmp.Or(f.Doc, f.Comment))
			p.addFields(key+"."+name.Name, f.Type)
		}
	}
}

// inherit gives a type that is defined by another one the descriptions of its fields.
func (p *sourcePackage) inherit() {
	for name := range p.bases {
		base := name
		for range 8 { // type A B; type B A does not compile, but must not cause an endless loop
			if base = p.bases[base]; base == "" {
				break
			}
			for _, field := range p.fields[base] {
				if text := p.texts[base+"."+field]; text != "" && p.texts[name+"."+field] == "" {
					p.texts[name+"."+field] = text
				}
			}
		}
	}
}

// typeName returns the name of a type without pointer, package and type arguments, or "".
func typeName(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.ParenExpr:
		return typeName(x.X)
	case *ast.StarExpr:
		return typeName(x.X)
	case *ast.SelectorExpr:
		return x.Sel.Name
	case *ast.IndexExpr:
		return typeName(x.X)
	case *ast.IndexListExpr:
		return typeName(x.X)
	}
	return ""
}

// plain converts a comment to text, as go doc prints it, with each paragraph on one line and
// without directives.
func plain(group *ast.CommentGroup) string {
	if group == nil {
		return ""
	}
	kept := &ast.CommentGroup{}
	for _, c := range group.List {
		if !strings.HasPrefix(c.Text, "//nolint") { // go/ast leaves out the other directives
			kept.List = append(kept.List, c)
		}
	}
	links := comment.Parser{
		LookupSym:     func(string, string) bool { return true },
		LookupPackage: func(name string) (string, bool) { return name, true },
	}
	printer := comment.Printer{TextWidth: -1}
	return strings.TrimSpace(string(printer.Text(links.Parse(kept.Text()))))
}

// addEnums adds the constants of each type: the exported ones, or all if none is exported. It leaves
// out a type with a constant whose value is unknown, since an incomplete list would be wrong.
func (p *sourcePackage) addEnums() {
	all, exported, unknown := map[string][]string{}, map[string][]string{}, map[string]bool{}
	for _, c := range p.order {
		typ := p.typeOf(c, 0)
		if _, ok := p.bases[typ]; !ok || c.name.Name == "_" {
			continue
		}
		literal := constLiteral(p.valueOf(c, 0))
		unknown[typ] = unknown[typ] || literal == ""
		entry := strings.TrimSpace(literal + " " + plain(c.doc))
		all[typ] = append(all[typ], entry)
		if c.name.IsExported() {
			exported[typ] = append(exported[typ], entry)
		}
	}
	for typ, entries := range all {
		if exported[typ] != nil {
			entries = exported[typ]
		}
		for i, entry := range entries {
			if !unknown[typ] {
				p.texts[typ+"#"+strconv.Itoa(i)] = entry
			}
		}
	}
}

package reflectx

import (
	"cmp"
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"reflect"
	"strconv"
	"strings"
	"sync"
)

// Limits of one directory; files beyond them are ignored, so that descriptions take only
// milliseconds.
const (
	maxSourceFile = 4 << 20
	maxSourceDir  = 32 << 20
)

// A sourceDir reads the Go files of one directory when the first description is needed, and its
// test files if a type is in none of the others.
type sourceDir struct {
	fsys fs.FS
	name string // the directory within fsys

	mu    sync.Mutex // guards the fields below
	read  bool
	tests bool // the test files were read too
	bytes int64
	fset  *token.FileSet
	pkgs  map[string]*sourcePackage // by package name
}

// A sourcePackage holds the declarations of the files with the same package clause.
type sourcePackage struct {
	types   map[string][]*sourceType // several if files for several systems declare it
	locals  map[string][]*sourceType // declared in functions
	methods map[string]*ast.CommentGroup

	names  map[string]bool // of the package-level declarations
	consts map[string]sourceConst
	files  []*ast.File // without the bodies of functions
}

// A sourceType is one type declaration.
type sourceType struct {
	doc    *ast.CommentGroup
	local  bool                         // declared in a function
	names  []string                     // of the fields, in order
	fields map[string]*ast.CommentGroup // or of the methods of an interface
	base   string                       // the type of the same package that it is defined by
}

func newSourceDir(fsys fs.FS, name string) *sourceDir {
	return &sourceDir{fsys: fsys, name: name, fset: token.NewFileSet(), pkgs: map[string]*sourcePackage{}}
}

// with calls f with the declaration of t and its package, if there is one.
func (d *sourceDir) with(t reflect.Type, f func(*sourcePackage, *sourceType)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.read {
		d.read = true
		d.load(false)
	}
	p, st := d.find(t)
	if st == nil && !d.tests {
		d.tests = true
		d.load(true)
		p, st = d.find(t)
	}
	if st != nil {
		f(p, st)
	}
}

func (d *sourceDir) find(t reflect.Type) (*sourcePackage, *sourceType) {
	pkg, _, _ := strings.Cut(t.String(), ".") // reflect puts the name in the package clause before that of the type
	if p := d.pkgs[pkg]; p != nil {
		return p, p.describing(t, baseName(t.Name()))
	}
	return nil, nil
}

// describing returns the declaration of the name that describes t, or nil.
func (p *sourcePackage) describing(t reflect.Type, name string) *sourceType {
	for _, places := range [...][]*sourceType{p.types[name], p.locals[name]} {
		for _, st := range places {
			if st.describes(t) {
				return st
			}
		}
	}
	return nil
}

// describes reports whether the declaration has the fields of t. This distinguishes declarations of
// the same name, and detects a source that has changed since the program was built.
func (st *sourceType) describes(t reflect.Type) bool {
	if t.Kind() != reflect.Struct || st.base != "" {
		return true
	}
	if t.NumField() != len(st.names) {
		return false
	}
	for i, name := range st.names {
		if t.Field(i).Name != name {
			return false
		}
	}
	return true
}

// load reads the test files or the others. It ignores files that cannot be read or parsed.
func (d *sourceDir) load(tests bool) {
	entries, err := fs.ReadDir(d.fsys, d.name)
	if err != nil {
		return
	}
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") != tests {
			continue
		}
		info, err := e.Info()
		if err != nil || info.Size() > maxSourceFile || d.bytes+info.Size() > maxSourceDir {
			continue
		}
		full := path.Join(d.name, name)
		src, err := fs.ReadFile(d.fsys, full)
		if err != nil {
			continue
		}
		d.bytes += int64(len(src))
		// A file with a syntax error still yields the declarations before the error.
		file, _ := parser.ParseFile(d.fset, full, src, parser.ParseComments|parser.SkipObjectResolution)
		if file != nil && file.Name != nil {
			d.pkg(file.Name.Name).add(file)
		}
	}
}

func (d *sourceDir) pkg(name string) *sourcePackage {
	p := d.pkgs[name]
	if p == nil {
		p = &sourcePackage{
			types:   map[string][]*sourceType{},
			locals:  map[string][]*sourceType{},
			methods: map[string]*ast.CommentGroup{},
			names:   map[string]bool{},
			consts:  map[string]sourceConst{},
		}
		d.pkgs[name] = p
	}
	return p
}

// add indexes the declarations of a file.
func (p *sourcePackage) add(file *ast.File) {
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.GenDecl:
			p.addTypes(decl, false)
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					p.names[spec.Name.Name] = true
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						p.names[name.Name] = true
					}
				}
			}
			if decl.Tok == token.CONST {
				eachConst(decl, func(c sourceConst) bool {
					if _, ok := p.consts[c.name.Name]; !ok {
						p.consts[c.name.Name] = c
					}
					return true
				})
			}
		case *ast.FuncDecl:
			p.addLocals(decl)
			if decl.Recv == nil {
				p.names[decl.Name.Name] = true
			}
			if recv := receiver(decl); recv != "" {
				key := recv + "." + decl.Name.Name
				if p.methods[key] == nil {
					p.methods[key] = decl.Doc
				}
				for _, param := range decl.Type.Params.List {
					addInline(p.methods, key, param.Type)
				}
			}
		}
	}
	file.Comments = nil
	p.files = append(p.files, file)
}

// addLocals adds the types that a function declares, and drops its body.
func (p *sourcePackage) addLocals(decl *ast.FuncDecl) {
	if decl.Body == nil {
		return
	}
	ast.Inspect(decl.Body, func(n ast.Node) bool {
		if stmt, ok := n.(*ast.DeclStmt); ok {
			p.addTypes(stmt.Decl.(*ast.GenDecl), true)
		}
		return true
	})
	decl.Body = nil
}

func (p *sourcePackage) addTypes(decl *ast.GenDecl, local bool) {
	for _, spec := range decl.Specs {
		if ts, ok := spec.(*ast.TypeSpec); ok && !ts.Assign.IsValid() {
			p.addType(decl, ts, local)
		}
	}
}

func (p *sourcePackage) addType(decl *ast.GenDecl, ts *ast.TypeSpec, local bool) {
	st := &sourceType{doc: ts.Doc, local: local, fields: map[string]*ast.CommentGroup{}}
	if st.doc == nil && len(decl.Specs) == 1 {
		st.doc = decl.Doc
	}
	st.doc = cmp.Or(st.doc, ts.Comment)
	switch typ := ast.Unparen(ts.Type).(type) {
	case *ast.StructType:
		st.addFields(typ.Fields)
	case *ast.InterfaceType:
		st.addFields(typ.Methods)
	case *ast.Ident:
		st.base = typ.Name
	case *ast.IndexExpr, *ast.IndexListExpr:
		st.base = typeName(typ)
	}
	declared := p.types
	if local {
		declared = p.locals
	}
	declared[ts.Name.Name] = append(declared[ts.Name.Name], st)
}

func (st *sourceType) addFields(list *ast.FieldList) {
	if list == nil {
		return
	}
	for _, f := range list.List {
		names := f.Names
		if len(names) == 0 {
			names = []*ast.Ident{{Name: typeName(f.Type)}}
		}
		for _, n := range names {
			st.names = append(st.names, n.Name)
			addField(st.fields, n.Name, f)
		}
	}
}

// addField adds the comment of a field, and those of the fields of its type if that is a struct
// without a name, or a list or map of them. Their keys are paths: "Filter.Op".
func addField(fields map[string]*ast.CommentGroup, key string, f *ast.Field) {
	if key != "_" && key != "" && !strings.HasSuffix(key, "._") {
		fields[key] = cmp.Or(f.Doc, f.Comment)
		addInline(fields, key, f.Type)
	}
}

func addInline(fields map[string]*ast.CommentGroup, key string, typ ast.Expr) {
	switch t := typ.(type) {
	case *ast.ParenExpr:
		addInline(fields, key, t.X)
	case *ast.StarExpr:
		addInline(fields, key, t.X)
	case *ast.ArrayType:
		addInline(fields, key, t.Elt)
	case *ast.MapType:
		addInline(fields, key, t.Value)
	case *ast.StructType:
		for _, f := range t.Fields.List {
			for _, n := range f.Names {
				addField(fields, key+"."+n.Name, f)
			}
		}
	}
}

// receiver returns the name of the type that the method belongs to, or "" for a function.
func receiver(decl *ast.FuncDecl) string {
	if decl.Recv == nil || len(decl.Recv.List) == 0 {
		return ""
	}
	return typeName(decl.Recv.List[0].Type)
}

// typeName returns the name of a receiver or embedded field without pointer, package and type
// arguments.
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

// field returns the comment of a field or, for an interface, of a method. A type that is defined by
// another one has its fields, so it also has their descriptions.
func (p *sourcePackage) field(t reflect.Type, st *sourceType, name string) *ast.CommentGroup {
	for range 8 { // type A B; type B A does not compile, but must not cause an endless loop
		if c, ok := st.fields[name]; ok || st.base == "" {
			return c
		}
		if st = p.describing(t, st.base); st == nil {
			return nil
		}
	}
	return nil
}

// linked reports whether [name] or [recv.name] links to something in the package.
func (p *sourcePackage) linked(recv, name string) bool {
	if recv == "" {
		return p.names[name]
	}
	if _, ok := p.methods[recv+"."+name]; ok {
		return true
	}
	for _, st := range p.types[recv] {
		if _, ok := st.fields[name]; ok {
			return true
		}
	}
	return false
}

// imported returns the import path of the package that the files of the package call name.
func (p *sourcePackage) imported(name string) (importPath string, ok bool) {
	for _, file := range p.files {
		for _, spec := range file.Imports {
			importPath, err := strconv.Unquote(spec.Path.Value)
			if err == nil && (spec.Name != nil && spec.Name.Name == name || spec.Name == nil && path.Base(importPath) == name) {
				return importPath, true
			}
		}
	}
	return comment.DefaultLookupPackage(name)
}

// plain converts a comment to text, as go doc prints it, with each paragraph on one line and
// without directives.
func (p *sourcePackage) plain(group *ast.CommentGroup) string {
	if group == nil {
		return ""
	}
	kept := &ast.CommentGroup{}
	for _, c := range group.List {
		// go/ast also treats those with a colon as directives.
		if !strings.HasPrefix(c.Text, "//nolint") {
			kept.List = append(kept.List, c)
		}
	}
	text := kept.Text()
	if text == "" {
		return ""
	}
	parser := comment.Parser{LookupSym: p.linked, LookupPackage: p.imported}
	printer := comment.Printer{TextWidth: -1}
	return strings.TrimSpace(string(printer.Text(parser.Parse(text))))
}

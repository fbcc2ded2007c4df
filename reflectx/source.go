package reflectx

import (
	"cmp"
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// CollectDescriptions reads the Go files in the root of fsys, except test files, and returns the
// descriptions of the package named pkgName, with the keys of [RegisterDescriptions], for a
// generator to write. They are those of [Comments].
func CollectDescriptions(fsys fs.FS, pkgName string) map[string]string {
	return collect(fsys, false)[pkgName]
}

// packages are the descriptions in a directory, by the name in the package clause and by key.
type packages map[string]map[string]string

// collect reads the Go files in the root of fsys. It never fails: without files there are no descriptions,
// and a file with a syntax error has those before the error.
func collect(fsys fs.FS, tests bool) packages {
	byName := map[string]*sourcePackage{}
	entries, _ := fs.ReadDir(fsys, ".")
	for _, entry := range entries {
		name := entry.Name()
		if entry.IsDir() || !strings.HasSuffix(name, ".go") || !tests && strings.HasSuffix(name, "_test.go") {
			continue
		}
		src, err := fs.ReadFile(fsys, name)
		if err != nil {
			continue
		}
		file, _ := parser.ParseFile(token.NewFileSet(), name, src, parser.ParseComments|parser.SkipObjectResolution)
		p := byName[file.Name.Name]
		if p == nil {
			p = &sourcePackage{texts: map[string]string{}, types: map[string]bool{}, consts: map[string]*sourceConst{}}
			byName[file.Name.Name] = p
		}
		p.add(file)
	}
	found := packages{}
	for name, p := range byName {
		p.addEnums()
		found[name] = p.texts
	}
	return found
}

// A sourcePackage holds the declarations of the files with the same package clause.
type sourcePackage struct {
	texts  map[string]string // the descriptions, with the keys of RegisterDescriptions
	types  map[string]bool
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
	p.types[ts.Name.Name] = true
	p.addFields(ts.Name.Name, ts.Type)
}

// addFields adds the comments of the fields of a struct, or of the elements of a list or map of them,
// at the key. A field whose type is a struct without a name has fields of its own.
func (p *sourcePackage) addFields(key string, typ ast.Expr) {
	var list *ast.FieldList
	switch t := typ.(type) {
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
	for _, f := range list.List {
		names := f.Names
		if names == nil {
			names = []*ast.Ident{{Name: typeName(f.Type)}}
		}
		for _, name := range names {
			if name.Name == "_" || name.Name == "" {
				continue
			}
			p.put(key+"."+name.Name, cmp.Or(f.Doc, f.Comment))
			p.addFields(key+"."+name.Name, f.Type)
		}
	}
}

// typeName returns the name of a type without pointer, package and type arguments, or "".
func typeName(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name
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
	byType := map[string][]*sourceConst{}
	for _, c := range p.order {
		if typ := p.valueOf(c).typ; p.types[typ] && c.name.Name != "_" {
			byType[typ] = append(byType[typ], c)
		}
	}
	literal := func(c *sourceConst) string { return constLiteral(p.valueOf(c).Value) }
	hidden := func(c *sourceConst) bool { return !c.name.IsExported() }
	for typ, all := range byType {
		if slices.ContainsFunc(all, func(c *sourceConst) bool { return literal(c) == "" }) {
			continue
		}
		if exported := slices.DeleteFunc(slices.Clone(all), hidden); len(exported) > 0 {
			all = exported
		}
		for i, c := range all {
			p.texts[typ+"#"+strconv.Itoa(i)] = strings.TrimSpace(literal(c) + " " + plain(c.doc))
		}
	}
}

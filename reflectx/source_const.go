package reflectx

import (
	"cmp"
	"errors"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"iter"
	"strconv"
)

// scope returns the declarations of the package. The imports are not loaded, so what depends on
// them is unknown.
func (p *sourcePackage) scope() *types.Scope {
	if p.checked != nil {
		return p.checked.Scope()
	}
	p.checked = types.NewPackage(p.files[0].Name.Name, p.files[0].Name.Name)
	config := types.Config{Importer: noImports{}, Error: func(error) {}, IgnoreFuncBodies: true, FakeImportC: true}
	_ = types.NewChecker(&config, p.fset, p.checked, nil).Files(p.files) // the declarations without errors count
	return p.checked.Scope()
}

// noImports finds no package.
type noImports struct{}

func (noImports) Import(string) (*types.Package, error) { return nil, errors.New("not loaded") }

// enum returns the constants of the package-level type, with their values as Go literals: the
// exported ones, or all if none is exported. It returns nil if a value is unknown, since an
// incomplete list would be wrong.
func (p *sourcePackage) enum(name string) []EnumValue {
	var all, exported []EnumValue
	scope := p.scope()
	for c := range p.constants() {
		obj, _ := scope.Lookup(c.name.Name).(*types.Const)
		if obj == nil || obj.Pos() != c.name.Pos() { // declared again, in a file for another system
			continue
		}
		literal := ""
		switch t := obj.Type().(type) {
		case *types.Named:
			if t.Obj() != scope.Lookup(name) {
				continue
			}
			literal = constLiteral(obj.Val())
		default:
			if t != types.Typ[types.Invalid] || !mentions(c.value, name) {
				continue
			}
		}
		if literal == "" {
			return nil
		}
		value := EnumValue{JSON: literal, Text: p.plain(c.doc)}
		all = append(all, value)
		if obj.Exported() {
			exported = append(exported, value)
		}
	}
	if exported != nil {
		return exported
	}
	return all
}

// A sourceConst is one constant of a package.
type sourceConst struct {
	name  *ast.Ident
	value ast.Expr // as written or, in a line without a value, repeated
	doc   *ast.CommentGroup
}

// constants yields the constants of the package in source order.
func (p *sourcePackage) constants() iter.Seq[sourceConst] {
	return func(yield func(sourceConst) bool) {
		for _, file := range p.files {
			for _, decl := range file.Decls {
				if decl, ok := decl.(*ast.GenDecl); ok && decl.Tok == token.CONST && !eachConst(decl, yield) {
					return
				}
			}
		}
	}
}

func eachConst(decl *ast.GenDecl, yield func(sourceConst) bool) bool {
	var values []ast.Expr
	for _, spec := range decl.Specs {
		spec := spec.(*ast.ValueSpec)
		if spec.Type != nil || spec.Values != nil {
			values = spec.Values
		}
		doc := cmp.Or(spec.Doc, spec.Comment)
		if doc == nil && len(decl.Specs) == 1 {
			doc = decl.Doc
		}
		for i, name := range spec.Names {
			c := sourceConst{name: name, doc: doc}
			if i < len(values) {
				c.value = values[i]
			}
			if !yield(c) {
				return false
			}
		}
	}
	return true
}

// mentions reports whether the expression x contains the name.
func mentions(x ast.Expr, name string) (found bool) {
	if x != nil {
		ast.Inspect(x, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			found = found || ok && id.Name == name
			return !found
		})
	}
	return found
}

// constLiteral returns v as a Go literal for enumJSON, or "" if v is unknown.
func constLiteral(v constant.Value) string {
	switch v.Kind() {
	case constant.String:
		return strconv.Quote(constant.StringVal(v))
	case constant.Bool:
		return v.ExactString()
	case constant.Int, constant.Float:
		if n := constant.ToInt(v); n.Kind() == constant.Int {
			return n.ExactString()
		}
		f, _ := constant.Float64Val(v)
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return ""
}

package reflectx

import (
	"cmp"
	"go/ast"
	"go/constant"
	"go/token"
	"slices"
	"strconv"
)

// A sourceConst is one constant of a package.
type sourceConst struct {
	name  *ast.Ident
	typ   string   // "" if the value decides
	value ast.Expr // as written or, in a line without a value, repeated
	iota  int64
	doc   *ast.CommentGroup
}

// addConsts adds the constants of a declaration. One that is declared again, for another system, does
// not count.
func (p *sourcePackage) addConsts(decl *ast.GenDecl) {
	var values []ast.Expr
	var typ ast.Expr
	for line, spec := range decl.Specs {
		spec := spec.(*ast.ValueSpec)
		if spec.Type != nil || spec.Values != nil {
			values, typ = spec.Values, spec.Type
		}
		doc := cmp.Or(spec.Doc, spec.Comment)
		if doc == nil && len(decl.Specs) == 1 {
			doc = decl.Doc
		}
		for i, name := range spec.Names {
			c := &sourceConst{name: name, typ: typeName(typ), doc: doc, iota: int64(line)}
			if i < len(values) {
				c.value = values[i]
			}
			if p.consts[name.Name] == nil {
				p.order = append(p.order, c)
				p.consts[name.Name] = c
			}
		}
	}
}

// typeOf returns the type of a constant: as declared, that of a conversion in its value, or that of
// another constant in it.
func (p *sourcePackage) typeOf(c *sourceConst, depth int) (typ string) {
	if c.typ != "" || c.value == nil || depth > 8 {
		return c.typ
	}
	ast.Inspect(c.value, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if name := typeName(n.Fun); !slices.Contains(builtins, name) {
				typ = cmp.Or(typ, name)
			}
			return false
		case *ast.Ident:
			if other := p.consts[n.Name]; other != nil {
				typ = cmp.Or(typ, p.typeOf(other, depth+1))
			}
		}
		return typ == ""
	})
	return typ
}

// builtins are the functions in constants; other calls are conversions.
var builtins = []string{"len", "cap", "real", "imag", "complex", "min", "max"}

// valueOf returns the value of a constant, or an unknown one.
func (p *sourcePackage) valueOf(c *sourceConst, depth int) (v constant.Value) {
	defer func() {
		if recover() != nil { // package constant panics at operands that do not fit
			v = constant.MakeUnknown()
		}
	}()
	v = p.eval(c.value, c.iota, depth)
	if v.Kind() == constant.Int && constant.BitLen(v) > 512 || v.Kind() == constant.String && len(constant.StringVal(v)) > 1<<12 {
		return constant.MakeUnknown() // no compiler takes it, and adding it up could take all memory
	}
	return v
}

// eval returns the value of a constant expression. What other packages declare is unknown.
func (p *sourcePackage) eval(x ast.Expr, iota int64, depth int) constant.Value {
	if depth > 64 {
		return constant.MakeUnknown()
	}
	switch x := x.(type) {
	case *ast.BasicLit:
		return constant.MakeFromLiteral(x.Value, x.Kind, 0)
	case *ast.ParenExpr:
		return p.eval(x.X, iota, depth+1)
	case *ast.Ident:
		if c := p.consts[x.Name]; c != nil {
			return p.valueOf(c, depth+8)
		}
		switch x.Name {
		case "iota":
			return constant.MakeInt64(iota)
		case "true", "false":
			return constant.MakeBool(x.Name == "true")
		}
	case *ast.UnaryExpr:
		return constant.UnaryOp(x.Op, p.eval(x.X, iota, depth+1), 0)
	case *ast.CallExpr:
		if len(x.Args) == 1 && !slices.Contains(builtins, typeName(x.Fun)) {
			return p.eval(x.Args[0], iota, depth+1)
		}
	case *ast.BinaryExpr:
		a, b, op := p.eval(x.X, iota, depth+1), p.eval(x.Y, iota, depth+1), x.Op
		switch {
		case op == token.SHL || op == token.SHR:
			if count, ok := constant.Uint64Val(constant.ToInt(b)); ok && count <= 512 {
				return constant.Shift(constant.ToInt(a), op, uint(count))
			}
			return constant.MakeUnknown()
		case op == token.QUO && a.Kind() == constant.Int && b.Kind() == constant.Int:
			op = token.QUO_ASSIGN // divides integers
		}
		return constant.BinaryOp(a, op, b)
	}
	return constant.MakeUnknown()
}

// constLiteral returns v as a Go literal, or "" if v is unknown.
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

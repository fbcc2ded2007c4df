package reflectx

import (
	"cmp"
	"go/ast"
	"go/constant"
	"go/token"
	"strconv"
)

// A sourceConst is one constant of a package.
type sourceConst struct {
	name  *ast.Ident
	typ   ast.Expr // nil if the value decides
	value ast.Expr // as written or, in a line without a value, repeated
	iota  int64
	doc   *ast.CommentGroup
	known *typedValue // nil before it is evaluated
}

// A typedValue is the value of a constant expression, and the name of its type, or "".
type typedValue struct {
	constant.Value
	typ string
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
			c := &sourceConst{name: name, typ: typ, doc: doc, iota: int64(line)}
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

// valueOf returns the value and the type of a constant. The value may be unknown.
func (p *sourcePackage) valueOf(c *sourceConst) (v typedValue) {
	if c.known != nil {
		return *c.known
	}
	c.known = &typedValue{constant.MakeUnknown(), typeName(c.typ)} // while it is evaluated: a constant cannot need itself
	defer func() {
		if recover() != nil { // package constant panics at operands that do not fit
			v = *c.known
		}
	}()
	v = p.eval(c.value, c.iota)
	v.typ = cmp.Or(c.known.typ, v.typ)
	tooLarge := v.Kind() == constant.Int && constant.BitLen(v.Value) > 512
	if tooLarge || v.Kind() == constant.String && len(constant.StringVal(v.Value)) > 1<<12 {
		v.Value = constant.MakeUnknown() // no compiler takes it, and adding it up could take all memory
	}
	c.known = &v
	return v
}

// eval returns the value of a constant expression. What other packages declare, and what functions
// return, is unknown.
func (p *sourcePackage) eval(x ast.Expr, iota int64) typedValue {
	v := typedValue{Value: constant.MakeUnknown()}
	switch x := ast.Unparen(x).(type) {
	case *ast.BasicLit:
		v.Value = constant.MakeFromLiteral(x.Value, x.Kind, 0)
	case *ast.Ident:
		if c := p.consts[x.Name]; c != nil {
			return p.valueOf(c)
		}
		if x.Name == "iota" {
			v.Value = constant.MakeInt64(iota)
		}
	case *ast.UnaryExpr:
		v = p.eval(x.X, iota)
		v.Value = constant.UnaryOp(x.Op, v.Value, 0)
	case *ast.CallExpr:
		if p.types[typeName(x.Fun)] && len(x.Args) == 1 {
			return typedValue{p.eval(x.Args[0], iota).Value, typeName(x.Fun)}
		}
	case *ast.BinaryExpr:
		a, b := p.eval(x.X, iota), p.eval(x.Y, iota)
		return typedValue{binary(a.Value, x.Op, b.Value), cmp.Or(a.typ, b.typ)}
	}
	return v
}

// binary returns the value of an operation as Go defines it.
func binary(a constant.Value, op token.Token, b constant.Value) constant.Value {
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

// constLiteral returns v as a Go literal, or "" if v is unknown.
func constLiteral(v constant.Value) string {
	switch v.Kind() {
	case constant.String, constant.Int:
		return v.ExactString()
	case constant.Float:
		f, _ := constant.Float64Val(v)
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return ""
}

package reflectx

import (
	"cmp"
	"go/ast"
	"go/constant"
	"go/token"
	"iter"
	"strconv"
)

// A sourceConst is one constant of a package.
type sourceConst struct {
	name  *ast.Ident
	typ   ast.Expr // nil if the value decides
	value ast.Expr // as written or, in a line without a value, repeated
	iota  int64
	doc   *ast.CommentGroup
}

// enum returns the constants of the package-level type, with their values as Go literals: the
// exported ones, or all if none is exported. It returns nil if a value is unknown, since an
// incomplete list would be wrong.
func (p *sourcePackage) enum(name string) []EnumValue {
	var all, exported []EnumValue
	for c := range p.constants() {
		if c.name.Name == "_" || p.consts[c.name.Name].name != c.name { // declared again, for another system
			continue
		}
		typ, v := p.constOf(c, 0)
		if v == nil && (typ == name || mentions(c.value, name)) {
			return nil
		}
		if typ != name || v == nil {
			continue
		}
		literal := constLiteral(v)
		if literal == "" {
			return nil
		}
		value := EnumValue{JSON: literal, Text: p.plain(c.doc)}
		all = append(all, value)
		if c.name.IsExported() {
			exported = append(exported, value)
		}
	}
	if exported != nil {
		return exported
	}
	return all
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
			c := sourceConst{name: name, typ: typ, doc: doc, iota: int64(line)}
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

// constOf returns the type of a constant, "" if it has none, and its value, nil if it is unknown.
func (p *sourcePackage) constOf(c sourceConst, depth int) (typ string, v constant.Value) {
	defer func() {
		if recover() != nil { // package constant panics at operands that do not fit
			v = nil
		}
	}()
	if c.typ != nil {
		typ = typeName(c.typ)
		_, v = p.eval(c.value, c.iota, depth)
	} else {
		typ, v = p.eval(c.value, c.iota, depth)
	}
	if v != nil && (v.Kind() == constant.Int && constant.BitLen(v) > 512 || v.Kind() == constant.String && len(constant.StringVal(v)) > 1<<12) {
		v = nil // no compiler takes it, and adding it up could take all memory
	}
	return typ, v
}

// eval returns the type and the value of a constant expression. What other packages declare is
// unknown.
func (p *sourcePackage) eval(x ast.Expr, iota int64, depth int) (string, constant.Value) {
	if depth > 64 {
		return "", nil
	}
	switch x := x.(type) {
	case *ast.BasicLit:
		return "", constant.MakeFromLiteral(x.Value, x.Kind, 0)
	case *ast.ParenExpr:
		return p.eval(x.X, iota, depth+1)
	case *ast.Ident:
		if c, ok := p.consts[x.Name]; ok {
			return p.constOf(c, depth+8)
		}
		switch x.Name {
		case "iota":
			return "", constant.MakeInt64(iota)
		case "true", "false":
			return "", constant.MakeBool(x.Name == "true")
		}
	case *ast.UnaryExpr:
		typ, v := p.eval(x.X, iota, depth+1)
		return typ, constant.UnaryOp(x.Op, v, 0)
	case *ast.BinaryExpr:
		return p.evalBinary(x, iota, depth)
	case *ast.CallExpr: // a conversion
		if len(x.Args) == 1 {
			_, v := p.eval(x.Args[0], iota, depth+1)
			if name := typeName(x.Fun); p.types[name] != nil {
				return name, v
			} else if name == "len" && v.Kind() == constant.String {
				return "int", constant.MakeInt64(int64(len(constant.StringVal(v))))
			} else if name == "string" && v.Kind() == constant.String || name != "string" && v.Kind() != constant.String {
				return name, v
			}
		}
	}
	return "", nil
}

func (p *sourcePackage) evalBinary(x *ast.BinaryExpr, iota int64, depth int) (string, constant.Value) {
	left, a := p.eval(x.X, iota, depth+1)
	right, b := p.eval(x.Y, iota, depth+1)
	switch x.Op {
	case token.SHL, token.SHR:
		count, ok := constant.Uint64Val(constant.ToInt(b))
		if !ok || count > 512 {
			return left, nil
		}
		return left, constant.Shift(constant.ToInt(a), x.Op, uint(count))
	case token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ:
		return "", constant.MakeBool(constant.Compare(a, x.Op, b))
	}
	op := x.Op
	if op == token.QUO && a.Kind() == constant.Int && b.Kind() == constant.Int {
		op = token.QUO_ASSIGN // divides integers
	}
	return cmp.Or(left, right), constant.BinaryOp(a, op, b)
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

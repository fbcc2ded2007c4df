package reflectx

import (
	"go/ast"
	"go/constant"
	"go/token"
	"strconv"
)

// A sourceConst is one constant of a package: its expression, not yet evaluated.
type sourceConst struct {
	name  string
	typ   ast.Expr // as declared or repeated; nil if the expression determines it
	value ast.Expr
	iota  int
	doc   *ast.CommentGroup
	busy  bool // being evaluated
}

// addConsts adds the constants of a const declaration. A line without an expression repeats the
// previous one.
func (p *sourcePackage) addConsts(decl *ast.GenDecl) {
	var typ ast.Expr
	var values []ast.Expr
	for i, spec := range decl.Specs {
		vs, ok := spec.(*ast.ValueSpec)
		if !ok {
			continue
		}
		if vs.Type != nil || len(vs.Values) > 0 {
			typ, values = vs.Type, vs.Values
		}
		doc := vs.Doc
		if doc == nil {
			doc = vs.Comment
		}
		if doc == nil && len(decl.Specs) == 1 {
			doc = decl.Doc
		}
		for n, name := range vs.Names {
			// Only one per name: files for other systems may declare it again.
			if name.Name == "_" || n >= len(values) || p.named[name.Name] != nil {
				continue
			}
			c := &sourceConst{name: name.Name, typ: typ, value: values[n], iota: i, doc: doc}
			p.consts = append(p.consts, c)
			p.named[c.name] = c
		}
	}
}

// constsOf returns the constants of the package-level type: the exported ones, or all if none is
// exported.
func (p *sourcePackage) constsOf(name string) []*sourceConst {
	var all, exported []*sourceConst
	for _, c := range p.consts {
		if p.typeOf(c, 0) != name {
			continue
		}
		all = append(all, c)
		if ast.IsExported(c.name) {
			exported = append(exported, c)
		}
	}
	if exported != nil {
		return exported
	}
	return all
}

// enum returns the constants of the package-level type, with their values as Go literals. It
// returns nil if a value is unknown, since an incomplete list would be wrong.
func (p *sourcePackage) enum(name string) []EnumValue {
	var values []EnumValue
	for _, c := range p.constsOf(name) {
		literal := constLiteral(p.value(c, 0))
		if literal == "" {
			return nil
		}
		values = append(values, EnumValue{JSON: literal, Text: p.plain(c.doc)})
	}
	return values
}

// maxConstDepth is the depth of the deepest expression that is evaluated.
const maxConstDepth = 100

// typeOf returns the name of the type of a constant, or "" if it has none or is of another package.
func (p *sourcePackage) typeOf(c *sourceConst, depth int) string {
	if c.typ != nil {
		id, _ := c.typ.(*ast.Ident)
		if id == nil {
			return ""
		}
		return id.Name
	}
	return p.typeOfExpr(c.value, depth)
}

// typeOfExpr finds the type of an expression such as Color("red"), Red or Small << 1.
func (p *sourcePackage) typeOfExpr(x ast.Expr, depth int) string {
	if depth > maxConstDepth {
		return ""
	}
	switch x := x.(type) {
	case *ast.ParenExpr:
		return p.typeOfExpr(x.X, depth+1)
	case *ast.UnaryExpr:
		return p.typeOfExpr(x.X, depth+1)
	case *ast.Ident:
		if c := p.named[x.Name]; c != nil {
			return p.typeOf(c, depth+1)
		}
	case *ast.CallExpr:
		if id, ok := ast.Unparen(x.Fun).(*ast.Ident); ok && len(x.Args) == 1 && len(p.types[id.Name]) > 0 {
			return id.Name
		}
	case *ast.BinaryExpr:
		if isComparison(x.Op) {
			return ""
		}
		if t := p.typeOfExpr(x.X, depth+1); t != "" || x.Op == token.SHL || x.Op == token.SHR {
			return t
		}
		return p.typeOfExpr(x.Y, depth+1)
	}
	return ""
}

func isComparison(op token.Token) bool {
	switch op {
	case token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ:
		return true
	}
	return false
}

// value evaluates a constant.
func (p *sourcePackage) value(c *sourceConst, depth int) constant.Value {
	v := p.eval(c.value, c.iota, depth)
	if c.typ == nil {
		return v
	}
	id, ok := c.typ.(*ast.Ident)
	if !ok {
		return constant.MakeUnknown()
	}
	return p.convert(v, id.Name)
}

// convert converts v to the named type: division depends on whether the operands are integers.
func (p *sourcePackage) convert(v constant.Value, name string) constant.Value {
	for range 8 {
		declared := p.types[name]
		if len(declared) == 0 || declared[0].local {
			break
		}
		name = declared[0].base
	}
	switch {
	case name == "string" && v.Kind() == constant.String, name == "bool" && v.Kind() == constant.Bool:
		return v
	case name == "float32" || name == "float64":
		return constant.ToFloat(v)
	case integerTypes[name]:
		return constant.ToInt(v)
	}
	return constant.MakeUnknown()
}

// eval evaluates literals, iota, constants of the package, conversions and operators. Other
// expressions are unknown.
func (p *sourcePackage) eval(x ast.Expr, iota, depth int) (v constant.Value) {
	unknown := constant.MakeUnknown()
	if depth > maxConstDepth {
		return unknown
	}
	// go/constant panics on operands that a compiler would refuse.
	defer func() {
		if recover() != nil {
			v = unknown
		}
	}()
	switch x := x.(type) {
	case *ast.ParenExpr:
		return p.eval(x.X, iota, depth+1)
	case *ast.BasicLit:
		return constant.MakeFromLiteral(x.Value, x.Kind, 0)
	case *ast.Ident:
		return p.evalIdent(x.Name, iota, depth)
	case *ast.CallExpr:
		id, ok := ast.Unparen(x.Fun).(*ast.Ident)
		if !ok || len(x.Args) != 1 {
			return unknown
		}
		v := p.eval(x.Args[0], iota, depth+1)
		if id.Name == "len" && v.Kind() == constant.String {
			return constant.MakeInt64(int64(len(constant.StringVal(v))))
		}
		return p.convert(v, id.Name)
	case *ast.UnaryExpr:
		// The complement of an unsigned number depends on its width.
		if x.Op != token.XOR {
			return constant.UnaryOp(x.Op, p.eval(x.X, iota, depth+1), 0)
		}
	case *ast.BinaryExpr:
		return evalBinary(x.Op, p.eval(x.X, iota, depth+1), p.eval(x.Y, iota, depth+1))
	}
	return unknown
}

func (p *sourcePackage) evalIdent(name string, iota, depth int) constant.Value {
	if c := p.named[name]; c != nil {
		if c.busy {
			return constant.MakeUnknown()
		}
		c.busy = true
		defer func() { c.busy = false }()
		return p.value(c, depth+1)
	}
	switch name {
	case "iota":
		return constant.MakeInt64(int64(iota))
	case "true", "false":
		return constant.MakeBool(name == "true")
	}
	return constant.MakeUnknown()
}

func evalBinary(op token.Token, a, b constant.Value) constant.Value {
	number := func(v constant.Value) bool { return v.Kind() == constant.Int || v.Kind() == constant.Float }
	switch {
	case a.Kind() != b.Kind() && (!number(a) || !number(b)):
		return constant.MakeUnknown()
	case op == token.SHL || op == token.SHR:
		n, ok := constant.Uint64Val(constant.ToInt(b))
		if !ok || n > 512 {
			return constant.MakeUnknown()
		}
		return constant.Shift(constant.ToInt(a), op, uint(n))
	case isComparison(op):
		return constant.MakeBool(constant.Compare(a, op, b))
	case op == token.QUO && a.Kind() == constant.Int && b.Kind() == constant.Int:
		return constant.BinaryOp(a, token.QUO_ASSIGN, b) // integer division
	}
	return constant.BinaryOp(a, op, b)
}

var integerTypes = wordSet("int int8 int16 int32 int64 uint uint8 uint16 uint32 uint64 byte rune")

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

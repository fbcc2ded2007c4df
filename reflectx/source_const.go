package reflectx

import (
	"cmp"
	"go/ast"
	"go/constant"
	"go/token"
	"strconv"
	"unicode"
)

// enum returns the constants of the package-level type, with their values as Go literals: the
// exported ones, or all if none is exported. It returns nil if a value is unknown, since an
// incomplete list would be wrong.
func (p *sourcePackage) enum(name string) []EnumValue {
	var all, exported []EnumValue
	for _, c := range p.consts {
		v := p.value(c, 0)
		if v.typ == "" && v.Kind() == constant.Unknown && mentions(c.value, name) {
			return nil
		}
		if v.typ != name {
			continue
		}
		literal := constLiteral(v.Value)
		if literal == "" {
			return nil
		}
		value := EnumValue{JSON: literal, Text: p.plain(c.doc)}
		all = append(all, value)
		if ast.IsExported(c.name) {
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
	name  string
	typ   ast.Expr // as written or repeated; nil if the value determines it
	value ast.Expr // as written or, in a line without a value, repeated; nil if there is none
	iota  int64
	doc   *ast.CommentGroup
	known *typedConst // nil until it is computed
}

// addConsts adds the constants of a declaration. Only the first of a name counts: files for other
// systems may declare it again.
func (p *sourcePackage) addConsts(decl *ast.GenDecl) {
	var typ ast.Expr
	var values []ast.Expr
	for i, spec := range decl.Specs {
		spec := spec.(*ast.ValueSpec)
		if spec.Type != nil || spec.Values != nil {
			typ, values = spec.Type, spec.Values
		}
		doc := cmp.Or(spec.Doc, spec.Comment)
		if doc == nil && len(decl.Specs) == 1 {
			doc = decl.Doc
		}
		for n, name := range spec.Names {
			if name.Name == "_" || p.declared[name.Name] != nil {
				continue
			}
			c := &sourceConst{name: name.Name, typ: typ, iota: int64(i), doc: doc}
			if n < len(values) {
				c.value = values[n]
			}
			p.consts = append(p.consts, c)
			p.declared[c.name] = c
		}
	}
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

// A typedConst is a value and its type: the name of a type of the package or of a basic type, or ""
// for an untyped value. What cannot be computed is constant.Unknown.
type typedConst struct {
	constant.Value
	typ string
}

var unknownConst = typedConst{Value: constant.MakeUnknown()}

// maxConstDepth is the depth of the deepest expression that is computed; constants that depend on
// themselves are deeper.
const maxConstDepth = 100

// value computes a constant.
func (p *sourcePackage) value(c *sourceConst, depth int) typedConst {
	if c.known == nil {
		v := p.compute(c, depth)
		c.known = &v
	}
	return *c.known
}

func (p *sourcePackage) compute(c *sourceConst, depth int) typedConst {
	if c.value == nil {
		return unknownConst
	}
	v := p.eval(c.value, c.iota, depth)
	if c.typ == nil {
		return v
	}
	id, ok := c.typ.(*ast.Ident)
	if !ok {
		return unknownConst
	}
	if v.typ != "" && p.defined(v.typ) != p.defined(id.Name) {
		v = unknownConst
	}
	return p.convert(v, id.Name)
}

// eval computes literals, iota, constants of the package, conversions, len of a text, and operators.
// Other expressions are unknown, and so is what does not compile.
func (p *sourcePackage) eval(x ast.Expr, iota int64, depth int) (v typedConst) {
	if depth > maxConstDepth {
		return unknownConst
	}
	defer func() {
		if recover() != nil {
			v = unknownConst // go/constant panics at operands that do not fit
		}
	}()
	switch x := x.(type) {
	case *ast.ParenExpr:
		return p.eval(x.X, iota, depth+1)
	case *ast.BasicLit:
		return typedConst{constant.MakeFromLiteral(x.Value, x.Kind, 0), ""}
	case *ast.Ident:
		return p.evalName(x.Name, iota, depth)
	case *ast.CallExpr:
		if id, ok := ast.Unparen(x.Fun).(*ast.Ident); ok && len(x.Args) == 1 {
			return p.evalCall(id.Name, p.eval(x.Args[0], iota, depth+1))
		}
	case *ast.UnaryExpr:
		a := p.eval(x.X, iota, depth+1)
		basic := basicConsts[p.basic(a.typ)]
		bits := uint(0)
		if basic.unsigned {
			bits = basic.bits
		}
		return p.convert(typedConst{constant.UnaryOp(x.Op, a.Value, bits), ""}, a.typ)
	case *ast.BinaryExpr:
		return p.evalBinary(x.Op, p.eval(x.X, iota, depth+1), p.eval(x.Y, iota, depth+1))
	}
	return unknownConst
}

func (p *sourcePackage) evalName(name string, iota int64, depth int) typedConst {
	declared, found := p.declared[name]
	switch {
	case declared != nil:
		return p.value(declared, depth+1)
	case found:
	case name == "iota":
		return typedConst{constant.MakeInt64(iota), ""}
	case name == "true", name == "false":
		return typedConst{constant.MakeBool(name == "true"), ""}
	}
	return unknownConst
}

// evalCall computes a conversion, or len.
func (p *sourcePackage) evalCall(name string, a typedConst) typedConst {
	_, found := p.declared[name]
	if name != "len" || found {
		if n, ok := constant.Int64Val(constant.ToInt(a.Value)); ok && a.Kind() == constant.Int && n >= 0 && n <= unicode.MaxRune && basicConsts[p.basic(name)].kind == constant.String {
			a.Value = constant.MakeString(string(rune(n)))
		}
		return p.convert(a, name)
	}
	if a.Kind() != constant.String {
		return unknownConst
	}
	return typedConst{constant.MakeInt64(int64(len(constant.StringVal(a.Value)))), "int"}
}

func (p *sourcePackage) evalBinary(op token.Token, a, b typedConst) typedConst {
	if op == token.SHL || op == token.SHR {
		n, ok := constant.Uint64Val(constant.ToInt(b.Value))
		if left := constant.ToInt(a.Value); ok && n <= maxShift && left.Kind() == constant.Int {
			return p.convert(typedConst{constant.Shift(left, op, uint(n)), ""}, a.typ)
		}
		return unknownConst
	}
	typ := cmp.Or(a.typ, b.typ)
	if a.typ != "" && b.typ != "" && p.defined(a.typ) != p.defined(b.typ) {
		return unknownConst
	}
	a, b = p.convert(typedConst{a.Value, ""}, typ), p.convert(typedConst{b.Value, ""}, typ)
	switch op {
	case token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ:
		if a.Kind() == constant.Unknown || b.Kind() == constant.Unknown {
			return unknownConst
		}
		return typedConst{constant.MakeBool(constant.Compare(a.Value, op, b.Value)), ""}
	case token.QUO:
		if a.Kind() == constant.Int && b.Kind() == constant.Int {
			op = token.QUO_ASSIGN // divides integers
		}
	}
	return p.convert(typedConst{constant.BinaryOp(a.Value, op, b.Value), ""}, typ)
}

// maxShift limits the memory of a value.
const maxShift = 512

// A basicConst is a basic type of constants.
type basicConst struct {
	kind     constant.Kind
	bits     uint
	unsigned bool
}

var basicConsts = map[string]basicConst{
	"string": {kind: constant.String}, "bool": {kind: constant.Bool}, "float32": {kind: constant.Float, bits: 32}, "float64": {kind: constant.Float, bits: 64},
	"int": {constant.Int, 64, false}, "int8": {constant.Int, 8, false}, "int16": {constant.Int, 16, false}, "int32": {constant.Int, 32, false}, "int64": {constant.Int, 64, false},
	"uint": {constant.Int, 64, true}, "uint8": {constant.Int, 8, true}, "uint16": {constant.Int, 16, true}, "uint32": {constant.Int, 32, true}, "uint64": {constant.Int, 64, true}, "uintptr": {constant.Int, 64, true},
	"byte": {constant.Int, 8, true}, "rune": {constant.Int, 32, false},
}

// defined follows aliases to the name of a type.
func (p *sourcePackage) defined(name string) string {
	for range 8 {
		of, ok := p.aliases[name]
		if !ok {
			break
		}
		name = of
	}
	switch name {
	case "byte":
		return "uint8"
	case "rune":
		return "int32"
	}
	return name
}

// basic returns the basic type that a type is defined by.
func (p *sourcePackage) basic(name string) string {
	for range 8 {
		name = p.defined(name)
		declared := p.types[name]
		if len(declared) == 0 {
			return name
		}
		name = declared[0].base
	}
	return ""
}

// convert converts v to the named type; "" leaves it untyped. A value that the type cannot hold is
// unknown, and has the type if it is one of the package.
func (p *sourcePackage) convert(v typedConst, name string) typedConst {
	if name == "" {
		return v
	}
	name = p.defined(name)
	basic := basicConsts[p.basic(name)]
	out := typedConst{constant.MakeUnknown(), name}
	switch basic.kind {
	case constant.Unknown:
		return unknownConst
	case constant.String, constant.Bool:
		if v.Kind() == basic.kind {
			out.Value = v.Value
		}
	case constant.Int:
		out.Value = constant.ToInt(v.Value)
		low, high := constant.MakeInt64(0), constant.Shift(constant.MakeInt64(1), token.SHL, basic.bits)
		if !basic.unsigned {
			high = constant.Shift(high, token.SHR, 1)
			low = constant.UnaryOp(token.SUB, high, 0)
		}
		if out.Kind() == constant.Int && (constant.Compare(out.Value, token.LSS, low) || constant.Compare(out.Value, token.GEQ, high)) {
			out.Value = constant.MakeUnknown()
		}
	case constant.Float:
		out.Value = constant.ToFloat(v.Value)
		if out.Kind() != constant.Float {
			break
		}
		f, _ := constant.Float64Val(out.Value)
		if basic.bits == 32 {
			g, _ := constant.Float32Val(out.Value)
			f = float64(g)
		}
		out.Value = constant.MakeFloat64(f) // unknown if it is infinite
	}
	return out
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

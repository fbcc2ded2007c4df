package reflectx

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"testing"

	"github.com/stretchr/testify/require"
)

const constants = `package p

type (
	I  int
	U  uint8
	S  string
	F  float64
	F2 F
	B  bool
	D  Dots
	Dots int
)

const (
	i0 I = iota
	i1
	_
	i3, i3b = iota, I(iota) * 2
	i4  = i1 + 3
	i5  = 10 % 4 + i4 - (2 * -i1)
	i6  = +i1<<4 | 0x0f&^3
	i7  = i6 >> 1 ^ 1
	i8  I = 'a'
	i9  I = 1e3
	i10 = I(len("äb")) + 1
	i11 I = 7 / 2
	i12 = i11 / 2
	i13 I = 1_000
)

const (
	s0 S = "a" + "\n"
	s1 = s0 + ` + "`raw`" + `
	s2 = S("x") + s1
)

const (
	f0 F  = 1
	f1    = f0 / 2
	f2 F  = 1 / 2
	f3 F  = 1.0 / 2
	f4 F2 = F2(f1) + 1e-3
	f5    = 1 / f0 / 4
)

const (
	b0 B = true
	b1   = !b0
	b2 B = i1 < 2
	b3   = b0 && (s0 == "a\n" || b1)
)

const (
	u0 U = 1 << iota
	u1
	u7 U = 1 << 7
	d0 D = D(Dots(4))
	untyped = 5
	untypedString = "x"
)
`

// The compiler's own evaluation is the measure.
func TestConstantsMatchTheCompiler(t *testing.T) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "p.go", constants, parser.SkipObjectResolution)
	require.NoError(t, err)
	pkg, err := new(types.Config).Check("p", fset, []*ast.File{file}, nil)
	require.NoError(t, err)

	p := newSourceDir(nil, ".").pkg("p")
	p.add(file)
	seen := 0
	for _, name := range pkg.Scope().Names() {
		want, ok := pkg.Scope().Lookup(name).(*types.Const)
		if !ok {
			continue
		}
		seen++
		got := p.named[name]
		require.NotNil(t, got, name)
		value := p.value(got, 0)
		require.Equal(t, want.Val().Kind(), value.Kind(), name)
		require.Equal(t, constLiteral(want.Val()), constLiteral(value), name)
		wantType := ""
		if named, ok := want.Type().(*types.Named); ok {
			wantType = named.Obj().Name()
		}
		require.Equal(t, wantType, p.typeOf(got, 0), name)
	}
	require.Equal(t, len(p.consts), seen)
}

// What cannot be told is unknown, not wrong.
func TestUnknownConstants(t *testing.T) {
	for _, expr := range []string{
		`^uint8(0)`, `S(rune('a'))`, `math.Pi`, `unsafe.Sizeof(0)`, `nowhere`, `1 / 0`, `"a" + 1`, `1 << 1000`, `1 << "a"`, `-"a"`, `I(1.5)`, `self`, `f()`,
		`len(1)`, `struct{}{}`, `"a" < 1`, `true < false`, `other.T(1)`, `!1`,
	} {
		t.Run(expr, func(t *testing.T) {
			file, err := parser.ParseFile(token.NewFileSet(), "p.go", "package p\ntype (I int; S string)\nconst self = "+expr, 0)
			require.NoError(t, err)
			p := newSourceDir(nil, ".").pkg("p")
			p.add(file)
			require.Equal(t, constant.Unknown, p.value(p.named["self"], 0).Kind())
		})
	}
	deep := "1"
	for range 2 * maxConstDepth {
		deep = "(" + deep + ")"
	}
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", "package p\nconst self = "+deep, 0)
	require.NoError(t, err)
	p := newSourceDir(nil, ".").pkg("p")
	p.add(file)
	require.Equal(t, constant.Unknown, p.value(p.named["self"], 0).Kind())
}

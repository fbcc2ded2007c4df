package reflectx

import (
	"go/ast"
	"go/constant"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"go/types"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// localKind has no constants in this package: the tests embed other sources of it.
type localKind int

func localKinds(source string) []EnumValue {
	files := fstest.MapFS{"a.go": {Data: []byte("package reflectx\n\ntype localKind int\n\n" + source)}}
	return EmbeddedDescriptions(files, reflect.TypeFor[localKind]().PkgPath()).Enum(reflect.TypeFor[localKind]())
}

func TestConstantExpressions(t *testing.T) {
	for _, test := range []struct {
		name, source string
		want         []EnumValue
	}{
		{"literal", "const A localKind = 0x_1F", []EnumValue{{JSON: "31"}}},
		{"repeated line", "const (\n\tA localKind = 1 << iota // one\n\tB // two\n\t_\n\tD\n)", []EnumValue{{"1", "one"}, {"2", "two"}, {"8", ""}}},
		{"conversion", "const A = localKind(7) / 2", []EnumValue{{JSON: "3"}}},
		{"other constants", "const n, A = len(\"äb\"), -localKind(n)", []EnumValue{{JSON: "-3"}}},
		{"complement", "const A = ^localKind(0)", []EnumValue{{JSON: "-1"}}},
		{"in the scope of a function", "const A localKind = 1\n\nfunc f() { const B localKind = 2 }", []EnumValue{{JSON: "1"}}},
		{"of another type", "const A localKind = 1\n\ntype other int\n\nconst B other = 2", []EnumValue{{JSON: "1"}}},
		{"unexported beside exported", "const a, B localKind = 1, 2", []EnumValue{{JSON: "2"}}},
		{"unexported only", "const a, b localKind = 1, 2", []EnumValue{{JSON: "1"}, {JSON: "2"}}},
		{"declared for two systems", "const A localKind = 1\n\nconst A localKind = 2", []EnumValue{{JSON: "1"}}},
		{"beside a broken declaration", "const A localKind = 1\n\nvar x undefined = nowhere.At(all)", []EnumValue{{JSON: "1"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			require.Equal(t, test.want, localKinds(test.source))
		})
	}
}

// An incomplete list of constants would be wrong.
func TestConstantsWithUnknownValuesAreNotListed(t *testing.T) {
	for _, source := range []string{
		"const B localKind = nowhere", "const B localKind = math.MaxInt8", "const B = localKind(math.MaxInt8)", "const B localKind = 1 / 0",
		"const B localKind = B", "const B localKind = f()", "const B localKind = \"text\"", "const B localKind = 1 << 1000",
		"const B = -localKind(len(nowhere))",
	} {
		t.Run(source, func(t *testing.T) {
			require.Nil(t, localKinds("import \"math\"\n\nconst A localKind = 1\n\n"+source))
		})
	}
}

const constTypes = `
type (
	text  string
	small int8
	bits  uint8
	wide  = small
	real  float32
	yes   bool
	other small
)

var variable = 1

`

// constExpr draws an expression, which may not compile.
func constExpr(t *rapid.T, depth int) string {
	if depth == 0 || rapid.IntRange(0, 3).Draw(t, "leaf") == 0 {
		return rapid.SampledFrom([]string{
			"0", "1", "2", "7", "127", "128", "255", "1 << 40", "2.0", "0.1", "2.5", "1e3", "'a'", `"a"`, `"äb"`, "true", "false", "iota", "A0", "A1", "A2", "variable", "nowhere", "m.X", "0x_1F", "0b11", "1i",
		}).Draw(t, "literal")
	}
	inner := func() string { return constExpr(t, depth-1) }
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0:
		return rapid.SampledFrom([]string{"-", "+", "^", "!"}).Draw(t, "unary") + "(" + inner() + ")"
	case 1:
		return rapid.SampledFrom([]string{"text", "small", "bits", "wide", "real", "yes", "other", "int", "byte", "rune", "float64", "string", "uint16", "len", "nothing"}).Draw(t, "function") + "(" + inner() + ")"
	}
	op := rapid.SampledFrom([]string{"+", "-", "*", "/", "%", "&", "|", "^", "&^", "<<", ">>", "==", "<", ">=", "&&", "||"}).Draw(t, "binary")
	return "(" + inner() + " " + op + " " + inner() + ")"
}

// A value that the compiler knows may be unknown here, but must not be another one.
func TestConstantsHaveTheValuesOfTheCompiler(t *testing.T) {
	known, missed := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		b.WriteString("package p\n" + constTypes + "const (\n")
		for i := range 4 {
			b.WriteString("\tA" + string(rune('0'+i)))
			switch rapid.IntRange(0, 3).Draw(t, "line") {
			case 0:
				b.WriteString(" = " + constExpr(t, 3))
			case 1:
				b.WriteString(" " + rapid.SampledFrom([]string{"text", "small", "bits", "wide", "real", "yes", "int", "m.T", "nothing"}).Draw(t, "type") + " = " + constExpr(t, 3))
			default:
				b.WriteString(map[bool]string{true: " = 1"}[i == 0])
			}
			b.WriteString("\n")
		}
		b.WriteString(")\n")
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, "a.go", b.String(), parser.SkipObjectResolution)
		require.NoError(t, err, b.String())
		pkg := types.NewPackage("p", "p")
		_ = types.NewChecker(&types.Config{Error: func(error) {}}, fset, pkg, nil).Files([]*ast.File{file})
		d := newSourceDir(nil, "")
		p := d.pkg("p")
		p.add(file)
		for _, c := range p.consts {
			obj := pkg.Scope().Lookup(c.name).(*types.Const)
			if obj.Val().Kind() == constant.Unknown || obj.Val().Kind() == constant.Complex {
				continue // it does not compile, or depends on what is not here
			}
			want := constLiteral(obj.Val())
			v := p.value(c, 0)
			got := constLiteral(v.Value)
			if got == "" {
				missed++
				continue
			}
			known++
			require.Equal(t, want, got, "%s in %s", c.name, b.String())
			if basic, ok := obj.Type().(*types.Basic); ok && basic.Info()&types.IsUntyped != 0 {
				require.Empty(t, v.typ, "%s in %s", c.name, b.String())
				continue
			}
			require.Equal(t, p.defined(types.TypeString(types.Unalias(obj.Type()), func(*types.Package) string { return "" })), p.defined(v.typ), "%s in %s", c.name, b.String())
		}
	})
	require.Greater(t, known, 10*missed)
}

func TestPlainCommentsNeedNoParser(t *testing.T) {
	known := 0
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.SampledFrom([]string{
			"Search", "finds", "a", " ", "  ", "\n", "\n\n", "\t", "\n ", "\n\t", "it's", "''", "``", "[Search]", "[x]: https://example.com", "https://example.com/a_b?c=[d]", "#", "# A", "\n#", "- a", "\n- a", "\n* a", "\n1. a",
			"ä", ".", ",", "e.g.", "`code`", "\n//go:x", "\nDeprecated: no", "Title", "\r", "\u00a0", "*", "\\", "\"q\"",
		}), 1, 8).Draw(t, "words")
		text := (&ast.CommentGroup{List: []*ast.Comment{{Text: "/*" + strings.Join(words, " ") + "*/"}}}).Text()
		if text == "" || !isPlainText(text) {
			return
		}
		known++
		doc := new(comment.Parser).Parse(text)
		want := strings.TrimSpace(string((&comment.Printer{TextWidth: -1}).Text(doc)))
		require.Equal(t, want, oneLine(text), "%q", text)
	})
	require.Positive(t, known)
}

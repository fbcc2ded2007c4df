package reflectx

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// localKind has no constants in this package: the tests embed other sources of it.
type localKind int

func localKinds(source string) []EnumValue {
	return inFile("package reflectx\n\ntype localKind int\n\n" + source).Enum(reflect.TypeFor[localKind]())
}

func TestConstantExpressions(t *testing.T) {
	for _, test := range []struct {
		name, source string
		want         []EnumValue
	}{
		{"literal", "const A localKind = 0x_1F", []EnumValue{{JSON: "31"}}},
		{"repeated line", "const (\n\tA localKind = 1 << iota // one\n\tB // two\n\t_\n\tD\n)", []EnumValue{{"1", "one"}, {"2", "two"}, {"8", ""}}},
		{"conversion", "const A = localKind(7) / 2", []EnumValue{{JSON: "3"}}},
		{"other constants", "const n, A = 3, -localKind(n)", []EnumValue{{JSON: "-3"}}},
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

package reflectx

import (
	"io/fs"
	"os"
	"reflect"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/reflectx/testdata/fixture/base"
	"github.com/mcpkit/mcpkit-go/reflectx/testdata/fixture/notes"
)

// source are the descriptions in the source of the fixtures.
func source() Descriptions {
	Methods(&notes.Notes{})
	return Comments()
}

// inFile are the descriptions in a file of this package.
func inFile(src string) Descriptions {
	found := collect(fstest.MapFS{"a.go": {Data: []byte(src)}}, true)
	return keyed(func(t reflect.Type) map[string]string { return found["reflectx"] })
}

func TestSourceDescriptions(t *testing.T) {
	descriptions := source()
	n := reflect.TypeFor[notes.Notes]()
	require.Equal(t, "Notes keeps short notes and finds them again.\n\nIt forgets nothing. See Notes.Search, base.Greeter and nothing.There:\n\n\tnotes.Search(Input{})", descriptions.Text(n, ""))
	require.Equal(t, "Search finds the notes that contain the word.\n\nDeprecated: use Find.", descriptions.Text(n, "Search"))
	require.Equal(t, "Count counts with a value receiver.", descriptions.Text(n, "Count"))
	require.Equal(t, "Elsewhere is declared in another file than its type.", descriptions.Text(n, "Elsewhere"))
	require.Empty(t, descriptions.Text(n, "Silent"))
	require.Empty(t, descriptions.Text(n, "NoSuch"))
	require.Empty(t, descriptions.Text(n, "Hold"), "declared on another type")

	require.Equal(t, "Hit is one of a group.", descriptions.Text(reflect.TypeFor[notes.Hit](), ""))
	require.Equal(t, "Hit is one of a group.", descriptions.Text(reflect.TypeFor[notes.Alias](), ""))
	require.Equal(t, "Plain has a line comment.", descriptions.Text(reflect.TypeFor[notes.Plain](), ""))

	box := reflect.TypeFor[base.Box[int]]()
	require.Equal(t, "Box holds one value.", descriptions.Text(box, ""))
	require.Equal(t, "Get takes the value out.", descriptions.Text(box, "Get"))
	require.Equal(t, "Peek looks at the value.", descriptions.Text(box, "Peek"))
	require.Equal(t, "The value in the box.", descriptions.Text(box, "Value"))
	require.Equal(t, "Box holds one value.", descriptions.Text(reflect.TypeFor[base.Box[map[string]notes.Hit]](), ""))

	greeter := reflect.TypeFor[base.Greeter]()
	require.Equal(t, "Greet greets by name.", descriptions.Text(greeter, "Greet"))
	require.Equal(t, "waves a hand", descriptions.Text(greeter, "Wave"))
}

func TestSourceFields(t *testing.T) {
	descriptions := source()
	in := reflect.TypeFor[notes.Input]()
	for field, want := range map[string]string{
		"Query":  "Words that every hit contains.",
		"Limit":  "how many",
		"From":   "Where to look, both ways.",
		"To":     "Where to look, both ways.",
		"Bare":   "",
		"Middle": "The middle of it.",
		"Tagged": "A directive is not a word.",
		"Inline": "",
		"_":      "",
		"NoSuch": "",
	} {
		require.Equal(t, want, descriptions.Text(in, field), field)
	}
	inline, _ := in.FieldByName("Inline")
	require.Empty(t, descriptions.Text(inline.Type, "Deep"))
	require.Empty(t, descriptions.Text(inline.Type, ""))
	require.Equal(t, "The right one.", descriptions.Text(reflect.TypeFor[notes.Pair[string]](), "Right"))
	require.Equal(t, "Swap swaps.", descriptions.Text(reflect.TypeFor[notes.Pair[string]](), "Swap"))

	address := reflect.TypeFor[base.Address]()
	require.Equal(t, "Address is where somebody lives. No method leads to it.", descriptions.Text(address, ""))
	require.Equal(t, "Street and number.", descriptions.Text(address, "Street"))
	require.Equal(t, "the town", descriptions.Text(address, "City"))
}

func TestSourceEnums(t *testing.T) {
	weekday := reflect.TypeOf((*notes.Notes).Weekday).Out(0)
	descriptions := source()
	for _, test := range []struct {
		t    reflect.Type
		want []EnumValue
	}{
		{reflect.TypeFor[notes.Color](), []EnumValue{
			{`"red"`, "Red is the color of blood."},
			{`"green"`, "Green calms.\n\nIt really does."},
			{`"blueish"`, "Green calms.\n\nIt really does."},
			{`""`, "NoColor is apart."},
			{`"black"`, "no light"},
		}},
		{weekday, []EnumValue{{"1", "hard"}, {"2", "better"}, {"4", ""}}},
		{reflect.TypeFor[notes.Flags](), []EnumValue{{"1", ""}, {"2", ""}, {"3", ""}, {"16", ""}}},
		{reflect.TypeFor[notes.Ratio](), []EnumValue{{"0.5", ""}, {"0.333", ""}}},
		{reflect.TypeFor[notes.Mode](), []EnumValue{{`"off"`, "nothing runs"}, {`"on"`, "all runs"}}},
		{reflect.TypeFor[base.Level](), []EnumValue{{"10", "Quiet is a whisper."}, {"20", "hurts"}, {"40", "Deafening is not for people."}}},
		{reflect.TypeFor[notes.Rank](), nil},
		{reflect.TypeFor[notes.Odd](), nil},
		{reflect.TypeFor[notes.Notes](), nil},
		{reflect.TypeFor[string](), nil},
	} {
		require.Equal(t, test.want, descriptions.Enum(test.t), test.t)
	}
}

// localSize is declared in a test file.
type localSize struct{ A int }

func TestSourceOfTestFiles(t *testing.T) {
	descriptions := source()
	require.Equal(t, "localSize is declared in a test file.", descriptions.Text(reflect.TypeFor[localSize](), ""))
}

func TestSourceHasNoDescriptionOf(t *testing.T) {
	descriptions := source()
	for _, typ := range []reflect.Type{
		reflect.TypeFor[int](), reflect.TypeFor[error](), reflect.TypeFor[struct{ A int }](), reflect.TypeFor[*notes.Notes](),
		reflect.TypeFor[[]notes.Notes](), reflect.TypeFor[fs.FileMode](), reflect.TypeFor[reflect.Kind](), reflect.TypeFor[os.File](),
	} {
		require.Empty(t, descriptions.Text(typ, ""), typ)
		require.Empty(t, descriptions.Text(typ, "String"), typ)
		require.Empty(t, descriptions.Text(typ, "A"), typ)
		require.Nil(t, descriptions.Enum(typ), typ)
	}
}

func TestSourceNeverFails(t *testing.T) {
	typ := reflect.TypeFor[localSize]()
	for _, src := range []string{
		"", "\x00\xff{{{", "package reflectx\ntype localSize localSize\ntype kind2 kind2\nconst (a = b; b = a; C localKind = a)",
	} {
		require.Empty(t, inFile(src).Text(typ, ""), src)
		require.Empty(t, inFile(src).Text(typ, "A"), src)
		require.Empty(t, inFile(src).Enum(reflect.TypeFor[localKind]()), src)
	}
	broken := inFile("package reflectx\n\n// localSize is cut\ntype localSize struct{ A int }\n\nfunc (")
	require.Equal(t, "localSize is cut", broken.Text(typ, ""), "declarations before the syntax error count")
}

func TestSourceIsSafeForConcurrentUse(t *testing.T) {
	descriptions := source()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			Methods(&notes.Notes{})
			require.NotEmpty(t, descriptions.Text(reflect.TypeFor[notes.Notes](), ""))
			require.NotEmpty(t, descriptions.Enum(reflect.TypeFor[notes.Color]()))
		})
	}
	wg.Wait()
}

func FuzzSource(f *testing.F) {
	for _, file := range []string{"testdata/fixture/notes/notes.go", "testdata/fixture/base/base.go"} {
		src, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(src)
	}
	f.Add([]byte("package notes\nconst (A Color = \"a\" << 3; B Color = -\"\"; C Color = 1/0; D Color = len(D); E, F Color = 1<<600)\ntype Color string"))
	f.Fuzz(func(t *testing.T, src []byte) {
		found := collect(fstest.MapFS{"a.go": {Data: src}}, true)["notes"]
		descriptions := keyed(func(reflect.Type) map[string]string { return found })
		for _, typ := range []reflect.Type{reflect.TypeFor[notes.Color](), reflect.TypeFor[notes.Flags](), reflect.TypeFor[notes.Ratio](), reflect.TypeFor[notes.Mode]()} {
			descriptions.Enum(typ)
		}
	})
}

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

func TestPlacesOfPackages(t *testing.T) {
	const self = "github.com/mcpkit/mcpkit-go"
	tool := [2]string{"example.com/app/cmd/tool", "/x/cmd/tool/main.go"}
	for _, test := range []struct {
		name, module string
		seen         [2]string // a package and one of its files
		asked, want  string
	}{
		{"of which a file is known", "", tool, "example.com/app/cmd/tool", "/x/cmd/tool"},
		{"its test", "", tool, "example.com/app/cmd/tool_test", "/x/cmd/tool"},
		{"in the same module", "example.com/app", tool, "example.com/app/inner/x", "/x/inner/x"},
		{"root of the module", "example.com/app", tool, "example.com/app", "/x"},
		{"known by the root", "example.com/app", [2]string{"example.com/app", "/x/a.go"}, "example.com/app/a", "/x/a"},
		{"in another module", "example.com/app", tool, "example.com/apples", ""},
		{"known by another module", "example.com/app", [2]string{"example.com/apples", "/y/a.go"}, "example.com/app", ""},
		{"of the standard library", "example.com/app", tool, "strings", ""},
		{"without a module", "", tool, "example.com/app", ""},
		{"the program", self, [2]string{self + "/protocol", "/x/protocol/decode.go"}, "main", "/x/reflectx"}, // this test
		{"built with -trimpath", "", [2]string{"main", "example.com/app/cmd/tool/main.go"}, "main", ""},
		{"generated", "", [2]string{"example.com/none", "<autogenerated>"}, "example.com/none", ""},
		{"in assembly", "", [2]string{"example.com/none", "/usr/asm.s"}, "example.com/none", ""},
		{"unknown", "", [2]string{"", "/x/main.go"}, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPlaces(test.module)
			p.add(test.seen[0], test.seen[1])
			require.Equal(t, test.want, p.find(test.asked))
		})
	}
}

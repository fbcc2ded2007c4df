package reflectx

import (
	"io/fs"
	"os"
	"reflect"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/reflectx/testdata/fixture/notes"
)

func TestCollectDescriptionsKeys(t *testing.T) {
	descriptions := CollectDescriptions(os.DirFS("testdata/fixture/base"), "base")
	require.Equal(t, map[string]string{
		"Root":           "Root is two levels away from what embeds it.",
		"Root.Reach":     "Reach is promoted twice.",
		"Middle":         "Middle embeds Root.",
		"Middle.Hold":    "Hold has a pointer receiver.",
		"Middle.Small":   "Small may be inlined into what is made for its promotion.",
		"Box":            "Box holds one value.",
		"Box.Value":      "The value in the box.",
		"Box.Get":        "Get takes the value out.",
		"Box.Peek":       "Peek looks at the value.",
		"Greeter":        "Greeter says hello.",
		"Greeter.Greet":  "Greet greets by name.",
		"Greeter.Wave":   "waves a hand",
		"Polite":         "Polite is a Greeter.",
		"Polite.Greet":   "Greet greets politely.",
		"Polite.Wave":    "Wave waves politely.",
		"Address":        "Address is where somebody lives. No method leads to it.",
		"Address.Street": "Street and number.",
		"Address.City":   "the town",
		"Level":          "Level is how loud.",
		"Level#0":        "10 Quiet is a whisper.",
		"Level#1":        "20 hurts",
		"Level#2":        "40 Deafening is not for people.",
	}, descriptions)
	require.Empty(t, CollectDescriptions(os.DirFS("testdata/fixture/base"), "main"))
	require.Empty(t, CollectDescriptions(os.DirFS("testdata/fixture/nowhere"), "base"))
}

func TestRegisterDescriptionsMergesCalls(t *testing.T) {
	t.Cleanup(forgetDescriptions)
	typ := reflect.TypeFor[notes.Hit]()
	descriptions := keyed(registeredOf)
	require.Empty(t, descriptions.Text(typ, ""))

	first := map[string]string{"Hit": "old", "Hit.Text": "the text"}
	RegisterDescriptions(typ.PkgPath(), first)
	first["Hit"] = "changed afterwards"
	require.Equal(t, "old", descriptions.Text(typ, ""))

	RegisterDescriptions(typ.PkgPath(), map[string]string{"Hit": "new"})
	require.Equal(t, "new", descriptions.Text(typ, ""))
	require.Equal(t, "the text", descriptions.Text(typ, "Text"))
}

func TestEmbeddedSourceIsRegistered(t *testing.T) {
	t.Cleanup(forgetDescriptions)
	typ := reflect.TypeFor[notes.Hit]()
	RegisterSource(typ.PkgPath(), fstest.MapFS{
		"notes.go":      {Data: []byte("package notes\n\n// Hit is embedded.\ntype Hit struct{}\n")},
		"notes_test.go": {Data: []byte("package notes\n\n// Hit is of a test.\ntype Hit struct{}\n")},
	})
	require.Equal(t, "Hit is embedded.", keyed(registeredOf).Text(typ, ""))
}

func TestRegisteredEnum(t *testing.T) {
	for _, test := range []struct {
		name         string
		typ          reflect.Type
		descriptions map[string]string
		want         []EnumValue
	}{
		{"text with spaces", reflect.TypeFor[notes.Color](), map[string]string{"Color#0": `"deep \"red\" " so red`, "Color#1": `"b"`},
			[]EnumValue{{`"deep \"red\" "`, "so red"}, {`"b"`, ""}}},
		{"numbers", reflect.TypeFor[notes.Flags](), map[string]string{"Flags#0": "1 one", "Flags#1": "0x10"}, []EnumValue{{"1", "one"}, {"16", ""}}},
		{"not a number", reflect.TypeFor[notes.Flags](), map[string]string{"Flags#0": "1", "Flags#1": `"two"`}, nil},
		{"too large", reflect.TypeFor[notes.Flags](), map[string]string{"Flags#0": "99999999999999999999"}, nil},
		{"not a string", reflect.TypeFor[notes.Color](), map[string]string{"Color#0": "red"}, nil},
		{"not a float", reflect.TypeFor[notes.Ratio](), map[string]string{"Ratio#0": "half"}, nil},
		{"no enum", reflect.TypeFor[notes.Hit](), map[string]string{"Hit#0": "1"}, nil},
		{"panics", reflect.TypeFor[notes.Mode](), map[string]string{"Mode#0": "7"}, nil},
		{"int", reflect.TypeFor[localKind](), map[string]string{"localKind#0": "-9223372036854775808"}, []EnumValue{{"-9223372036854775808", ""}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Cleanup(forgetDescriptions)
			RegisterDescriptions(test.typ.PkgPath(), test.descriptions)
			require.Equal(t, test.want, keyed(registeredOf).Enum(test.typ))
		})
	}
}

// In a test, package main has its import path. This test uses its own package for both.
func TestDescriptionsOfTheProgramItself(t *testing.T) {
	t.Cleanup(forgetDescriptions)
	typ := reflect.TypeFor[localKind]()
	require.Equal(t, typ.PkgPath(), programPath())
	RegisterDescriptions("main", map[string]string{"localKind": "registered"})
	require.Equal(t, "registered", keyed(registeredOf).Text(typ, ""))
	require.Empty(t, keyed(registeredOf).Text(reflect.TypeFor[notes.Hit](), ""))
}

// Where there is source, a generated file may be stale.
func TestSourceWinsOverGeneratedFiles(t *testing.T) {
	t.Cleanup(forgetDescriptions)
	RegisterDescriptions("main", map[string]string{"localSize": "stale", "localSize.A": "stale"})
	RegisterDescriptions("io/fs", map[string]string{"FileMode": "its source was not looked for"})
	descriptions := source()
	require.Equal(t, "localSize is declared in a test file.", descriptions.Text(reflect.TypeFor[localSize](), ""))
	require.Empty(t, descriptions.Text(reflect.TypeFor[localSize](), "A"))
	require.Equal(t, "its source was not looked for", descriptions.Text(reflect.TypeFor[fs.FileMode](), ""))
}

func forgetDescriptions() {
	registered.mu.Lock()
	defer registered.mu.Unlock()
	registered.packages = map[string]map[string]string{}
}

func TestParamDescriptions(t *testing.T) {
	for _, test := range []struct {
		comment      string
		params       []string
		rest         string
		descriptions map[string]string
	}{
		{"Add adds.\n//\n// See: this.", []string{"a"}, "Add adds.\n\nSee: this.", map[string]string{}},
		{"Add adds.\n//\n//   - a: the first", nil, "Add adds.\n\n  - a: the first", map[string]string{}},
		{"Add adds.\n//\n//   - a: the first\n//   - b: the other,\n//     negative or not", []string{"a", "b"}, "Add adds.",
			map[string]string{"a": "the first", "b": "the other, negative or not"}},
		{"Add adds.\n//\n//   - a: the first\n//\n// It never fails.", []string{"a"}, "Add adds.\n\nIt never fails.", map[string]string{"a": "the first"}},
		{"Add adds.\n//\n//   - a: the first\n//   - note: not a parameter\n//     at all", []string{"a"}, "Add adds.\n\n  - note: not a parameter at all",
			map[string]string{"a": "the first"}},
		{"Add adds.\n//\n//   * `a`: the first: of two", []string{"a"}, "Add adds.", map[string]string{"a": "the first: of two"}},
		{"Add adds.\n//\n//   - a: one\n//   - a: two", []string{"a"}, "Add adds.\n\n  - a: two", map[string]string{"a": "one"}},
	} {
		t.Run(test.comment, func(t *testing.T) {
			doc := inFile("package reflectx\n\n// "+test.comment+"\ntype localKind int\n").Text(reflect.TypeFor[localKind](), "")
			rest, descriptions := paramDescriptions(doc, test.params)
			require.Equal(t, test.rest, rest)
			require.Equal(t, test.descriptions, descriptions)
		})
	}
}

// Generated files have the descriptions of structs without a name under the keys that Field uses.
func TestInlineStructsAreCollected(t *testing.T) {
	descriptions := CollectDescriptions(fstest.MapFS{"a.go": {Data: []byte(`package a

type Input struct {
	// Filters leave things out.
	Filters map[string][]*struct {
		// Op compares.
		Op, Or string
		_ int // nothing
		In struct { X int // X is deep.
		}
	}
}

func (s *Service) Find(ctx context.Context, in *struct {
	Query string // Query is looked for.
}) {}
`)}}, "a")
	require.Equal(t, map[string]string{
		"Input.Filters": "Filters leave things out.", "Input.Filters.Op": "Op compares.", "Input.Filters.Or": "Op compares.",
		"Input.Filters.In.X": "X is deep.", "Service.Find.Query": "Query is looked for.",
	}, descriptions)
}

package reflectx

import (
	"io/fs"
	"os"
	"reflect"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/reflectx/testdata/fixture/base"
	"github.com/mcpkit/mcpkit-go/reflectx/testdata/fixture/notes"
)

// A program has the same descriptions with its source and without.
func TestRegisteredDescriptionsMatchTheSource(t *testing.T) {
	const root = "github.com/mcpkit/mcpkit-go/reflectx/testdata/fixture/"
	RegisterDescriptions(root+"notes", CollectDescriptions(os.DirFS("testdata/fixture/notes"), "notes"))
	RegisterDescriptions(root+"base", CollectDescriptions(os.DirFS("testdata/fixture/base"), "base"))
	t.Cleanup(forgetDescriptions)

	registered, source := keyed(registeredOf), source()
	weekday := reflect.TypeOf((*notes.Notes).Weekday).Out(0)
	said := 0
	for _, typ := range []reflect.Type{
		reflect.TypeFor[notes.Notes](), reflect.TypeFor[notes.Input](), reflect.TypeFor[notes.Hit](), reflect.TypeFor[notes.Plain](),
		reflect.TypeFor[notes.Copy](), reflect.TypeFor[notes.IntBox](), reflect.TypeFor[notes.Pair[int]](), reflect.TypeFor[notes.Color](),
		reflect.TypeFor[notes.Flags](), reflect.TypeFor[notes.Ratio](), reflect.TypeFor[notes.Mode](), reflect.TypeFor[notes.Rank](),
		reflect.TypeFor[notes.Odd](), reflect.TypeFor[base.Box[string]](), reflect.TypeFor[base.Greeter](), reflect.TypeFor[base.Address](),
		reflect.TypeFor[base.Level](), reflect.TypeFor[base.Middle](), weekday, reflect.TypeFor[int](), reflect.TypeFor[struct{ A int }](),
	} {
		require.Equal(t, source.Text(typ, ""), registered.Text(typ, ""), typ)
		require.Equal(t, source.Enum(typ), registered.Enum(typ), typ)
		for _, method := range []string{"Search", "Count", "Silent", "Get", "Peek", "Swap", "Greet", "Wave", "Hold", "Reach"} {
			require.Equal(t, source.Text(typ, method), registered.Text(typ, method), "%s.%s", typ, method)
		}
		if typ.Kind() == reflect.Struct {
			for i := range typ.NumField() {
				name := typ.Field(i).Name
				require.Equal(t, source.Text(typ, name), registered.Text(typ, name), "%s.%s", typ, name)
			}
		}
		if registered.Text(typ, "") != "" {
			said++
		}
	}
	require.Equal(t, 19, said, "all types except int and the struct without a name")
}

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
	registered.packages = nil
}

// documented is a service with generated descriptions; see BenchmarkDescriptions.
type documented[K any] struct{}

type documentedInput[K any] struct {
	Query string   `json:"query" validate:"required"`
	Limit int      `json:"limit,omitempty" default:"10"`
	Tags  []string `json:"tags,omitempty"`
	Exact bool     `json:"exact,omitempty"`
	_     K
}

// fiftyInputs returns the input types of fifty methods.
func fiftyInputs() (types []reflect.Type) {
	add := func(some ...reflect.Type) { types = append(types, some...) }
	for i := range 50 {
		add(reflect.StructOf([]reflect.StructField{
			{Name: "In", Anonymous: true, Type: reflect.TypeFor[documentedInput[int]]()},
			{Name: "Extra", Type: reflect.ArrayOf(i, reflect.TypeFor[int]()), Tag: `json:"extra"`},
		}))
	}
	return types
}

// generatedDescriptions returns generated descriptions of fifty methods and their inputs.
func generatedDescriptions() map[string]string {
	const text = "finds the notes that contain every word of the query, newest first. It looks at titles and texts alike."
	descriptions := map[string]string{"documented": text, "documentedInput": text}
	for _, field := range []string{"Query", "Limit", "Tags", "Exact"} {
		descriptions["documentedInput."+field] = text
	}
	for i := range 50 {
		descriptions["documented.M"+strconv.Itoa(i)] = text
		for _, field := range []string{"Query", "Limit", "Tags", "Exact"} {
			descriptions["input"+strconv.Itoa(i)+"."+field] = text
		}
	}
	return descriptions
}

// BenchmarkDescriptions compiles the inputs of fifty methods without descriptions, and with those
// of a generated file, including their registration. The difference is what descriptions cost at
// startup.
func BenchmarkDescriptions(b *testing.B) {
	types := fiftyInputs()
	compile := func(b *testing.B, descriptions Descriptions) {
		for _, t := range types {
			_, err := NewInput("Bench", t, InputOptions{Descriptions: descriptions})
			require.NoError(b, err)
		}
	}
	b.Run("none", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			compile(b, nil)
		}
	})
	b.Run("generated", func(b *testing.B) {
		b.ReportAllocs()
		owner := reflect.TypeFor[documented[int]]()
		for b.Loop() {
			RegisterDescriptions(owner.PkgPath(), generatedDescriptions())
			descriptions := keyed(registeredOf)
			for i := range 50 {
				if descriptions.Text(owner, "M"+strconv.Itoa(i)) == "" {
					b.Fatal("no descriptions")
				}
			}
			compile(b, descriptions)
		}
	})
}

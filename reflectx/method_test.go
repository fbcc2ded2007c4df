package reflectx

import (
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/reflectx/testdata/fixture/base"
	"github.com/mcpkit/mcpkit-go/reflectx/testdata/fixture/notes"
)

// fileOf returns the file that declares a method.
func fileOf(m Method) string {
	if m.File == "" {
		return ""
	}
	return filepath.Base(m.File)
}

func TestMethods(t *testing.T) {
	type fact struct {
		owner    reflect.Type
		path     string
		file     string
		promoted bool
	}
	svc := &notes.Notes{Box: &base.Box[int]{Value: 7}, Greeter: &base.Polite{}}
	methods, err := Methods(svc)
	require.NoError(t, err)

	own := reflect.TypeFor[notes.Notes]()
	box := reflect.TypeFor[base.Box[int]]()
	want := map[string]fact{
		"Count":     {own, "", "notes.go", false},
		"Elsewhere": {own, "", "other.go", false},
		"Inlined":   {own, "", "notes.go", false},
		"Search":    {own, "", "notes.go", false},
		"Silent":    {own, "", "notes.go", false},
		"Weekday":   {own, "", "notes.go", false},
		"Reach":     {reflect.TypeFor[base.Root](), "Middle.Root", "base.go", true},
		"Hold":      {reflect.TypeFor[base.Middle](), "Middle", "base.go", true},
		"Small":     {reflect.TypeFor[base.Middle](), "Middle", "base.go", true},
		"Get":       {box, "Box", "base.go", true},
		"Peek":      {box, "Box", "base.go", true},
		"Greet":     {reflect.TypeFor[base.Polite](), "Greeter", "base.go", true},
		"Wave":      {reflect.TypeFor[base.Polite](), "Greeter", "base.go", true},
	}
	got := map[string]fact{}
	var names []string
	for _, m := range methods {
		names = append(names, m.Name)
		got[m.Name] = fact{m.Owner, strings.Join(m.Path, "."), fileOf(m), m.Promoted}
		require.Positive(t, m.Line, m.Name)
	}
	require.Equal(t, want, got)
	require.IsIncreasing(t, names)

	get := methods[slices.Index(names, "Get")]
	require.Equal(t, 7, get.Func.Call(nil)[0].Interface(), "Func is bound to the value")
}

func TestMethodsOfNilEmbeddedFields(t *testing.T) {
	methods, err := Methods(&notes.Notes{})
	require.NoError(t, err)
	for _, m := range methods {
		switch m.Name {
		case "Greet":
			require.Equal(t, reflect.TypeFor[base.Greeter](), m.Owner, "the interface, since it holds nothing")
			require.Equal(t, []string{"Greeter"}, m.Path)
			require.True(t, m.Promoted)
			require.Empty(t, m.File)
		case "Get":
			require.Equal(t, reflect.TypeFor[base.Box[int]](), m.Owner, "known without a value")
			require.Equal(t, "base.go", fileOf(m))
		}
	}
}

type lineOne struct{}

func (lineOne) Here() int { _, _, line, _ := runtime.Caller(0); return line }

type shadow struct {
	lineOne
	deeper
}

func (*shadow) Here() int { return 0 }

type deeper struct{ deepest }

type deepest struct{ *shadow } // a cycle of embedding

func (deepest) Deep() {}

type byValue struct{}

func (byValue) A()  {}
func (*byValue) B() {}
func (*byValue) C() {}

type list []int

func (list) Len() int { return 0 }

type kind func()

func (kind) Run() {}

func TestMethodsFindTheirLine(t *testing.T) {
	methods, err := Methods(lineOne{})
	require.NoError(t, err)
	require.Len(t, methods, 1)
	require.Equal(t, methods[0].Func.Call(nil)[0].Interface(), methods[0].Line)
	require.Equal(t, "method_test.go", fileOf(methods[0]))
}

func TestMethodsOfEveryKindOfType(t *testing.T) {
	for _, v := range []any{list{}, &list{}, kind(nil), byValue2{}, &byValue2{}} {
		methods, err := Methods(v)
		require.NoError(t, err)
		require.Len(t, methods, 1)
		require.False(t, methods[0].Promoted)
		require.Equal(t, "method_test.go", fileOf(methods[0]))
		require.NotEqual(t, reflect.Pointer, methods[0].Owner.Kind())
	}
	methods, err := Methods(struct{ *shadow }{&shadow{}})
	require.NoError(t, err)
	require.Len(t, methods, 2)
	require.Equal(t, "Deep", methods[0].Name)
	require.Equal(t, []string{"shadow", "deeper", "deepest"}, methods[0].Path)
	require.Equal(t, []string{"shadow"}, methods[1].Path)
	require.Equal(t, reflect.TypeFor[shadow](), methods[1].Owner, "the shallower one is promoted")

	methods, err = Methods(struct{}{})
	require.NoError(t, err)
	require.Empty(t, methods)
}

type byValue2 struct{ n [3]int }

func (b byValue2) Sum() int { return b.n[0] }

func TestMethodsErrors(t *testing.T) {
	for _, test := range []struct {
		v   any
		err string
	}{
		{nil, "the service is nil; give a pointer to it"},
		{(*notes.Notes)(nil), "*notes.Notes: the service is a nil pointer; give a pointer to a value"},
		{byValue{}, "reflectx.byValue: it is given by value, without the methods of *reflectx.byValue (B, C); give a pointer to it"},
	} {
		methods, err := Methods(test.v)
		require.EqualError(t, err, test.err)
		require.Nil(t, methods)
	}
}

func TestSplitFuncName(t *testing.T) {
	for _, test := range []struct{ name, pkg, rest string }{
		{"main.main", "main", "main"},
		{"example.com/x/y.(*T).M", "example.com/x/y", "(*T).M"},
		{"gopkg.in/yaml%2ev3.(*Node).Decode", "gopkg.in/yaml.v3", "(*Node).Decode"},
		{"example.com/a.b/c.T.M", "example.com/a.b/c", "T.M"},
		{"x/y.(*Box[...]).Get", "x/y", "(*Box[...]).Get"},
		{"x/y.F[example.com/z.T]", "x/y", "F[example.com/z.T]"},
		{"x/50%.F", "x/50%", "F"},
		{"nothing", "", "nothing"},
	} {
		pkg, rest := splitFuncName(test.name)
		require.Equal(t, test.pkg, pkg)
		require.Equal(t, test.rest, rest)
	}
}

func BenchmarkMethods(b *testing.B) {
	svc := &notes.Notes{}
	for b.Loop() {
		if _, err := Methods(svc); err != nil {
			b.Fatal(err)
		}
	}
}

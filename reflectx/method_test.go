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

func TestMethods(t *testing.T) {
	type fact struct {
		owner      reflect.Type
		path, file string
	}
	own, box, greeter := reflect.TypeFor[notes.Notes](), reflect.TypeFor[base.Box[int]](), reflect.TypeFor[base.Greeter]()
	got := map[string]fact{}
	methods := Methods(&notes.Notes{Box: &base.Box[int]{Value: 7}})
	for _, m := range methods {
		got[m.Name] = fact{m.Owner, pathOf(m), strings.TrimPrefix(filepath.Base(m.File), ".")}
	}
	require.Equal(t, map[string]fact{
		"Count":     {own, "", "notes.go"},
		"Elsewhere": {own, "", "other.go"},
		"Inlined":   {own, "", "notes.go"},
		"Search":    {own, "", "notes.go"},
		"Silent":    {own, "", "notes.go"},
		"Weekday":   {own, "", "notes.go"},
		"Reach":     {reflect.TypeFor[base.Root](), "Middle.Root", "base.go"},
		"Hold":      {reflect.TypeFor[base.Middle](), "Middle", "base.go"},
		"Small":     {reflect.TypeFor[base.Middle](), "Middle", "base.go"},
		"Get":       {box, "Box", "base.go"},
		"Peek":      {box, "Box", "base.go"},
		"Greet":     {greeter, "Greeter", ""},
		"Wave":      {greeter, "Greeter", ""},
	}, got)
	require.True(t, slices.IsSortedFunc(methods, func(a, b Method) int { return strings.Compare(a.Name, b.Name) }))
	get := methods[slices.IndexFunc(methods, func(m Method) bool { return m.Name == "Get" })]
	require.Equal(t, 7, get.Func.Call(nil)[0].Interface(), "Func is bound to the value")
}

func pathOf(m Method) string {
	var names []string
	for _, f := range m.Embedded {
		names = append(names, f.Name)
	}
	return strings.Join(names, ".")
}

type lineOne struct{}

func (*lineOne) Here() int { _, _, line, _ := runtime.Caller(0); return line }

type shadow struct {
	lineOne
	deeper
}

func (*shadow) Here() int { return 0 }

type deeper struct{ deepest }

type deepest struct{ *shadow } // a cycle of embedding

func (deepest) Deep() {}

func TestMethodsFindTheirLine(t *testing.T) {
	methods := Methods(&lineOne{})
	require.Len(t, methods, 1)
	require.Equal(t, methods[0].Func.Call(nil)[0].Interface(), methods[0].Line)
	require.Equal(t, "method_test.go", filepath.Base(methods[0].File))
}

func TestTheShallowestMethodIsPromoted(t *testing.T) {
	methods := Methods(&struct{ *shadow }{&shadow{}})
	require.Len(t, methods, 2)
	require.Equal(t, "Deep", methods[0].Name)
	require.Equal(t, "shadow.deeper.deepest", pathOf(methods[0]))
	require.Equal(t, "shadow", pathOf(methods[1]))
	require.Equal(t, reflect.TypeFor[shadow](), methods[1].Owner)
	require.Empty(t, Methods(&struct{}{}))
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

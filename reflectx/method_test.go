package reflectx

import (
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode"

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

func TestNames(t *testing.T) {
	for _, test := range []struct{ name, snake string }{
		{"", ""},
		{"add", "add"},
		{"SearchNotes", "search_notes"},
		{"GetURLByID", "get_url_by_id"},
		{"List2024Reports", "list2024_reports"},
		{"NewOAuthClient", "new_oauth_client"},
		{"HTTPServer", "http_server"},
		{"ID", "id"},
		{"UserIDs", "user_ids"},
		{"APIsOf", "apis_of"},
		{"IDsafe", "i_dsafe"},
		{"JSONAPIServer", "jsonapi_server"},
		{"MP3sOf", "mp3s_of"},
		{"A", "a"},
		{"AToB", "a_to_b"},
		{"SHA256Sum", "sha256_sum"},
		{"K8sPods", "k8s_pods"},
		{"IPv6Address", "ipv6_address"},
		{"MyGitHubRepo", "my_github_repo"},
		{"Read_File", "read_file"},
		{"__x__", "x"},
		{"ZählerÄndern", "zähler_ändern"},
	} {
		t.Run(test.name, func(t *testing.T) {
			require.Equal(t, test.snake, SnakeCase(test.name))
		})
	}
}

func FuzzNames(f *testing.F) {
	for _, s := range []string{"GetURLByID", "IDs", "3D", "2DD", "OAuth", "_", "URLIDURLID", "É", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		words := splitName(name)
		require.Equal(t, strings.ReplaceAll(name, "_", ""), strings.Join(words, ""), "no letter is lost or added")
		for _, w := range words {
			require.NotEmpty(t, w)
		}
		for _, r := range SnakeCase(name) {
			require.True(t, unicode.ToLower(r) == r || strings.ToLower(string(r)) == string(r))
		}
	})
}

// docs/reference/tags.md has a row for each tag of fields.
func TestFieldTagReference(t *testing.T) {
	page, err := os.ReadFile("../docs/reference/tags.md")
	require.NoError(t, err)
	for _, key := range fieldTags {
		require.Contains(t, string(page), "\n| `"+key+`:"`)
	}
}

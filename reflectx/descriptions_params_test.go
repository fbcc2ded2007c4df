package reflectx

import (
	"reflect"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

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

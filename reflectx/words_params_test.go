package reflectx

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParamWords(t *testing.T) {
	for _, test := range []struct {
		name, doc string
		params    []string
		rest      string
		words     map[string]string
	}{
		{"none", "Add adds.\n\nSee: this.", []string{"a"}, "Add adds.\n\nSee: this.", nil},
		{"no parameters", "Add adds.\n\n  - a: the first", nil, "Add adds.\n\n  - a: the first", nil},
		{"all", "Add adds.\n\n  - a: the first\n  - b: the other,\n    negative or not", []string{"a", "b"}, "Add adds.",
			map[string]string{"a": "the first", "b": "the other, negative or not"}},
		{"in the middle", "Add adds.\n\n  - a: the first\n\nIt never fails.", []string{"a"}, "Add adds.\n\nIt never fails.", map[string]string{"a": "the first"}},
		{"some", "Add adds.\n\n  - a: the first\n  - note: not a parameter\n    at all", []string{"a"}, "Add adds.\n\n  - note: not a parameter\n    at all",
			map[string]string{"a": "the first"}},
		{"quoted and starred", "Add adds.\n\n  * `a`: the first: of two", []string{"a"}, "Add adds.", map[string]string{"a": "the first: of two"}},
		{"twice", "- a: one\n- a: two", []string{"a"}, "- a: two", map[string]string{"a": "one"}},
		{"text that follows", "- a: one\nand more", []string{"a"}, "and more", map[string]string{"a": "one"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			rest, words := ParamWords(test.doc, test.params)
			require.Equal(t, test.rest, rest)
			require.Equal(t, test.words, words)
		})
	}
}

package naming

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNames(t *testing.T) {
	for name, want := range map[string]struct {
		err      string // empty when the name is accepted
		portable bool
	}{
		"search":                 {portable: true},
		"get-URL_2":              {portable: true},
		strings.Repeat("a", 64):  {portable: true},
		strings.Repeat("a", 65):  {},
		strings.Repeat("a", 128): {},
		strings.Repeat("é", 128): {},
		"filesystem/read":        {},
		"admin.tools.list":       {},
		"größe":                  {},
		"c++:compile@v2":         {},
		"":                       {err: `name "" has 0 characters; 1 to 128 are allowed`},
		strings.Repeat("a", 129): {err: `name "` + strings.Repeat("a", 129) + `" has 129 characters; 1 to 128 are allowed`},
		"a b":                    {err: `name "a b" contains ' '; blanks and control characters are not allowed`},
		"a\u00a0b":               {err: `name "a\u00a0b" contains '\u00a0'; blanks and control characters are not allowed`},
		"a\tb":                   {err: `name "a\tb" contains '\t'; blanks and control characters are not allowed`},
		"a\r\nX-Evil: 1":         {err: `name "a\r\nX-Evil: 1" contains '\r'; blanks and control characters are not allowed`},
		"a\x00":                  {err: `name "a\x00" contains '\x00'; blanks and control characters are not allowed`},
		"a\u202eb":               {err: `name "a\u202eb" contains '\u202e'; blanks and control characters are not allowed`},
		"a\u200bb":               {err: `name "a\u200bb" contains '\u200b'; blanks and control characters are not allowed`},
		"a\xff":                  {err: `name "a\xff" is not valid UTF-8`},
	} {
		err := Check(name)
		if want.err != "" {
			require.EqualError(t, err, want.err)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, want.portable, Portable(name), name)
	}
}

func TestNearest(t *testing.T) {
	known := []string{"required", "readonly", "open-world", "min", "max", "limit"}
	for _, test := range []struct{ word, want string }{
		{"requird", "required"},
		{"Required", "required"},
		{"openworld", "open-world"},
		{"raedonly", "readonly"},
		{"limti", "limit"},
		{"mn", "min"},
		{"banana", ""},
		{"", ""},
	} {
		require.Equal(t, test.want, Nearest(test.word, known), "nearest to %q", test.word)
	}
}

func TestHintIsEmptyWithoutASimilarWord(t *testing.T) {
	require.Equal(t, `; did you mean "limit"?`, Hint("limits", []string{"limit"}))
	require.Empty(t, Hint("zebra", []string{"limit"}))
}

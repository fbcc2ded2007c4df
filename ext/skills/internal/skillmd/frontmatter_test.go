package skillmd

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFrontMatterIsWrittenVerbatimAsJSON(t *testing.T) {
	for _, test := range []struct{ name, yaml, want string }{
		{"plain texts", "name: pdf\ndescription: Fill forms, and more\n", `{"name":"pdf","description":"Fill forms, and more"}`},
		{"one field", "name: pdf\n", `{"name":"pdf"}`},
		{"order is kept", "b: x\na: x\n", `{"b":"x","a":"x"}`},
		{"quoted texts", "a: \"x\\ty\"\nb: 'it''s'\nc: \"1\"\nd: 'yes'\n", `{"a":"x\ty","b":"it's","c":"1","d":"yes"}`},
		{"numbers", "a: 1\nb: -2.50\nc: 0\nd: 9007199254740991\n", `{"a":1,"b":-2.50,"c":0,"d":9007199254740991}`},
		{"booleans and null", "a: true\nb: False\nc: null\nd: ~\ne:\n", `{"a":true,"b":false,"c":null,"d":null,"e":null}`},
		{"dates are texts", "a: 2026-07-28\n", `{"a":"2026-07-28"}`},
		{"versions are texts", "a: 1.2.3\n", `{"a":"1.2.3"}`},
		{"nested", "metadata:\n  author: me\n  tags: [x, 'y']\nlist:\n  - a: b\n    c: d\n  - 7\n", `{"metadata":{"author":"me","tags":["x","y"]},"list":[{"a":"b","c":"d"},7]}`},
		{"folded and literal", "a: >-\n  one\n  two\nb: |\n  one\n  two\n", `{"a":"one two","b":"one\ntwo\n"}`},
		{"plain text over lines", "a: one\n  two\n", `{"a":"one two"}`},
		{"comments", "# top\na: x # end\n", `{"a":"x"}`},
		{"flow mapping", "a: {b: c, d: []}\ne: {}\n", `{"a":{"b":"c","d":[]},"e":{}}`},
		{"other letters", "a: Grüße 👋\n", `{"a":"Grüße 👋"}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := FrontMatter([]byte("---\n" + test.yaml + "---\nbody"))
			require.NoError(t, err)
			require.Equal(t, test.want, string(got))
			windows, err := FrontMatter([]byte("\ufeff---\r\n" + strings.ReplaceAll(test.yaml, "\n", "\r\n") + "--- \r\n"))
			require.NoError(t, err)
			require.Equal(t, test.want, string(windows), "with the line ends of Windows")
		})
	}
}

func TestFrontMatterThatParsersReadDifferentlyIsRefused(t *testing.T) {
	for _, test := range []struct{ name, text, err string }{
		{"none", "# Title\n", `it does not begin with front matter: a line "---", the fields name and description, and a line "---"`},
		{"no end", "---\nname: x\n", `its front matter does not end with a line "---"`},
		{"empty", "---\n---\n", "the front matter is not valid YAML: "},
		{"not a mapping", "---\n- a\n---\n", "the front matter is not a mapping of names to values"},
		{"twice", "---\na: x\na: y\n---\n", `line 3: the field "a" is there twice`},
		{"octal", "---\na: 010\n---\n", `the front matter: line 2: "010" means different things in YAML 1.1, YAML 1.2 and JSON; put it in quotes, or write a number as in JSON, without an exponent`},
		{"exponent", "---\nb: x\na: 1e3\n---\n", `the front matter: line 3: "1e3" means`},
		{"underscore", "---\na: 1_000\n---\n", `"1_000" means`},
		{"hexadecimal", "---\na: 0x1F\n---\n", `"0x1F" means`},
		{"no integer part", "---\na: .5\n---\n", `".5" means`},
		{"plus", "---\na: +5\n---\n", `"+5" means`},
		{"base 60", "---\na: 12:30\n---\n", `"12:30" means`},
		{"yes", "---\na: yes\n---\n", `"yes" means`},
		{"off", "---\na: Off\n---\n", `"Off" means`},
		{"infinity", "---\na: .inf\n---\n", "\".inf\" means"},
		{"anchor", "---\na: &x 1\nb: *x\n---\n", "cannot be written as JSON"},
		{"tag", "---\na: !!str 1\n---\n", "cannot be written as JSON"},
		{"name not a text", "---\n1: x\n---\n", "the name of a field is not a text"},
		{"deep", "---\na: " + strings.Repeat("[", 40) + strings.Repeat("]", 40) + "\n---\n", "values nest deeper than 32 levels"},
		{"large", "---\na: " + strings.Repeat("x\n  ", 40_000) + "\n---\n", "the front matter is larger than 16384 bytes"},
		{"tab as indent", "---\na:\n\tb: c\n---\n", "the front matter is not valid YAML: "},
		{"merge key", "---\na: {b: c}\n<<: {d: e}\n---\n", "the name of a field is not a text"},
		{"long number", "---\na: 12345678901234567890\n---\n", `"12345678901234567890" means`},
		{"minus zero", "---\na: -0\n---\n", `"-0" means`},
		{"many brackets", "---\na: " + strings.Repeat("[", 600) + strings.Repeat("{", 600) + "\n---\n", "the front matter has more than 1000 opening brackets"},
		{"not YAML", "---\na: [\n---\n", "the front matter is not valid YAML: "},
	} {
		_, err := FrontMatter([]byte(test.text))
		require.ErrorContains(t, err, test.err, test.name)
	}
}

func FuzzFrontMatterIsAnObjectOrAnError(f *testing.F) {
	f.Add([]byte("---\nname: x\nmetadata: {a: [1, 'b']}\n---\n"))
	f.Add([]byte("---\na: |\n  x\n---\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		object, err := FrontMatter(text)
		if err == nil {
			require.True(t, json.Valid(object), "%q", object)
		}
	})
}

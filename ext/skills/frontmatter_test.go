package skills_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/ext/skills/internal/skillmd"
)

func TestFrontMatterBecomesJSON(t *testing.T) {
	const text = "---\nname: pdf\ndescription: >-\n  Fill forms,\n  and more\nmetadata:\n  version: \"1.10\"\n  tags: [x, 'y']\n---\nbody"
	const want = `{"name":"pdf","description":"Fill forms, and more","metadata":{"version":"1.10","tags":["x","y"]}}`
	m, err := skillmd.Parse([]byte(text))
	require.NoError(t, err)
	require.Equal(t, "pdf", m.Name)
	require.Equal(t, "Fill forms, and more", m.Description)
	require.JSONEq(t, want, string(m.JSON))
	m, err = skillmd.Parse([]byte("\ufeff" + strings.ReplaceAll(text, "\n", "\r\n")))
	require.NoError(t, err)
	require.JSONEq(t, want, string(m.JSON), "with the line ends of Windows")
}

func TestFrontMatterThatIsNotValidIsRefused(t *testing.T) {
	bomb := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := range 9 {
		digit := string(rune('0' + i))
		next := string(rune('1' + i))
		bomb += "a" + next + ": &a" + next + " [" + strings.TrimSuffix(strings.Repeat("*a"+digit+", ", 10), ", ") + "]\n"
	}
	for _, test := range []struct{ name, text, err string }{
		{"none", "# Title\n", `it does not begin with front matter: a line "---", the fields name and description, and a line "---"`},
		{"no end", "---\nname: x\n", `its front matter does not end with a line "---"`},
		{"empty", "---\n---\n", "the front matter is not valid YAML: "},
		{"not a mapping", "---\n- a\n---\n", "the front matter is not valid YAML: "},
		{"not YAML", "---\na: [\n---\n", "the front matter is not valid YAML: "},
		{"twice", "---\na: x\na: y\n---\n", `line 3: mapping key "a" already defined at line 2`},
		{"infinity", "---\na: .inf\n---\n", "the front matter cannot be written as JSON: "},
		{"large", "---\na: " + strings.Repeat("x\n  ", 40_000) + "\n---\n", "the front matter is larger than 16384 bytes"},
		{"not text", "---\nname: \xff\n---\n", "it is not UTF-8 text"},
		{"aliases of aliases", "---\n" + bomb + "---\n", "the front matter is not valid YAML: "},
		{"many brackets", "---\na: " + strings.Repeat("[", 16_000) + "\n---\n", "the front matter is not valid YAML: "},
		{"no description", "---\nname: a\n---\n", "the front matter needs a name and a description, both texts"},
		{"empty description", "---\nname: a\ndescription: ' '\n---\n", "the description has 1 characters; it needs 1 to 1024"},
		{"capital letters", "---\nname: A_\ndescription: x\n---\n", `the name "A_" is not valid; a name has 1 to 64 characters a-z, 0-9 and single hyphens between them`},
		{"two hyphens", "---\nname: a--b\ndescription: x\n---\n", `the name "a--b" is not valid`},
	} {
		_, err := skillmd.Parse([]byte(test.text))
		require.ErrorContains(t, err, test.err, test.name)
	}
}

func FuzzFrontMatterIsAnObjectOrAnError(f *testing.F) {
	f.Add([]byte("---\nname: x\ndescription: x\nmetadata: {a: [1, 'b']}\n---\n"))
	f.Add([]byte("---\na: |\n  x\n---\n"))
	f.Add([]byte("---\na: &x 1\n<<: {b: *x, 2: !!binary aGk=}\n---\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if m, err := skillmd.Parse(text); err == nil {
			require.True(t, json.Valid(m.JSON), "%q", m.JSON)
		}
	})
}

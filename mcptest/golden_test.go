package mcptest_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/mcptest"
	"github.com/mcpkit/mcpkit-go/oauth"
)

// docs:begin update

var _ = flag.Bool("update", false, "write golden files and transcripts")

// docs:end update

// update sets -update for the time of f.
func update(t *testing.T, f func()) {
	t.Helper()
	before := flag.Lookup("update").Value.String()
	require.NoError(t, flag.Set("update", "true"))
	defer func() { require.NoError(t, flag.Set("update", before)) }()
	f()
}

// docs:begin golden

func TestTheSurfaceIsTheOneThatWasReleased(t *testing.T) {
	mcptest.Golden(t, mcptest.New(t, &Desk{}), "testdata/desk.json")
}

// docs:end golden

// Vault has a tool that requires a scope.
type Vault struct {
	_ mcpkit.Info `name:"vault" version:"1.0.0"`
	_ struct {
		Open mcpkit.Tool `scopes:"vault:open"`
	}
}

// Look is for everybody.
func (Vault) Look() string { return "gold" }

// Open requires a scope.
func (Vault) Open() string { return "open" }

// docs:begin scopes

func TestWhatEachGroupSees(t *testing.T) {
	s := mcptest.New(t, &Vault{}, mcpkit.Authenticated())
	mcptest.Golden(t, s.As(&oauth.Principal{Subject: "ann"}), "testdata/vault-guest.json")
	mcptest.Golden(t, s.As(&oauth.Principal{Subject: "bob", Scopes: []string{"vault:open"}}), "testdata/vault-opener.json")
}

// docs:end scopes

func TestGoldenWritesWhatItThenAccepts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "surface.json")
	update(t, func() { mcptest.Golden(t, mcptest.New(t, &Desk{}), file) })
	require.NoError(t, flag.Set("update", "false"))
	mcptest.Golden(t, mcptest.New(t, &Desk{}), file)

	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, name := range []string{`"tools": {`, `"add": {`, `"prompts": {`, `"greet": {`, `"resources": {`, `"desk://rules": {`, `"resourceTemplates": {`, `"note://{id}": {`} {
		require.Contains(t, string(raw), name)
	}

	fresh := filepath.Join(t.TempDir(), "testdata", "surfaces", "desk.json")
	update(t, func() { mcptest.Golden(t, mcptest.New(t, &Desk{}), fresh) })
	mcptest.Golden(t, mcptest.New(t, &Desk{}), fresh)

	said := failures(t, func(tb testing.TB) {
		update(t, func() { mcptest.Golden(tb, mcptest.New(tb, &Desk{}), filepath.Join(file, "not a folder")) })
	})
	require.Len(t, said, 1)
	require.Contains(t, said[0], "mcptest: mkdir ")
}

func TestGoldenSaysWhatBreaks(t *testing.T) {
	empty := `"inputSchema":{"type":"object","properties":{},"additionalProperties":false}`
	for _, test := range []struct {
		name, golden string
		want         []string
	}{
		{"tools", `{"tools": {
  "add": {"name":"add","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object","properties":{"a":{"type":"integer"},"c":{"type":"integer"}},"required":["c"]}},
  "gone": {"name":"gone",` + empty + `}
}}`, []string{
			`breaking: tool "gone" removed`, `breaking: tool "add": argument "c" removed`, `breaking: tool "add": argument "a" is required now`,
			`breaking: tool "add": argument "b" added, and required`, `additive: tool "add": output schema added`, `additive: tool "add": title changed`,
			"breaking?: tool \"add\": annotations changed\n  was: {\"readOnlyHint\":true}\n  is:  (none)", `additive: tool "pair" added`,
		}},
		{"prompts", `{"prompts": {
  "greet": {"name":"greet","title":"Greet","arguments":[{"name":"name"},{"name":"tone","required":true}]},
  "gone": {"name":"gone"}
}}`, []string{
			`breaking: prompt "gone" removed`, `breaking: prompt "greet": argument "tone" removed`, `breaking: prompt "greet": argument "name" is required now`,
		}},
		{"resources", `{"resources": {
  "desk://rules": {"uri":"desk://rules","name":"laws","mimeType":"text/html","size":3},
  "desk://gone": {"uri":"desk://gone","name":"gone"}
}, "resourceTemplates": {"note://{id}": {"uriTemplate":"note://{id}","name":"note","title":"A note","description":"One.","mimeType":"text/plain"}}}`, []string{
			`breaking: resource "desk://gone" removed`, "breaking: resource \"desk://rules\": mimeType changed\n  was: \"text/html\"\n  is:  ",
			"breaking?: resource \"desk://rules\": size changed\n  was: 3\n  is:  (none)",
			`additive: resource template "note://{id}": description changed`, `additive: resource template "note://{id}": title changed`,
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "surface.json")
			require.NoError(t, os.WriteFile(file, []byte(test.golden), 0o600))
			said := failures(t, func(t testing.TB) { mcptest.Golden(t, mcptest.New(t, &Desk{}), file) })
			require.Len(t, said, 1)
			require.True(t, strings.HasPrefix(said[0], "mcptest: the server differs from "+file+"; -update writes it\n"), said[0])
			for _, line := range test.want {
				require.Contains(t, said[0]+"\n", "\n"+line)
			}
		})
	}
}

// Shelf1 and Shelf2 are a tool before and after.
type Shelf1 struct {
	_ mcpkit.Info `name:"shelf" version:"1.0.0"`
}

// In1 is the input before.
type In1 struct {
	Sort   string   `json:"sort" validate:"oneof=a b"`
	Limit  int      `json:"limit" validate:"min=1,max=50"`
	Name   string   `json:"name" validate:"min=2"`
	Tags   []string `json:"tags" validate:"max=3"`
	Nested struct {
		Deep int `json:"deep"`
	} `json:"nested"`
	Kind int `json:"kind"`
}

// Out1 is the output before.
type Out1 struct {
	Level string `json:"level" jsonschema:"enum=low,enum=high"`
	Old   int    `json:"old"`
}

func (Shelf1) Find(In1) Out1 { return Out1{} }

type Shelf2 struct {
	_ mcpkit.Info `name:"shelf" version:"1.0.0"`
}

// In2 is the input after.
type In2 struct {
	Sort   string   `json:"sort" validate:"oneof=b c"`
	Limit  int      `json:"limit" validate:"min=1,max=20"`
	Name   string   `json:"name" validate:"min=1"`
	Tags   []string `json:"tags"`
	Nested struct {
		Deep string `json:"deep"`
	} `json:"nested"`
	Kind float64 `json:"kind"`
}

// Out2 is the output after.
type Out2 struct {
	Level string `json:"level" jsonschema:"enum=low,enum=high,enum=top"`
	New   int    `json:"new"`
}

func (Shelf2) Find(In2) Out2 { return Out2{} }

func TestGoldenKnowsWhatNarrowsAndWhatWidens(t *testing.T) {
	file := filepath.Join(t.TempDir(), "surface.json")
	update(t, func() { mcptest.Golden(t, mcptest.New(t, &Shelf1{}), file) })
	said := failures(t, func(t testing.TB) { mcptest.Golden(t, mcptest.New(t, &Shelf2{}), file) })
	require.Len(t, said, 1)
	for _, line := range []string{
		`breaking: tool "find": argument "sort": the value "a" removed`,
		`additive: tool "find": argument "sort": the value "c" added`,
		"breaking: tool \"find\": argument \"limit\": maximum changed\n  was: 50\n  is:  20",
		"additive: tool \"find\": argument \"name\": minLength changed\n  was: 2\n  is:  1",
		"additive: tool \"find\": argument \"tags\": maxItems changed\n  was: 3\n  is:  (none)",
		`breaking: tool "find": argument "nested": field "deep" is string, was integer`,
		`additive: tool "find": argument "kind" is number, was integer`,
		`breaking: tool "find": output: field "level": the value "top" added`,
		`breaking: tool "find": output: field "old" removed`,
		`additive: tool "find": output: field "new" added`,
	} {
		require.Contains(t, said[0]+"\n", "\n"+line+"\n")
	}
}

func TestGoldenWantsAFile(t *testing.T) {
	said := failures(t, func(t testing.TB) { mcptest.Golden(t, mcptest.New(t, &Desk{}), "testdata/none.json") })
	require.Equal(t, []string{"mcptest: open testdata/none.json: no such file or directory; -update writes it"}, said)
}

package reflectx_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/reflectx"
)

var updateSchemaReference = flag.Bool("update-reference", false, "write docs/reference/schemas.md anew")

// everywhere are the differences that no single rule or type makes. The arguments of each are accepted by the schema and
// refused by the server.
var everywhere = []struct {
	what, why string
	typ       reflect.Type
	args      string
}{
	{"An integer that `int`, `int64`, `uint` or `uint64` cannot hold", "The limits of 64 bits would stand in the schema of every integer, and clients that keep numbers as floats could not read them. Smaller types have theirs in the schema. The refusal says the limits.",
		fieldOf(reflect.TypeFor[uint64](), ""), `{"a":18446744073709551616}`},
	{"A number that no `float64` comes near, such as `1e400`", "The same.", fieldOf(reflect.TypeFor[float64](), ""), `{"a":1e400}`},
	{"A member name that stands twice in an object", "JSON Schema describes values after they were read, when one of the two is gone. Two readers could each keep another one, so none is taken.",
		fieldOf(reflect.TypeFor[int](), ""), `{"a":1,"a":1}`},
	{"Rules that compare fields (`eqfield`, `gtfield` and the like)", "There is no keyword for them. They are told in the description.",
		reflect.TypeFor[struct {
			A int `json:"a"`
			B int `json:"b" validate:"gtefield=A"`
		}](), `{"a":2,"b":1}`},
	{"Rules of your own, and those about whole structs, registered on the validator that `mcpkit.Validator` gives", "What they ask is code. The description names them.", nil, ""},
	{"`unique=Field`", "No keyword compares parts of elements. The description says it.",
		reflect.TypeFor[struct {
			A []pair `json:"a" validate:"unique=A"`
		}](), `{"a":[{"a":1},{"a":1,"b":"x"}]}`},
}

// TestSchemaReference holds docs/reference/schemas.md to the tables of the tests that prove it; -update-reference writes it
// anew.
func TestSchemaReference(t *testing.T) {
	page := filepath.Join("..", "docs", "reference", "schemas.md")
	want := schemaReference()
	if *updateSchemaReference {
		require.NoError(t, os.WriteFile(page, []byte(want), 0o644))
		return
	}
	got, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Equal(t, want, string(got), "%s is stale; run go test ./reflectx -run SchemaReference -update-reference", page)
}

func TestDifferencesEverywhere(t *testing.T) {
	for _, e := range everywhere {
		if e.typ == nil {
			continue // needs a validator of its own: TestRulesThatTheValidatorKnowsReachIntoUnions has one
		}
		t.Run(e.what, func(t *testing.T) {
			in, err := reflectx.NewInput("T", e.typ, reflectx.InputOptions{})
			require.NoError(t, err)
			var last map[string]any
			if json.Unmarshal([]byte(e.args), &last) == nil { // as a client's validator sees it
				read, err := json.Marshal(last)
				require.NoError(t, err)
				require.True(t, schemaTakes(t, compileSchema(t, in.Schema()), string(read)), "%s", in.Schema())
			} else {
				require.True(t, schemaTakes(t, compileSchema(t, in.Schema()), e.args), "%s", in.Schema())
			}
			require.Error(t, in.Decode(context.Background(), json.RawMessage(e.args), reflect.New(in.Type()).Elem()))
		})
	}
}

// reasons are what the tables mean by coarse, in the order of the page.
var reasons = []struct{ coarse, title, text string }{
	{coarseFormat, "The format accepts more than the rule",
		"JSON Schema has a word for the format, and it is in the schema. The rule of the validator, or Go's own parser, draws the line a little closer, and no finer word exists."},
	{onlyInWords, "The rule stands in the description alone", "No keyword says it. The description does, and so does the refusal."},
	{ownText, "The type reads its text itself", "What `UnmarshalText` accepts is known to it alone. The schema says that it is a string."},
	{trailingBits, "Unused bits of base64", "The pattern cannot see that the last character has bits behind the last byte that are not zero, which `encoding/base64` refuses."},
}

func schemaReference() string {
	var b strings.Builder
	b.WriteString(`# Where do schemas and the server differ?

<!-- Written by TestSchemaReference of package reflectx: go test ./reflectx -run SchemaReference -update-reference -->

The schema of a tool's arguments and the checks of the server come from the same tags, and a property test holds them to
each other: for each type and rule below and ` + fmt.Sprint(exactAgreements()) + ` others it draws arguments, asks the published schema by an independent
JSON Schema validator, and asks the server. They agree except for what this page lists. With ` + "`mcpkit.Repair()`" + ` the server accepts more: ` + "`\"5\"` for `5`" + `, and JSON in a string.

Schemas of results are not enforced and say less: types, formats of types, and which members there always are.

## What the server accepts and the schema refuses

Null for a field that is not required. Models send it for what they leave out, so it counts as absent: the default stands in for
it, and rules about which members are there see none. A schema that allowed it would need two types in one place, which many
clients do not read. Where the type takes null itself (` + "`any`, `json.RawMessage`" + ` or an ` + "`UnmarshalJSON`" + ` of your own), null is a value as any other.

## Everywhere

| the schema accepts, the server refuses | why |
|---|---|
`)
	for _, e := range everywhere {
		fmt.Fprintf(&b, "| %s | %s |\n", e.what, e.why)
	}
	for _, reason := range reasons {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| type | `validate` |\n|---|---|\n", reason.title, reason.text)
		byType := map[string][]string{}
		var types []string
		for _, a := range agreements() {
			if a.coarse != reason.coarse {
				continue
			}
			name := a.typ.String()
			if byType[name] == nil {
				types = append(types, name)
			}
			tag := "no rule"
			if a.tag != "" {
				tag = "`" + strings.ReplaceAll(a.tag, "|", "\\|") + "`"
			}
			byType[name] = append(byType[name], tag)
		}
		for _, name := range types {
			fmt.Fprintf(&b, "| `%s` | %s |\n", name, strings.Join(byType[name], ", "))
		}
	}
	b.WriteString("\n## Where the server is stricter than the validator\n\nSchema and server agree here; `validator/v10` alone would accept more.\n\n| type and rule | why |\n|---|---|\n")
	for _, rule := range slices.Sorted(maps.Keys(stricterThanOracle)) {
		fmt.Fprintf(&b, "| `%s` | %s |\n", rule, stricterThanOracle[rule])
	}
	b.WriteString(`
Two more things are read differently than the validator alone would: ` + "`required`" + ` asks whether a member is there, so a
present ` + "`0`, `false` or `\"\"`" + ` satisfies it, and ` + "`omitempty`" + ` says that a member need not be there; rules hold for each
value that is.

With a validator of the program's own (` + "`mcpkit.Validator`" + `) that validator asks every rule, and alone: what it means by a word holds,
while the schema says what the word usually means. It skips the rules behind ` + "`omitempty`" + ` for a zero value, and it comes to the
elements of slices and maps where the tag says ` + "`dive`" + `. What is required is still found in the JSON.

## Interfaces

A field, element or parameter of an interface type is published as an object with the discriminator and an ` + "`anyOf`" + ` of the
cases that ` + "`mcpkit.Union`" + ` registered; the property test covers them without an exception. See ` + "`go doc ./mcpkit Union`" + `.

## Rules that contradict

Rules that no value satisfies together (` + "`min=10,max=5`, `len=3,min=5`, `oneof=a b,len=3`" + `) are an error when the service is
registered, as are unknown rules, rules that do not fit the type, and parameters that do not.
`)
	return b.String()
}

// exactAgreements counts the types and rules for which schema and server agree on everything.
func exactAgreements() int {
	n := 0
	for _, a := range agreements() {
		if a.coarse == exact {
			n++
		}
	}
	return n
}

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

// everywhere are the differences that apply to all rules and types. The schema accepts the
// arguments of each, and the server refuses them.
var everywhere = []struct {
	what, why string
	typ       reflect.Type
	args      string
}{
	{"An integer that `int`, `int64`, `uint` or `uint64` cannot hold", "The 64-bit limits would be in the schema of every integer, and clients that store numbers as floats could not read them. The limits of smaller types are in the schema. The error states the limits.",
		fieldOf(reflect.TypeFor[uint64](), ""), `{"a":18446744073709551616}`},
	{"A number outside the range of `float64`, such as `1e400`", "The same reason.", fieldOf(reflect.TypeFor[float64](), ""), `{"a":1e400}`},
	{"A member name that occurs twice in an object", "JSON Schema describes parsed values, in which one of the two is lost. Two parsers could keep different ones, so the server accepts neither.",
		fieldOf(reflect.TypeFor[int](), ""), `{"a":1,"a":1}`},
	{"Rules that compare fields (`eqfield`, `gtfield` and the like)", "JSON Schema has no keyword for them. The description states them.",
		reflect.TypeFor[struct {
			A int `json:"a"`
			B int `json:"b" validate:"gtefield=A"`
		}](), `{"a":2,"b":1}`},
	{"Custom rules and struct rules, registered on the validator passed to `mcpkit.Validator`", "They are code. The description names them.", nil, ""},
	{"`unique=Field`", "No keyword compares parts of elements. The description states the rule.",
		reflect.TypeFor[struct {
			A []pair `json:"a" validate:"unique=A"`
		}](), `{"a":[{"a":1},{"a":1,"b":"x"}]}`},
}

// TestSchemaReference checks that docs/reference/schemas.md has the tables of the tests.
// -update-reference writes the page.
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
			continue // needs a validator of its own: TestValidatorRulesApplyInsideUnions has one
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

// reasons are the explanations of coarse, in the order of the page.
var reasons = []struct{ coarse, title, text string }{
	{coarseFormat, "The format accepts more than the rule",
		"The schema has a `format`. The validator's rule, or Go's parser, is slightly stricter than that format, and JSON Schema has no stricter one."},
	{onlyInDescription, "The rule is only in the description", "No keyword expresses the rule. The description and the error state it."},
	{ownText, "The type parses its own text", "Only `UnmarshalText` knows what it accepts. The schema has the type string."},
	{trailingBits, "Unused bits of base64", "The last character may contain bits beyond the last byte. If they are not zero, `encoding/base64` refuses the text; a pattern cannot express this."},
}

func schemaReference() string {
	var b strings.Builder
	b.WriteString(`# Where do schemas and the server differ?

<!-- Written by TestSchemaReference of package reflectx: go test ./reflectx -run SchemaReference -update-reference -->

The schema of a tool's arguments and the server's checks come from the same tags, and a property
test compares them. For each type and rule below, and for ` + fmt.Sprint(exactAgreements()) + ` others, the test generates
arguments, validates them against the published schema with an independent JSON Schema validator,
and sends them to the server. Schema and server agree, except for the differences on this page. With
` + "`mcpkit.Repair()`" + ` the server accepts more: ` + "`\"5\"` for `5`" + `, and JSON in a string.

Schemas of results are not enforced and contain less: types, formats of types, and the members that
are always present.

## What the server accepts and the schema refuses

Null for a field that is not required. Models send null for arguments that they leave out, so the
server treats it as absent: it uses the default, and rules about present members do not count it. A
schema that allows null needs two types in one place, which many clients cannot read. If the type
itself accepts null (` + "`any`, `json.RawMessage`" + ` or your own ` + "`UnmarshalJSON`" + `), null is a value like
any other.

Rules that compare two fields, such as ` + "`gtefield`" + `, do not look whether the other field is present, as
in validator/v10: an absent number is 0, and a field beside an absent pointer is refused. Compare
optional fields in the method.

## Constants

` + "`validate:\"enum\"`" + ` restricts a field of a named type to the constants of the type: the exported ones, or
all of them if none is exported. The schema lists them, the check accepts nothing else, and completion
and forms offer them. The server finds constants where it finds doc comments: in a generated file, in
embedded source or in source on disk. If it finds none, ` + "`New`" + ` returns an error. Without the rule,
constants are listed in the description and restrict nothing. ` + "`mcpkit vet`" + ` reports a ` + "`oneof`" + ` that lists
other values than the constants.

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
Two rules differ from the validator's own reading. ` + "`required`" + ` tests whether a member is present,
so ` + "`0`, `false` or `\"\"`" + ` satisfies it. ` + "`omitempty`" + ` makes a member optional; the rules apply to every
value that is present.

A validator of your own (` + "`mcpkit.Validator`" + `) checks all rules by itself. Its meaning of a rule
applies, while the schema contains the usual meaning. It skips the rules after ` + "`omitempty`" + ` for a
zero value, and checks the elements of slices and maps only after ` + "`dive`" + `. The server still checks in
the JSON which members are present.

## Interfaces

The schema of an interface type is an object with the discriminator and an ` + "`anyOf`" + ` of the cases that
` + "`mcpkit.Union`" + ` registered. The property test covers them without an exception. See
` + "`go doc ./mcpkit Union`" + `.

## Rules that contradict each other

Rules that no value satisfies together (` + "`min=10,max=5`, `len=3,min=5`, `oneof=a b,len=3`" + `) are an
error at registration. So are unknown rules, rules that do not fit the type, and invalid parameters
of rules.
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

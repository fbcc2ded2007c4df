package mcpkit

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var updateTagReference = flag.Bool("update-tags", false, "write docs/reference/tags.md anew")

// fieldTags are the tags of fields of input structs. That they are all of them, TestTagReference checks.
var fieldTags = []struct{ key, form, doc string }{
	{"json", `json:"query"`, "The name in JSON, as for encoding/json; `-` leaves the field out. `omitempty` and `omitzero` are taken, and matter for outputs only."},
	{"validate", `validate:"required,min=2"`, "Rules of [validator/v10](https://pkg.go.dev/github.com/go-playground/validator/v10). They are enforced, and become keywords of the JSON Schema where it has one; the others are said in the description. Only a field with `required` has to be there."},
	{"default", `default:"10"`, "The value of a field that is not there: text as it is, everything else as JSON. It has to satisfy the rules."},
	{"desc", `desc:"Words to look for."`, "The description, instead of the field's doc comment."},
	{"title", `title:"Query"`, "The name shown to people."},
	{"example", `example:"green tea"`, "An example for the schema, and for what a model is told when its arguments do not fit. It has to satisfy the rules."},
	{"jsonschema", `jsonschema:"readOnly=true"`, "Further keywords, in the words of [invopop/jsonschema](https://pkg.go.dev/github.com/invopop/jsonschema)."},
	{"header", `header:"Region"`, "Mirrors the argument into the HTTP header `Mcp-Param-Region` (2026-07-28). Strings, integers and bools only."},
	{"complete", `complete:"Regions"`, "Which method completes the argument of a prompt or a resource template."},
	{"secret", `secret:"true"`, "What comes in is not repeated in messages about arguments that do not fit."},
}

// docs/reference/tags.md says what the tables say; -update-tags writes it anew.
func TestTagReference(t *testing.T) {
	keys := make([]string, len(fieldTags))
	for i, f := range fieldTags {
		keys[i] = f.key
	}
	require.ElementsMatch(t, knownFieldTags(t), keys, "fieldTags in this file and tagWords in reflectx/input_tags.go differ")

	page := filepath.Join("..", "docs", "reference", "tags.md")
	want := tagReference()
	if *updateTagReference {
		require.NoError(t, os.MkdirAll(filepath.Dir(page), 0o755))
		require.NoError(t, os.WriteFile(page, []byte(want), 0o644))
		return
	}
	got, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Equal(t, want, string(got), "%s is stale; run go test ./mcpkit -run TagReference -update-tags", page)
}

// knownFieldTags reads the keys that package reflectx knows out of its source.
func knownFieldTags(t *testing.T) []string {
	tree, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "reflectx", "input_tags.go"), nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	var keys []string
	ast.Inspect(tree, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || spec.Names[0].Name != "tagWords" {
			return true
		}
		for _, e := range spec.Values[0].(*ast.CompositeLit).Elts {
			key, err := strconv.Unquote(e.(*ast.BasicLit).Value)
			require.NoError(t, err)
			keys = append(keys, key)
		}
		return false
	})
	return keys
}

func tagReference() string {
	var b strings.Builder
	b.WriteString("# Which tags are there?\n\n" +
		"<!-- Written by TestTagReference of package mcpkit: go test ./mcpkit -run TagReference -update-tags -->\n\n" +
		"Tags decide what a method is; doc comments say what it is for. The vocabulary is closed: a key that is not on\n" +
		"this page is an error when the service is registered, with the nearest known one.\n")

	kinds := []kind{kindTool, kindResource, kindPrompt, kindInfo}
	for _, k := range kinds {
		fmt.Fprintf(&b, "\n## `mcpkit.%s`\n\n", k)
		if k == kindInfo {
			b.WriteString("A blank field of the service: `_ mcpkit.Info` with tags.\n\n")
		} else {
			b.WriteString("A field of the annotation block, named like the method.\n\n")
		}
		b.WriteString("| tag | write | means |\n|---|---|---|\n")
		for _, tag := range tagKeys {
			if tag.kinds&k != 0 {
				row(&b, tag.key, tag.form, tag.doc)
			}
		}
	}
	b.WriteString("\n## `mcpkit.Skip`\n\nAn exported method that is not for clients. It takes no tags.\n")
	b.WriteString("\n## Fields of input structs\n\nKeys of other libraries (`db`, `yaml` and so on) are left alone.\n\n| tag | write | means |\n|---|---|---|\n")
	for _, f := range fieldTags {
		row(&b, f.key, f.form, f.doc)
	}
	b.WriteString("\n## Embedded fields of services\n\n| tag | write | means |\n|---|---|---|\n")
	row(&b, "mcpkit", `mcpkit:"include"`, "The methods that the embedded field promotes are registered as well. Without it they are not.")

	b.WriteString("\n## All keys\n\n")
	var all []string
	for _, tag := range tagKeys {
		all = append(all, "`"+tag.key+"`")
	}
	slices.Sort(all)
	b.WriteString(strings.Join(all, ", ") + "\n")
	return b.String()
}

func row(b *strings.Builder, key, form, doc string) {
	fmt.Fprintf(b, "| `%s` | `%s` | %s |\n", key, form, strings.ReplaceAll(doc, "|", `\|`))
}

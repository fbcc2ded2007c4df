package mcpkit

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/reflectx"
)

var updateTagReference = flag.Bool("update-tags", false, "write docs/reference/tags.md anew")

// docs/reference/tags.md is generated from the tables; -update-tags writes it.
func TestTagReference(t *testing.T) {
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

func tagReference() string {
	var b strings.Builder
	b.WriteString("# Which tags are there?\n\n" +
		"<!-- Written by TestTagReference of package mcpkit: go test ./mcpkit -run TagReference -update-tags -->\n\n" +
		"Tags set what a method becomes, and doc comments describe it. If a tag has a key that is not on\n" +
		"this page, registration returns an error that names the nearest known key.\n")

	kinds := []kind{kindTool, kindResource, kindPrompt, kindInfo}
	for _, k := range kinds {
		fmt.Fprintf(&b, "\n## `mcpkit.%s`\n\n", k)
		if k == kindInfo {
			b.WriteString("A blank field of the service: `_ mcpkit.Info` with tags.\n\n")
		} else {
			b.WriteString("A field of the annotation block, with the name of the method.\n\n")
		}
		b.WriteString("| tag | write | means |\n|---|---|---|\n")
		for _, tag := range tagKeys {
			if tag.kinds&k != 0 {
				row(&b, tag.key, tag.form, tag.doc)
			}
		}
	}
	b.WriteString("\n## Tools, with extensions\n\n" +
		"A tag of an extension that the server does not have is a startup fault. [Extensions of other\n" +
		"parties](../howto/write-an-extension.md#tag-tools) may have more.\n\n" +
		"| tag | write | means | extension |\n|---|---|---|---|\n")
	for _, tag := range ownTags {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | `%s` |\n", tag.key, tag.form, tag.doc, tag.option)
	}
	b.WriteString("\n## `mcpkit.Skip`\n\nHides an exported method from clients. It takes no tags.\n")
	b.WriteString("\n## Fields of input structs\n\nKeys of other libraries (`db`, `yaml` and so on) are ignored.\n\n| tag | write | means |\n|---|---|---|\n")
	for _, f := range reflectx.FieldTags() {
		row(&b, f.Key, f.Form, f.Doc)
	}
	b.WriteString("\n## Embedded fields of services\n\n| tag | write | means |\n|---|---|---|\n")
	row(&b, "mcpkit", `mcpkit:"include"`, "Also registers the methods that the embedded field promotes, as the annotation block of its struct says unless the service's own block names them. By default they are not registered.")

	b.WriteString("\n## All keys\n\n")
	var all []string
	for _, tag := range tagKeys {
		all = append(all, "`"+tag.key+"`")
	}
	for _, tag := range ownTags {
		all = append(all, "`"+tag.key+"`")
	}
	slices.Sort(all)
	b.WriteString(strings.Join(all, ", ") + "\n")
	return b.String()
}

func row(b *strings.Builder, key, form, doc string) {
	fmt.Fprintf(b, "| `%s` | `%s` | %s |\n", key, form, strings.ReplaceAll(doc, "|", `\|`))
}

package mcpkit

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
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
		"Tags set what a method becomes, and doc comments describe it. A key that is not on this page is an\n" +
		"error at registration, which names the nearest known key.\n\n" +
		"## Methods, and the service\n\n" +
		"Tags of a method stand in the annotation block, on a field with the name of the method and the type\n" +
		"`mcpkit.Tool`, `mcpkit.Resource` or `mcpkit.Prompt`. `mcpkit.Skip` hides an exported method, and takes\n" +
		"no tags. Those of the service stand on a blank field: `_ mcpkit.Info`.\n\n" +
		"| write | on | means |\n|---|---|---|\n")
	for _, tag := range tagKeys {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", tag.form, kindNames(tag.kinds), tag.doc)
	}
	b.WriteString("\nThese two are for tools of servers with an extension, and errors without it. [Other\n" +
		"extensions](../howto/extend.md#tag-tools) may have more.\n\n" +
		"| write | extension | means |\n|---|---|---|\n")
	for _, tag := range ownTags {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", tag.form, tag.option, tag.doc)
	}
	b.WriteString("\n## Fields of inputs and results\n\nKeys of other libraries (`db`, `yaml` and so on) are ignored.\n\n| write | means |\n|---|---|\n")
	for _, f := range reflectx.FieldTags() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", f.Form, f.Doc)
	}
	b.WriteString("\n## Embedded fields of services\n\n" +
		"The methods that an embedded field promotes are registered only if it has the tag\n" +
		"`mcpkit:\"include\"`: as the annotation block of its struct says, unless the service's own block names\n" +
		"them.\n")
	return b.String()
}

// kindNames says which kinds take a tag.
func kindNames(kinds kind) string {
	switch kinds {
	case anyMethod | kindInfo:
		return "all"
	case anyMethod:
		return "all but Info"
	}
	var names []string
	for _, k := range []kind{kindTool, kindResource, kindPrompt, kindInfo} {
		if kinds&k != 0 {
			names = append(names, k.String())
		}
	}
	return strings.Join(names, ", ")
}

package annotation

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/reflectx"
)

func TestTagsThatAreNotPairs(t *testing.T) {
	for _, test := range []struct{ tag, want string }{
		{`title`, `tag "title" is not made of key:"value" pairs`},
		{`title:Notes`, `tag "title:Notes" is not made of key:"value" pairs`},
		{`title:"Notes`, `the value of tag "title" has no closing quote`},
		{`title:"a" title:"b"`, `tag "title" stands twice`},
		{`title:"a", name:"b"`, `tag ", name:\"b\"" is not made of key:"value" pairs`},
	} {
		var faults []string
		for range pairs(test.tag, &faults) {
		}
		require.Equal(t, []string{test.want}, faults, test.tag)
	}
}

// docs/reference/tags.md has a row for each tag.
func TestTagReference(t *testing.T) {
	page, err := os.ReadFile("../../../docs/reference/tags.md")
	require.NoError(t, err)
	for _, tag := range tags {
		var kinds []string
		for _, k := range []Kind{Tool, Resource, Prompt, Info} {
			if tag.kinds&k != 0 {
				kinds = append(kinds, k.String())
			}
		}
		on := strings.Join(kinds, ", ")
		switch tag.kinds {
		case all:
			on = "all"
		case anyMethod:
			on = "all but Info"
		}
		require.Contains(t, string(page), fmt.Sprintf("| `%s` | %s | ", tag.form, on))
	}
	for _, tag := range ours {
		require.Contains(t, string(page), fmt.Sprintf("| `%s` | `%s` | ", tag.form, tag.option))
	}
	for _, f := range reflectx.FieldTags() {
		require.Contains(t, string(page), fmt.Sprintf("| `%s` | %s |", f.Form, f.Doc))
	}
}

package annotation

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/reflectx"
)

// FuzzAnnotation parses any tag for each marker. The parser reports faults or understands the tag,
// and parses the same tag to the same annotation again.
func FuzzAnnotation(f *testing.F) {
	for _, t := range tags {
		f.Add(t.form)
		f.Add(t.key + `:""`)
		f.Add(t.key + `:","`)
	}
	for _, seed := range []string{
		`title:"Search notes" hints:"readonly,idempotent"`, `hints:"readonly,destructive"`, `hint:"readonly"`, `timeout:"-5s"`, `timeout:"1h1h"`, `rate:"10/s"`,
		`cache:"60s,private"`, `uri:"note://{id}" mime:"text/markdown"`, `uri:"{"`, `params:"a,b?"`, `params:"a,a"`, `scopes:"a b,c"`, `priority:"2"`, `priority:"NaN"`,
		`audience:"user,assistant,dog"`, `meta:"a=b,c=d"`, `icon:"https://example.com/a.png"`, `icon:"javascript:x"`, `name:"ä"`, `name:"a" name:"b"`, `title: "x"`, `title:x`, "title:\"\x00\"",
		`hidden:"true"`, `hidden:"maybe"`, `version:"1" task:"required"`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, tag string) {
		for _, k := range []Kind{Tool, Resource, Prompt, Skip, Info} {
			var faults, same reflectx.Errors
			a := Parse(&faults, "", k, Split(&faults, "", reflect.StructTag(tag)), Extensions{})
			require.NotNil(t, a)
			again := Parse(&same, "", k, Split(&same, "", reflect.StructTag(tag)), Extensions{})
			require.Equal(t, faults, same)
			if faults == nil {
				require.Equal(t, a, again)
			}
		}
	})
}

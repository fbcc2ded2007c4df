package annotation

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/reflectx"
)

func TestTagsThatAreNotPairs(t *testing.T) {
	for _, test := range []struct{ tag, want string }{
		{`title`, `tag "title" is not made of key:"value" pairs`},
		{`title:Notes`, `tag "title:Notes" is not made of key:"value" pairs`},
		{`title:"Notes`, `tag "title:\"Notes" is not made of key:"value" pairs`},
		{`title:"a" title:"b"`, `tag "title" stands twice`},
		{`title:"a", name:"b"`, `tag ", name:\"b\"" is not made of key:"value" pairs`},
	} {
		var faults reflectx.Errors
		Split(&faults, "", reflect.StructTag(test.tag))
		require.EqualError(t, faults, test.want, test.tag)
	}
}

func TestMistakesInTags(t *testing.T) {
	const (
		toolTags = "; known are name, title, desc, icon, scopes, timeout, rate, tags, toolset, alias, variant, params, rules, hints, cache, hidden, meta"
		hints    = `; write for example hints:"readonly,idempotent"`
		rate     = ` is not a rate: a number, at least 1, for each s, m or h, and perhaps a burst of at least 1; write for example rate:"100/m burst=20"`
		uri      = `uri:"x://y" `
	)
	for _, test := range []struct {
		kind      Kind
		tag, want string
	}{
		{Tool, `readOnly:"true"`, `unknown tag "readOnly"; write hints:"readonly"` + toolTags},
		{Tool, `hint:"readonly"`, `unknown tag "hint"; did you mean "hints"?` + toolTags},
		{Tool, `uri:"x://y"`, `tag "uri" means nothing for mcpkit.Tool` + toolTags},
		{Tool, `complete:"genre=Genres"`, `tag "complete" means nothing for mcpkit.Tool` + toolTags},
		{Tool, `task:"required"`, `unknown tag "task"; if it is of an extension, such as tasks.New or apps.Pages, add that to the options of New` + toolTags},
		{Skip, `title:"Now"`, `tag "title" means nothing for mcpkit.Skip; known are none`},
		{Info, `timeout:"5s"`, `tag "timeout" means nothing for mcpkit.Info; known are name, title, desc, version, website, icon, toolset`},
		{Tool, `name:"find it"`, `tag name: name "find it" contains ' '; blanks and control characters are not allowed; write for example name:"find_notes"`},
		{Tool, `icon:"http://example.com/i.png"`, `tag icon: "http://example.com/i.png" is neither an https: nor a data: URI; write for example icon:"https://example.com/i.png"`},
		{Tool, `scopes:"a | , b"`, `tag scopes: "a|" has an empty scope; write for example scopes:"notes:read, notes:write"`},
		{Tool, `timeout:"soon"`, `tag timeout: "soon" is not a duration of 0 or more; write for example timeout:"5s"`},
		{Tool, `timeout:"-5s"`, `tag timeout: "-5s" is not a duration of 0 or more; write for example timeout:"5s"`},
		{Tool, `rate:"often"`, `tag rate: "often"` + rate},
		{Tool, `rate:"0/s"`, `tag rate: "0/s"` + rate},
		{Tool, `rate:"5/s burst=some"`, `tag rate: "5/s burst=some"` + rate},
		{Tool, `hints:"readnly"`, `tag hints: unknown hint "readnly"; did you mean "readonly"?; known are readonly, destructive, additive, idempotent, open-world, closed-world` + hints},
		{Tool, `hints:"destructive,additive"`, `tag hints: "additive" contradicts another hint` + hints},
		{Tool, `hints:"readonly,destructive"`, `tag hints: a tool cannot be both readonly and destructive` + hints},
		{Resource, uri + `cache:"forever"`, `tag cache: "forever" is neither a duration nor public or private; write for example cache:"60s,private"`},
		{Resource, uri + `audience:"users"`, `tag audience: unknown audience "users"; did you mean "user"?; known are user, assistant; write for example audience:"user,assistant"`},
		{Resource, uri + `priority:"high"`, `tag priority: "high" is not a number from 0 to 1; write for example priority:"0.8"`},
		{Tool, `hidden:"yes"`, `tag hidden: "yes" is neither true nor false; write for example hidden:"true"`},
		{Tool, `meta:"team"`, `tag meta: "team" does not say key=value; write for example meta:"example.com/team=search"`},
	} {
		var faults reflectx.Errors
		Parse(&faults, "", test.kind, Split(&faults, "", reflect.StructTag(test.tag)), Extensions{})
		require.EqualError(t, faults, test.want, test.tag)
	}
}

// docs/reference/tags.md has a row for each tag.
func TestTagReference(t *testing.T) {
	page, err := os.ReadFile("../../../docs/reference/tags.md")
	require.NoError(t, err)
	for _, tag := range tags {
		var kinds []string
		for _, k := range []Kind{Tool, Resource, Prompt, Event, Info} {
			if tag.kinds&k != 0 {
				kinds = append(kinds, k.Marker())
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
}

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

func TestLabelsMayHaveBlanks(t *testing.T) {
	for value, want := range map[string][]string{"admin beta": {"admin", "beta"}, "read only, beta": {"read only", "beta"}, "read only, ": {"read only"}} {
		var faults reflectx.Errors
		require.Equal(t, want, Parse(&faults, "", Tool, map[string]string{"tags": value}, Extensions{}).Labels)
	}
}

// Package annotation reads the struct tags that say what the methods of a service become.
package annotation

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/naming"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

// A Kind is what a method becomes.
type Kind uint8

// The kinds.
const (
	Tool Kind = 1 << iota
	Resource
	Prompt
	Info // not a method: the Info field of a service
	Skip
)

func (k Kind) String() string {
	return map[Kind]string{Tool: "Tool", Resource: "Resource", Prompt: "Prompt", Info: "Info", Skip: "Skip"}[k]
}

// An Annotation holds the tags of one method, or of the Info field.
type Annotation struct {
	Kind     Kind
	About    protocol.Implementation // name, title, description, icons; of the Info field also version and website
	Scopes   []string
	Labels   []string       // of the tag tags
	Timeout  *time.Duration // nil: that of the server; 0: no limit
	Rate     Rate
	Params   []string                     // names of plain parameters, with ? where optional; nil without the tag
	Rules    map[string]reflect.StructTag // of plain parameters, by name
	Complete map[string]string            // parameter -> method
	Hints    *protocol.ToolAnnotations
	URI      string
	MIME     string
	For      *protocol.Annotations // audience and priority
	Cache    *Cache
	Hidden   bool
	Meta     protocol.Meta
	Extended map[string]string // the tags of extensions
}

// A Cache is the tag cache.
type Cache struct {
	TTL    time.Duration
	Public bool // all callers get the same
}

// A Rate is the tag rate. The zero value is no limit.
type Rate struct {
	PerSecond float64
	Burst     int
}

// Extensions are the tags of tools that extensions define.
type Extensions struct {
	Keys []string
	Any  bool // there may be others that are not like a known one
}

// A tag is a key: the kinds that take it, and its parser. docs/reference/tags.md says what it means.
type tag struct {
	key   string
	kinds Kind
	form  string // what to write, by example
	set   func(a *Annotation, value string) error
}

const (
	anyMethod = Tool | Resource | Prompt
	all       = anyMethod | Info
)

var tags = []tag{
	{"name", all, `name:"find_notes"`, setName},
	{"title", all, `title:"Find notes"`, text(func(a *Annotation) *string { return &a.About.Title })},
	{"desc", all, `desc:"Finds notes by words."`, text(func(a *Annotation) *string { return &a.About.Description })},
	{"version", Info, `version:"1.2.0"`, text(func(a *Annotation) *string { return &a.About.Version })},
	{"website", Info, `website:"https://example.com"`, text(func(a *Annotation) *string { return &a.About.WebsiteURL })},
	{"icon", all, `icon:"https://example.com/i.png"`, setIcons},
	{"scopes", anyMethod, `scopes:"notes:read notes:write"`, func(a *Annotation, v string) error { a.Scopes = words(v); return nil }},
	{"timeout", anyMethod, `timeout:"5s"`, setTimeout},
	{"rate", anyMethod, `rate:"100/m burst=20"`, setRate},
	{"tags", anyMethod, `tags:"admin beta"`, func(a *Annotation, v string) error { a.Labels = words(v); return nil }},
	{"params", anyMethod, `params:"a,b?"`, func(a *Annotation, v string) error { a.Params = strings.Split(v, ","); return nil }},
	{"rules", anyMethod, `rules:"style:oneof=short long; count:min=1,max=9"`, setRules},
	{"complete", Resource | Prompt, `complete:"style=Styles"`, setComplete},
	{"hints", Tool, `hints:"readonly,idempotent"`, setHints},
	{"uri", Resource, `uri:"note://{id}"`, text(func(a *Annotation) *string { return &a.URI })},
	{"mime", Resource, `mime:"text/markdown"`, text(func(a *Annotation) *string { return &a.MIME })},
	{"audience", Resource, `audience:"user,assistant"`, setAudience},
	{"priority", Resource, `priority:"0.8"`, setPriority},
	{"cache", Resource | Tool, `cache:"60s,private"`, setCache},
	{"hidden", anyMethod, `hidden:"true"`, setHidden},
	{"meta", anyMethod, `meta:"example.com/team=search"`, setMeta},
}

// text is the parser of a tag whose value is taken as it is.
func text(field func(*Annotation) *string) func(*Annotation, string) error {
	return func(a *Annotation, v string) error { *field(a) = v; return nil }
}

// IsKey reports whether the key is that of a tag of this package.
func IsKey(key string) bool {
	return slices.ContainsFunc(tags, func(t tag) bool { return t.key == key })
}

// NoCompletionForTools is why tools have no completion, and what to do.
const NoCompletionForTools = `completion works for prompts and resource templates; the protocol has none for tools. ` +
	`For a fixed list write validate:"oneof=a b" on a field, or rules:"name:oneof=a b" for a plain parameter`

// Parse parses the tags of one field of a block, and adds what is wrong with them to faults.
func Parse(faults *reflectx.Errors, site string, k Kind, structTag reflect.StructTag, ext Extensions) *Annotation {
	a := &Annotation{Kind: k, Extended: map[string]string{}}
	rows := slices.Clip(tags)
	for _, key := range ext.Keys {
		set := func(a *Annotation, v string) error { a.Extended[key] = v; return nil }
		rows = append(rows, tag{key: key, kinds: Tool, set: set})
	}
	var known []string
	for _, t := range rows {
		if t.kinds&k != 0 {
			known = append(known, t.key)
		}
	}
	if known == nil {
		known = []string{"none"}
	}
	fault := func(format string, args ...any) { faults.Addf(site, format, args...) }
	for key, value := range pairs(string(structTag), fault) {
		i := slices.IndexFunc(rows, func(t tag) bool { return t.key == key })
		if i < 0 {
			hint := naming.Hint(key, known)
			switch {
			case k == Tool && hint == "" && ext.Any:
				a.Extended[key] = value
				continue
			case k == Tool && hint == "":
				hint = "; if it is of an extension, such as tasks.New or apps.Pages, add that to the options of New"
			}
			fault("unknown tag %q%s; known are %s", key, hint, strings.Join(known, ", "))
			continue
		}
		t := rows[i]
		switch {
		case t.kinds&k != 0:
			if err := t.set(a, value); err != nil {
				fault("tag %s: %v; write for example %s", key, err, t.form)
			}
		case key == "complete" && k == Tool:
			fault("tag %q means nothing for mcpkit.%s; %s", key, k, NoCompletionForTools)
			_ = setComplete(a, value) // the methods that it names are not tools
		default:
			fault("tag %q means nothing for mcpkit.%s; known are %s", key, k, strings.Join(known, ", "))
		}
	}
	return a
}

// pairs yields the key:"value" pairs of a struct tag. reflect.StructTag finds neither unknown
// keys nor syntax errors.
func pairs(tag string, fault func(format string, args ...any)) func(yield func(key, value string) bool) {
	return func(yield func(string, string) bool) {
		seen := map[string]bool{}
		for rest := strings.TrimLeft(tag, " "); rest != ""; rest = strings.TrimLeft(rest, " ") {
			key, after, ok := strings.Cut(rest, ":")
			if !ok || key == "" || strings.ContainsAny(key, " \"") || !strings.HasPrefix(after, `"`) {
				fault("tag %q is not made of key:\"value\" pairs", rest)
				return
			}
			quoted, err := strconv.QuotedPrefix(after)
			if err != nil {
				fault("the value of tag %q has no closing quote", key)
				return
			}
			value, _ := strconv.Unquote(quoted)
			if seen[key] {
				fault("tag %q stands twice", key)
			} else if seen[key] = true; !yield(key, value) {
				return
			}
			rest = after[len(quoted):]
		}
	}
}

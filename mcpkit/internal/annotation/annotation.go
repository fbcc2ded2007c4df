// Package annotation reads the struct tags that say what the methods of a service become.
package annotation

import (
	"cmp"
	"maps"
	"math/bits"
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
	Prompt
	Resource
	Template // a resource whose URI has variables
	Event
	Info // not a method: the Info field of a service
	Skip
)

// Place returns the place of the kind among all.
func (k Kind) Place() int { return bits.TrailingZeros8(uint8(k)) }

func (k Kind) String() string {
	return [...]string{"tool", "prompt", "resource", "resource template", "event", "info", "skip"}[k.Place()]
}

// IsResource reports whether methods of the kind are resources or templates of them.
func (k Kind) IsResource() bool { return k&(Resource|Template) != 0 }

// Marker returns the name of the type that marks methods of the kind.
func (k Kind) Marker() string { return strings.ToUpper(k.String()[:1]) + k.String()[1:] }

// An Annotation holds the tags of one method, or of the Info field.
type Annotation struct {
	Kind     Kind
	About    protocol.Implementation // name, title, description, icons; of the Info field also version and website
	Aliases  []string                // of the tag alias
	Variant  string
	Scopes   []string
	Labels   []string       // of the tag tags
	Toolsets []string       // of the tag toolset; of the Info field those of methods that have none
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
	Delivery []string // of an event
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
	anyMethod = Tool | Resource | Prompt | Event
	all       = anyMethod | Info
)

var tags = []tag{
	{"name", all, `name:"find_notes"`, setName},
	{"title", all, `title:"Find notes"`, text(func(a *Annotation) *string { return &a.About.Title })},
	{"desc", all, `desc:"Finds notes by words."`, text(func(a *Annotation) *string { return &a.About.Description })},
	{"version", Info, `version:"1.2.0"`, text(func(a *Annotation) *string { return &a.About.Version })},
	{"website", Info, `website:"https://example.com"`, text(func(a *Annotation) *string { return &a.About.WebsiteURL })},
	{"icon", all, `icon:"https://example.com/i.png"`, setIcons},
	{"scopes", anyMethod, `scopes:"notes:read, notes:write"`, setScopes},
	{"timeout", Tool | Resource | Prompt, `timeout:"5s"`, setTimeout},
	{"rate", anyMethod, `rate:"100/m burst=20"`, setRate},
	{"tags", anyMethod, `tags:"admin beta"`, list(func(a *Annotation) *[]string { return &a.Labels })},
	{"toolset", all, `toolset:"issues"`, list(func(a *Annotation) *[]string { return &a.Toolsets })},
	{"alias", Tool | Prompt, `alias:"old_name"`, list(func(a *Annotation) *[]string { return &a.Aliases })},
	{"variant", Tool | Prompt, `variant:"v2"`, text(func(a *Annotation) *string { return &a.Variant })},
	{"params", anyMethod, `params:"a,b?"`, func(a *Annotation, v string) error { a.Params = strings.Split(v, ","); return nil }},
	{"rules", anyMethod, `rules:"style:oneof=short long; count:min=1,max=9"`, setRules},
	{"complete", Resource | Prompt, `complete:"style=Styles"`, setComplete},
	{"hints", Tool, `hints:"readonly,idempotent"`, setHints},
	{"uri", Resource, `uri:"note://{id}"`, text(func(a *Annotation) *string { return &a.URI })},
	{"mime", Resource, `mime:"text/markdown"`, text(func(a *Annotation) *string { return &a.MIME })},
	{"audience", Resource, `audience:"user,assistant"`, setAudience},
	{"priority", Resource, `priority:"0.8"`, setPriority},
	{"cache", Resource | Tool, `cache:"60s,private"`, setCache},
	{"delivery", Event, `delivery:"poll,webhook"`, setDelivery},
	{"hidden", anyMethod, `hidden:"true"`, setHidden},
	{"meta", anyMethod, `meta:"example.com/team=search"`, setMeta},
}

// habits are keys by which other libraries say what a tag says, and the advice to write that.
var habits = map[string]string{
	"description": `; write desc:"…"`, "doc": `; write desc:"…"`, "readonly": `; write hints:"readonly"`,
	"destructive": `; write hints:"destructive"`, "idempotent": `; write hints:"idempotent"`,
}

// text is the parser of a tag whose value is taken as it is.
func text(field func(*Annotation) *string) func(*Annotation, string) error {
	return func(a *Annotation, v string) error { *field(a) = v; return nil }
}

// list is the parser of a tag whose value is names, with commas between them if they have blanks.
func list(field func(*Annotation) *[]string) func(*Annotation, string) error {
	return func(a *Annotation, v string) error {
		names := strings.Fields(v)
		if strings.Contains(v, ",") {
			names = strings.Split(v, ",")
		}
		for _, name := range names {
			if name = strings.TrimSpace(name); name != "" {
				*field(a) = append(*field(a), name)
			}
		}
		return nil
	}
}

// IsKey reports whether the key is that of a tag of this package.
func IsKey(key string) bool {
	return slices.ContainsFunc(tags, func(t tag) bool { return t.key == key })
}

// Parse reads the tags of a method, or of the Info field, by their keys, and adds what is wrong with
// them to faults.
func Parse(faults *reflectx.Errors, site string, k Kind, values map[string]string, ext Extensions) *Annotation {
	a := &Annotation{Kind: k, Extended: map[string]string{}}
	var known []string
	for _, t := range tags {
		if t.kinds&k != 0 {
			known = append(known, t.key)
		}
	}
	if k == Tool {
		known = append(known, ext.Keys...)
	}
	fault := func(format string, args ...any) { faults.Addf(site, format, args...) }
	for _, key := range slices.Sorted(maps.Keys(values)) {
		value := values[key]
		i := slices.IndexFunc(tags, func(t tag) bool { return t.key == key })
		switch {
		case i >= 0 && tags[i].kinds&k != 0:
			if err := tags[i].set(a, value); err != nil {
				fault("tag %s: %v; write for example %s", key, err, tags[i].form)
			}
		case slices.Contains(known, key):
			a.Extended[key] = value
		case i >= 0 || slices.Contains(ext.Keys, key):
			fault("tag %q means nothing for mcpkit.%s; known are %s", key, k.Marker(), cmp.Or(strings.Join(known, ", "), "none"))
		default:
			hint := cmp.Or(habits[strings.ToLower(key)], naming.Hint(key, known))
			if k == Tool && hint == "" && ext.Any {
				a.Extended[key] = value
				continue
			}
			if k == Tool && hint == "" {
				hint = "; if it is of an extension, such as tasks.New or apps.Pages, add that to the options of New"
			}
			fault("unknown tag %q%s; known are %s", key, hint, cmp.Or(strings.Join(known, ", "), "none"))
		}
	}
	if k == Resource && strings.ContainsAny(a.URI, "{}") {
		a.Kind = Template
	}
	return a
}

// Split returns the values of a struct tag by their keys, and adds what is wrong with it to faults.
// reflect.StructTag finds neither unknown keys nor syntax errors.
func Split(faults *reflectx.Errors, site string, structTag reflect.StructTag) map[string]string {
	values := map[string]string{}
	for rest := strings.TrimLeft(string(structTag), " "); rest != ""; rest = strings.TrimLeft(rest, " ") {
		key, after, _ := strings.Cut(rest, ":")
		quoted, err := strconv.QuotedPrefix(after)
		value, _ := strconv.Unquote(quoted)
		_, again := values[key]
		switch {
		case err != nil || quoted[0] != '"' || key == "" || strings.ContainsAny(key, " \""):
			faults.Addf(site, "tag %q is not made of key:\"value\" pairs", rest)
			return values
		case again:
			faults.Addf(site, "tag %q stands twice", key)
		}
		values[key], rest = value, after[len(quoted):]
	}
	return values
}

package mcpkit

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/naming"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// The markers say in a service's annotation block what its methods are. The block is a blank field
// of anonymous struct type; its field names are method names:
//
//	type Notes struct {
//		_ struct {
//			Search mcpkit.Tool     `hints:"readonly"`
//			Note   mcpkit.Resource `uri:"note://{id}"`
//			Ask    mcpkit.Prompt   `params:"topic,style?"`
//			Reload mcpkit.Skip
//		}
//	}
//
// They take no space. The tags that each takes are listed in docs/reference/tags.md.
type (
	// Tool marks a method as a tool. Exported methods that the block does not list are tools. The
	// definition that clients get is a [protocol.Tool].
	Tool struct{}
	// Resource marks a method as a resource or, if its URI has variables, as a resource template.
	Resource struct{}
	// Prompt marks a method as a prompt.
	Prompt struct{}
	// Skip hides an exported method from clients.
	Skip struct{}
	// Info is the type of a blank field of a service, whose tags set the server's name, version,
	// title and so on.
	Info struct{}
)

// A kind is what a method becomes.
type kind uint8

const (
	kindTool kind = 1 << iota
	kindResource
	kindPrompt
	kindInfo // not a method: the Info field of a service
	kindSkip
)

func (k kind) String() string {
	switch k {
	case kindTool:
		return "Tool"
	case kindResource:
		return "Resource"
	case kindPrompt:
		return "Prompt"
	case kindInfo:
		return "Info"
	default:
		return "Skip"
	}
}

// article returns the kind with its article.
func (k kind) article() string {
	if k == kindInfo {
		return "an Info"
	}
	return "a " + k.String()
}

var kindOf = map[reflect.Type]kind{
	reflect.TypeFor[Tool]():     kindTool,
	reflect.TypeFor[Resource](): kindResource,
	reflect.TypeFor[Prompt]():   kindPrompt,
	reflect.TypeFor[Info]():     kindInfo,
	reflect.TypeFor[Skip]():     kindSkip,
}

// annotation holds the tags of one method, or of the Info field.
type annotation struct {
	kind                   kind
	name, title, desc      string
	version, website       string
	icons                  []protocol.Icon
	scopes, tags           []string
	timeout                time.Duration
	rate                   rateLimit
	params                 []string                     // as written, with '?'; nil without the tag
	input                  string                       // the method that returns the schema of the arguments
	paramTags              map[string]reflect.StructTag // of plain parameters, by name
	complete               map[string]string            // parameter -> method
	hints                  protocol.ToolAnnotations
	hasHints               bool
	uri, mime              string
	audience               []protocol.Role
	priority               *float64
	hidden                 bool
	cacheTTL               time.Duration
	cachePrivate, hasCache bool
	meta                   map[string]string
	extended               map[string]string // the tags of extensions
}

// A tagKey is a key of a tag: the kinds that take it, its meaning and its parser.
// docs/reference/tags.md is generated from the table.
type tagKey struct {
	key   string
	kinds kind
	form  string // what to write, by example
	doc   string
	set   func(a *annotation, value string) error
}

const anyMethod = kindTool | kindResource | kindPrompt

var tagKeys = []tagKey{
	{"name", anyMethod | kindInfo, `name:"find_notes"`, "The name that clients use: up to 128 characters without blanks and control characters. Some clients refuse tools whose names have more than 64 characters, or others than letters, digits, `_` and `-`. Default: the method's name in snake case; for Info, the name of the type.",
		setName},
	{"title", anyMethod | kindInfo, `title:"Find notes"`, "The name shown to people.",
		func(a *annotation, v string) error { a.title = v; return nil }},
	{"desc", anyMethod | kindInfo, `desc:"Finds notes by words."`, "The description; it replaces the doc comment.",
		func(a *annotation, v string) error { a.desc = v; return nil }},
	{"version", kindInfo, `version:"1.2.0"`, "The server's version. Default: the version of the main module.",
		func(a *annotation, v string) error { a.version = v; return nil }},
	{"website", kindInfo, `website:"https://example.com"`, "The server's web site.",
		func(a *annotation, v string) error { a.website = v; return nil }},
	{"icon", anyMethod | kindInfo, `icon:"https://example.com/i.png"`, "Icons: https: or data: URIs, separated by spaces.", setIcons},
	{"scopes", anyMethod, `scopes:"notes:read notes:write"`, "Scopes that the caller needs. Callers that lack one do not see the method; if they call it, they get the error for an unknown name, and the log says why. With the option `StepUp` they get the missing scopes. The server needs the option `Authenticated` or `TrustLocal`.",
		func(a *annotation, v string) error { a.scopes = words(v); return nil }},
	{"timeout", anyMethod, `timeout:"5s"`, "How long a call may take, instead of the server's default; 0 means no limit. When the time is over, the method's context is done, and the caller gets an error, even if the method has not returned.",
		func(a *annotation, v string) error { return setDuration(&a.timeout, v) }},
	{"rate", anyMethod, `rate:"100/m burst=20"`, "How many calls each caller may begin per second (s), minute (m) or hour (h), and at once (burst; the same number by default). A caller is a principal, or an address without one; all on stdio count as one. Callers over the limit get an error with a retry time.",
		func(a *annotation, v string) error { return setRate(&a.rate, v) }},
	{"tags", anyMethod, `tags:"admin beta"`, "Labels of your own for middleware. They are not sent to clients.",
		func(a *annotation, v string) error { a.tags = words(v); return nil }},
	{"params", anyMethod, `params:"a,b?"`, "Names of plain parameters, in order; ? marks an optional one.",
		func(a *annotation, v string) error { a.params = strings.Split(v, ","); return nil }},
	{"rules", anyMethod, `rules:"style:oneof=short long; count:min=1,max=9"`, "Rules for plain parameters, which `params` or the `uri` names, as in the field tag `validate`; `;` separates parameters. `code:pattern=^[a-z]+$` restricts a text to a regular expression without `;`. The values of `oneof` are offered as completions.", setRules},
	{"complete", kindResource | kindPrompt, `complete:"style=Styles"`, "The method that completes each parameter: `func(ctx context.Context, prefix string) ([]string, error)` returns the values that begin with the prefix. The context and the error may be left out. With `others map[string]string` as its last parameter, after the context, it gets the arguments that are filled in already.", setComplete},
	{"input", kindTool, `input:"SearchSchema"`, "The method, a `func() string`, that returns the JSON Schema of the arguments. The tool then takes all arguments as one `map[string]any` or `json.RawMessage`, and the server needs the option `RawSchemas`.",
		func(a *annotation, v string) error { a.input = v; return nil }},
	{"hints", kindTool, `hints:"readonly,idempotent"`, "What a call does to its environment: `readonly`, `destructive`, `additive`, `idempotent`, `open-world`, `closed-world`. Only the listed hints are sent.", setHints},
	{"uri", kindResource, `uri:"note://{id}"`, "The resource's URI, or a template with variables: `{id}`, `{+path}` for a value with slashes, `{/names*}` for segments, which a list gets one by one, and `{?a,b}` at the end for a query whose members may be absent. Other forms of RFC 6570 are refused. Required.",
		func(a *annotation, v string) error { a.uri = v; return nil }},
	{"mime", kindResource, `mime:"text/markdown"`, "The media type of the contents.",
		func(a *annotation, v string) error { a.mime = v; return nil }},
	{"audience", kindResource, `audience:"user,assistant"`, "Who the contents are for.", setAudience},
	{"priority", kindResource, `priority:"0.8"`, "How important the contents are, from 0 to 1.", setPriority},
	{"cache", kindResource | kindTool, `cache:"60s,private"`, "A resource: how long clients may cache the contents, for themselves (`private`, the default) or for all callers (`public`). A tool with the hint `readonly`: how long the server caches the result for equal arguments, for each authenticated caller (`private`) or for all callers (`public`).", setCache},
	{"hidden", anyMethod, `hidden:"true"`, "The method can be called, but is not listed.",
		func(a *annotation, v string) error { return setBool(&a.hidden, v) }},
	{"meta", anyMethod, `meta:"example.com/team=search"`, "Entries of the definition's _meta, as key=value pairs separated by spaces.", setMeta},
}

// parseAnnotation parses the tags of one field of a block. extended are the keys of extensions; with
// anyTags, there may be others.
func parseAnnotation(k kind, tag reflect.StructTag, extended []string, anyTags bool) (*annotation, []string) {
	a := &annotation{kind: k, extended: map[string]string{}}
	var faults []string
	known := keysFor(k)
	if k == kindTool {
		known = append(known, extended...)
	}
	for key, value := range tagPairs(string(tag), &faults) {
		i := slices.IndexFunc(tagKeys, func(t tagKey) bool { return t.key == key })
		own := slices.IndexFunc(ownTags, func(t ownTag) bool { return t.key == key })
		switch {
		case k == kindTool && (slices.Contains(extended, key) || anyTags && i < 0 && (own >= 0 || naming.Nearest(key, known) == "")):
			a.extended[key] = value
		case slices.Contains(extended, key):
			faults = append(faults, fmt.Sprintf("tag %q means nothing for %s; it is for tools", key, k.article()))
		case own >= 0:
			faults = append(faults, fmt.Sprintf("tag %q belongs to an extension that the server does not have; add %s to the options of New", key, ownTags[own].option))
		case i < 0:
			faults = append(faults, fmt.Sprintf("unknown tag %q%s; known are %s", key, naming.Hint(key, known), strings.Join(known, ", ")))
		case key == "complete" && k == kindTool:
			faults = append(faults, fmt.Sprintf("tag %q means nothing for %s; %s", key, k.article(), noCompletionForTools))
			_ = setComplete(a, value) // the methods that it names are not tools, so their signatures are not faults too
		case tagKeys[i].kinds&k == 0:
			faults = append(faults, fmt.Sprintf("tag %q means nothing for %s; known are %s", key, k.article(), strings.Join(known, ", ")))
		default:
			if err := tagKeys[i].set(a, value); err != nil {
				faults = append(faults, fmt.Sprintf("tag %s: %v; write for example %s", key, err, tagKeys[i].form))
			}
		}
	}
	return a, faults
}

func keysFor(k kind) []string {
	var keys []string
	for _, t := range tagKeys {
		if t.kinds&k != 0 {
			keys = append(keys, t.key)
		}
	}
	if keys == nil {
		keys = []string{"none"}
	}
	return keys
}

// tagPairs yields the key:"value" pairs of a struct tag. reflect.StructTag finds neither unknown
// keys nor syntax errors.
func tagPairs(tag string, faults *[]string) func(yield func(key, value string) bool) {
	return func(yield func(string, string) bool) {
		seen := map[string]bool{}
		for rest := strings.TrimLeft(tag, " "); rest != ""; rest = strings.TrimLeft(rest, " ") {
			key, after, ok := strings.Cut(rest, ":")
			if !ok || key == "" || strings.ContainsAny(key, " \"") || !strings.HasPrefix(after, `"`) {
				*faults = append(*faults, fmt.Sprintf("tag %q is not made of key:\"value\" pairs", rest))
				return
			}
			quoted, err := strconv.QuotedPrefix(after)
			if err != nil {
				*faults = append(*faults, fmt.Sprintf("the value of tag %q has no closing quote", key))
				return
			}
			value, _ := strconv.Unquote(quoted)
			if seen[key] {
				*faults = append(*faults, fmt.Sprintf("tag %q stands twice", key))
			} else if seen[key] = true; !yield(key, value) {
				return
			}
			rest = after[len(quoted):]
		}
	}
}

func words(v string) []string {
	return strings.FieldsFunc(v, func(r rune) bool { return r == ' ' || r == ',' })
}

func setName(a *annotation, v string) error {
	if err := naming.Check(v); err != nil {
		return err
	}
	a.name = v
	return nil
}

func setDuration(d *time.Duration, v string) error {
	parsed, err := time.ParseDuration(v)
	switch {
	case err != nil:
		return fmt.Errorf("%q is not a duration", v)
	case parsed < 0:
		return fmt.Errorf("%q is negative", v)
	case parsed == 0:
		parsed = noTimeout
	}
	*d = parsed
	return nil
}

func setBool(b *bool, v string) error {
	switch v {
	case "true", "false":
		*b = v == "true"
		return nil
	}
	return fmt.Errorf("%q is neither true nor false", v)
}

func setIcons(a *annotation, v string) error {
	for _, src := range strings.Fields(v) {
		if !strings.HasPrefix(src, "https://") && !strings.HasPrefix(src, "data:") {
			return fmt.Errorf("%q is neither an https: nor a data: URI", src)
		}
		a.icons = append(a.icons, protocol.Icon{Src: src})
	}
	return nil
}

func setComplete(a *annotation, v string) error {
	a.complete = map[string]string{}
	for _, pair := range words(v) {
		param, method, ok := strings.Cut(pair, "=")
		if !ok || param == "" || method == "" {
			return fmt.Errorf("%q does not say parameter=Method", pair)
		}
		a.complete[param] = method
	}
	return nil
}

var hintWords = []string{"readonly", "destructive", "additive", "idempotent", "open-world", "closed-world"}

func setHints(a *annotation, v string) error {
	a.hasHints = true
	for _, word := range words(v) {
		if err := setHint(&a.hints, word); err != nil {
			return err
		}
	}
	if a.hints.ReadOnlyHint != nil && a.hints.DestructiveHint != nil && *a.hints.DestructiveHint {
		return fmt.Errorf("a tool cannot be both readonly and destructive")
	}
	return nil
}

func setHint(h *protocol.ToolAnnotations, word string) error {
	say := func(hint **bool, value bool, opposite string) error {
		if *hint != nil && **hint != value {
			return fmt.Errorf("%q and %q contradict each other", word, opposite)
		}
		*hint = &value
		return nil
	}
	switch word {
	case "readonly":
		return say(&h.ReadOnlyHint, true, "")
	case "destructive":
		return say(&h.DestructiveHint, true, "additive")
	case "additive":
		return say(&h.DestructiveHint, false, "destructive")
	case "idempotent":
		return say(&h.IdempotentHint, true, "")
	case "open-world":
		return say(&h.OpenWorldHint, true, "closed-world")
	case "closed-world":
		return say(&h.OpenWorldHint, false, "open-world")
	}
	return fmt.Errorf("unknown hint %q%s; known are %s", word, naming.Hint(word, hintWords), strings.Join(hintWords, ", "))
}

func setAudience(a *annotation, v string) error {
	for _, word := range words(v) {
		if word != "user" && word != "assistant" {
			return fmt.Errorf("unknown audience %q%s; known are user, assistant", word, naming.Hint(word, []string{"user", "assistant"}))
		}
		a.audience = append(a.audience, protocol.Role(word))
	}
	return nil
}

func setPriority(a *annotation, v string) error {
	p, err := strconv.ParseFloat(v, 64)
	if err != nil || !(p >= 0 && p <= 1) {
		return fmt.Errorf("%q is not a number from 0 to 1", v)
	}
	a.priority = &p
	return nil
}

func setCache(a *annotation, v string) error {
	a.hasCache, a.cachePrivate = true, true
	for _, word := range words(v) {
		switch word {
		case "private":
			a.cachePrivate = true
		case "public":
			a.cachePrivate = false
		default:
			d, err := time.ParseDuration(word)
			if err != nil || d < 0 {
				return fmt.Errorf("%q is neither a duration nor public or private", word)
			}
			a.cacheTTL = d
		}
	}
	return nil
}

func setMeta(a *annotation, v string) error {
	a.meta = map[string]string{}
	for _, pair := range strings.Fields(v) {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return fmt.Errorf("%q does not say key=value", pair)
		}
		a.meta[key] = value
	}
	return nil
}

// appendTag appends a pair to a tag.
func appendTag(tag reflect.StructTag, key, value string) reflect.StructTag {
	return reflect.StructTag(strings.TrimSpace(string(tag) + " " + key + ":" + strconv.Quote(value)))
}

// appendRules appends rules to the tag of a parameter. A pattern is a keyword of the schema, since
// the validator has no rule for it.
func appendRules(tag reflect.StructTag, rules string) reflect.StructTag {
	if strings.HasPrefix(rules, "pattern=") {
		return appendTag(tag, "jsonschema", strings.ReplaceAll(rules, ",", `\,`))
	}
	return appendTag(tag, "validate", rules)
}

// setRules reads the rules of plain parameters: "style:oneof=short long; id:min=2".
func setRules(a *annotation, v string) error {
	for entry := range strings.SplitSeq(v, ";") {
		name, rules, ok := strings.Cut(entry, ":")
		name, rules = strings.TrimSpace(name), strings.TrimSpace(rules)
		if !ok || name == "" || rules == "" {
			return fmt.Errorf("%q is not of the form parameter:rules", strings.TrimSpace(entry))
		}
		if a.paramTags == nil {
			a.paramTags = map[string]reflect.StructTag{}
		}
		a.paramTags[name] = appendRules(a.paramTags[name], rules)
	}
	return nil
}

package reflectx

import (
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/naming"
)

// fieldTags are the keys of the tags of fields of inputs and outputs that this package reads. What they
// mean is in docs/reference/tags.md.
var fieldTags = []string{"json", "validate", "default", "desc", "title", "example", "jsonschema", "header", "complete", "secret"}

// habits are keys by which other libraries say what a tag of this package says, and what to write
// instead; "…" stands for the value.
var habits = map[string]string{
	"description": `desc:"…"`, "doc": `desc:"…"`, "jsonschema_description": `desc:"…"`, "examples": `example:"…"`,
	"min": `validate:"min=…"`, "minimum": `validate:"min=…"`, "minLength": `validate:"min=…"`, "minItems": `validate:"min=…"`,
	"max": `validate:"max=…"`, "maximum": `validate:"max=…"`, "maxLength": `validate:"max=…"`, "maxItems": `validate:"max=…"`,
	"pattern": `jsonschema:"pattern=…"`, "format": `jsonschema:"format=…"`, "enum": `validate:"oneof=red green", with your values`,
	"binding": `validate:"…"`, "required": `validate:"required", or omitempty into the json tag of an optional field`,
}

// tagKeys records what is no tag, keys that are there twice, and those of other libraries or that look
// like a misspelt key of this package.
func (c *compiler) tagKeys(tag reflect.StructTag) {
	var seen []string
	for rest := strings.TrimSpace(string(tag)); rest != ""; rest = strings.TrimSpace(rest) {
		key, after, _ := strings.Cut(rest, ":")
		quoted, err := strconv.QuotedPrefix(after)
		if err != nil {
			c.errorf("the tag %q is not made of key:\"value\" pairs", rest)
			return
		}
		rest = after[len(quoted):]
		if slices.Contains(seen, key) {
			c.errorf("the tag has the key %q twice; only the first counts, so write it once", key)
		}
		seen = append(seen, key)
		if slices.Contains(fieldTags, key) || key == "bson" || key == "envDefault" { // of other libraries, and like ours
			continue
		}
		if write := habits[key]; write != "" {
			c.errorf("the tag key %q means nothing here; write %s", key, strings.ReplaceAll(write, "…", quoted[1:len(quoted)-1]))
		} else if nearest := naming.Nearest(key, fieldTags); nearest != "" {
			c.errorf("unknown tag key %q; did you mean %q?", key, nearest)
		}
	}
	if secret, ok := tag.Lookup("secret"); ok && secret != "true" && secret != "false" {
		c.errorf("secret is %q; write secret:\"true\" or leave it out", secret)
	}
}

// A member is a field of a struct as encoding/json sees it.
type member struct {
	name    string
	index   []int
	sf      reflect.StructField
	owner   reflect.Type
	mayOmit bool // because of its tag
	behind  bool // an embedded pointer leads to it
}

// String returns the name of the field, with its type if that has a name.
func (m *member) String() string {
	if m.owner.Name() == "" {
		return m.sf.Name
	}
	return m.owner.String() + "." + m.sf.Name
}

// members returns the JSON fields of t in order. Of fields with the same name, encoding/json takes the
// shallowest.
func (c *compiler) members(t reflect.Type) []*member {
	all, first := c.collect(nil, t, nil, nil), map[string]*member{}
	for _, m := range all {
		if other := first[m.name]; other == nil || len(m.index) < len(other.index) {
			first[m.name] = m
		}
	}
	return slices.DeleteFunc(all, func(m *member) bool {
		other := first[m.name]
		if m != other && len(m.index) == len(other.index) {
			c.errorf("the fields %s and %s are both %q in JSON; give one another name", other, m, m.name)
		}
		return m != other
	})
}

// collect appends the members of t to out. index is the path to t, and above are the types on it.
func (c *compiler) collect(out []*member, t reflect.Type, index []int, above []reflect.Type) []*member {
	if slices.Contains(above, t) {
		return out
	}
	above = append(above, t)
	for sf := range t.Fields() {
		tag := sf.Tag.Get("json")
		name, options, comma := strings.Cut(tag, ",")
		if tag == "-" {
			continue
		}
		inner, pointer := indirectType(sf.Type), sf.Type.Kind() == reflect.Pointer
		at := slices.Concat(index, sf.Index)
		switch plain := shapeOf(inner, c.dir) == shapeStruct; {
		case sf.Anonymous && name == "" && plain && pointer && !sf.IsExported():
			c.errorf("%s embeds the unexported %s by pointer, which nobody can fill; embed it by value",
				typeText(t), typeText(sf.Type))
			continue
		case sf.Anonymous && name == "" && plain:
			outside := len(out)
			out = c.collect(out, inner, at, above)
			for i := outside; i < len(out); i++ { // the encoder leaves out what is behind a nil pointer
				out[i].behind = out[i].behind || pointer
			}
			continue
		case sf.Anonymous && name == "" && c.dir == forOutput: // the encoder refuses it
			c.errorf("%s embeds %s, which is not a plain struct; give it a name, such as json:%q, or hide it with json:\"-\"",
				typeText(t), typeText(sf.Type), SnakeCase(sf.Name))
			continue
		case !sf.IsExported() && tag+sf.Tag.Get("validate")+sf.Tag.Get("default") != "":
			c.errorf("%s has tags but is not exported, so nothing fills it or checks it; export it, or drop the tags", sf.Name)
			continue
		case !sf.IsExported():
			continue
		}
		m := &member{name: cmp.Or(name, sf.Name), index: at, sf: sf, owner: t}
		c.enter(m, func() { c.jsonTag(m, options, comma) })
		out = append(out, m)
	}
	return out
}

// jsonTag reads the options of a json tag, and refuses what the encoder refuses.
func (c *compiler) jsonTag(m *member, options string, comma bool) {
	if strings.ContainsAny(m.name, "\\'\"`") {
		c.errorf("the json name %q has a quote or a backslash, which the encoder refuses; choose another name", m.name)
	}
	if !comma {
		return
	}
	for option := range strings.SplitSeq(options, ",") {
		if known := []string{"omitempty", "omitzero"}; slices.Contains(known, option) {
			m.mayOmit = true
		} else {
			c.errorf("unknown json option %q%s", option, hintOr(option, known, "write omitempty, omitzero or nothing"))
		}
	}
}

// hintOr returns "; did you mean ...?" or else "; " and otherwise.
func hintOr(word string, known []string, otherwise string) string {
	return cmp.Or(naming.Hint(word, known), "; "+otherwise)
}

// schemaWords are the keys of a jsonschema tag that are supported: keywords, but for example and required.
var schemaWords = strings.Fields(`default description enum example exclusiveMaximum exclusiveMinimum format maxItems maxLength
	maximum minItems minLength minimum multipleOf pattern readOnly required title uniqueItems writeOnly`)

// freeText returns a jsonschema tag that is a description, as in the official Go SDK, and "" for a list
// of keywords.
func freeText(tag string) string {
	first, _, keyed := strings.Cut(tag, "=")
	if tag == "required" || keyed && !strings.Contains(first, " ") {
		return ""
	}
	return tag
}

// schemaTag checks a jsonschema tag: invopop/jsonschema drops in silence what it does not know, and
// what does not fit the type.
func (c *compiler) schemaTag(f *fieldState) {
	tag := f.sf.Tag.Get("jsonschema")
	if tag == freeText(tag) {
		return
	}
	made := []byte(jsonText(f.s))
	items := jsonx.Member(made, "items")
	for _, word := range strings.Split(strings.ReplaceAll(tag, `\,`, ""), ",") {
		key, value, _ := strings.Cut(word, "=")
		keyword := strings.Replace(key, "example", "examples", 1)
		switch {
		case !slices.Contains(schemaWords, key):
			c.errorf("jsonschema: %q is not enforced here%s", key, hintOr(key, schemaWords, "write one of "+strings.Join(schemaWords, ", ")))
		case key == "required":
			f.Required = true
		case jsonx.Member(made, keyword) == nil && jsonx.Member(items, keyword) == nil:
			c.errorf("jsonschema: %q does not fit %s", word, typeText(f.sf.Type))
		case key == "format" && formats[value].valid == nil:
			known := slices.Sorted(maps.Keys(formats))
			c.errorf("jsonschema: unknown format %q%s", value, hintOr(value, known, "write one of "+strings.Join(known, ", ")))
		}
	}
}

// header checks the tag that mirrors a field into an HTTP header, by the x-mcp-header rules of MCP
// 2026-07-28.
func (c *compiler) header(f *fieldState) {
	name, ok := f.sf.Tag.Lookup("header")
	if !ok {
		return
	}
	key := strings.ToLower(name)
	sh := shapeOf(f.t, c.dir)
	switch {
	case name == "" || strings.Trim(name, alphanumeric+"!#$%&'*+-.^_`|~") != "": // a token (RFC 9110 section 5.6.2)
		c.errorf("the header name %q is not a token; write letters, digits and - only, such as header:\"Region\"", name)
	case f.s.Type != "string" && f.s.Type != "integer" && f.s.Type != "boolean" || sh == shapeCustom || sh == shapeBig || isNullable(f.sf.Type):
		c.errorf("a header cannot mirror a %s; put it on a string, an integer or a bool", typeText(f.sf.Type))
	case f.Secret:
		c.errorf("the field is secret, so no header may carry it; drop one of the two tags")
	case c.within > 0:
		c.errorf(headerOutOfReach, name)
	case c.headers[key] != "" && c.headers[key] != c.where():
		c.errorf("the header %q is taken by the field %s; choose another name", name, c.headers[key])
	default:
		c.headers[key] = strings.Join(c.path, ".")
		f.Header = name
		if f.s.Type == "integer" && f.t.Bits() == 64 { // every client can represent these exactly
			f.s.Minimum = stricter(f.s.Minimum, "-9007199254740991", 1)
			f.s.Maximum = stricter(f.s.Maximum, "9007199254740991", -1)
		}
		f.s.Extras = map[string]any{"x-mcp-header": name}
	}
}

const headerOutOfReach = "the header %q stands within an array, a map or a type that contains itself, " +
	"where no client looks; move the field up"

// samplesOf reads the default and the example. They are checked when the schema is complete.
func (c *compiler) samplesOf(f *fieldState) {
	read := func(key string, keyword any) json.RawMessage {
		var raw json.RawMessage
		if text, ok := f.sf.Tag.Lookup(key); ok {
			raw = textJSON(f.s, text)
		} else if keyword != nil {
			raw = json.RawMessage(jsonText(keyword))
		} else {
			return nil
		}
		c.samples = append(c.samples, sample{c.where(), key, raw, f.s, f.sf.Type})
		return raw
	}
	if f.Default = read("default", f.s.Default); f.Default != nil {
		f.s.Default = f.Default
	}
	if raw := read("example", slices.Concat(f.s.Examples, []any{nil})[0]); raw != nil {
		f.s.Examples = []any{raw}
	}
}

// textJSON returns the JSON for the text of a tag: strings are taken as text, other values as JSON.
func textJSON(s *jsonschema.Schema, text string) json.RawMessage {
	raw := []byte(strings.TrimSpace(text))
	if s.Type == "string" || !jsonx.Valid(raw) {
		return jsonx.AppendString(nil, text)
	}
	raw, _ = jsonx.Compact(raw)
	return raw
}

// checkSamples checks the defaults and the examples.
func (c *compiler) checkSamples() {
	for _, sample := range c.samples {
		n := c.compile(sample.s)
		k := checker{}
		k.value(n, sample.raw)
		if k.wrong() == 0 {
			if err := jsonx.Unmarshal(k.out, reflect.New(sample.t).Interface()); err != nil {
				k.violate(n, sample.raw, n.want)
			}
		}
		for _, v := range k.err.Violations {
			c.errs = append(c.errs, &Error{sample.site, "the " + sample.what + " is refused; " + v.text("value")})
		}
	}
}

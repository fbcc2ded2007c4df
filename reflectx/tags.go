package reflectx

import (
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/nearest"
)

// A FieldTag is a tag key for fields.
type FieldTag struct {
	Key  string
	Form string // what to write, by example
	Doc  string // what it means, in Markdown
}

// FieldTags returns the tags of the fields of inputs and outputs that this package reads, in the
// order for documentation. The caller may change the slice.
func FieldTags() []FieldTag { return slices.Clone(fieldTags) }

var fieldTags = []FieldTag{
	{"json", `json:"query"`, "The name in JSON, as for encoding/json; `-` leaves the field out. With `omitempty` or `omitzero`, a field is optional in inputs and may be absent from outputs."},
	{"validate", `validate:"required,min=2"`, "Rules of [validator/v10](https://pkg.go.dev/github.com/go-playground/validator/v10). The server enforces them. A rule that has a JSON Schema keyword is part of the schema; any other rule is part of the description. `enum` allows only what the method `Values` of the field's type returns, or else the constants of the type. A field of an input is required unless it has `omitempty` or `omitzero` in either tag, a pointer type, a `default`, or a conditional rule such as `required_if` or `excluded_with`. Null for a field that is not required counts as absent. `required` makes any field required."},
	{"default", `default:"10"`, "The value of an absent field: text as it is, everything else as JSON. It must satisfy the rules."},
	{"desc", `desc:"Words to look for."`, "The description; it replaces the field's doc comment."},
	{"title", `title:"Query"`, "The name shown to people."},
	{"example", `example:"green tea"`, "An example for the schema, and for error messages about invalid arguments. It must satisfy the rules."},
	{"jsonschema", `jsonschema:"readOnly=true"`, "More schema keywords, in the syntax of [invopop/jsonschema](https://pkg.go.dev/github.com/invopop/jsonschema), which the server enforces. A text without keywords is the description."},
	{"header", `header:"Region"`, "Mirrors the argument into the HTTP header `Mcp-Param-Region` (2026-07-28). Strings, integers and bools only."},
	{"complete", `complete:"Regions"`, "The method that completes this argument of a prompt or a resource template. The tag is an error on the input of a tool: the protocol has no completion for tools. If a tool and a prompt share the type, name the method in the `complete` tag of the annotation block."},
	{"secret", `secret:"true"`, "Error messages about invalid arguments do not repeat the value, and middleware that logs arguments redacts it."},
}

// The tag keys for fields. jsonschema_description and jsonschema_extras belong to
// invopop/jsonschema.
var (
	tagWords = func() []string {
		keys := make([]string, len(fieldTags))
		for i, t := range fieldTags {
			keys[i] = t.Key
		}
		return keys
	}()
	tagSchemas = []string{"jsonschema_description", "jsonschema_extras"}
	// Keys of other libraries, some of which differ by one letter.
	tagOthers = []string{
		"xml", "yaml", "yml", "toml", "bson", "db", "sql", "gorm", "bun", "ent", "dynamodbav", "firestore", "datastore", "spanner",
		"bigquery", "csv", "env", "envconfig", "envDefault", "flag", "short", "long", "help", "form", "query", "param", "params",
		"path", "uri", "url", "schema", "mapstructure", "koanf", "hcl", "ini", "msgpack", "codec", "cbor", "avro", "parquet",
		"protobuf", "protobuf_oneof", "thrift", "graphql", "binding", "valid", "mod", "conform", "faker", "fake", "copier", "redis",
		"es", "elastic", "swaggertype", "swaggerignore", "enums", "enum", "doc", "format", "examples", "extensions", "reload",
		"mcp", "mcpkit", "required", "minimum", "maximum", "structs", "pg", "boil", "rql", "jsonapi", "arg", "cli", "name",
	}
)

// tagKeys records keys that look like a misspelt key of this package, and tags that reflect cannot
// parse.
func (c *compiler) tagKeys(sf reflect.StructField) {
	rest := strings.TrimSpace(string(sf.Tag))
	seen := map[string]bool{}
	for rest != "" {
		key, after, ok := strings.Cut(rest, ":")
		value, err := "", strconv.ErrSyntax
		if ok && key != "" && !strings.ContainsAny(key, " \"`") {
			value, err = strconv.QuotedPrefix(after)
		}
		if err != nil {
			c.errorf("the tag cannot be read from %q on; write key:\"value\" pairs with one space between", rest)
			return
		}
		if seen[key] {
			c.errorf("the tag has the key %q twice; only the first counts, so write it once", key)
		}
		seen[key] = true
		rest = strings.TrimLeft(after[len(value):], " ")
		if slices.Contains(tagWords, key) || slices.Contains(tagSchemas, key) || slices.Contains(tagOthers, key) {
			continue
		}
		if k := nearest.Of(key, tagWords); k != "" {
			c.errorf("unknown tag key %q; did you mean %q?", key, k)
		}
	}
}

func (c *compiler) boolTag(tag reflect.StructTag, key string) bool {
	text, ok := tag.Lookup(key)
	if !ok {
		return false
	}
	switch text {
	case "true":
		return true
	case "false":
		return false
	}
	c.errorf("%s is %q; write %s:\"true\" or leave it out", key, text, key)
	return false
}

// A member is a field of a struct as encoding/json sees it.
type member struct {
	name    string
	tagged  bool // the name comes from the tag
	index   []int
	sf      reflect.StructField
	owner   reflect.Type
	mayOmit bool // because of its tag
	behind  bool // an embedded pointer leads to it
}

// String returns the name of the field, with its type if that has a name.
func (m member) String() string {
	if m.owner.Name() == "" {
		return m.sf.Name
	}
	return m.owner.String() + "." + m.sf.Name
}

// members returns the JSON fields of t in order, by the rules of encoding/json: a shallower field
// wins, then one with a name in its tag.
func (c *compiler) members(t reflect.Type) []member {
	all := c.collect(make([]member, 0, t.NumField()), t, nil, nil)
	if !sameNames(all) {
		return all // which stand in order
	}
	byName := map[string][]member{}
	for _, m := range all {
		byName[m.name] = append(byName[m.name], m)
	}
	var out []member
	for _, m := range all {
		same := byName[m.name]
		if same == nil {
			continue
		}
		delete(byName, m.name)
		slices.SortStableFunc(same, func(a, b member) int {
			if d := cmp.Compare(len(a.index), len(b.index)); d != 0 {
				return d
			}
			return cmp.Compare(boolInt(b.tagged), boolInt(a.tagged))
		})
		if len(same) > 1 && len(same[0].index) == len(same[1].index) && same[0].tagged == same[1].tagged {
			c.errorf("the fields %s and %s are both %q in JSON; give one another name", same[0], same[1], m.name)
		}
		out = append(out, same[0])
	}
	slices.SortStableFunc(out, func(a, b member) int { return slices.Compare(a.index, b.index) })
	return out
}

// sameNames reports whether two members have the same name.
func sameNames(all []member) bool {
	for i := range all {
		for j := range i {
			if all[i].name == all[j].name {
				return true
			}
		}
	}
	return false
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// collect appends the members of t to out. index is the path to t, and above are the types on it.
func (c *compiler) collect(out []member, t reflect.Type, index []int, above []reflect.Type) []member {
	if slices.Contains(above, t) {
		return out
	}
	above = append(above, t)
	for i := range t.NumField() {
		sf := t.Field(i)
		tag := sf.Tag.Get("json")
		name, options, comma := strings.Cut(tag, ",")
		if name == "-" && !comma {
			continue
		}
		inner := sf.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if sf.Anonymous && name == "" {
			if shapeOf(inner, c.dir) == shapeStruct {
				if !sf.IsExported() && sf.Type.Kind() == reflect.Pointer {
					c.errorf("%s embeds the unexported %s by pointer, which nobody can fill; embed it by value", typeText(t), typeText(sf.Type))
					continue
				}
				outside := len(out)
				out = c.collect(out, inner, below(index, sf), above)
				for i := outside; i < len(out); i++ { // the encoder leaves out what is behind a nil pointer
					out[i].behind = out[i].behind || sf.Type.Kind() == reflect.Pointer
				}
				continue
			}
			if c.dir == forOutput { // the encoder refuses it
				c.errorf("%s embeds %s, which is not a plain struct; give it a name, such as json:%q, or hide it with json:\"-\"", typeText(t), typeText(sf.Type), SnakeCase(sf.Name))
				continue
			}
		}
		if !sf.IsExported() {
			c.refuseTags(sf)
			continue
		}
		m := member{name: cmp.Or(name, sf.Name), tagged: name != "", index: below(index, sf), sf: sf, owner: t}
		c.jsonName(&m)
		if comma {
			c.jsonOptions(&m, options)
		}
		out = append(out, m)
	}
	return out
}

// refuseTags refuses rules on an unexported field, since they would have no effect.
func (c *compiler) refuseTags(sf reflect.StructField) {
	for _, key := range []string{"json", "validate", "default"} {
		if sf.Tag.Get(key) != "" {
			c.errorf("%s has tags but is not exported, so nothing fills it or checks it; export it, or drop the tags", sf.Name)
			return
		}
	}
}

// below returns the index of the field of the struct at index.
func below(index []int, sf reflect.StructField) []int {
	if len(index) == 0 {
		return sf.Index
	}
	return slices.Concat(index, sf.Index)
}

// jsonName refuses names that the encoder cannot write.
func (c *compiler) jsonName(m *member) {
	if !strings.ContainsAny(m.name, "\\'\"`") {
		return
	}
	c.path = append(c.path, m.sf.Name)
	c.errorf("the json name %q has a quote or a backslash, which the encoder refuses; choose another name", m.name)
	c.path = c.path[:len(c.path)-1]
}

// jsonOptions reads the options after the name in a json tag.
func (c *compiler) jsonOptions(m *member, options string) {
	c.path = append(c.path, m.sf.Name)
	defer func() { c.path = c.path[:len(c.path)-1] }()
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "":
			c.errorf("the json tag has a comma without an option after it, which the encoder refuses; drop the comma")
		case "omitempty", "omitzero":
			m.mayOmit = true
		case "string":
			c.errorf(`the json option "string" is not known here; leave it out, since integers are exact without it`)
		default:
			c.errorf("unknown json option %q%s", option, hintOr(option, []string{"omitempty", "omitzero"}, "write omitempty, omitzero or nothing"))
		}
	}
}

// hintOr returns "; did you mean ...?" or else "; " and otherwise.
func hintOr(word string, known []string, otherwise string) string {
	if h := nearest.Hint(word, known); h != "" {
		return h
	}
	return "; " + otherwise
}

// schemaWords are the keys of a jsonschema tag that are supported, with the types that they fit.
var schemaWords = map[string]string{
	"title": "*", "description": "*", "required": "*", "readOnly": "*", "writeOnly": "*", "default": "*", "example": "*",
	"enum": "sni", "minLength": "s", "maxLength": "s", "pattern": "s", "format": "s",
	"minimum": "ni", "maximum": "ni", "exclusiveMinimum": "ni", "exclusiveMaximum": "ni", "multipleOf": "ni",
	"minItems": "a", "maxItems": "a", "uniqueItems": "a",
}

// isFreeText reports whether a jsonschema tag is a description, as in the official Go SDK, and not a
// list of keywords.
func isFreeText(tag string) bool {
	first, _, keyed := strings.Cut(tag, "=")
	return tag != "" && schemaWords[tag] == "" && (!keyed || strings.ContainsAny(first, " "))
}

func freeText(tag string) string {
	if isFreeText(tag) {
		return tag
	}
	return ""
}

// schemaTag checks a jsonschema tag: invopop/jsonschema drops in silence what it does not know.
func (c *compiler) schemaTag(f *fieldState) {
	tag := f.sf.Tag.Get("jsonschema")
	if tag == "" || isFreeText(tag) {
		return
	}
	letters := schemaLetter(f.position, c.dir)
	if elem, ok := f.elem(c.dir); ok { // keys that do not fit the array apply to its elements
		letters += schemaLetter(elem, c.dir)
	}
	words := slices.Sorted(maps.Keys(schemaWords))
	for _, word := range strings.Split(strings.ReplaceAll(tag, `\,`, ""), ",") {
		key, value, _ := strings.Cut(word, "=")
		switch fits := schemaWords[key]; {
		case fits == "":
			c.errorf("jsonschema: %q is not enforced here%s", key, hintOr(key, words, "write one of "+strings.Join(words, ", ")))
		case fits != "*" && !strings.ContainsAny(fits, letters):
			c.errorf("jsonschema: %q does not fit %s", key, typeText(f.sf.Type))
		case key == "required":
			c.require(f)
		case key == "format" && formats[value] == nil:
			known := slices.Sorted(maps.Keys(formats))
			c.errorf("jsonschema: unknown format %q%s", value, hintOr(value, known, "write one of "+strings.Join(known, ", ")))
		case fits == "ni":
			if x, ok := ratOf(value); !ok || !jsonx.Valid([]byte(value)) {
				c.errorf("jsonschema: %s is %q; write a number", key, value)
			} else if key == "multipleOf" && x.Sign() <= 0 {
				c.errorf("jsonschema: multipleOf is %q; write a number greater than 0", value)
			}
		case key == "minLength" || key == "maxLength" || key == "minItems" || key == "maxItems":
			if _, err := strconv.ParseUint(value, 10, 32); err != nil {
				c.errorf("jsonschema: %s is %q; write a number of 0 or more", key, value)
			}
		}
	}
}

// schemaLetter returns the letter of the type in schemaWords.
func schemaLetter(n position, dir direction) string {
	switch shapeOf(n.t, dir) {
	case shapeString, shapeText:
		return "s"
	case shapeInt, shapeUint:
		return "i"
	case shapeFloat:
		return "n"
	case shapeSlice, shapeArray:
		return "a"
	}
	return "-"
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
	case !isToken(name):
		c.errorf("the header name %q is not a token; write letters, digits and - only, such as header:\"Region\"", name)
	case f.s.Type != "string" && f.s.Type != "integer" && f.s.Type != "boolean" || sh == shapeCustom || sh == shapeBig:
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
		if sh == shapeInt && f.t.Bits() == 64 { // every client can represent these exactly
			f.s.Minimum, f.s.Maximum = stricter(f.s.Minimum, "-9007199254740991", 1), stricter(f.s.Maximum, "9007199254740991", -1)
		} else if sh == shapeUint && f.t.Bits() == 64 {
			f.s.Maximum = stricter(f.s.Maximum, "9007199254740991", -1)
		}
		f.s.Extras = map[string]any{"x-mcp-header": name}
	}
}

const headerOutOfReach = "the header %q stands within an array, a map or a type that contains itself, where no client looks; move the field up"

// isToken reports whether s is a token of HTTP (RFC 9110 section 5.6.2).
func isToken(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}

// defaultTag reads the default and the example. They are checked when the schema is complete.
func (c *compiler) defaultTag(f *fieldState) {
	s := f.s
	read := func(key string, keyword any) json.RawMessage {
		var raw json.RawMessage
		if text, ok := f.sf.Tag.Lookup(key); ok {
			raw = textJSON(s, text)
		} else if keyword != nil {
			raw, _ = jsonx.Marshal(keyword)
		} else {
			return nil
		}
		c.samples = append(c.samples, sample{key, raw, f})
		return raw
	}
	if f.Default = read("default", s.Default); f.Default != nil {
		s.Default = f.Default
	}
	var first any
	if len(s.Examples) > 0 {
		first = s.Examples[0]
	}
	if f.example = read("example", first); f.example != nil {
		s.Examples = []any{f.example}
	}
}

// impossible records rules that no value can satisfy together, since their function could never be
// called. It only finds contradictions between limits, and lists without a value.
func (c *compiler) impossible(f *fieldState) {
	for n, ok := f.position, true; ok; n, ok = n.elem(c.dir) {
		s := n.s
		if c.nodes[s] == nil {
			return // JSONSchemaExtend has replaced it
		}
		why := ""
		values := s.Enum
		if s.Const != nil {
			values = []any{s.Const}
		}
		few := func(low, high *uint64) bool { return low != nil && high != nil && *low > *high }
		switch {
		case len(values) > 0:
			if !slices.ContainsFunc(values, func(v any) bool { return c.nodes[s].valid([]byte(jsonText(v))) }) {
				why = "another rule refuses each value that is left; drop one of them"
			}
		case s.MultipleOf == "" && (s.Minimum+s.ExclusiveMinimum != "") && (s.Maximum+s.ExclusiveMaximum != ""):
			if _, ok := c.exampleNumber(s); !ok {
				why = "no number is within both limits; write the smaller one as the least"
			}
		case few(s.MinLength, s.MaxLength), few(s.MinItems, s.MaxItems), few(s.MinProperties, s.MaxProperties):
			why = "the least length is more than the most; write the smaller one as the least"
		}
		if why != "" {
			c.errorAt(f.where, "the rules %q allow nothing: %s", cmp.Or(f.sf.Tag.Get("validate"), f.sf.Tag.Get("jsonschema")), why)
			return
		}
	}
}

// memberComment returns the doc comment of a field.
func (c *compiler) memberComment(m member) string {
	if text := c.comment(m.owner, m.sf.Name); text != "" || m.owner.Name() != "" {
		return text
	}
	if at := c.placeOf(m); at.owner != nil {
		return c.comment(at.owner, at.path)
	}
	return ""
}

// comment returns the doc comment of the named type t, or of its member. Those of the standard
// library do not help a model.
func (c *compiler) comment(t reflect.Type, member string) string {
	if _, known := knownShapes[t]; known || c.o.Descriptions == nil || t.Name() == "" || t.PkgPath() == "" {
		return ""
	}
	return strings.TrimSpace(c.o.Descriptions.Text(t, member))
}

// placeOf returns the place of the descriptions of a field, and of those in its type if that has no
// name.
func (c *compiler) placeOf(m member) descriptionPlace {
	switch {
	case m.owner.Name() != "": // the struct, or an embedded one
		return descriptionPlace{m.owner, m.sf.Name}
	case c.desc.owner == nil:
		return descriptionPlace{}
	case c.desc.path == "":
		return descriptionPlace{c.desc.owner, m.sf.Name}
	}
	return descriptionPlace{c.desc.owner, c.desc.path + "." + m.sf.Name}
}

package reflectx

import (
	"cmp"
	"context"
	"encoding/json"
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
	{"validate", `validate:"required,min=2"`, "Rules of [validator/v10](https://pkg.go.dev/github.com/go-playground/validator/v10). The server enforces them. A rule that has a JSON Schema keyword is part of the schema; any other rule is part of the description. `enum` allows only the constants of the field's type. A field of an input is required unless it has `omitempty` or `omitzero` in either tag, a pointer type, a `default`, or a conditional rule such as `required_if` or `excluded_with`. Null for a field that is not required counts as absent. `required` makes any field required."},
	{"default", `default:"10"`, "The value of an absent field: text as it is, everything else as JSON. It must satisfy the rules."},
	{"desc", `desc:"Words to look for."`, "The description; it replaces the field's doc comment."},
	{"title", `title:"Query"`, "The name shown to people."},
	{"example", `example:"green tea"`, "An example for the schema, and for error messages about invalid arguments. It must satisfy the rules."},
	{"jsonschema", `jsonschema:"readOnly=true"`, "More schema keywords, in the syntax of [invopop/jsonschema](https://pkg.go.dev/github.com/invopop/jsonschema)."},
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
func (c *compiler) tagKeys(f *field) {
	rest := strings.TrimSpace(string(f.sf.Tag))
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
			if s, _ := c.shapeOf(inner); s == shapeStruct {
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
			if c.dir == forOutput && c.o.Unions[inner] == nil { // the encoder refuses it
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

// header checks the tag that mirrors a field into an HTTP header, by the x-mcp-header rules of MCP
// 2026-07-28. Uniqueness is checked when the whole schema is known.
func (c *compiler) header(f *field) {
	name, ok := f.sf.Tag.Lookup("header")
	if !ok || c.dir == forOutput {
		return
	}
	if !isToken(name) {
		c.errorf("the header name %q is not a token; write letters, digits and - only, such as header:\"Region\"", name)
		return
	}
	switch f.node.shape {
	case shapeString, shapeInt, shapeUint, shapeBool, shapeText, shapeTime, shapeDuration, shapeURL, shapeBytes:
	default:
		c.errorf("a header cannot mirror a %s; put it on a string, an integer or a bool", typeText(f.Type))
		return
	}
	if f.Secret {
		c.errorf("the field is secret, so no header may carry it; drop one of the two tags")
		return
	}
	f.Header = name
	c.headerRange(f.spec)
	if f.spec.kw.Extras == nil {
		f.spec.kw.Extras = map[string]any{}
	}
	f.spec.kw.Extras["x-mcp-header"] = name
}

// headerRange limits integers to those that every client can represent exactly, as the x-mcp-header
// rules require.
func (c *compiler) headerRange(n *spec) {
	const limit = "9007199254740991" // 2^53-1
	switch {
	case n.shape == shapeInt && n.t.Bits() == 64:
		c.compare(n, rule{tag: "min", param: "-" + limit})
		c.compare(n, rule{tag: "max", param: limit})
	case n.shape == shapeUint && n.t.Bits() == 64:
		c.compare(n, rule{tag: "max", param: limit})
	}
}

// isToken reports whether s is a token of HTTP (RFC 9110 section 5.6.2).
func isToken(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}

// headers makes the checks that need the root: duplicate names, and places that a client cannot
// reach through properties alone.
func (c *compiler) headers(o *object, reachable bool, names map[string]string, above map[*object]bool) {
	if above[o] || o.known != nil {
		return
	}
	above[o] = true
	defer delete(above, o)
	for _, f := range o.fields {
		c.enter(f, func() {
			if f.Header != "" {
				c.headerAt(f, o, reachable, names)
			}
			n, direct := f.node, reachable
			for n.elem != nil {
				n, direct = n.elem, false
			}
			for _, inner := range n.objects() {
				c.headers(inner, direct && n.union == nil, names, above)
			}
		})
	}
}

func (c *compiler) headerAt(f *field, o *object, reachable bool, names map[string]string) {
	if !reachable || o.recursive {
		c.errorf("the header %q stands within an array, a map or a type that contains itself, where no client looks; move the field up", f.Header)
		return
	}
	key := strings.ToLower(f.Header)
	if other := names[key]; other != "" {
		c.errorf("the header %q is taken by the field %s; choose another name", f.Header, other)
		return
	}
	names[key] = strings.Join(c.path, ".")
}

// textJSON returns the JSON for the text of a default or example tag at n: strings are taken as
// text, other values as JSON.
func textJSON(n *node, text string) json.RawMessage {
	switch n.shape {
	case shapeString, shapeBytes, shapeTime, shapeDuration, shapeURL, shapeText:
		return jsonx.AppendString(nil, text)
	}
	raw := []byte(strings.TrimSpace(text))
	if jsonx.Valid(raw) {
		raw, _ = jsonx.Compact(raw)
		return raw
	}
	return jsonx.AppendString(nil, text)
}

// defaultTag reads the tags default and example. They are checked when all rules are known.
func (c *compiler) defaultTag(f *field) {
	if text, ok := f.sf.Tag.Lookup("default"); ok {
		f.Default = textJSON(f.node, text)
		if f.Required && !c.o.Form {
			c.errorf("the field is required and has a default, which can never be used; drop one of the two")
		}
	}
	if text, ok := f.sf.Tag.Lookup("example"); ok {
		f.example = textJSON(f.node, text)
	}
}

// defaults checks the defaults and examples of every field, and decodes the defaults that values
// can share.
func (c *compiler) defaults(in *Input) {
	c.headers(in.root.obj, true, map[string]string{}, map[*object]bool{})
	c.walk(in.root, map[*object]bool{}, func(f *field) {
		if !c.sound(f) {
			return
		}
		if f.example != nil {
			if text := in.try(f, f.example, nil); text != "" {
				c.errorf("the example %s", text)
			}
		}
		if f.Default == nil {
			return
		}
		v := reflect.New(f.Type).Elem()
		if text := in.try(f, f.Default, &v); text != "" {
			c.errorf("the default %s", text)
			return
		}
		switch {
		case f.node.ptrs > 0:
		case f.node.shape == shapeBool, f.node.shape == shapeInt, f.node.shape == shapeUint, f.node.shape == shapeFloat,
			f.node.shape == shapeString, f.node.shape == shapeTime, f.node.shape == shapeDuration, f.node.shape == shapeNumber:
			f.ready = v
		}
	})
}

// try reads raw into the field f and returns what is wrong with it, or "".
func (in *Input) try(f *field, raw json.RawMessage, v *reflect.Value) string {
	fresh := reflect.New(f.Type).Elem()
	if v == nil {
		v = &fresh
	}
	var d decoder
	d.begin(context.Background(), in, raw)
	d.repair = false
	f.node.read(&d, f.node, 0, *v)
	if len(d.violations) == 0 {
		return ""
	}
	w := d.violations[0]
	text := "is " + w.Got + ", which is not " + w.Want
	if w.Got == "" {
		text = "lacks " + w.Want
	}
	if w.Pointer != "" {
		text = "at " + w.Pointer + " " + text
	}
	if w.Want == "" {
		text = "has an unknown member " + strconv.Quote(strings.TrimPrefix(w.Pointer, "/"))
	}
	return text + "; " + writeInstead(f.node)
}

// writeInstead returns an example of a default for the node's shape.
func writeInstead(n *node) string {
	switch n.shape {
	case shapeSlice, shapeArray:
		return `write JSON, such as ["a"] or [1]`
	case shapeMap, shapeStruct:
		return `write JSON, such as {"a":1}`
	}
	return "write one that is"
}

// sound reports whether the values of the field f can be checked: neither f nor a field below it
// has a mistake.
func (c *compiler) sound(f *field) bool {
	return len(c.errs) == 0 || !f.faulty && !f.node.faulty(map[*object]bool{})
}

// faulty reports whether a field below n has a mistake.
func (n *node) faulty(done map[*object]bool) bool {
	if n.elem != nil && n.elem.faulty(done) {
		return true
	}
	for _, o := range n.objects() {
		if done[o] || o.known != nil {
			continue
		}
		done[o] = true
		for _, f := range o.fields {
			if f.faulty || f.node.faulty(done) {
				return true
			}
		}
	}
	return false
}

// walk calls fn for every field below n, once for each object, with the place of errors set. It
// leaves known objects out.
func (c *compiler) walk(n *node, done map[*object]bool, fn func(*field)) {
	for n.elem != nil {
		n = n.elem
	}
	for _, o := range n.objects() {
		if done[o] || o.known != nil {
			continue
		}
		done[o] = true
		for _, f := range o.fields {
			c.enter(f, func() {
				c.walk(f.node, done, fn)
				fn(f)
			})
		}
	}
}

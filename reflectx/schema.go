package reflectx

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-playground/validator/v10"
	"github.com/invopop/jsonschema"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// OutputSchema returns the schema of the JSON of a value of type t, compact. Its root may be of any
// type; the caller wraps what is not an object. It does not contain the rules of validate tags, since
// results are not validated. The error is an [Errors].
func OutputSchema(site string, t reflect.Type, o InputOptions) (json.RawMessage, error) {
	c := newCompiler(site, o, forOutput)
	s, _ := c.root(t)
	if len(c.errs) > 0 {
		return nil, c.errs
	}
	return c.publish(s)
}

// A compiler makes the schema of one type: invopop/jsonschema reflects each struct, and one walk over
// the type and its schema folds tags, rules, constants and comments into it. The compiler collects
// all mistakes instead of stopping at the first.
type compiler struct {
	site     string
	path     []string // the fields on the way to the type that is being compiled
	o        InputOptions
	dir      direction
	params   bool // the root is made of plain parameters
	validate *validator.Validate
	errs     Errors
	above    []reflect.Type          // the structs around the type that is being compiled
	defs     map[reflect.Type]string // the names in $defs of the structs that contain themselves
	done     jsonschema.Definitions
	nodes    map[*jsonschema.Schema]*node
	hints    map[*jsonschema.Schema]*hint
	fields   []*fieldState
	samples  []sample
	depth    int               // of the example that is being made
	ruled    bool              // there are validate tags
	asks     string            // a rule that only the validator knows, of the type that is being compiled
	desc     descriptionPlace  // of the type that is being compiled
	headers  map[string]string // the fields by lower-case header
	within   int               // arrays and maps around the type that is being compiled
}

// A hint is what error messages and the decoder know about a value beyond its schema.
type hint struct {
	noun    string   // `a duration such as "1h30m"`; "" means that of the schema's type
	phrases []string // what the rules demand: `starting with "a"`
	checks  []string // rules that only the validator knows, for examples
	t       reflect.Type
	secret  bool
	struct_ bool // a struct by value, in which absent members have defaults
}

// A sample is a default or an example, which is checked when the schema is complete.
type sample struct {
	what string
	raw  json.RawMessage
	f    *fieldState
}

// A position is a value of type t, which is not a pointer, and its schema.
type position struct {
	s     *jsonschema.Schema
	t     reflect.Type
	isKey bool // the name of a member of a map
}

// elem returns the place of the elements of a slice, an array or a map.
func (n position) elem(dir direction) (position, bool) {
	switch shapeOf(n.t, dir) {
	case shapeSlice, shapeArray:
		return position{s: n.s.Items, t: indirectAll(n.t.Elem())}, n.s.Items != nil
	case shapeMap:
		return position{s: n.s.AdditionalProperties, t: indirectAll(n.t.Elem())}, n.s.AdditionalProperties != nil
	}
	return position{}, false
}

// takesNull reports whether null is a value of the type, so that it does not count as absent.
func (n position) takesNull(dir direction) bool {
	switch shapeOf(n.t, dir) {
	case shapeAny, shapeRaw, shapeCustom:
		return n.s.Type == "" && n.s.Ref == ""
	}
	return false
}

// A fieldState is a field while it is being compiled.
type fieldState struct {
	Field
	member
	position
	where      string // of mistakes
	example    json.RawMessage
	optional   bool     // the validate tag says that it may be absent
	conditions []string // its rules about other members, such as required_if
	dives      int
}

// A descriptionPlace is the place of a struct without a name: the type owner and the path to the
// field in it.
type descriptionPlace struct {
	owner reflect.Type
	path  string
}

func newCompiler(site string, o InputOptions, dir direction) *compiler {
	c := &compiler{
		site: site, o: o, dir: dir, validate: o.Validate, defs: map[reflect.Type]string{}, done: jsonschema.Definitions{},
		hints: map[*jsonschema.Schema]*hint{}, nodes: map[*jsonschema.Schema]*node{}, desc: descriptionPlace{o.Owner, o.Method}, headers: map[string]string{},
	}
	if c.validate == nil {
		c.validate = defaultValidate()
	}
	return c
}

// where returns the place of mistakes.
func (c *compiler) where() string {
	switch {
	case len(c.path) == 0:
		return c.site
	case c.params:
		return c.site + ", parameter " + strings.Join(c.path, ".")
	}
	return c.site + ", field " + strings.Join(c.path, ".")
}

// errorf records a mistake at the field being compiled.
func (c *compiler) errorf(format string, args ...any) { c.errorAt(c.where(), format, args...) }

func (c *compiler) errorAt(site, format string, args ...any) {
	err := &Error{Site: site, Msg: fmt.Sprintf(format, args...)}
	for _, e := range c.errs {
		if *e == *err {
			return // a type that is used twice is wrong once
		}
	}
	c.errs = append(c.errs, err)
}

func (c *compiler) hint(s *jsonschema.Schema) *hint {
	h := c.hints[s]
	if h == nil {
		h = &hint{}
		c.hints[s] = h
	}
	return h
}

// phrase adds what a rule demands to the error messages about s.
func (c *compiler) phrase(s *jsonschema.Schema, text string) {
	h := c.hint(s)
	h.phrases = append(h.phrases, text)
}

// note describes a rule without a keyword. "" for phrase adds nothing to error messages.
func (c *compiler) note(s *jsonschema.Schema, phrase, sentence string) {
	if phrase != "" {
		c.phrase(s, phrase)
	}
	s.Description = strings.TrimSpace(s.Description + " " + sentence)
}

// root compiles the type t.
func (c *compiler) root(t reflect.Type) (*jsonschema.Schema, []Field) {
	t = indirectAll(t)
	c.checkType(t)
	s := &jsonschema.Schema{}
	if len(c.errs) == 0 {
		s = c.reflectType(t)
	}
	s.Description = c.comment(t, "")
	fields := c.fold(position{s: s, t: t}, true)
	if c.o.OmitDescription {
		s.Description = ""
	}
	if len(c.done) > 0 {
		s.Definitions = c.done
	}
	return s, fields
}

// fold completes the schema of n, which invopop/jsonschema has made from the type alone, and returns
// the members of the object, or of the objects in it.
func (c *compiler) fold(n position, root bool) []Field {
	c.checkType(n.t)
	h := c.hint(n.s)
	h.t, h.noun = n.t, nouns[shapeOf(n.t, c.dir)]
	switch shapeOf(n.t, c.dir) {
	case shapeText:
		h.noun = "the text of a " + n.t.Name()
	case shapeCustom:
		if n.s.Type == "" {
			h.noun = "a " + n.t.Name()
		}
	case shapeMap:
		if n.s.PropertyNames != nil {
			c.hint(n.s.PropertyNames).t = n.t.Key()
		}
	case shapeStruct:
		return c.object(n, root)
	}
	if elem, ok := n.elem(c.dir); ok && c.endless(n.t) == nil {
		c.within++
		fields := c.fold(elem, false)
		c.within--
		if c.dir == forOutput && n.t.Elem().Kind() == reflect.Pointer {
			nullable(elem.s)
		}
		return fields
	}
	return nil
}

// nullable lets the schema of an output be null, as a nil pointer is encoded. Many clients support
// only one type in one place, so type is not a list.
func nullable(s *jsonschema.Schema) {
	inner := *s
	inner.Title, inner.Description = "", ""
	*s = jsonschema.Schema{Title: s.Title, Description: s.Description, AnyOf: []*jsonschema.Schema{&inner, {Type: "null"}}}
}

// object completes the schema of a struct. A struct that contains itself goes to $defs; others are
// written where they are used.
func (c *compiler) object(n position, root bool) []Field {
	t, s := n.t, n.s
	if slices.Contains(c.above, t) {
		c.refer(s, t)
		return nil
	}
	c.above = append(c.above, t)
	defer func() { c.above = c.above[:len(c.above)-1] }()
	outer := c.desc
	if t.Name() != "" {
		c.desc = descriptionPlace{owner: t}
	}
	defer func() { c.desc = outer }()

	members := c.members(t)
	props := c.properties(t, members)
	s.Properties, s.Required, s.AdditionalProperties = jsonschema.NewProperties(), nil, jsonschema.FalseSchema
	fields := make([]Field, 0, len(members))
	for _, m := range members {
		p := props[m.name]
		if p == nil {
			p = &jsonschema.Schema{}
		}
		c.enter(m, func() {
			f := c.field(m, p)
			fields = append(fields, f.Field)
			if f.Required && c.dir == forInput || c.dir == forOutput && !m.mayOmit && !m.behind {
				s.Required = append(s.Required, m.name)
			}
		})
		s.Properties.Set(m.name, p)
	}
	c.extend(s, t)
	s.Required = slices.DeleteFunc(s.Required, func(name string) bool { _, ok := s.Properties.Get(name); return !ok })
	if name := c.defs[t]; name != "" {
		for _, f := range fields {
			if f.Header != "" {
				c.errorf(headerOutOfReach, f.Header)
			}
		}
		def := *s
		def.Title, def.Description = "", c.comment(t, "")
		c.done[name] = &def
		c.hints[&def] = c.hints[s]
		if !root {
			c.refer(s, t)
		}
	}
	return fields
}

// refer makes s a reference to the definition of t, which has the comment of t.
func (c *compiler) refer(s *jsonschema.Schema, t reflect.Type) {
	*s = jsonschema.Schema{Title: s.Title, Description: s.Description, Ref: "#/$defs/" + c.defName(t)}
	if s.Description == c.comment(t, "") {
		s.Description = ""
	}
}

// enter runs fn with the field as the place of mistakes.
func (c *compiler) enter(m member, fn func()) {
	name := m.sf.Name
	if c.params && len(c.path) == 0 {
		name = strconv.Quote(m.name)
	}
	c.path = append(c.path, name)
	fn()
	c.path = c.path[:len(c.path)-1]
}

// properties lets invopop/jsonschema reflect the members of t.
func (c *compiler) properties(t reflect.Type, members []member) (props map[string]*jsonschema.Schema) {
	fields := make([]reflect.StructField, len(members))
	for i, m := range members {
		tag := "json:" + strconv.Quote(m.name)
		for _, key := range []string{"jsonschema", "jsonschema_description", "jsonschema_extras"} {
			if v, ok := m.sf.Tag.Lookup(key); ok && !isFreeText(v) {
				tag += " " + key + ":" + strconv.Quote(v)
			}
		}
		fields[i] = reflect.StructField{Name: m.sf.Name, Type: m.sf.Type, Tag: reflect.StructTag(tag)}
	}
	props = map[string]*jsonschema.Schema{}
	defer func() {
		if p := recover(); p != nil { // the author needs to know where
			c.errorf("the tags of %s cannot be read: %v", typeText(t), p)
		}
	}()
	s := c.reflectType(hullType, fields...)
	for p := s.Properties.Oldest(); p != nil; p = p.Next() {
		props[p.Key] = p.Value
	}
	return props
}

// field completes the schema p of a member: its type, then its tags.
func (c *compiler) field(m member, p *jsonschema.Schema) *fieldState {
	t := indirectAll(m.sf.Type)
	f := &fieldState{member: m, position: position{s: p, t: t}, where: c.where()}
	c.fields = append(c.fields, f)
	f.Name, f.GoName, f.Index, f.Type = m.name, m.sf.Name, m.index, m.sf.Type
	tag := m.sf.Tag
	c.tagKeys(m.sf)

	p.Description = cmp.Or(tag.Get("desc"), freeText(tag.Get("jsonschema")), p.Description, c.memberComment(m))
	if p.Description == "" && shapeOf(t, c.dir) == shapeCustom {
		p.Description = c.ownSchema(t).Description // which the reflector has dropped
	}
	p.Description = cmp.Or(p.Description, c.comment(t, ""))
	p.Title = cmp.Or(tag.Get("title"), p.Title)

	outerDesc, outerAsks := c.desc, c.asks
	c.desc, c.asks = c.placeOf(m), ""
	f.Fields = c.fold(f.position, false)
	c.desc = outerDesc
	below := c.asks

	f.Complete, f.Secret = tag.Get("complete"), c.boolTag(tag, "secret")
	h := c.hint(p)
	h.secret = f.Secret
	h.struct_ = m.sf.Type.Kind() == reflect.Struct && len(f.Fields) > 0
	c.schemaTag(f)
	if c.dir == forInput { // results are not validated, so their schema must not promise the rules
		c.rules(f)
		c.header(f)
		if below != "" && levels(m.sf.Type) > f.dives {
			c.errorf("the elements have the rule %q, which is asked only where the validate tag says dive; write validate:\"dive\"", below)
		}
	}
	c.asks = cmp.Or(outerAsks, c.asks)
	for n, ok := f.position, true; ok; n, ok = n.elem(c.dir) {
		c.describeEnum(n)
		if s := n.s; c.dir == forInput && s.ContentEncoding == "base64" && s.MaxLength != nil && *s.MaxLength == *encodedLen(maxBytes) {
			c.note(s, "", "Base64, at most 1 MiB.")
		}
	}
	c.defaultTag(f)
	c.presence(f)
	c.describe(f)
	if c.dir == forOutput && m.sf.Type.Kind() == reflect.Pointer && (!m.mayOmit || m.sf.Type.Elem().Kind() == reflect.Pointer) {
		nullable(p)
	}
	return f
}

// levels returns how many slices, arrays and maps lie around the elements of t.
func levels(t reflect.Type) (n int) {
	for {
		switch t.Kind() {
		case reflect.Slice, reflect.Array, reflect.Map:
			n++
		case reflect.Pointer:
		default:
			return n
		}
		t = t.Elem()
	}
}

// presence decides whether the member is required. It is, unless something makes it optional.
func (c *compiler) presence(f *fieldState) {
	if c.dir == forOutput {
		return
	}
	if c.o.Form && f.sf.Type.Kind() == reflect.Bool && f.Default == nil && f.s.Const == nil {
		f.Default = json.RawMessage("false") // an unchecked box
		f.s.Default = false
	}
	switch {
	case f.Required && f.Default != nil && !c.o.Form:
		c.errorf("the field is required and has a default, which can never be used; drop one of the two")
	case f.Required && len(f.conditions) > 0:
		c.errorf("the field is required, so rule %q says nothing or contradicts it; drop one of the two", f.conditions[0])
	}
	optional := f.mayOmit || f.behind || f.optional || f.sf.Type.Kind() == reflect.Pointer || f.Default != nil || len(f.conditions) > 0
	f.Required = f.Required || !optional
}

// describe completes the description of f.
func (c *compiler) describe(f *fieldState) {
	s := f.s
	if slices.ContainsFunc(strings.Split(s.Description, "\n\n"), func(p string) bool { return strings.HasPrefix(p, "Deprecated: ") }) {
		s.Deprecated = true
	}
	if c.o.NoSchema {
		limits := ""
		if want := wantOf(s, c.hint(s), f.isKey); want != "a string" {
			limits = " Must be " + want + "."
		}
		if f.Default != nil {
			limits += " Default: " + string(f.Default) + "."
		}
		if d := s.Description; limits != "" && d != "" && !strings.ContainsAny(d[len(d)-1:], ".!?") {
			s.Description += "."
		}
		s.Description = strings.TrimSpace(s.Description + limits)
	}
	f.Description, f.Title = s.Description, s.Title
	for _, e := range s.Enum {
		f.Enum = append(f.Enum, enumText(e))
	}
}

// extend calls the method JSONSchemaExtend of the struct type t, if it has one. What it changes is
// enforced, like the rest of the schema.
func (c *compiler) extend(s *jsonschema.Schema, t reflect.Type) {
	e, ok := reflect.New(t).Interface().(interface{ JSONSchemaExtend(*jsonschema.Schema) })
	if !ok {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			c.errorf("the method JSONSchemaExtend of %s panics: %v", typeText(t), p)
		}
	}()
	e.JSONSchemaExtend(s)
}

// defName returns the name of t in $defs: the last part of its package and the type's name, or the
// whole path if two would be the same.
func (c *compiler) defName(t reflect.Type) string {
	if name := c.defs[t]; name != "" {
		return name
	}
	name := safeName(t.String())
	taken := func(name string) bool {
		for _, other := range c.defs {
			if other == name {
				return true
			}
		}
		return false
	}
	if taken(name) {
		name = qualifiedName(t)
	}
	for i := 2; taken(name); i++ {
		name = safeName(t.String()) + "_" + strconv.Itoa(i)
	}
	c.defs[t] = name
	return name
}

// qualifiedName returns a name for t that no other type has, and "" for a type without a name.
func qualifiedName(t reflect.Type) string {
	if t.Name() == "" {
		return ""
	}
	return safeName(t.PkgPath() + "." + t.Name())
}

// safeName removes the characters of a Go type name that need an escape in a JSON pointer or a URI
// fragment.
func safeName(s string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, s), "_")
}

// publish returns the schema as compact JSON, with keywords in an order that is good to read.
func (c *compiler) publish(s *jsonschema.Schema) (json.RawMessage, error) {
	raw, err := jsonx.Marshal(s)
	if err != nil {
		return nil, Errors{{Site: c.site, Msg: "the schema cannot be encoded: " + err.Error()}}
	}
	return appendOrdered(nil, raw), nil
}

// keywordOrder is the order of keywords; others, except for $defs, follow.
var keywordOrder = strings.Fields(`$ref type title description const enum format pattern minLength maxLength minimum exclusiveMinimum maximum
	exclusiveMaximum multipleOf minItems maxItems uniqueItems minProperties maxProperties contentEncoding contentMediaType
	properties propertyNames items prefixItems required additionalProperties anyOf oneOf allOf not dependentRequired default examples deprecated`)

// appendOrdered appends a schema with its keywords, and those of the schemas in it, in order.
func appendOrdered(dst, schema []byte) []byte {
	if jsonx.Kind(schema) != '{' {
		return append(dst, schema...)
	}
	type keyword struct {
		rank        int
		name, value []byte
	}
	var keywords []keyword
	for name, value := range jsonx.Members(schema) {
		rank := slices.Index(keywordOrder, jsonx.String(name))
		switch {
		case jsonx.IsString(name, "$defs"):
			rank = len(keywordOrder) + 1
		case rank < 0:
			rank = len(keywordOrder)
		}
		keywords = append(keywords, keyword{rank, name, value})
	}
	slices.SortStableFunc(keywords, func(a, b keyword) int { return cmp.Compare(a.rank, b.rank) })
	dst = append(dst, '{')
	for _, k := range keywords {
		dst = append(append(jsonx.AppendComma(dst), k.name...), ':')
		switch jsonx.String(k.name) {
		case "properties", "$defs":
			dst = jsonx.AppendEdited(dst, k.value, func(_, value []byte) []byte { return appendOrdered(nil, value) })
		case "items", "additionalProperties", "propertyNames", "not":
			dst = appendOrdered(dst, k.value)
		case "anyOf", "oneOf", "allOf", "prefixItems":
			dst = append(dst, '[')
			for one := range jsonx.Elements(k.value) {
				dst = appendOrdered(jsonx.AppendComma(dst), one)
			}
			dst = append(dst, ']')
		default:
			dst = append(dst, k.value...)
		}
	}
	return append(dst, '}')
}

// judgeOnce passes a populated value to the validator, which parses the tags of all fields and runs
// their rules, so that a rule that panics is found when the type is registered.
func (c *compiler) judgeOnce(t reflect.Type) {
	v := reflect.New(t)
	populate(v.Elem(), 0)
	defer func() {
		if p := recover(); p != nil {
			c.errorf("the validator does not take %s: %v", typeText(t), p)
		}
	}()
	_ = c.validate.StructCtx(context.Background(), v.Interface())
}

// populate fills v with values other than zero: one element in each slice and map, and a target for
// each pointer. depth ends types that contain themselves.
func populate(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Pointer:
		if depth < 8 {
			v.Set(reflect.New(v.Type().Elem()))
			populate(v.Elem(), depth+1)
		}
	case reflect.Slice:
		if depth < 8 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			populate(v.Index(0), depth+1)
		}
	case reflect.Array:
		for i := range min(v.Len(), 1) {
			populate(v.Index(i), depth+1)
		}
	case reflect.Map:
		if depth < 8 {
			key, elem := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			populate(key, depth+1)
			populate(elem, depth+1)
			v.Set(reflect.MakeMap(v.Type()))
			v.SetMapIndex(key, elem)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				populate(v.Field(i), depth+1)
			}
		}
	case reflect.String:
		v.SetString("a")
	case reflect.Interface:
		if v.NumMethod() == 0 {
			v.Set(reflect.ValueOf("a"))
		}
	case reflect.Bool:
		v.SetBool(true)
	default:
		switch {
		case v.CanInt():
			v.SetInt(1)
		case v.CanUint():
			v.SetUint(1)
		case v.CanFloat():
			v.SetFloat(1)
		}
	}
}

package reflectx

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/invopop/jsonschema"
)

// OutputSchema returns the schema of the JSON of a value of type t, compact. Its root may be of any
// type; the caller wraps what is not an object. It has the members and their types: results are not
// validated, so it has no limits, and of the words only those of tags. The error is an [Errors].
func OutputSchema(site string, t reflect.Type, o InputOptions) (json.RawMessage, error) {
	c := newCompiler(site, o, forOutput)
	return c.publish(c.root(t)), c.errs.Err()
}

// A compiler makes the schema of one type: invopop/jsonschema reflects each struct, and one walk over
// the type and its schema folds tags, rules, constants and comments into it. The compiler collects
// all mistakes instead of stopping at the first.
type compiler struct {
	site    string
	path    []string // the fields on the way to the type that is being compiled
	o       InputOptions
	dir     direction
	params  bool // the root is made of plain parameters
	errs    Errors
	fields  []Field                 // of the root
	above   []reflect.Type          // the structs around the type that is being compiled
	defs    map[reflect.Type]string // the names in $defs of the structs that contain themselves
	done    jsonschema.Definitions
	nodes   map[*jsonschema.Schema]*node
	samples []sample
	depth   int               // of the type that is being reflected
	asked   bool              // there may be rules that only the validator knows
	secrets bool              // there are secrets
	place   place             // of the descriptions of the type that is being compiled
	headers map[string]string // the fields by lower-case header
	within  int               // arrays and maps around the type that is being compiled
}

// A sample is a default or an example, which is checked when the schema is complete.
type sample struct {
	site, what string
	raw        json.RawMessage
	s          *jsonschema.Schema
	t          reflect.Type
}

// A position is a value of type t, which is not a pointer, and its schema.
type position struct {
	s *jsonschema.Schema
	t reflect.Type
}

// elem returns the place of the elements of a slice, an array or a map.
func (n position) elem(dir direction) (position, bool) {
	switch shapeOf(n.t, dir) {
	case shapeSlice, shapeArray:
		return position{n.s.Items, indirectAll(n.t.Elem())}, n.s.Items != nil
	case shapeMap:
		return position{n.s.AdditionalProperties, indirectAll(n.t.Elem())}, n.s.AdditionalProperties != nil
	}
	return position{}, false
}

// isIntKey reports whether the value is the name of a member, which is a string, and an integer in Go.
func (n position) isIntKey() bool {
	zero := reflect.Zero(n.t)
	return n.s.Type == "" && (zero.CanInt() || zero.CanUint())
}

// A fieldState is a field while it is being compiled.
type fieldState struct {
	Field
	*member
	position
	optional  bool   // the validate tag says that it may be absent
	condition string // a rule about other members, such as required_if
	dives     int
}

// A place is where the descriptions of a struct or a field are: the type owner, and the path to the
// field in it.
type place struct {
	owner reflect.Type
	path  string
}

func newCompiler(site string, o InputOptions, dir direction) *compiler {
	c := &compiler{
		site: site, o: o, dir: dir, asked: o.Validate != nil, defs: map[reflect.Type]string{}, done: jsonschema.Definitions{},
		nodes: map[*jsonschema.Schema]*node{}, place: place{o.Owner, o.Method}, headers: map[string]string{},
	}
	if c.o.Validate == nil {
		c.o.Validate = defaultValidate()
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
func (c *compiler) errorf(format string, args ...any) {
	err := &Error{Site: c.where(), Msg: fmt.Sprintf(format, args...)}
	if !slices.ContainsFunc(c.errs, func(e *Error) bool { return *e == *err }) { // a type that is used twice is wrong once
		c.errs = append(c.errs, err)
	}
}

// node returns what checks the values of a schema.
func (c *compiler) node(s *jsonschema.Schema) *node {
	n := c.nodes[s]
	if n == nil {
		n = &node{}
		c.nodes[s] = n
	}
	return n
}

// note adds a sentence to the description.
func note(s *jsonschema.Schema, sentence string) {
	s.Description = strings.TrimSpace(s.Description + " " + sentence)
}

// root compiles the type t.
func (c *compiler) root(t reflect.Type) *jsonschema.Schema {
	c.noNullable(t)
	t = indirectAll(t)
	c.checkType(t)
	s := &jsonschema.Schema{}
	if len(c.errs) == 0 {
		c.recovered(t, func() { s = c.mapType(t) })
	}
	s.Description = "" // that of the function describes its input, too
	c.fold(position{s, t})
	s.Definitions = c.done
	return s
}

// recovered calls fn. A panic, of invopop/jsonschema or of a method of the type, is a mistake.
func (c *compiler) recovered(t reflect.Type, fn func()) {
	defer func() {
		if p := recover(); p != nil {
			c.errorf("the schema of %s cannot be made: %v", typeText(t), p)
		}
	}()
	fn()
}

// fold completes the schema of n, which invopop/jsonschema has made from the type alone.
func (c *compiler) fold(n position) {
	c.checkType(n.t)
	c.node(n.s).t = n.t
	if shapeOf(n.t, c.dir) == shapeStruct {
		c.object(n)
	}
	elem, ok := n.elem(c.dir)
	if !ok {
		return
	}
	c.noNullable(n.t.Elem())
	c.within++
	c.fold(elem)
	c.within--
	c.node(n.s).asks = c.node(elem.s).asks
	if c.dir == forOutput && n.t.Elem().Kind() == reflect.Pointer {
		nullable(elem.s)
	}
}

// nullable lets s be null, as a nil pointer in a result is encoded. Many clients support only one type
// in one place, so type is not a list.
func nullable(s *jsonschema.Schema) {
	inner := *s
	inner.Title, inner.Description = "", ""
	*s = jsonschema.Schema{Title: s.Title, Description: s.Description, AnyOf: []*jsonschema.Schema{&inner, {Type: "null"}}}
}

// object completes the schema of a struct. A struct that contains itself goes to $defs; others are
// written where they are used.
func (c *compiler) object(n position) {
	t, s, isRoot := n.t, n.s, len(c.path)+c.within == 0
	if slices.Contains(c.above, t) {
		c.refer(s, t)
		return
	}
	c.above = append(c.above, t)
	outer := c.place
	defer func() { c.above, c.place = c.above[:len(c.above)-1], outer }()
	if t.Name() != "" {
		c.place = place{owner: t}
	}

	members := c.members(t)
	c.properties(s, t, members)
	fields := make([]Field, 0, len(members))
	for _, m := range members {
		p, ok := s.Properties.Get(m.name)
		if !ok {
			p = &jsonschema.Schema{}
			s.Properties.Set(m.name, p)
		}
		c.enter(m, func() {
			f := c.field(m, p)
			fields = append(fields, f.Field)
			c.node(s).asks = cmp.Or(c.node(s).asks, c.node(p).asks)
			if f.Required && c.dir == forInput || c.dir == forOutput && !m.mayOmit && !m.behind {
				s.Required = append(s.Required, m.name)
			}
		})
	}
	if name := c.defs[t]; name != "" {
		for _, f := range fields {
			if f.Header != "" {
				c.errorf(headerOutOfReach, f.Header)
			}
		}
		def := *s
		def.Title, def.Description = "", c.comment(place{owner: t})
		c.done[name] = &def
		c.nodes[&def] = c.nodes[s]
		if !isRoot {
			c.refer(s, t)
		}
	}
	if isRoot {
		c.fields = fields
	}
}

// refer makes s a reference to the definition of t, which has the comment of t.
func (c *compiler) refer(s *jsonschema.Schema, t reflect.Type) {
	name := c.defs[t]
	if name == "" { // unlike the others: a letter, a digit, '.', '-' or '_' need no escape in a reference
		isUnsafe := func(r rune) bool { return !strings.ContainsRune(alphanumeric+".-_", r) }
		name = strings.Join(strings.FieldsFunc(t.String(), isUnsafe), "_")
		for _, other := range c.defs {
			if other == name {
				name += "_" + strconv.Itoa(len(c.defs)+1)
			}
		}
		c.defs[t] = name
	}
	*s = jsonschema.Schema{Title: s.Title, Description: s.Description, Ref: "#/$defs/" + name}
	if s.Description == c.comment(place{owner: t}) {
		s.Description = ""
	}
}

const alphanumeric = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// enter runs fn with the field as the place of mistakes.
func (c *compiler) enter(m *member, fn func()) {
	name := m.sf.Name
	if c.params && len(c.path) == 0 {
		name = strconv.Quote(m.name)
	}
	c.path = append(c.path, name)
	fn()
	c.path = c.path[:len(c.path)-1]
}

// properties lets invopop/jsonschema reflect the members of t, which is that of s.
func (c *compiler) properties(s *jsonschema.Schema, t reflect.Type, members []*member) {
	fields := make([]reflect.StructField, len(members))
	for i, m := range members {
		tag := "json:" + strconv.Quote(m.name)
		if keywords := m.sf.Tag.Get("jsonschema"); keywords != "" && freeText(keywords) == "" {
			tag += " jsonschema:" + strconv.Quote(keywords)
		}
		fields[i] = reflect.StructField{Name: m.sf.Name, Type: indirectAll(m.sf.Type), Tag: reflect.StructTag(tag)}
	}
	r := jsonschema.Reflector{
		Anonymous: true, ExpandedStruct: true, DoNotReference: true, Mapper: c.mapType,
		AdditionalFields: func(reflect.Type) []reflect.StructField { return fields },
	}
	if c.o.Schema == nil && c.dir == forInput {
		s.AdditionalProperties = jsonschema.FalseSchema
	}
	s.Properties = jsonschema.NewProperties()
	c.recovered(t, func() { s.Properties = r.ReflectFromType(hullType).Properties })
}

// field completes the schema p of a member: its type, then its tags.
func (c *compiler) field(m *member, p *jsonschema.Schema) *fieldState {
	f := &fieldState{member: m, position: position{p, indirectAll(m.sf.Type)}}
	f.Name, f.Type = m.name, m.sf.Type
	f.Complete, f.Secret = m.sf.Tag.Get("complete"), m.sf.Tag.Get("secret") == "true"
	c.tagKeys(m.sf.Tag)
	c.words(f)

	outer := c.place
	c.place = c.placeOf(m)
	c.fold(f.position)
	c.place = outer

	h := c.node(p)
	below := h.asks
	h.secret, c.secrets = f.Secret, c.secrets || f.Secret
	p.WriteOnly = p.WriteOnly || f.Secret // so that gateways and forms know
	h.struct_ = shapeOf(m.sf.Type, c.dir) == shapeStruct
	c.schemaTag(f)
	if c.dir == forInput { // results are not validated, so their schema must not promise the rules
		c.rules(f)
		c.header(f)
	}
	levels := -1 // of slices, arrays and maps
	for n, ok := f.position, true; ok; n, ok = n.elem(c.dir) {
		levels++
		c.describeEnum(n)
		if c.dir == forInput && isAtMost1MiB(n.s) {
			note(n.s, "Base64, at most 1 MiB.")
		}
	}
	if below != "" && levels > f.dives {
		c.errorf("the elements have the rule %q, which is asked only where the validate tag says dive; "+
			"write validate:\"dive\"", below)
	}
	c.samplesOf(f)
	c.presence(f)
	c.describe(f)
	t := m.sf.Type
	mayBeNil := c.dir == forOutput && t.Kind() == reflect.Pointer && (!m.mayOmit || t.Elem().Kind() == reflect.Pointer)
	if isNullable(t) || mayBeNil {
		nullable(p)
		own := *h // a definition has h, too
		own.null = true
		c.nodes[p] = &own
	}
	if isNullable(t) {
		value := p.AnyOf[0]
		p.Default, p.Examples, value.Default, value.Examples = value.Default, value.Examples, nil, nil
	}
	return f
}

// words sets the title and the description: of the tags, of the schema that the type has, of the
// comment at the field, or of that at its type.
func (c *compiler) words(f *fieldState) {
	s, tag := f.s, f.sf.Tag
	s.Title = cmp.Or(tag.Get("title"), s.Title)
	s.Description = cmp.Or(tag.Get("desc"), freeText(tag.Get("jsonschema")), s.Description, c.comment(c.placeOf(f.member)))
	if s.Description == "" && shapeOf(f.t, c.dir) == shapeCustom {
		c.recovered(f.t, func() { s.Description = c.ownSchema(f.t).Description }) // which the reflector has dropped
	}
	s.Description = cmp.Or(s.Description, c.comment(place{owner: f.t}))
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
	case f.Required && f.condition != "":
		c.errorf("the field is required, so rule %q says nothing or contradicts it; drop one of the two", f.condition)
	}
	mayBeNil := f.behind || f.sf.Type.Kind() == reflect.Pointer || isNullable(f.sf.Type)
	f.Required = f.Required || c.o.Schema == nil && !(mayBeNil || f.mayOmit || f.optional || f.Default != nil || f.condition != "")
}

// describe completes the description of f.
func (c *compiler) describe(f *fieldState) {
	s := f.s
	if strings.HasPrefix(s.Description, "Deprecated: ") || strings.Contains(s.Description, "\n\nDeprecated: ") {
		s.Deprecated = true
	}
	if c.o.NoSchema {
		limits := ""
		if want := wantOf(s, ""); want != "a string" {
			limits = "Must be " + want + "."
		}
		if f.Default != nil {
			limits += " Default: " + string(f.Default) + "."
		}
		if d := s.Description; limits != "" && d != "" && !strings.ContainsAny(d[len(d)-1:], ".!?") {
			s.Description += "."
		}
		note(s, strings.TrimSpace(limits))
	}
	f.Description, f.Title = s.Description, s.Title
	for _, e := range s.Enum {
		f.Enum = append(f.Enum, plainText(e))
	}
}

// placeOf returns the place of the description of a field, and of those in its type if that has no
// name.
func (c *compiler) placeOf(m *member) place {
	if m.owner.PkgPath() != "" { // the struct, or an embedded one
		return place{m.owner, m.sf.Name}
	}
	return place{c.place.owner, strings.TrimPrefix(c.place.path+"."+m.sf.Name, ".")}
}

// comment returns the doc comment at a place. Those of the standard library do not help a model, and
// those of results would be sent for each tool before it is called.
func (c *compiler) comment(at place) string {
	_, known := knownShapes[at.owner]
	if known || c.dir == forOutput || at.owner == nil || c.o.Descriptions == nil || at.owner.PkgPath() == "" {
		return ""
	}
	return strings.TrimSpace(c.o.Descriptions.Text(at.owner, at.path))
}

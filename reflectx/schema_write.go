package reflectx

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/invopop/jsonschema"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// publish writes the schema of the tree of n. Objects are written where they are used; only
// recursive ones go to $defs.
func (c *compiler) publish(n *spec) json.RawMessage {
	w := &schemaWriter{c: c, names: map[*object]string{}, defs: map[string]bool{}}
	root := *n
	if n.obj != nil {
		root.kw = c.clone(n.kw)
		switch {
		case c.o.OmitDescription:
			root.kw.Description = ""
		case root.kw.Description == "":
			root.kw.Description = c.typeComment(n.t)
		}
	}
	buf := schemaBuffers.Get().(*[]byte)
	defer schemaBuffers.Put(buf)
	*buf = w.spec((*buf)[:0], &root, true)
	if len(w.pending) == 0 {
		return slices.Clone(*buf)
	}
	out := append(slices.Clone((*buf)[:len(*buf)-1]), `,"$defs":`...)
	defs := memberWriter{b: append(out, '{')}
	for i := 0; i < len(w.pending); i++ { // writing one may add more
		o := w.pending[i]
		def := &spec{node: &node{t: o.t, shape: shapeStruct, obj: o}, kw: &jsonschema.Schema{Type: "object"}}
		def.kw.Description = c.typeComment(o.t)
		defs.b = w.spec(defs.name(w.names[o]), def, true)
	}
	return append(defs.b, '}', '}')
}

// clone returns a copy of kw that may be kept.
func clone(kw *jsonschema.Schema) *jsonschema.Schema {
	c := *kw
	return &c
}

// clone returns a copy of kw that is valid until c is recycled.
func (c *compiler) clone(kw *jsonschema.Schema) *jsonschema.Schema {
	fresh := c.schema()
	*fresh = *kw
	return fresh
}

// schema returns an empty schema that is valid until c is recycled. A schema takes nearly a
// kilobyte, and every spec has one until it is written.
func (c *compiler) schema() *jsonschema.Schema {
	kw := schemas.Get().(*jsonschema.Schema)
	c.schemas = append(c.schemas, kw)
	return kw
}

// newSpec returns an empty spec that is valid until c is recycled.
func (c *compiler) newSpec() *spec {
	n := specs.Get().(*spec)
	n.node, n.keep = &n.room, -1
	if c.dir == forInput {
		n.node = &node{}
	}
	c.specs = append(c.specs, n)
	return n
}

// recycle takes back the schemas and specs of c. Nothing refers to them any longer: the fields of
// inputs have dropped them, and the schemas have been written. Without these pools, registering a
// thousand tools takes 57 MB instead of 32 MB.
func (c *compiler) recycle() {
	for _, kw := range c.schemas {
		*kw = jsonschema.Schema{}
		schemas.Put(kw)
	}
	for _, n := range c.specs {
		*n = spec{}
		specs.Put(n)
	}
	c.schemas, c.specs = nil, nil
}

var (
	schemaBuffers = sync.Pool{New: func() any { return new([]byte) }}

	schemas = sync.Pool{New: func() any { return new(jsonschema.Schema) }}
	specs   = sync.Pool{New: func() any { return new(spec) }}
)

// A schemaWriter writes schemas as compact JSON, with members in an order that is good to read.
type schemaWriter struct {
	c       *compiler
	names   map[*object]string // the names of the objects in $defs
	defs    map[string]bool
	pending []*object
}

// spec writes the schema at n. If inline is true, it writes an object in place even if the object
// is recursive.
func (w *schemaWriter) spec(dst []byte, n *spec, inline bool) []byte {
	if w.c.dir == forOutput && n.nilable() && !inline {
		// A nil pointer encodes as null. Many clients support only one type, so type is not an
		// array.
		notNil := *n
		notNil.there, notNil.kw = true, w.c.clone(n.kw)
		outer := memberWriter{b: append(dst, '{')}
		outer.text("title", n.kw.Title)
		outer.text("description", n.kw.Description)
		notNil.kw.Title, notNil.kw.Description = "", ""
		dst = w.spec(append(outer.name("anyOf"), '['), &notNil, false)
		return append(dst, `,{"type":"null"}]}`...)
	}
	kw := n.kw
	if n.obj != nil && w.c.dir == forInput && w.c.hasStructRule(n.obj.t) {
		kw = w.c.clone(kw)
		kw.Description = strings.TrimSpace(kw.Description + " " + structRuleNote)
	}
	if n.obj != nil && n.obj.recursive && !inline {
		kw = clone(kw)
		kw.Type, kw.Ref = "", "#/$defs/"+w.defName(n.obj)
		if kw.Description == w.c.typeComment(n.obj.t) {
			kw.Description = "" // $defs says it
		}
	}
	if n.obj != nil && !n.own {
		kw = w.extended(n, kw)
		if len(n.obj.rules) > 0 && kw.Ref == "" {
			kw = clone(kw)
			kw.AllOf = slices.Clone(kw.AllOf)
			kw.DependentRequired = maps.Clone(kw.DependentRequired)
			for _, r := range n.obj.rules {
				r.publish(n.obj, kw)
			}
		}
	}
	s := memberWriter{b: append(dst, '{')}
	s.before(kw)
	switch {
	case kw.Ref != "" || n.own:
	case n.shape == shapeStruct:
		w.object(&s, n.obj, kw)
		if kw.Properties != nil || kw.Required != nil || kw.AdditionalProperties != nil {
			kw = clone(kw)
			kw.Properties, kw.Required, kw.AdditionalProperties = nil, nil, nil // written
		}
	case n.shape == shapeMap:
		w.mapping(&s, n)
	case n.union != nil:
		w.union(&s, n.union)
	case n.elem != nil:
		s.b = w.spec(s.name("items"), n.elem, false)
	}
	s.after(kw)
	return append(s.b, '}')
}

var schemaExtender = reflect.TypeFor[interface{ JSONSchemaExtend(*jsonschema.Schema) }]()

// nilable reports whether values of n may be encoded as null.
func (n *spec) nilable() bool { return !n.there && (n.ptrs > 0 || n.shape == shapeUnion) }

// extended applies the method JSONSchemaExtend of the struct, if it has one. The method may change
// the keywords of the object and of its fields. Fields that it adds or removes are ignored, since
// the decoder does not know about them.
func (w *schemaWriter) extended(n *spec, kw *jsonschema.Schema) (out *jsonschema.Schema) {
	if kw.Ref != "" || !reflect.PointerTo(n.t).Implements(schemaExtender) {
		return kw
	}
	e := reflect.New(n.t).Interface().(interface{ JSONSchemaExtend(*jsonschema.Schema) })
	out = clone(kw)
	out.Properties = jsonschema.NewProperties()
	for _, f := range n.obj.fields {
		out.Properties.Set(f.Name, clone(f.spec.kw))
	}
	defer func() {
		if p := recover(); p != nil {
			w.c.errorf("the method JSONSchemaExtend of %s panics: %v", typeText(n.t), p)
		}
	}()
	e.JSONSchemaExtend(out)
	return out
}

// defName returns the name of o in $defs: the last part of its package and the type's name, or the
// whole path if two would be the same.
func (w *schemaWriter) defName(o *object) string {
	if name := w.names[o]; name != "" {
		return name
	}
	name := safeName(o.t.String())
	if w.defs[name] {
		name = safeName(o.t.PkgPath() + "." + o.t.Name())
	}
	for i := 2; w.defs[name]; i++ {
		name = safeName(o.t.String()) + "_" + strconv.Itoa(i)
	}
	w.defs[name], w.names[o] = true, name
	w.pending = append(w.pending, o)
	return name
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

// object writes the members of a struct, with the keywords from extended, if any.
func (w *schemaWriter) object(s *memberWriter, o *object, extended *jsonschema.Schema) {
	if o.known != nil {
		s.b = append(s.separate(), o.known.schema...)
		return
	}
	start := len(s.separate())
	s.b = append(s.name("properties"), '{')
	var required []string
	for i, f := range o.fields {
		if i > 0 {
			s.b = append(s.b, ',')
		}
		s.b = append(jsonx.AppendString(s.b, f.Name), ':')
		n := *f.spec
		if extended.Properties != nil {
			if kw, ok := extended.Properties.Get(f.Name); ok && kw != nil {
				n.kw = kw
			}
		}
		if w.c.dir == forOutput && f.omitsNil {
			n.there = n.ptrs <= 1 // a pointer to a nil pointer is not left out
		}
		if f.Default != nil || f.example != nil {
			n.kw = w.c.clone(n.kw)
			if f.Default != nil {
				n.kw.Default = f.Default
			}
			if f.example != nil {
				n.kw.Examples = []any{f.example}
			}
		}
		s.b = w.spec(s.b, &n, false)
		if f.Required && w.c.dir == forInput || w.c.dir == forOutput && !f.mayOmit {
			required = append(required, f.Name)
		}
	}
	s.b = append(s.b, '}')
	writeList(s, "required", required, jsonx.AppendString[string])
	s.b = append(s.name("additionalProperties"), "false"...)
	if extended.Properties == nil {
		w.c.spans = append(w.c.spans, span{o, start, len(s.b)})
	}
}

// mapping writes the members of a map. It always writes properties, because some clients refuse an
// object without them.
func (w *schemaWriter) mapping(s *memberWriter, n *spec) {
	s.b = append(s.name("properties"), "{}"...)
	if s2 := (memberWriter{b: []byte{'{'}}); n.key != nil {
		s2.before(n.key.kw)
		s2.after(n.key.kw)
		if len(s2.b) > 1 {
			s.b = append(append(s.name("propertyNames"), s2.b...), '}')
		}
	}
	s.b = w.spec(s.name("additionalProperties"), n.elem, false)
}

// A memberWriter writes the members of one JSON object.
type memberWriter struct{ b []byte }

// name begins a member and returns the bytes to append its value to.
func (s *memberWriter) name(name string) []byte {
	s.separate()
	s.b = append(jsonx.AppendString(s.b, name), ':')
	return s.b
}

// separate writes a comma unless the object is empty or has one at its end.
func (s *memberWriter) separate() []byte {
	if last := s.b[len(s.b)-1]; last != '{' && last != ',' {
		s.b = append(s.b, ',')
	}
	return s.b
}

// value writes a member.
func (s *memberWriter) value(name string, v any) { s.b = appendValue(s.name(name), v) }

// text writes a member unless value is empty.
func (s *memberWriter) text(name, value string) {
	if value != "" {
		s.b = jsonx.AppendString(s.name(name), value)
	}
}

// number writes a member unless value is empty.
func (s *memberWriter) number(name string, value json.Number) {
	if value != "" {
		s.b = append(s.name(name), value...)
	}
}

// count writes a member unless value is nil.
func (s *memberWriter) count(name string, value *uint64) {
	if value != nil {
		s.b = strconv.AppendUint(s.name(name), *value, 10)
	}
}

// flag writes a member if value is true.
func (s *memberWriter) flag(name string, value bool) {
	if value {
		s.b = append(s.name(name), "true"...)
	}
}

// schema writes a member unless value is nil.
func (s *memberWriter) schema(name string, value *jsonschema.Schema) {
	if value != nil {
		s.b = appendSchema(s.name(name), value)
	}
}

// writeList writes a member unless values is empty.
func writeList[T any](s *memberWriter, name string, values []T, add func(dst []byte, v T) []byte) {
	if len(values) == 0 {
		return
	}
	s.b = append(s.name(name), '[')
	for i, v := range values {
		if i > 0 {
			s.b = append(s.b, ',')
		}
		s.b = add(s.b, v)
	}
	s.b = append(s.b, ']')
}

// before writes the keywords before the children of a schema.
func (s *memberWriter) before(kw *jsonschema.Schema) {
	s.text("$ref", kw.Ref)
	s.text("type", kw.Type)
	s.text("title", kw.Title)
	s.text("description", kw.Description)
	if kw.Const != nil {
		s.value("const", kw.Const)
	}
	writeList(s, "enum", kw.Enum, appendValue)
	s.text("format", kw.Format)
	s.text("pattern", kw.Pattern)
	s.count("minLength", kw.MinLength)
	s.count("maxLength", kw.MaxLength)
	s.number("minimum", kw.Minimum)
	s.number("exclusiveMinimum", kw.ExclusiveMinimum)
	s.number("maximum", kw.Maximum)
	s.number("exclusiveMaximum", kw.ExclusiveMaximum)
	s.number("multipleOf", kw.MultipleOf)
	s.count("minItems", kw.MinItems)
	s.count("maxItems", kw.MaxItems)
	s.flag("uniqueItems", kw.UniqueItems)
	s.count("minProperties", kw.MinProperties)
	s.count("maxProperties", kw.MaxProperties)
	s.text("contentEncoding", kw.ContentEncoding)
	s.text("contentMediaType", kw.ContentMediaType)
}

// after writes the keywords after the children of a schema. Of the children in a schema written by
// hand, it writes those of JSONSchema methods.
func (s *memberWriter) after(kw *jsonschema.Schema) {
	writeList(s, "anyOf", kw.AnyOf, appendSchema)
	writeList(s, "oneOf", kw.OneOf, appendSchema)
	writeList(s, "allOf", kw.AllOf, appendSchema)
	s.schema("not", kw.Not)
	s.schema("items", kw.Items)
	writeList(s, "prefixItems", kw.PrefixItems, appendSchema)
	s.schema("additionalProperties", kw.AdditionalProperties)
	if kw.Properties != nil && kw.Properties.Len() > 0 {
		s.b = append(s.name("properties"), '{')
		inner := memberWriter{b: s.b}
		for p := kw.Properties.Oldest(); p != nil; p = p.Next() {
			inner.schema(p.Key, p.Value)
		}
		s.b = append(inner.b, '}')
	}
	writeList(s, "required", kw.Required, jsonx.AppendString[string])
	if len(kw.DependentRequired) > 0 {
		s.value("dependentRequired", kw.DependentRequired)
	}
	s.schema("if", kw.If)
	s.schema("then", kw.Then)
	s.schema("else", kw.Else)
	if kw.Default != nil {
		s.value("default", kw.Default)
	}
	writeList(s, "examples", kw.Examples, appendValue)
	s.flag("deprecated", kw.Deprecated)
	s.flag("readOnly", kw.ReadOnly)
	s.flag("writeOnly", kw.WriteOnly)
	if len(kw.Extras) == 0 {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(kw.Extras)) {
		s.value(key, kw.Extras[key])
	}
}

// appendSchema appends a self-contained schema.
func appendSchema(dst []byte, kw *jsonschema.Schema) []byte {
	if kw == jsonschema.FalseSchema {
		return append(dst, "false"...)
	}
	s := memberWriter{b: append(dst, '{')}
	s.before(kw)
	s.after(kw)
	return append(s.b, '}')
}

// appendValue appends a value in a schema.
func appendValue(dst []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		return jsonx.AppendString(dst, v)
	case json.Number:
		return append(dst, v...)
	case json.RawMessage:
		return append(dst, v...)
	case bool:
		return strconv.AppendBool(dst, v)
	case *uint64:
		return strconv.AppendUint(dst, *v, 10)
	case *jsonschema.Schema:
		return appendSchema(dst, v)
	case []any:
		return appendValues(dst, v)
	}
	out, err := jsonx.Append(dst, v)
	if err != nil {
		return append(dst, "null"...)
	}
	return out
}

func appendValues(dst []byte, values []any) []byte {
	dst = append(dst, '[')
	for i, v := range values {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendValue(dst, v)
	}
	return append(dst, ']')
}

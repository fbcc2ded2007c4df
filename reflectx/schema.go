package reflectx

import (
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/invopop/jsonschema"
)

// OutputSchema returns the schema of the JSON of a value of type t, compact. Its root may be of any
// type; the caller wraps what is not an object. It does not contain the rules of validate tags, since
// results are not validated. The error is an [Errors].
func OutputSchema(site string, t reflect.Type, o InputOptions) (json.RawMessage, error) {
	c := newCompiler(site, o, forOutput)
	defer c.recycle()
	n := c.spec(t, nil)
	c.finish(n)
	if len(c.errs) > 0 {
		return nil, c.errs
	}
	n.there = true // without a root there would be no output
	schema := c.publish(n)
	if len(c.errs) > 0 {
		return nil, c.errs
	}
	c.remember(schema)
	c.keep()
	return schema, nil
}

// hull stands for the struct whose fields are being reflected. invopop/jsonschema gets them already
// flattened through AdditionalFields, since its own flattening lets an embedded field overwrite an
// outer one.
type hull struct{}

var hullType = reflect.TypeFor[hull]()

// reflectFields returns the keywords of each field of o by name: those of its type, those of its
// tags for invopop/jsonschema, and its comment.
func (c *compiler) reflectFields(o *object) map[string]*jsonschema.Schema {
	props := make(map[string]*jsonschema.Schema, len(o.fields))
	var rest []*field
	for _, f := range o.fields {
		if f.sf == nil {
			continue // the discriminator
		}
		kw, ok := c.plainField(o, f)
		if !ok {
			rest = append(rest, f)
			continue
		}
		props[f.Name] = kw
	}
	if len(rest) > 0 {
		c.reflectTagged(o, rest, props)
	}
	return props
}

// reflectedTags are the tag keys that invopop/jsonschema reads.
var reflectedTags = []string{"jsonschema", "jsonschema_description", "jsonschema_extras"}

// plainField returns the keywords of a field without a tag for invopop/jsonschema. The result is
// the same, several times faster; most fields have no such tag, and a server may have thousands.
func (c *compiler) plainField(o *object, f *field) (*jsonschema.Schema, bool) {
	for _, key := range reflectedTags {
		if _, ok := f.sf.Tag.Lookup(key); ok || !fast {
			return nil, false
		}
	}
	t := indirectAll(f.Type)
	if t.Implements(jsonschemaAlias) || reflect.PointerTo(t).Implements(jsonschemaAlias) {
		return nil, false
	}
	kw := c.mapType(t)
	if kw == nil {
		kw = c.keywords(t)
	}
	if kw.Description == "" {
		kw.Description = c.comment(o, f)
	}
	return kw, true
}

// jsonschemaAlias is the interface by which a type asks invopop/jsonschema for the schema of
// another type.
var jsonschemaAlias = reflect.TypeFor[interface{ JSONSchemaAlias() any }]()

func indirectAll(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// reflectTagged lets invopop/jsonschema read the tags and comments of some fields of o into props.
func (c *compiler) reflectTagged(o *object, tagged []*field, props map[string]*jsonschema.Schema) {
	fields := make([]reflect.StructField, len(tagged))
	for i, f := range tagged {
		fields[i] = reflect.StructField{Name: strconv.Itoa(i), Type: f.Type, Tag: schemaTagOf(f.sf.Tag, f.Name)}
	}
	r := jsonschema.Reflector{
		Anonymous:      true,
		ExpandedStruct: true,
		AdditionalFields: func(t reflect.Type) []reflect.StructField {
			if t == hullType {
				return fields
			}
			return nil
		},
		Mapper: c.mapType,
		LookupComment: func(_ reflect.Type, name string) string {
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(tagged) {
				return ""
			}
			return c.comment(o, tagged[i])
		},
	}
	// It panics on an invalid tag; the author needs to know where.
	defer func() {
		if p := recover(); p != nil {
			c.errorf("the tags of %s cannot be read: %v", typeText(o.t), p)
		}
	}()
	s := r.ReflectFromType(hullType)
	for p := s.Properties.Oldest(); p != nil; p = p.Next() {
		props[p.Key] = p.Value
	}
}

// schemaTagOf returns the parts of a field's tag that invopop/jsonschema may read.
func schemaTagOf(tag reflect.StructTag, name string) reflect.StructTag {
	out := "json:" + strconv.Quote(name)
	for _, key := range reflectedTags {
		if v, ok := tag.Lookup(key); ok {
			out += " " + key + ":" + strconv.Quote(v)
		}
	}
	return reflect.StructTag(out)
}

// comment returns the doc comment of f, or else that of its type.
func (c *compiler) comment(o *object, f *field) string {
	if c.o.Descriptions == nil {
		return ""
	}
	if text := c.o.Descriptions.Text(f.owner, f.sf.Name); text != "" {
		return strings.TrimSpace(text)
	}
	if at := o.placeOf(f); at.owner != nil && f.owner.Name() == "" {
		if text := c.o.Descriptions.Text(at.owner, at.path); text != "" {
			return strings.TrimSpace(text)
		}
	}
	return c.typeComment(indirectAll(f.Type))
}

// typeComment returns the doc comment of the named type t. Those of the standard library do not help
// a model.
func (c *compiler) typeComment(t reflect.Type) string {
	if _, known := knownShapes[t]; known || c.o.Descriptions == nil || t.Name() == "" || t.PkgPath() == "" {
		return ""
	}
	return strings.TrimSpace(c.o.Descriptions.Text(t, ""))
}

// mapType returns the keywords of a type to invopop/jsonschema, or nil if invopop/jsonschema finds
// them itself.
func (c *compiler) mapType(t reflect.Type) *jsonschema.Schema {
	if t == hullType {
		return nil
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	s, ok := c.shapeOf(t)
	if !ok {
		return &jsonschema.Schema{}
	}
	switch s {
	case shapeBool, shapeString:
		return nil
	}
	kw := c.keywords(t)
	if s == shapeSlice || s == shapeArray {
		kw.Items = c.mapType(t.Elem())
		if kw.Items == nil {
			kw.Items = c.keywords(indirectAll(t.Elem()))
		}
	}
	return kw
}

// keywords returns new keywords for the type t.
func (c *compiler) keywords(t reflect.Type) *jsonschema.Schema {
	if kw := ownSchema(t); kw != nil {
		return kw
	}
	kw := c.schema()
	s, _ := c.shapeOf(t)
	switch s {
	case shapeBool:
		kw.Type = "boolean"
	case shapeInt:
		kw.Type = "integer"
		if bits := t.Bits(); bits < 64 {
			kw.Minimum = json.Number(strconv.FormatInt(-1<<(bits-1), 10))
			kw.Maximum = json.Number(strconv.FormatInt(1<<(bits-1)-1, 10))
		}
	case shapeUint:
		kw.Type, kw.Minimum = "integer", "0"
		if bits := t.Bits(); bits < 64 {
			kw.Maximum = json.Number(strconv.FormatUint(1<<bits-1, 10))
		}
	case shapeFloat, shapeNumber:
		kw.Type = "number"
	case shapeBig:
		kw.Type = "integer"
	case shapeString, shapeText:
		kw.Type = "string"
		textKeywords(t, kw)
	case shapeBytes:
		kw.Type, kw.ContentEncoding, kw.Pattern = "string", "base64", base64Pattern
		if c.dir == forOutput {
			kw.Pattern = ""
		}
	case shapeTime:
		kw.Type, kw.Format = "string", "date-time"
	case shapeDuration:
		kw.Type, kw.Pattern = "string", durationPattern
	case shapeURL:
		kw.Type, kw.Format = "string", "uri"
		if c.dir == forOutput {
			kw.Format = "uri-reference" // what is given back may be relative, or empty
		}
	case shapeSlice, shapeArray:
		kw.Type = "array"
		if s == shapeArray {
			n := uint64(t.Len())
			kw.MinItems, kw.MaxItems = &n, &n
		}
	case shapeMap, shapeStruct, shapeUnion:
		kw.Type = "object"
	}
	return kw
}

const base64Pattern = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"

// textKeywords adds the keywords of well-known types that are encoded as text.
func textKeywords(t reflect.Type, kw *jsonschema.Schema) {
	switch t.PkgPath() + "." + t.Name() {
	case "github.com/google/uuid.UUID", "github.com/gofrs/uuid.UUID":
		kw.Format = "uuid"
	}
}

var schemaMaker = reflect.TypeFor[interface{ JSONSchema() *jsonschema.Schema }]()

// ownSchema returns the result of the method JSONSchema of t or *t, or nil if there is none.
// invopop/jsonschema only looks at t.
func ownSchema(t reflect.Type) *jsonschema.Schema {
	if !reflect.PointerTo(t).Implements(schemaMaker) {
		return nil
	}
	kw := reflect.New(t).Interface().(interface{ JSONSchema() *jsonschema.Schema }).JSONSchema()
	if kw == nil {
		return nil
	}
	fresh := *kw
	fresh.Version, fresh.ID = "", ""
	return &fresh
}

// floatNumber returns f as a JSON number. It returns false if JSON cannot represent f.
func floatNumber(f float64) (json.Number, bool) {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return "", false
	}
	return json.Number(strconv.FormatFloat(f, 'g', -1, 64)), true
}

package reflectx

import (
	"encoding"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/invopop/jsonschema"
)

// A shape is the way in which values of a type are encoded in JSON. It is what the schema, which
// invopop/jsonschema makes, and the decoder, internal/jsonx, have to agree on.
type shape int

const (
	shapeNone shape = iota // no JSON form
	shapeAny
	shapeBool
	shapeInt
	shapeUint
	shapeFloat
	shapeString
	shapeBytes    // base64
	shapeTime     // RFC 3339
	shapeDuration // 1h30m
	shapeURL
	shapeText   // UnmarshalText
	shapeBig    // big.Int
	shapeNumber // json.Number
	shapeCustom // UnmarshalJSON or JSONSchema
	shapeSlice
	shapeArray
	shapeMap
	shapeStruct
)

var (
	durationType  = reflect.TypeFor[time.Duration]()
	urlType       = reflect.TypeFor[url.URL]()
	rawType       = reflect.TypeFor[json.RawMessage]()
	unmarshalJSON = reflect.TypeFor[json.Unmarshaler]()
	unmarshalText = reflect.TypeFor[encoding.TextUnmarshaler]()
	marshalJSON   = reflect.TypeFor[json.Marshaler]()
	marshalText   = reflect.TypeFor[encoding.TextMarshaler]()
	schemaMaker   = reflect.TypeFor[interface{ JSONSchema() *jsonschema.Schema }]()
)

// knownShapes are the shapes of types of the standard library.
var knownShapes = map[reflect.Type]shape{
	reflect.TypeFor[time.Time](): shapeTime, durationType: shapeDuration, urlType: shapeURL, rawType: shapeAny,
	reflect.TypeFor[big.Int](): shapeBig, reflect.TypeFor[json.Number](): shapeNumber,
}

type direction bool

const (
	forInput  direction = false
	forOutput direction = true
)

// ownJSON returns the name of the method by which t itself reads or writes its JSON, and the shape that it
// has by that; "" if there is none.
func ownJSON(t reflect.Type, dir direction) (method string, s shape) {
	p := reflect.PointerTo(t)
	switch {
	case dir == forInput && p.Implements(unmarshalJSON):
		return "UnmarshalJSON", shapeCustom
	case dir == forInput && p.Implements(unmarshalText):
		return "UnmarshalText", shapeText
	case dir == forOutput && p.Implements(marshalJSON):
		return "MarshalJSON", shapeCustom
	case dir == forOutput && p.Implements(marshalText):
		return "MarshalText", shapeText
	}
	return "", shapeNone
}

// kindShapes are the shapes of types without methods.
var kindShapes = [...]shape{
	reflect.Bool: shapeBool, reflect.String: shapeString, reflect.Float32: shapeFloat, reflect.Float64: shapeFloat,
	reflect.Int: shapeInt, reflect.Int8: shapeInt, reflect.Int16: shapeInt, reflect.Int32: shapeInt, reflect.Int64: shapeInt,
	reflect.Uint: shapeUint, reflect.Uint8: shapeUint, reflect.Uint16: shapeUint, reflect.Uint32: shapeUint, reflect.Uint64: shapeUint,
	reflect.Slice: shapeSlice, reflect.Array: shapeArray, reflect.Map: shapeMap, reflect.Struct: shapeStruct,
	reflect.UnsafePointer: shapeNone,
}

// shapeOf returns the shape of t, which is not a pointer.
func shapeOf(t reflect.Type, dir direction) shape {
	if t == nil {
		return shapeNone
	}
	if t.PkgPath() != "" || t.Kind() == reflect.Struct { // others have no methods
		if s, ok := knownShapes[t]; ok {
			return s
		}
		if reflect.PointerTo(t).Implements(schemaMaker) {
			return shapeCustom
		}
		if method, s := ownJSON(t, dir); method != "" {
			return s
		}
	}
	switch {
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		if method, _ := ownJSON(t.Elem(), dir); method == "" {
			return shapeBytes
		}
	case t.Kind() == reflect.Interface && (t.NumMethod() == 0 || dir == forOutput):
		return shapeAny
	}
	return kindShapes[t.Kind()]
}

// jsonTypes are the types of schemas that mapType makes.
var jsonTypes = map[shape]string{
	shapeBool: "boolean", shapeInt: "integer", shapeUint: "integer", shapeFloat: "number", shapeString: "string",
	shapeBytes: "string", shapeTime: "string", shapeDuration: "string", shapeURL: "string", shapeText: "string",
	shapeBig: "integer", shapeNumber: "number", shapeSlice: "array", shapeArray: "array", shapeMap: "object", shapeStruct: "object",
}

// mapType is the Mapper of the reflector: it returns a new schema of t as the decoder reads it, which
// invopop/jsonschema completes with what the tags say. Structs have no members yet.
func (c *compiler) mapType(t reflect.Type) *jsonschema.Schema {
	if c.depth++; c.depth > maxDepth {
		panic(typeText(t) + " contains itself; put it into a field of a struct, and let the struct contain itself")
	}
	defer func() { c.depth-- }()
	if t = indirectAll(t); t == hullType {
		return nil // the reflector's own part
	}
	sh := shapeOf(t, c.dir)
	s := &jsonschema.Schema{Type: jsonTypes[sh]}
	switch sh {
	case shapeSlice, shapeArray:
		s.Items = c.mapType(t.Elem())
		if t.Kind() == reflect.Array {
			s.MinItems, s.MaxItems = new(uint64(t.Len())), new(uint64(t.Len()))
		}
	case shapeCustom:
		return c.ownSchema(t)
	case shapeInt:
		if bits := t.Bits(); bits < 32 { // longer limits say little to a model, and the check knows them
			s.Minimum = json.Number(strconv.FormatInt(-1<<(bits-1), 10))
			s.Maximum = json.Number(strconv.FormatInt(1<<(bits-1)-1, 10))
		}
	case shapeUint:
		s.Minimum = "0"
		if bits := t.Bits(); bits < 32 { // longer limits say little to a model, and the check knows them
			s.Maximum = json.Number(strconv.FormatUint(1<<bits-1, 10))
		}
	case shapeBytes:
		s.ContentEncoding = "base64"
		s.Pattern, s.MaxLength = base64Pattern, defaultLength
	case shapeTime:
		s.Format = "date-time"
	case shapeDuration:
		s.Pattern = durationPattern
	case shapeURL:
		s.Format = "uri"
		if c.dir == forOutput {
			s.Format = "uri-reference" // what is given back may be relative, or empty
		}
	case shapeMap:
		s.Properties = jsonschema.NewProperties() // which some clients demand of an object
		s.AdditionalProperties, s.PropertyNames = c.mapType(t.Elem()), keySchema(t.Key(), c.dir)
	}
	if c.dir == forOutput { // nobody checks the limits of results
		s.Minimum, s.Maximum, s.Pattern, s.PropertyNames = "", "", "", nil
		s.MaxLength, s.MinItems, s.MaxItems = nil, nil, nil
	}
	return s
}

// maxDepth is how deep types may be nested. A type such as type List []List has no end, and a schema
// has no name for it.
const maxDepth = 64

// hull stands for the struct whose fields are reflected. The reflector gets them, already flattened,
// as AdditionalFields, since its own flattening lets an embedded field overwrite an outer one.
type hull struct{}

var hullType = reflect.TypeFor[hull]()

// The schema of a []byte, of at most 1 MiB unless its rule max says otherwise.
const base64Pattern = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"

var defaultLength = encodedLen(1 << 20)

// isAtMost1MiB reports whether s is the schema of a []byte that no rule limits.
func isAtMost1MiB(s *jsonschema.Schema) bool {
	return s.ContentEncoding == "base64" && s.MaxLength != nil && *s.MaxLength == *defaultLength
}

func encodedLen(bytes int) *uint64 { return new(uint64(base64.StdEncoding.EncodedLen(bytes))) }

// durationPattern matches the output of time.Duration.String. time.ParseDuration accepts slightly
// more, which would make the pattern twice as long.
const durationPattern = `^-?([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$`

// keySchema returns the schema of the names of a map, or nil if any name is allowed.
func keySchema(t reflect.Type, dir direction) *jsonschema.Schema {
	switch shapeOf(t, dir) {
	case shapeInt:
		return &jsonschema.Schema{Pattern: "^(0|-?[1-9][0-9]*)$"}
	case shapeUint:
		return &jsonschema.Schema{Pattern: "^(0|[1-9][0-9]*)$"}
	}
	return nil
}

// ownSchema returns the result of the method JSONSchema of t or *t, and an empty schema if there is
// none. The caller may change it.
func (c *compiler) ownSchema(t reflect.Type) *jsonschema.Schema {
	fresh := jsonschema.Schema{}
	if maker, ok := reflect.New(t).Interface().(interface{ JSONSchema() *jsonschema.Schema }); ok {
		if own := maker.JSONSchema(); own != nil {
			fresh = *own
			fresh.Version, fresh.ID = "", ""
		}
	}
	return &fresh
}

// noNullable records a Nullable that is not a field, and so cannot be absent.
func (c *compiler) noNullable(t reflect.Type) {
	if isNullable(t) {
		c.errorf("the type %s is for fields, which may be absent; write a pointer here", typeText(t))
	}
}

// checkType records the mistakes of a type without a JSON form.
func (c *compiler) checkType(t reflect.Type) {
	switch sh := shapeOf(t, c.dir); {
	case t == errorType && c.dir == forOutput:
		c.errorf("an error has no JSON, so that its text would be lost; write a string, or hide the field with json:\"-\"")
	case sh == shapeNone:
		c.errorf("the type %s has no JSON; write a struct, a map, a slice, a string, a number, a bool or any, "+
			"or hide the field with json:\"-\"", typeText(t))
	case sh == shapeMap:
		keys := []shape{shapeString, shapeText, shapeNumber, shapeInt, shapeUint}
		if !slices.Contains(keys, shapeOf(t.Key(), c.dir)) {
			c.errorf("the type %s has keys that JSON has not; write a map with string or integer keys", typeText(t))
		}
	}
}

// indirectAll returns what pointers and Nullables lead to.
func indirectAll(t reflect.Type) reflect.Type {
	for i := 0; t.Kind() == reflect.Pointer && i < maxDepth; i++ {
		t = t.Elem()
	}
	if isNullable(t) {
		value, _ := t.FieldByName("Value")
		return indirectAll(value.Type)
	}
	return t
}

package reflectx

import (
	"encoding"
	"encoding/json"
	"math/big"
	"net/url"
	"reflect"
	"regexp"
	"sync"
	"time"
)

// A shape is the way in which values of a type are encoded in JSON.
type shape int

const (
	shapeAny shape = iota
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
	shapeRaw    // json.RawMessage
	shapeCustom // UnmarshalJSON
	shapeSlice
	shapeArray
	shapeMap
	shapeStruct
	shapeUnion // an interface whose types are known
)

var (
	stringsType   = reflect.TypeFor[[]string]()
	timeType      = reflect.TypeFor[time.Time]()
	durationType  = reflect.TypeFor[time.Duration]()
	urlType       = reflect.TypeFor[url.URL]()
	bigIntType    = reflect.TypeFor[big.Int]()
	numberType    = reflect.TypeFor[json.Number]()
	rawType       = reflect.TypeFor[json.RawMessage]()
	unmarshalJSON = reflect.TypeFor[json.Unmarshaler]()
	unmarshalText = reflect.TypeFor[encoding.TextUnmarshaler]()
	marshalJSON   = reflect.TypeFor[json.Marshaler]()
	marshalText   = reflect.TypeFor[encoding.TextMarshaler]()
)

// knownShapes are the shapes of types of the standard library.
var knownShapes = map[reflect.Type]shape{
	timeType: shapeTime, durationType: shapeDuration, urlType: shapeURL, bigIntType: shapeBig, numberType: shapeNumber, rawType: shapeRaw,
}

// ownJSON returns the name of the method by which t itself reads or writes its JSON, or "".
func ownJSON(t reflect.Type, dir direction) string {
	p := reflect.PointerTo(t)
	switch {
	case dir == forInput && p.Implements(unmarshalJSON):
		return "UnmarshalJSON"
	case dir == forInput && p.Implements(unmarshalText):
		return "UnmarshalText"
	case dir == forOutput && p.Implements(marshalJSON):
		return "MarshalJSON"
	case dir == forOutput && p.Implements(marshalText):
		return "MarshalText"
	}
	return ""
}

// shapeOf returns the shape of t, which is not a pointer. It returns false if t has no JSON form.
func (c *compiler) shapeOf(t reflect.Type) (shape, bool) {
	if c.o.Unions[t] != nil {
		return shapeUnion, true
	}
	if s, ok := knownShapes[t]; ok {
		return s, true
	}
	switch ownJSON(t, c.dir) {
	case "UnmarshalJSON", "MarshalJSON":
		return shapeCustom, true
	case "UnmarshalText", "MarshalText":
		return shapeText, true
	}
	return c.shapeOfKind(t)
}

func (c *compiler) shapeOfKind(t reflect.Type) (shape, bool) {
	switch t.Kind() {
	case reflect.Bool:
		return shapeBool, true
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return shapeInt, true
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return shapeUint, true
	case reflect.Float32, reflect.Float64:
		return shapeFloat, true
	case reflect.String:
		return shapeString, true
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 && ownJSON(t.Elem(), c.dir) == "" {
			return shapeBytes, true
		}
		return shapeSlice, true
	case reflect.Array:
		return shapeArray, true
	case reflect.Map:
		return shapeMap, true
	case reflect.Struct:
		return shapeStruct, true
	case reflect.Interface:
		return shapeAny, t.NumMethod() == 0 || c.dir == forOutput
	}
	return shapeAny, false
}

// durationText matches the output of time.Duration.String. time.ParseDuration accepts slightly
// more, which would make the pattern in the schema twice as long.
var durationText = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(durationPattern) })

const durationPattern = `^-?([0-9]+([.][0-9]+)?(ns|us|µs|ms|s|m|h))+$`

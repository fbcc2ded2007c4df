package reflectx

import (
	"cmp"
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

// publish returns the schema as compact JSON; nil if there are mistakes.
func (c *compiler) publish(s *jsonschema.Schema) (raw json.RawMessage) {
	c.recovered(c.node(s).t, func() { raw = appendSchema(make([]byte, 0, 1024), s) })
	return raw
}

// keywordOrder is the order of keywords that is good to read; others come first.
const keywordOrder = `$ref type title description const enum format pattern minLength maxLength
	minimum exclusiveMinimum maximum exclusiveMaximum multipleOf minItems maxItems uniqueItems minProperties maxProperties
	contentEncoding contentMediaType properties propertyNames items required additionalProperties anyOf oneOf allOf not
	default examples deprecated readOnly writeOnly $defs`

// A keyword is a field of [jsonschema.Schema].
type keyword struct {
	name, quoted string // quoted with a colon
	field, rank  int
}

// keywords are in the order in which they are written.
var keywords = sync.OnceValue(func() (all []keyword) {
	order := strings.Fields(keywordOrder)
	for f := range reflect.TypeFor[jsonschema.Schema]().Fields() {
		if name, _, ok := strings.Cut(f.Tag.Get("json"), ","); ok {
			all = append(all, keyword{name, strconv.Quote(name) + ":", f.Index[0], slices.Index(order, name)})
		}
	}
	slices.SortStableFunc(all, func(a, b keyword) int { return cmp.Compare(a.rank, b.rank) })
	return all
})

// appendSchema appends a schema as JSON. The library would use encoding/json, which is slow.
func appendSchema(b []byte, s *jsonschema.Schema) []byte {
	if isFalse(s) {
		return append(b, "false"...)
	}
	b = append(b, '{')
	v := reflect.ValueOf(s).Elem()
	for _, k := range keywords() {
		f := v.Field(k.field)
		switch {
		case f.IsZero(), (f.Kind() == reflect.Slice || f.Kind() == reflect.Map) && f.Len() == 0:
		case k.name == "properties":
			b = append(append(jsonx.AppendComma(b), k.quoted...), '{')
			for p := s.Properties.Oldest(); p != nil; p = p.Next() {
				b = appendSchema(appendName(b, p.Key), p.Value)
			}
			b = append(b, '}')
		default:
			b = appendValue(append(jsonx.AppendComma(b), k.quoted...), f.Addr().Interface())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Extras)) {
		b = appendValue(appendName(b, name), s.Extras[name])
	}
	return append(b, '}')
}

func appendName(b []byte, name string) []byte {
	return append(jsonx.AppendString(jsonx.AppendComma(b), name), ':')
}

// appendValue appends the value of a keyword: v, or what v points to. It panics if that does not encode.
func appendValue(b []byte, v any) []byte {
	switch v := v.(type) {
	case *string:
		return jsonx.AppendString(b, *v)
	case **jsonschema.Schema:
		return appendSchema(b, *v)
	case *[]*jsonschema.Schema:
		b = append(b, '[')
		for _, s := range *v {
			b = appendSchema(jsonx.AppendComma(b), s)
		}
		return append(b, ']')
	case *jsonschema.Definitions:
		b = append(b, '{')
		for _, name := range slices.Sorted(maps.Keys(*v)) {
			b = appendSchema(appendName(b, name), (*v)[name])
		}
		return append(b, '}')
	}
	b, err := jsonx.Append(b, v)
	if err != nil {
		panic(err)
	}
	return b
}

// isFalse reports whether s is the schema false.
func isFalse(s *jsonschema.Schema) bool {
	return s.Type == "" && reflect.DeepEqual(s, jsonschema.FalseSchema)
}

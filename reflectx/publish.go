package reflectx

import (
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/invopop/jsonschema"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// publish returns the schema as compact JSON.
func (c *compiler) publish(s *jsonschema.Schema) (json.RawMessage, error) {
	w := schemaWriter{b: make([]byte, 0, 1024)}
	if w.schema(s); w.err != nil {
		return nil, Errors{{Site: c.site, Msg: "the schema cannot be encoded: " + w.err.Error()}}
	}
	return w.b, nil
}

// keywordOrder is the order of keywords that is good to read; others come first.
const keywordOrder = `$ref type title description const enum format pattern minLength maxLength
	minimum exclusiveMinimum maximum exclusiveMaximum multipleOf minItems maxItems uniqueItems minProperties maxProperties
	contentEncoding contentMediaType properties propertyNames items required additionalProperties anyOf oneOf allOf not
	default examples deprecated readOnly writeOnly $defs`

// A keyword is a field of [jsonschema.Schema].
type keyword struct {
	name        string
	field, rank int
}

// keywords are in the order in which they are written.
var keywords = sync.OnceValue(func() (all []keyword) {
	order := strings.Fields(keywordOrder)
	for f := range reflect.TypeFor[jsonschema.Schema]().Fields() {
		if name, _, ok := strings.Cut(f.Tag.Get("json"), ","); ok {
			all = append(all, keyword{name, f.Index[0], slices.Index(order, name)})
		}
	}
	slices.SortStableFunc(all, func(a, b keyword) int { return cmp.Compare(a.rank, b.rank) })
	return all
})

// A schemaWriter writes schemas as JSON. The library would use encoding/json, which is slow.
type schemaWriter struct {
	b   []byte
	err error // of a value that cannot be encoded
}

func (w *schemaWriter) schema(s *jsonschema.Schema) {
	if word := boolean(s); word != "" {
		w.b = append(w.b, word...)
		return
	}
	w.b = append(w.b, '{')
	v := reflect.ValueOf(s).Elem()
	for _, k := range keywords() {
		f := v.Field(k.field)
		switch {
		case f.IsZero(), (f.Kind() == reflect.Slice || f.Kind() == reflect.Map) && f.Len() == 0:
		case k.name == "properties":
			w.name(k.name)
			w.b = append(w.b, '{')
			for p := s.Properties.Oldest(); p != nil; p = p.Next() {
				w.name(p.Key)
				w.schema(p.Value)
			}
			w.b = append(w.b, '}')
		default:
			w.name(k.name)
			w.value(f.Addr().Interface())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Extras)) {
		w.name(name)
		w.value(s.Extras[name])
	}
	w.b = append(w.b, '}')
}

func (w *schemaWriter) name(name string) {
	w.b = append(jsonx.AppendString(jsonx.AppendComma(w.b), name), ':')
}

// value writes the value of a keyword: v, or what v points to.
func (w *schemaWriter) value(v any) {
	var err error
	switch v := v.(type) {
	case string:
		w.b = jsonx.AppendString(w.b, v)
	case *string:
		w.b = jsonx.AppendString(w.b, *v)
	case **jsonschema.Schema:
		w.schema(*v)
	case *[]*jsonschema.Schema:
		w.b = append(w.b, '[')
		for _, s := range *v {
			w.b = jsonx.AppendComma(w.b)
			w.schema(s)
		}
		w.b = append(w.b, ']')
	case *jsonschema.Definitions:
		w.b = append(w.b, '{')
		for _, name := range slices.Sorted(maps.Keys(*v)) {
			w.name(name)
			w.schema((*v)[name])
		}
		w.b = append(w.b, '}')
	default:
		w.b, err = jsonx.Append(w.b, v)
	}
	w.err = cmp.Or(w.err, err)
}

// boolean returns "true" or "false" for a schema that is one of the two, and "" for others.
func boolean(s *jsonschema.Schema) string {
	switch {
	case s.Type != "":
		return ""
	case reflect.DeepEqual(s, jsonschema.FalseSchema):
		return "false"
	case reflect.DeepEqual(s, jsonschema.TrueSchema), reflect.DeepEqual(s, &jsonschema.Schema{}):
		return "true"
	}
	return ""
}

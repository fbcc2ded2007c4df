package reflectx

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// An Encoder appends the JSON of a value to dst.
type Encoder func(dst []byte, v reflect.Value) ([]byte, error)

// OutputEncoder returns an encoder for values of type t that writes the discriminators of the
// unions in them. It returns nil if t contains no union, so that encoding/json's rules suffice.
// [OutputSchema] returns the schema of its output. A value whose type is not a case of its union is
// an error; a nil value becomes null.
func OutputEncoder(t reflect.Type, o InputOptions) Encoder {
	if len(o.Unions) == 0 {
		return nil
	}
	e := &encoders{c: newCompiler("", o, forOutput), made: map[reflect.Type]*encodeFunc{}, holds: map[reflect.Type]bool{}}
	if !e.holdsUnion(t, nil) {
		return nil
	}
	encode := e.of(t)
	return func(dst []byte, v reflect.Value) ([]byte, error) { return encode(dst, v, 0) }
}

// An encodeFunc is an Encoder that also gets the depth within the value.
type encodeFunc func(dst []byte, v reflect.Value, depth int) ([]byte, error)

// maxDepth limits the depth of values, since a value that contains itself would overflow the stack.
// Every such cycle with a union passes through a struct.
const maxDepth = 1000

// encoders compiles encoders. Only types that hold a union get one of their own.
type encoders struct {
	c     *compiler
	made  map[reflect.Type]*encodeFunc // lets a recursive type use its unfinished encoder
	holds map[reflect.Type]bool
}

// holdsUnion reports whether values of t may contain a value of a union that the encoder reaches.
// above are the enclosing types.
func (e *encoders) holdsUnion(t reflect.Type, above []reflect.Type) bool {
	if held, ok := e.holds[t]; ok {
		return held
	}
	if slices.Contains(above, t) {
		return false // decided by the enclosing call
	}
	above = append(above[:len(above):len(above)], t)
	held := false
	switch {
	case e.c.o.Unions[t] != nil:
		held = true
	case t.Kind() != reflect.Pointer && ownJSON(t, forOutput) != "":
	default:
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			held = e.holdsUnion(t.Elem(), above)
		case reflect.Struct:
			for _, m := range e.c.members(t) {
				held = held || e.holdsUnion(m.sf.Type, above)
			}
		}
	}
	if held || len(above) == 1 {
		e.holds[t] = held // false inside a cycle may be true elsewhere
	}
	return held
}

// of returns the encoder of t.
func (e *encoders) of(t reflect.Type) encodeFunc {
	if made := e.made[t]; made != nil {
		return func(dst []byte, v reflect.Value, depth int) ([]byte, error) { return (*made)(dst, v, depth) }
	}
	if !e.holdsUnion(t, nil) {
		return func(dst []byte, v reflect.Value, _ int) ([]byte, error) { return jsonx.AppendValue(dst, v) }
	}
	made := new(encodeFunc)
	e.made[t] = made
	switch {
	case e.c.o.Unions[t] != nil:
		*made = e.union(e.c.o.Unions[t])
	case t.Kind() == reflect.Pointer:
		*made = pointerEncoder(e.of(t.Elem()))
	case t.Kind() == reflect.Map:
		*made = e.mapping(t)
	case t.Kind() == reflect.Struct:
		*made = e.object(t, nil)
	default:
		*made = listEncoder(e.of(t.Elem()))
	}
	return *made
}

func pointerEncoder(elem encodeFunc) encodeFunc {
	return func(dst []byte, v reflect.Value, depth int) ([]byte, error) {
		if v.IsNil() {
			return append(dst, "null"...), nil
		}
		return elem(dst, v.Elem(), depth+1)
	}
}

func listEncoder(elem encodeFunc) encodeFunc {
	return func(dst []byte, v reflect.Value, depth int) (_ []byte, err error) {
		dst = append(dst, '[')
		for i := range v.Len() {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = elem(dst, v.Index(i), depth+1); err != nil {
				return nil, err
			}
		}
		return append(dst, ']'), nil
	}
}

// mapping writes a map. The usual encoder sorts and writes its keys.
func (e *encoders) mapping(t reflect.Type) encodeFunc {
	elem := e.of(t.Elem())
	encoded := reflect.MapOf(t.Key(), rawType)
	return func(dst []byte, v reflect.Value, depth int) ([]byte, error) {
		m := reflect.MakeMapWithSize(encoded, v.Len())
		for key, value := range v.Seq2() {
			raw, err := elem(nil, value, depth+1)
			if err != nil {
				return nil, err
			}
			m.SetMapIndex(key, reflect.ValueOf(json.RawMessage(raw)))
		}
		return jsonx.AppendValue(dst, m)
	}
}

// A memberEncoder writes one field of a struct.
type memberEncoder struct {
	name  []byte // "name":
	index []int
	omit  func(reflect.Value) bool // nil: never
	value encodeFunc
}

// object writes a struct. first is written before its own members, such as `"kind":"circle"`; it
// may be nil.
func (e *encoders) object(t reflect.Type, first []byte) encodeFunc {
	var members []memberEncoder
	for _, m := range e.c.members(t) {
		one := memberEncoder{name: append(jsonx.AppendString(nil, m.name), ':'), index: m.index, value: e.of(m.sf.Type)}
		_, options, _ := strings.Cut(m.sf.Tag.Get("json"), ",")
		for option := range strings.SplitSeq(options, ",") {
			switch option {
			case "omitempty":
				one.omit = either(one.omit, jsonx.IsEmpty)
			case "omitzero":
				one.omit = either(one.omit, isZero)
			}
		}
		members = append(members, one)
	}
	return func(dst []byte, v reflect.Value, depth int) (_ []byte, err error) {
		if depth > maxDepth {
			return nil, fmt.Errorf("a %s is more than %d levels deep, or contains itself", t, maxDepth)
		}
		dst = append(append(dst, '{'), first...)
		comma := len(first) > 0
		for i := range members {
			m := &members[i]
			fv, err := v.FieldByIndexErr(m.index)
			if err != nil || m.omit != nil && m.omit(fv) {
				continue // in a nil embedded struct, or omitted
			}
			if comma {
				dst = append(dst, ',')
			}
			comma = true
			if dst, err = m.value(append(dst, m.name...), fv, depth+1); err != nil {
				return nil, err
			}
		}
		return append(dst, '}'), nil
	}
}

func either(a, b func(reflect.Value) bool) func(reflect.Value) bool {
	if a == nil {
		return b
	}
	return func(v reflect.Value) bool { return a(v) || b(v) }
}

// isZero is encoding/json's condition for omitzero.
func isZero(v reflect.Value) bool {
	if v.Kind() == reflect.Pointer && v.IsNil() || v.Kind() == reflect.Interface && v.IsNil() {
		return true
	}
	if z, ok := v.Interface().(interface{ IsZero() bool }); ok {
		return z.IsZero()
	}
	if v.CanAddr() {
		if z, ok := v.Addr().Interface().(interface{ IsZero() bool }); ok {
			return z.IsZero()
		}
	}
	return v.IsZero()
}

// union writes the case of a value.
func (e *encoders) union(u *Union) encodeFunc {
	cases := make(map[reflect.Type]encodeFunc, len(u.Cases))
	for _, one := range u.Cases {
		tag := append(jsonx.AppendString(nil, u.Discriminator), ':')
		st := indirectType(one.Type)
		cases[st] = e.object(st, jsonx.AppendString(tag, one.Name))
	}
	return func(dst []byte, v reflect.Value, depth int) ([]byte, error) {
		for v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return append(dst, "null"...), nil
			}
			v = v.Elem()
		}
		if encode := cases[v.Type()]; encode != nil {
			return encode(dst, v, depth+1)
		}
		known := make([]string, len(u.Cases))
		for i, one := range u.Cases {
			known[i] = one.Type.String()
		}
		return nil, fmt.Errorf("a %s is not a case of the union %s; its cases are %s", v.Type(), u.Interface, joinWords(known, "and"))
	}
}

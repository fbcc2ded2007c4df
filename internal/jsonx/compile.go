package jsonx

import (
	"encoding"
	stdjson "encoding/json"
	"math"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
)

// AppendValue appends v as JSON to dst. The result is the same as that of [Append], but faster for
// types that consist of plain structs, slices, strings, numbers and bools, because each type is
// compiled once.
func AppendValue(dst []byte, v reflect.Value) ([]byte, error) {
	if !v.IsValid() {
		return append(dst, "null"...), nil
	}
	t := v.Type()
	w, ok := writers.Load(t)
	if !ok {
		w, _ = writers.LoadOrStore(t, newWriter(t, nil))
	}
	if b, ok := w.(writer)(dst, v); ok {
		return b, nil
	}
	// The library's error says what is wrong with the value.
	return Append(dst, v.Interface())
}

// MarshalValue returns v as JSON. The result is the same as that of [Marshal]; see [AppendValue].
func MarshalValue(v reflect.Value) (string, error) {
	room := rooms.Get().(*[]byte)
	b, err := AppendValue((*room)[:0], v)
	if err != nil {
		return "", err
	}
	out := string(b)
	if cap(b) <= maxRoom {
		*room = b
		rooms.Put(room)
	}
	return out, nil
}

// rooms holds buffers whose contents are copied when their size is known.
var rooms = sync.Pool{New: func() any { return new(make([]byte, 0, 512)) }}

// maxRoom is the largest buffer, in bytes, that is kept for reuse.
const maxRoom = 64 << 10

// A writer appends a value. It returns false for a value that it cannot write.
type writer func(dst []byte, v reflect.Value) ([]byte, bool)

var writers sync.Map // reflect.Type -> writer

// byLibrary leaves a value to the library.
func byLibrary(dst []byte, v reflect.Value) ([]byte, bool) {
	b, err := Append(dst, v.Interface())
	return b, err == nil
}

// newWriter compiles t. above are the enclosing types.
func newWriter(t reflect.Type, above []reflect.Type) writer {
	if writesItself(t) || len(above) > 32 {
		return byLibrary
	}
	for _, a := range above {
		if a == t { // the library detects cycles of pointers
			return byLibrary
		}
	}
	above = append(above[:len(above):len(above)], t)
	switch t.Kind() {
	case reflect.Bool:
		return func(dst []byte, v reflect.Value) ([]byte, bool) { return strconv.AppendBool(dst, v.Bool()), true }
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return func(dst []byte, v reflect.Value) ([]byte, bool) { return strconv.AppendInt(dst, v.Int(), 10), true }
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return func(dst []byte, v reflect.Value) ([]byte, bool) { return strconv.AppendUint(dst, v.Uint(), 10), true }
	case reflect.Float32, reflect.Float64:
		bits := t.Bits()
		return func(dst []byte, v reflect.Value) ([]byte, bool) { return writeFloat(dst, v, bits) }
	case reflect.String:
		return writeString
	case reflect.Pointer:
		return pointerWriter(newWriter(t.Elem(), above))
	case reflect.Slice:
		if t.Elem().Kind() != reflect.Uint8 {
			return sliceWriter(newWriter(t.Elem(), above))
		}
	case reflect.Struct:
		return structWriter(t, above)
	}
	return byLibrary
}

// interfaces by which a type defines its own encoding.
var interfaces = []reflect.Type{
	reflect.TypeFor[json.Marshaler](), reflect.TypeFor[json.MarshalerTo](),
	reflect.TypeFor[encoding.TextMarshaler](), reflect.TypeFor[encoding.TextAppender](),
}

func writesItself(t reflect.Type) bool {
	if t == reflect.TypeFor[time.Duration]() || t == reflect.TypeFor[url.URL]() || t == reflect.TypeFor[stdjson.Number]() {
		return true
	}
	for _, i := range interfaces {
		if t.Implements(i) || reflect.PointerTo(t).Implements(i) {
			return true
		}
	}
	return false
}

// writeFloat writes numbers of moderate size as ECMAScript does.
func writeFloat(dst []byte, v reflect.Value, bits int) ([]byte, bool) {
	f := v.Float()
	if abs := math.Abs(f); abs != 0 && !(abs >= 1e-6 && abs < 1e21) {
		return byLibrary(dst, v)
	}
	return strconv.AppendFloat(dst, f, 'f', -1, bits), true
}

func writeString(dst []byte, v reflect.Value) ([]byte, bool) {
	s := v.String()
	return AppendString(dst, s), true
}

func pointerWriter(elem writer) writer {
	return func(dst []byte, v reflect.Value) ([]byte, bool) {
		if v.IsNil() {
			return append(dst, "null"...), true
		}
		return elem(dst, v.Elem())
	}
}

func sliceWriter(elem writer) writer {
	return func(dst []byte, v reflect.Value) ([]byte, bool) {
		dst = append(dst, '[')
		for i := range v.Len() {
			if i > 0 {
				dst = append(dst, ',')
			}
			var ok bool
			if dst, ok = elem(dst, v.Index(i)); !ok {
				return dst, false
			}
		}
		return append(dst, ']'), true
	}
}

// A fieldWriter writes one field of a struct.
type fieldWriter struct {
	index int
	name  []byte // `"name":`
	omit  func(reflect.Value) bool
	value writer
}

func structWriter(t reflect.Type, above []reflect.Type) writer {
	var fields []fieldWriter
	names := map[string]bool{}
	for i := range t.NumField() {
		f, known := newFieldWriter(t.Field(i), i)
		if !known || names[string(f.name)] {
			return byLibrary
		}
		if f.name == nil {
			continue
		}
		names[string(f.name)] = true
		f.value = newWriter(t.Field(i).Type, above)
		fields = append(fields, f)
	}
	return func(dst []byte, v reflect.Value) ([]byte, bool) {
		dst = append(dst, '{')
		first := true
		for i := range fields {
			f := &fields[i]
			fv := v.Field(f.index)
			if f.omit != nil && f.omit(fv) {
				continue
			}
			if !first {
				dst = append(dst, ',')
			}
			first = false
			dst = append(dst, f.name...)
			var ok bool
			if dst, ok = f.value(dst, fv); !ok {
				return dst, false
			}
		}
		return append(dst, '}'), true
	}
}

// newFieldWriter reads the tag of a field. It returns false for fields that it leaves to the
// library: embedded fields, and uncommon options and names. A field that is not written has no
// name.
func newFieldWriter(sf reflect.StructField, index int) (f fieldWriter, known bool) {
	tag, tagged := sf.Tag.Lookup("json")
	switch {
	case sf.Anonymous:
		return f, false
	case !sf.IsExported():
		return f, !tagged
	case tag == "-":
		return f, true
	}
	name, options, _ := strings.Cut(tag, ",")
	if name == "" {
		name = sf.Name
	}
	for _, r := range name {
		if !(r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
			return f, false
		}
	}
	switch options {
	case "":
	case "omitempty":
		f.omit = IsEmpty
	case "omitzero":
		if isZeroer := reflect.TypeFor[interface{ IsZero() bool }](); sf.Type.Implements(isZeroer) || reflect.PointerTo(sf.Type).Implements(isZeroer) {
			return f, false
		}
		f.omit = reflect.Value.IsZero
	default:
		return f, false
	}
	f.index, f.name = index, append(AppendString(nil, name), ':')
	return f, true
}

// IsEmpty reports whether encoding/json leaves out v with the option omitempty.
func IsEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}

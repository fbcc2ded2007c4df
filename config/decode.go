package config

import (
	"cmp"
	"encoding"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"go.yaml.in/yaml/v4"

	"github.com/mcpkit/mcpkit-go/internal/nearest"
)

// A field is a field of a struct that has a key.
type field struct {
	index    []int
	key      string
	path     string // from the root
	typ      reflect.Type
	required bool
	address  bool
	min      float64
	hasMin   bool
	enum     []string
	doc      string
}

// isStruct reports whether the value of the field is a map with keys.
func (f *field) isStruct() bool {
	return f.typ.Kind() == reflect.Struct && f.typ != reflect.TypeFor[Secret]() && f.typ != reflect.TypeFor[EngineURL]()
}

// element returns the field for one item of its list.
func (f *field) element() *field {
	e := *f
	e.typ = f.typ.Elem()
	return &e
}

// variable returns the environment variable of the field without the prefix, such as
// TRANSPORT_HTTP_MAX_BODY for transport.http.maxBody.
func (f *field) variable() string {
	var b strings.Builder
	var last rune
	for _, r := range f.path {
		switch {
		case r == '.':
			b.WriteByte('_')
		case unicode.IsUpper(r) && unicode.IsLower(last):
			b.WriteByte('_')
			b.WriteRune(r)
		default:
			b.WriteRune(unicode.ToUpper(r))
		}
		last = r
	}
	return b.String()
}

// fieldsOf returns the keys of a struct, those of embedded structs included.
func fieldsOf(t reflect.Type, at string) []field {
	var fields []field
	for _, sf := range reflect.VisibleFields(t) {
		if !sf.IsExported() || sf.Anonymous {
			continue
		}
		f := field{index: sf.Index, key: sf.Tag.Get("key"), typ: sf.Type, doc: sf.Tag.Get("doc"), enum: strings.Fields(sf.Tag.Get("enum"))}
		f.path = below(at, f.key)
		if f.typ.Kind() == reflect.Pointer {
			f.typ = f.typ.Elem()
		}
		_, f.required = sf.Tag.Lookup("required")
		_, f.address = sf.Tag.Lookup("address")
		if text, ok := sf.Tag.Lookup("min"); ok {
			f.min, _ = strconv.ParseFloat(text, 64) // a test checks the tags
			f.hasMin = true
		}
		fields = append(fields, f)
	}
	return fields
}

func below(at, key string) string {
	if at == "" {
		return key
	}
	return at + "." + key
}

// decode fills c from the file, then from the environment, and collects all errors.
func (l *loader) decode(c *Config, root *yaml.Node) {
	v := reflect.ValueOf(c).Elem()
	if root != nil {
		l.places[""] = placeOf(root)
		l.object(v, "", root)
	}
	if l.prefix != "" {
		known := map[string]bool{}
		l.fromEnv(v, "", known)
		l.unknownVariables(known)
	}
	l.complete(v, "")
	l.consistent(c)
}

// object fills a struct from a map.
func (l *loader) object(v reflect.Value, at string, n *yaml.Node) {
	if why := unsupported(n); why != "" {
		l.places[at] = placeOf(n)
		l.fault(at, "%s", why)
		return
	}
	if n.Kind != yaml.MappingNode {
		l.fault(at, "this is %s; want a map", kindOf(n))
		return
	}
	fields := fieldsOf(v.Type(), at)
	for member := range slices.Chunk(n.Content, 2) {
		key, value := cmp.Or(member[0].Value, `""`), member[1] // a list or a map as a key has no value
		path := below(at, key)
		before, twice := l.places[path]
		l.places[path] = placeOf(member[0])
		i := slices.IndexFunc(fields, func(f field) bool { return f.key == key })
		switch {
		case twice:
			l.fault(path, "the key is in line %d already", before.line)
		case i < 0:
			keys := make([]string, len(fields))
			for i, f := range fields {
				keys[i] = f.key
			}
			l.fault(path, "unknown key%s", nearest.Hint(key, keys))
		case fields[i].isStruct():
			l.object(allocated(v.FieldByIndex(fields[i].index)), path, value)
		default:
			l.value(v.FieldByIndex(fields[i].index), &fields[i], path, value)
		}
	}
}

// allocated returns the target of a pointer, which it allocates if it is nil, or v itself.
func allocated(v reflect.Value) reflect.Value {
	if v.Kind() != reflect.Pointer {
		return v
	}
	if v.IsNil() {
		v.Set(reflect.New(v.Type().Elem()))
	}
	return v.Elem()
}

// value fills a field, or an item of a list, from a value of the file.
func (l *loader) value(v reflect.Value, f *field, path string, n *yaml.Node) {
	if !isNull(n) {
		l.places[path] = placeOf(n)
	}
	list := f.typ.Kind() == reflect.Slice
	switch why := unsupported(n); {
	case why != "":
		l.fault(path, "%s", why)
	case list && n.Kind == yaml.SequenceNode:
		v.Set(reflect.MakeSlice(f.typ, len(n.Content), len(n.Content)))
		for i, item := range n.Content {
			l.value(v.Index(i), f.element(), fmt.Sprintf("%s[%d]", path, i), item)
		}
	case list || n.Kind != yaml.ScalarNode || isNull(n):
		l.fault(path, "this is %s; want %s", kindOf(n), wanted(f))
	default:
		if err := l.set(allocated(v), f, n.Value, isQuoted(n)); err != nil {
			l.fault(path, "%v", err)
		}
	}
}

// fromEnv fills a struct from the environment and records the names of its variables.
func (l *loader) fromEnv(v reflect.Value, at string, known map[string]bool) (any bool) {
	for _, f := range fieldsOf(v.Type(), at) {
		if f.isStruct() {
			inner := v.FieldByIndex(f.index)
			if inner.Kind() != reflect.Pointer || !inner.IsNil() {
				any = l.fromEnv(reflect.Indirect(inner), f.path, known) || any
			} else if made := reflect.New(f.typ); l.fromEnv(made.Elem(), f.path, known) {
				inner.Set(made)
				any = true
			}
			continue
		}
		name := l.prefix + f.variable()
		known[name] = true
		if text := l.env[name]; text != "" {
			any = true
			l.variable(v.FieldByIndex(f.index), &f, name, text)
		}
	}
	return any
}

// variable fills a field from a variable. Commas separate the items of a list.
func (l *loader) variable(v reflect.Value, f *field, name, text string) {
	l.places[f.path] = place{variable: name}
	if f.typ.Kind() != reflect.Slice {
		if err := l.set(allocated(v), f, text, false); err != nil {
			l.fault(f.path, "%v", err)
		}
		return
	}
	parts := strings.Split(text, ",")
	v.Set(reflect.MakeSlice(f.typ, len(parts), len(parts)))
	for i, part := range parts {
		path := fmt.Sprintf("%s[%d]", f.path, i)
		l.places[path] = l.places[f.path]
		if err := l.set(v.Index(i), f.element(), strings.TrimSpace(part), false); err != nil {
			l.fault(path, "%v", err)
		}
	}
}

// ofCommand is a variable of command mcpkit, whose servers may have its environment.
const ofCommand = "MCPKIT_CLIENT_SECRET"

// unknownVariables reports variables with the prefix that name no key. Empty variables do not
// count.
func (l *loader) unknownVariables(known map[string]bool) {
	names := slices.Sorted(maps.Keys(known))
	for _, name := range slices.Sorted(maps.Keys(l.env)) {
		if strings.HasPrefix(name, l.prefix) && l.env[name] != "" && !known[name] && !l.used[name] && name != ofCommand {
			l.places[name] = place{variable: name}
			l.fault(name, "unknown variable%s", nearest.Hint(name, names))
		}
	}
}

// wanted describes the values of a field.
func wanted(f *field) string {
	switch {
	case len(f.enum) > 0:
		return "one of " + strings.Join(f.enum, ", ")
	case f.address:
		return `an address such as "127.0.0.1:8080", or ":8080" for all of this machine`
	}
	switch f.typ {
	case reflect.TypeFor[time.Duration]():
		return `a duration such as "30s" or "1h30m"`
	case reflect.TypeFor[Size]():
		return `a number of bytes such as 4096 or "4MiB"`
	case reflect.TypeFor[slog.Level]():
		return "one of debug, info, warn, error"
	case reflect.TypeFor[Secret]():
		return "a reference, env:NAME or file:PATH, since a file must not contain secrets"
	case reflect.TypeFor[EngineURL]():
		return "a URL, or a reference to one, env:NAME or file:PATH, if it has a password"
	case reflect.TypeFor[Path]():
		return "the path of a file"
	}
	switch f.typ.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a list"
	}
	return "a string"
}

// set parses one value. Strings stay as they are, even if YAML would read a number. Numbers and
// bools are parsed as in YAML, but not within quotes.
func (l *loader) set(v reflect.Value, f *field, text string, quoted bool) error {
	ok := text != ""
	switch p := v.Addr().Interface().(type) {
	case *Secret:
		var err error
		*p, err = l.secret(text)
		return err
	case *EngineURL:
		var err error
		*p, err = l.engineURL(text)
		return err
	case *Path:
		*p = Path(l.path(text))
	case *string:
		*p = text
		if f.address {
			_, _, err := net.SplitHostPort(text)
			ok = err == nil
		}
		ok = ok && (len(f.enum) == 0 || slices.Contains(f.enum, text))
	case *slog.Level:
		ok = slices.Contains([]string{"debug", "info", "warn", "error"}, strings.ToLower(text)) && p.UnmarshalText([]byte(text)) == nil
	case encoding.TextUnmarshaler:
		ok = p.UnmarshalText([]byte(text)) == nil
	case *time.Duration:
		d, err := time.ParseDuration(text)
		*p, ok = d, err == nil && d >= 0
	case *bool:
		*p = strings.EqualFold(text, "true")
		ok = !quoted && (*p || strings.EqualFold(text, "false"))
	case *int:
		var err error
		*p, err = strconv.Atoi(text)
		ok = !quoted && err == nil
	case *float64:
		var err error
		*p, err = strconv.ParseFloat(text, 64)
		ok = !quoted && err == nil
	}
	var number float64
	switch {
	case v.CanInt():
		number = float64(v.Int())
	case v.CanFloat():
		number = v.Float()
	}
	switch {
	case !ok || math.IsNaN(number) || math.IsInf(number, 0):
		return fmt.Errorf("%q is not valid; want %s", clip(text), wanted(f))
	case f.hasMin && number < f.min && f.typ == reflect.TypeFor[time.Duration]():
		return errors.New("it must be more than 0")
	case f.hasMin && number < f.min:
		return fmt.Errorf("%s is too small; want at least %v", text, f.min)
	}
	return nil
}

// clip shortens a quoted text.
func clip(text string) string {
	if len(text) > 60 {
		return strings.ToValidUTF8(text[:60], "") + "..."
	}
	return text
}

// UnmarshalText reads 4096, 64KiB, 4MiB or 1GiB.
func (s *Size) UnmarshalText(text []byte) error {
	digits := strings.TrimRight(string(text), "KMGTiB")
	factor, ok := map[string]int64{"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}[string(text[len(digits):])]
	n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
	if !ok || err != nil || n < 0 || n > math.MaxInt64/factor {
		return fmt.Errorf("config: %q is not a number of bytes", clip(string(text)))
	}
	*s = Size(n * factor)
	return nil
}

// complete finds missing keys. A key with an invalid value is not missing.
func (l *loader) complete(v reflect.Value, at string) {
	for _, f := range fieldsOf(v.Type(), at) {
		field := v.FieldByIndex(f.index)
		if _, there := l.places[f.path]; f.required && field.IsZero() && !there {
			l.fault(f.path, "it is missing; want %s", wanted(&f))
		}
		if f.isStruct() && (field.Kind() != reflect.Pointer || !field.IsNil()) {
			l.complete(reflect.Indirect(field), f.path)
		}
	}
}

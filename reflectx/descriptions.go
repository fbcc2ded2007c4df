package reflectx

import (
	"maps"
	"reflect"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// FirstDescriptions returns the first non-empty text of ws. It skips nil elements.
func FirstDescriptions(ws ...Descriptions) Descriptions {
	var some firstDescriptions
	for _, w := range ws {
		if w != nil {
			some = append(some, w)
		}
	}
	return some
}

type firstDescriptions []Descriptions

func (ws firstDescriptions) Text(t reflect.Type, member string) string {
	for _, w := range ws {
		if text := w.Text(t, member); text != "" {
			return text
		}
	}
	return ""
}

func (ws firstDescriptions) Enum(t reflect.Type) []EnumValue {
	for _, w := range ws {
		if values := w.Enum(t); len(values) > 0 {
			return values
		}
	}
	return nil
}

// registered holds the descriptions of generated files by import path.
var registered struct {
	mu       sync.RWMutex
	packages map[string]map[string]string // guarded by mu; the inner maps never change
}

// RegisterDescriptions adds the descriptions of the package pkgPath to [RegisteredDescriptions].
// The init function of a generated file calls it. Several calls for one package add up; the last
// text for a key wins. The program's own package may be called "main" or by its import path.
//
// The keys are the following, with names as in Go source and without type parameters:
//
//	Notes              the type Notes
//	Notes.Search       the method, or the field of the struct, Search of Notes
//	Notes.Search.Query the field Query of the struct without a name that is the type of Search, or that the method takes
//	Color#0            the first constant of the type Color, in source order; then Color#1 and so on
//
// The text of a constant is its value as a Go literal (a quoted string, a number, true or false),
// followed by a space and its description if it has one: `"red" The color of blood.`
func RegisterDescriptions(pkgPath string, descriptions map[string]string) {
	registered.mu.Lock()
	defer registered.mu.Unlock()
	merged := make(map[string]string, len(descriptions)+len(registered.packages[pkgPath]))
	maps.Copy(merged, registered.packages[pkgPath])
	maps.Copy(merged, descriptions)
	if registered.packages == nil {
		registered.packages = map[string]map[string]string{}
	}
	registered.packages[pkgPath] = merged
}

// RegisteredDescriptions returns the descriptions registered with [RegisterDescriptions], including
// those registered later.
func RegisteredDescriptions() Descriptions { return keyed(registeredOf) }

func registeredOf(t reflect.Type) map[string]string {
	registered.mu.RLock()
	defer registered.mu.RUnlock()
	pkgPath := t.PkgPath()
	if descriptions, ok := registered.packages[pkgPath]; ok || pkgPath == "" {
		return descriptions
	}
	return registered.packages[alias(pkgPath)]
}

// programPath returns the import path of the program's package main, or "" if unknown.
var programPath = sync.OnceValue(func() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return strings.TrimSuffix(info.Path, ".test")
	}
	return ""
})

// alias returns the other name of the program's own package, or "" if there is none. Reflection
// calls it "main", but in a test it uses the import path.
func alias(pkgPath string) string {
	switch pkgPath {
	case "main":
		return programPath()
	case programPath():
		return "main"
	}
	return ""
}

// keyed returns the descriptions of the package of a type, by the keys of RegisterDescriptions.
type keyed func(t reflect.Type) map[string]string

// Text implements [Descriptions].
func (of keyed) Text(t reflect.Type, member string) string {
	key := baseName(t.Name())
	if key == "" {
		return ""
	}
	return of(t)[strings.TrimSuffix(key+"."+member, ".")]
}

// Enum implements [Descriptions]. If a constant cannot be encoded, there are none.
func (of keyed) Enum(t reflect.Type) (values []EnumValue) {
	name := baseName(t.Name())
	if name == "" {
		return nil
	}
	descriptions := of(t)
	for i := 0; ; i++ {
		entry, ok := descriptions[name+"#"+strconv.Itoa(i)]
		if !ok {
			return values
		}
		literal, text := cutLiteral(entry)
		raw, ok := enumJSON(t, literal)
		if !ok {
			return nil
		}
		values = append(values, EnumValue{JSON: raw, Text: text})
	}
}

// cutLiteral splits the text of a constant into its value and its description.
func cutLiteral(entry string) (literal, text string) {
	if quoted, err := strconv.QuotedPrefix(entry); err == nil {
		return quoted, strings.TrimSpace(entry[len(quoted):])
	}
	literal, text, _ = strings.Cut(entry, " ")
	return literal, strings.TrimSpace(text)
}

// enumJSON returns the JSON of the constant of type t with the given Go literal, as the type
// encodes itself.
func enumJSON(t reflect.Type, literal string) (value string, ok bool) {
	v := reflect.New(t).Elem()
	var err error
	switch {
	case t.Kind() == reflect.String:
		var s string
		s, err = strconv.Unquote(literal)
		v.SetString(s)
	case t.Kind() == reflect.Bool:
		v.SetBool(literal == "true")
	case v.CanInt():
		var n int64
		n, err = strconv.ParseInt(literal, 0, t.Bits())
		v.SetInt(n)
	case v.CanUint():
		var n uint64
		n, err = strconv.ParseUint(literal, 0, t.Bits())
		v.SetUint(n)
	case v.CanFloat():
		var n float64
		n, err = strconv.ParseFloat(literal, t.Bits())
		v.SetFloat(n)
	default:
		return "", false
	}
	if err != nil {
		return "", false
	}
	// The type's own MarshalText or MarshalJSON runs here. A panic in it only costs the
	// descriptions.
	defer func() {
		if recover() != nil {
			value, ok = "", false
		}
	}()
	b, err := jsonx.Marshal(v.Interface())
	return string(b), err == nil
}

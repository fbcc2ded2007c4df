package reflectx

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"reflect"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// Comments returns the descriptions in the source files on disk that the program was built from, as
// with go run and go test. A package without source there has those of [RegisterDescriptions].
//
// It finds a package by one of its files that [Methods] or [Compile] has seen, or in the program's
// module; "mcpkit gen" describes packages of other modules. A program built with -trimpath contains no
// directories, so it finds no source.
func Comments() Descriptions {
	return keyed(func(t reflect.Type) map[string]string {
		if found := onDisk.of(t); found != nil {
			return found
		}
		return registeredOf(t)
	})
}

// registered holds the descriptions of generated files by import path.
var registered = struct {
	mu       sync.RWMutex
	packages map[string]map[string]string // guarded by mu; the inner maps never change
}{packages: map[string]map[string]string{}}

// RegisterDescriptions adds descriptions of the package pkgPath to those of [Comments]. The init
// function of a generated file calls it. Several calls for one package add up; the last text for a key
// wins. The program's own package is called "main".
//
// The keys are the following, with names as in Go source and without type parameters:
//
//	Notes              the type Notes
//	Notes.Search       the method, or the field of the struct, Search of Notes
//	Notes.Search.Query the field Query of the struct without a name that is the type of Search, or that the method takes
//	Color#0            the first constant of the type Color, in source order; then Color#1 and so on
//
// The text of a constant is its value as a Go literal (a quoted string or a number),
// followed by a space and its description if it has one: `"red" The color of blood.`
func RegisterDescriptions(pkgPath string, descriptions map[string]string) {
	registered.mu.Lock()
	defer registered.mu.Unlock()
	merged := make(map[string]string, len(descriptions)+len(registered.packages[pkgPath]))
	maps.Copy(merged, registered.packages[pkgPath])
	maps.Copy(merged, descriptions)
	registered.packages[pkgPath] = merged
}

// RegisterSource is RegisterDescriptions with the comments of the Go files at the root of fsys, test
// files excepted.
func RegisterSource(pkgPath string, fsys fs.FS) {
	for _, descriptions := range collect(fsys, false) {
		RegisterDescriptions(pkgPath, descriptions)
	}
}

// registeredOf returns the descriptions of the package of t. In a test, reflection calls the program's
// own package by its import path instead of "main".
func registeredOf(t reflect.Type) map[string]string {
	registered.mu.RLock()
	defer registered.mu.RUnlock()
	pkgPath := t.PkgPath()
	if descriptions, ok := registered.packages[pkgPath]; ok || pkgPath != programPath() {
		return descriptions
	}
	return registered.packages["main"]
}

// programPath returns the import path of the program's package main, or "" if unknown.
func programPath() string { return strings.TrimSuffix(buildInfo().Path, ".test") }

var buildInfo = sync.OnceValue(func() *debug.BuildInfo {
	info, _ := debug.ReadBuildInfo()
	return cmp.Or(info, &debug.BuildInfo{})
})

// keyed returns the descriptions of the package of a type, by the keys of RegisterDescriptions.
type keyed func(t reflect.Type) map[string]string

// Text implements [Descriptions].
func (of keyed) Text(t reflect.Type, member string) string {
	return of(t)[strings.TrimSuffix(baseName(t.Name())+"."+member, ".")]
}

// Enum implements [Descriptions]. If a constant cannot be encoded, there are none.
func (of keyed) Enum(t reflect.Type) (values []EnumValue) {
	name, descriptions := baseName(t.Name()), of(t)
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
	verb := "%v"
	if t.Kind() == reflect.String {
		verb = "%q"
	}
	v := reflect.New(t)
	if _, err := fmt.Sscanf(literal, verb, v.Interface()); err != nil {
		return "", false
	}
	// The type's own MarshalText or MarshalJSON runs here. A panic in it only costs the
	// descriptions.
	defer func() {
		if recover() != nil {
			value, ok = "", false
		}
	}()
	b, err := jsonx.Marshal(v.Elem().Interface())
	return string(b), err == nil
}

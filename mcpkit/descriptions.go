package mcpkit

import (
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/mcpkit/mcpkit-go/reflectx"
)

// RegisterDescriptions gives the doc comments of the package pkgPath to a program that is built without its source. The files
// that "mcpkit gen" writes call it, before main runs; nobody else has to. [reflectx.RegisterDescriptions] says what the keys are.
func RegisterDescriptions(pkgPath string, descriptions map[string]string) {
	reflectx.RegisterDescriptions(pkgPath, descriptions)
}

// generatedDescriptions are the descriptions of generated files. It compares them with the source, where the program runs beside that.
type generatedDescriptions struct {
	reflectx.Descriptions
	source reflectx.Descriptions

	mu    sync.Mutex
	stale map[string]bool // import paths; guarded by mu
}

func newGeneratedDescriptions(source reflectx.Descriptions) *generatedDescriptions {
	return &generatedDescriptions{Descriptions: reflectx.RegisteredDescriptions(), source: source, stale: map[string]bool{}}
}

// Type implements [reflectx.Descriptions].
func (w *generatedDescriptions) Type(t reflect.Type) string {
	text := w.Descriptions.Type(t)
	if text != "" {
		w.compare(t, text, w.source.Type(t))
	}
	return text
}

// Method implements [reflectx.Descriptions].
func (w *generatedDescriptions) Method(t reflect.Type, method string) string {
	return w.member(t, method, reflectx.Descriptions.Method)
}

// Field implements [reflectx.Descriptions].
func (w *generatedDescriptions) Field(t reflect.Type, field string) string {
	return w.member(t, field, reflectx.Descriptions.Field)
}

// member compares what is said of a method or a field. Nothing is, where the file knows the type, means that the file is older.
func (w *generatedDescriptions) member(t reflect.Type, name string, of func(reflectx.Descriptions, reflect.Type, string) string) string {
	text := of(w.Descriptions, t, name)
	if text != "" || w.Descriptions.Type(t) != "" {
		w.compare(t, text, of(w.source, t, name))
	}
	return text
}

// compare notes that a package is stale. Without the source at hand nothing is known.
func (w *generatedDescriptions) compare(t reflect.Type, generated, source string) {
	if source == "" || source == generated {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stale[t.PkgPath()] = true
}

// stalePackages are the packages of which the source says something else than the generated file.
func (w *generatedDescriptions) stalePackages() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.stale))
}

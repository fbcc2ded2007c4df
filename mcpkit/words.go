package mcpkit

import (
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/mcpkit/mcpkit-go/reflectx"
)

// RegisterWords gives the doc comments of the package pkgPath to a program that is built without its source. The files
// that "mcpkit gen" writes call it, before main runs; nobody else has to. [reflectx.RegisterWords] says what the keys are.
func RegisterWords(pkgPath string, words map[string]string) { reflectx.RegisterWords(pkgPath, words) }

// generatedWords are the words of generated files. It compares them with the source, where the program runs beside that.
type generatedWords struct {
	reflectx.Words
	source reflectx.Words

	mu    sync.Mutex
	stale map[string]bool // import paths; guarded by mu
}

func newGeneratedWords(source reflectx.Words) *generatedWords {
	return &generatedWords{Words: reflectx.RegisteredWords(), source: source, stale: map[string]bool{}}
}

// Type implements [reflectx.Words].
func (w *generatedWords) Type(t reflect.Type) string {
	text := w.Words.Type(t)
	if text != "" {
		w.compare(t, text, w.source.Type(t))
	}
	return text
}

// Method implements [reflectx.Words].
func (w *generatedWords) Method(t reflect.Type, method string) string {
	return w.member(t, method, reflectx.Words.Method)
}

// Field implements [reflectx.Words].
func (w *generatedWords) Field(t reflect.Type, field string) string {
	return w.member(t, field, reflectx.Words.Field)
}

// member compares what is said of a method or a field. Nothing is, where the file knows the type, means that the file is older.
func (w *generatedWords) member(t reflect.Type, name string, of func(reflectx.Words, reflect.Type, string) string) string {
	text := of(w.Words, t, name)
	if text != "" || w.Words.Type(t) != "" {
		w.compare(t, text, of(w.source, t, name))
	}
	return text
}

// compare notes that a package is stale. Without the source at hand nothing is known.
func (w *generatedWords) compare(t reflect.Type, generated, source string) {
	if source == "" || source == generated {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stale[t.PkgPath()] = true
}

// stalePackages are the packages of which the source says something else than the generated file.
func (w *generatedWords) stalePackages() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.stale))
}

package mcpkit

import (
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/mcpkit/mcpkit-go/reflectx"
)

// RegisterDescriptions registers the doc comments of a package for programs that run without its
// source. Only files written by "mcpkit gen" call it. See [reflectx.RegisterDescriptions] for the
// keys.
func RegisterDescriptions(pkgPath string, descriptions map[string]string) {
	reflectx.RegisterDescriptions(pkgPath, descriptions)
}

// generatedDescriptions are the descriptions of generated files. They are compared with the source
// if it is available.
type generatedDescriptions struct {
	reflectx.Descriptions
	source reflectx.Descriptions

	mu    sync.Mutex
	stale map[string]bool // import paths; guarded by mu
}

func newGeneratedDescriptions(source reflectx.Descriptions) *generatedDescriptions {
	return &generatedDescriptions{Descriptions: reflectx.RegisteredDescriptions(), source: source, stale: map[string]bool{}}
}

// Text implements [reflectx.Descriptions]. If the file knows the type but not the member, the file
// is older than the source.
func (w *generatedDescriptions) Text(t reflect.Type, member string) string {
	text := w.Descriptions.Text(t, member)
	if text != "" || w.Descriptions.Text(t, "") != "" {
		w.compare(t, text, w.source.Text(t, member))
	}
	return text
}

// compare notes a package whose description differs from its source.
func (w *generatedDescriptions) compare(t reflect.Type, generated, source string) {
	if source == "" || source == generated {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stale[t.PkgPath()] = true
}

// stalePackages returns the packages with a description that differs from the source.
func (w *generatedDescriptions) stalePackages() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.stale))
}

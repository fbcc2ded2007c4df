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

// generatedDescriptions are the descriptions of generated files. Where the source is available and
// differs, the file is stale and the source wins.
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
	if text == "" && w.Descriptions.Text(t, "") == "" {
		return ""
	}
	source := w.source.Text(t, member)
	if source == "" || source == text {
		return text
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stale[t.PkgPath()] = true
	return source
}

// Enum implements [reflectx.Descriptions].
func (w *generatedDescriptions) Enum(t reflect.Type) []reflectx.EnumValue {
	if values := w.source.Enum(t); values != nil {
		return values
	}
	return w.Descriptions.Enum(t)
}

// stalePackages returns the packages with a description that differs from the source.
func (w *generatedDescriptions) stalePackages() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.stale))
}

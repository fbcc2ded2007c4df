// Package rehearsal holds which methods of services are not for clients: package mcpkit tells them by reflection, and the tools that
// read services from their source do the same.
package rehearsal

import (
	"maps"
	"slices"
)

// WellKnown are methods that mean something to Go programs; they are not for clients unless the annotation block says so.
var WellKnown = slices.Sorted(maps.Keys(Signatures))

// Signatures are those that Go programs know the methods of WellKnown by, as reflect writes them, and what they are for. A method
// of the name with another signature is a mistake, or a tool that the annotation block has to mention.
var Signatures = map[string]Signature{
	"Start":           {"the service's own method to start it", []string{"func(context.Context) error"}},
	"Close":           {"the service's own method to close it", []string{"func() error"}},
	"Shutdown":        {"a method that ends Go servers", []string{"func(context.Context) error", "func() error", "func()"}},
	"String":          {"a method of Go's fmt.Stringer", []string{"func() string"}},
	"GoString":        {"a method of Go's fmt.GoStringer", []string{"func() string"}},
	"Format":          {"a method of Go's fmt.Formatter", []string{"func(fmt.State, int32)"}},
	"Error":           {"the method of Go's errors", []string{"func() string"}},
	"Unwrap":          {"a method of Go's errors", []string{"func() error", "func() []error"}},
	"Is":              {"a method of Go's errors", []string{"func(error) bool"}},
	"As":              {"a method of Go's errors", []string{"func(interface {}) bool"}},
	"ServeHTTP":       {"the method of Go's http.Handler", []string{"func(http.ResponseWriter, *http.Request)"}},
	"MarshalJSON":     {"a method of Go's json.Marshaler", []string{"func() ([]uint8, error)"}},
	"UnmarshalJSON":   {"a method of Go's json.Unmarshaler", []string{"func([]uint8) error"}},
	"MarshalText":     {"a method of Go's encoding.TextMarshaler", []string{"func() ([]uint8, error)"}},
	"UnmarshalText":   {"a method of Go's encoding.TextUnmarshaler", []string{"func([]uint8) error"}},
	"MarshalBinary":   {"a method of Go's encoding.BinaryMarshaler", []string{"func() ([]uint8, error)"}},
	"UnmarshalBinary": {"a method of Go's encoding.BinaryUnmarshaler", []string{"func([]uint8) error"}},
	"MarshalYAML":     {"a method of YAML packages", []string{"func() (interface {}, error)", "func() ([]uint8, error)"}},
	"UnmarshalYAML":   {"a method of YAML packages", []string{"func(*yaml.Node) error", "func([]uint8) error", "func(func(interface {}) error) error"}},
	"Read":            {"a method of Go's io.Reader", []string{"func([]uint8) (int, error)"}},
	"Write":           {"a method of Go's io.Writer", []string{"func([]uint8) (int, error)"}},
	"Seek":            {"a method of Go's io.Seeker", []string{"func(int64, int) (int64, error)"}},
	"Len":             {"a method of Go's sort.Interface", []string{"func() int"}},
	"Less":            {"a method of Go's sort.Interface", []string{"func(int, int) bool"}},
	"Swap":            {"a method of Go's sort.Interface", []string{"func(int, int)"}},
	"Lock":            {"a method of Go's sync.Locker", []string{"func()"}},
	"Unlock":          {"a method of Go's sync.Locker", []string{"func()"}},
	"LogValue":        {"a method of Go's slog.LogValuer", []string{"func() slog.Value"}},
}

// A Signature is what a method of a well-known name is for, and the forms that it has then.
type Signature struct {
	What  string
	Forms []string
}

package naming

import (
	"maps"
	"slices"
)

// GoMethods are the names that mean something to Go programs. Such methods are not for clients unless
// the annotation block lists them.
var GoMethods = slices.Sorted(maps.Keys(GoSignatures))

// GoSignatures are the well-known signatures of GoMethods, as reflect writes them. A method with such a
// name and another signature is a mistake, unless the annotation block lists it.
var GoSignatures = map[string]Signature{
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

// A Signature is what a well-known method is for, and its possible types.
type Signature struct {
	What  string
	Forms []string
}

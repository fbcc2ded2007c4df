package reflectx

import (
	"reflect"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// A Nullable is a field that tells an absent member, null and a value apart, as a change of a record
// needs it. Its schema is that of T, or null; the rules of its tags are about the value.
type Nullable[T any] struct {
	Set   bool // the member is there
	Null  bool // it is null
	Value T
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *Nullable[T]) UnmarshalJSON(b []byte) error {
	n.Set, n.Null = true, string(b) == "null"
	if n.Null {
		return nil
	}
	return jsonx.Unmarshal(b, &n.Value)
}

// MarshalJSON implements json.Marshaler. An absent value is null, unless the field has the option omitzero.
func (n Nullable[T]) MarshalJSON() ([]byte, error) {
	if n.Null || !n.Set {
		return []byte("null"), nil
	}
	return jsonx.Marshal(n.Value)
}

// ValidatorValue returns the value for the rules of validator/v10.
func (n Nullable[T]) ValidatorValue() any {
	if !n.Set {
		return (*T)(nil)
	}
	return &n.Value
}

var nullablePath = reflect.TypeFor[Nullable[any]]().PkgPath()

// isNullable reports whether t is a Nullable, or a pointer to one.
func isNullable(t reflect.Type) bool {
	t = indirectType(t)
	return t.PkgPath() == nullablePath && strings.HasPrefix(t.Name(), "Nullable[")
}

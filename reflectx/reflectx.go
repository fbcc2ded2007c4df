// Package reflectx turns annotated Go into plans: functions into calls, types into JSON Schemas and
// argument decoders, doc comments into descriptions.
//
// It knows functions, tags, schemas and arguments; it knows nothing of MCP. All reflection on types
// happens when something is compiled. What runs per call are the closures made then.
package reflectx

import (
	"reflect"
	"strings"
)

// Descriptions says what doc comments say. Every method returns "" (or nil) where there is nothing
// to say. Implementations are safe for concurrent use.
type Descriptions interface {
	// Type returns the doc comment of the named type t.
	Type(t reflect.Type) string
	// Method returns the doc comment of the method of t or *t that is declared on t itself.
	Method(t reflect.Type, method string) string
	// Field returns the doc comment, or else the line comment, of the field of the struct type t.
	// Fields of structs without a name are asked for by the way to them from a type that has one:
	// "Filter.Op", and "Search.Query" for a field of the struct that the method Search of t takes.
	Field(t reflect.Type, field string) string
	// Enum returns the constants declared with the named type t, in source order.
	Enum(t reflect.Type) []EnumValue
}

// An EnumValue is one constant of a named type: its value as JSON text and what its comment says.
type EnumValue struct {
	JSON string
	Text string
}

// An Error is an author's mistake in a tag or a declaration, found when something is compiled.
type Error struct {
	// Site says where: "Notes.Search" or "Notes.Search, field Limit", with "(notes.go:12)" where
	// known.
	Site string
	// Msg says what is wrong and what to write instead.
	Msg string
}

// Error returns "site: message".
func (e *Error) Error() string {
	if e.Site == "" {
		return e.Msg
	}
	return e.Site + ": " + e.Msg
}

// Errors are all the mistakes of one declaration.
type Errors []*Error

// Error returns one mistake a line.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, err := range e {
		lines[i] = err.Error()
	}
	return strings.Join(lines, "\n")
}

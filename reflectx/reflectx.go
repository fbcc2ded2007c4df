// Package reflectx compiles annotated Go declarations: functions into calls, types into JSON
// Schemas and argument decoders, doc comments into descriptions.
//
// It handles functions, tags, schemas and arguments, and does not depend on MCP. Types are
// inspected when something is compiled; a call only runs the compiled closures.
package reflectx

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// Descriptions returns the text of doc comments, each paragraph on one line. Every method returns
// "" (or nil) if there is none. Implementations are safe for concurrent use.
type Descriptions interface {
	// Text returns the doc comment of the named type t if member is "". Otherwise it returns the doc
	// comment of the method of t or *t that is declared on t itself, or the doc comment, or else the
	// line comment, of the field of the struct type t. For a struct without a name, t is the nearest
	// type that has a name and member is the path to the field: "Filter.Op", or "Search.Query" for a
	// field of the struct that the method Search of t takes.
	Text(t reflect.Type, member string) string
	// Enum returns the constants declared with the named type t, in source order.
	Enum(t reflect.Type) []EnumValue
}

// An EnumValue is one constant of a named type: its value as JSON and the text of its comment.
type EnumValue struct {
	JSON string
	Text string
}

// An Error is a mistake in a tag or a declaration, found when it is compiled.
type Error struct {
	// Site is the place: "Notes.Search" or "Notes.Search, field Limit", followed by "(notes.go:12)"
	// if known.
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

// Addf adds a mistake.
func (e *Errors) Addf(site, format string, args ...any) {
	*e = append(*e, &Error{Site: site, Msg: fmt.Sprintf(format, args...)})
}

// Add adds the mistakes of err. An error that is neither Errors nor an *Error is a mistake at site.
func (e *Errors) Add(site string, err error) {
	if err == nil {
		return
	}
	if many, ok := errors.AsType[Errors](err); ok {
		*e = append(*e, many...)
	} else if one, ok := errors.AsType[*Error](err); ok {
		*e = append(*e, one)
	} else {
		e.Addf(site, "%v", err)
	}
}

// Err returns the mistakes; nil if there are none.
func (e Errors) Err() error {
	if len(e) == 0 {
		return nil
	}
	return e
}

// Error returns the mistakes, one per line.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, err := range e {
		lines[i] = err.Error()
	}
	return strings.Join(lines, "\n")
}

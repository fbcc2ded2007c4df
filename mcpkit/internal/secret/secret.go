// Package secret knows which arguments of a call logs may show.
package secret

import (
	"encoding/json"
	"errors"
	"maps"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

// Shown are the names of the arguments that logs may show: those that neither are secret nor have a
// secret within them. Nil means all.
type Shown map[string]bool

// OfSchema returns which properties of the schema of arguments logs may show. What is writeOnly, as
// the tag secret makes it, or has the format password is secret.
func OfSchema(schema []byte) Shown {
	isSecret := func(keyword, value []byte) bool {
		return jsonx.IsString(keyword, "writeOnly") && string(value) == "true" ||
			jsonx.IsString(keyword, "format") && jsonx.IsString(value, "password")
	}
	// What a property refers to may be secret.
	isReference := func(keyword, value []byte) bool {
		return isSecret(keyword, value) || jsonx.IsString(keyword, "$ref") || jsonx.IsString(keyword, "$dynamicRef")
	}
	if !hasKeyword(schema, isSecret) {
		return nil
	}
	shown := Shown{}
	for name, property := range jsonx.Members(jsonx.Member(schema, "properties")) {
		shown[jsonx.String(name)] = !hasKeyword(property, isReference)
	}
	for keyword, value := range jsonx.Members(schema) {
		switch jsonx.String(keyword) {
		case "properties", "$defs", "definitions":
		default:
			if isReference(keyword, value) || hasKeyword(value, isReference) { // it may be about any property
				return Shown{}
			}
		}
	}
	return shown
}

// With returns s with the properties of another schema that s does not know.
func (s Shown) With(schema []byte) Shown {
	other := OfSchema(schema)
	if s == nil {
		return other
	}
	all := Shown{}
	for name := range jsonx.Members(jsonx.Member(schema, "properties")) {
		all[jsonx.String(name)] = other == nil || other[jsonx.String(name)]
	}
	maps.Copy(all, s)
	return all
}

// hasKeyword reports whether is returns true for a keyword of the schema, or of one within it.
func hasKeyword(schema []byte, is func(keyword, value []byte) bool) bool {
	if jsonx.Kind(schema) == '{' {
		for keyword, value := range jsonx.Members(schema) {
			if is(keyword, value) || hasKeyword(value, is) {
				return true
			}
		}
	}
	if jsonx.Kind(schema) == '[' {
		for element := range jsonx.Elements(schema) {
			if hasKeyword(element, is) {
				return true
			}
		}
	}
	return false
}

// Redact returns the arguments, an object, as logs may show them. Unknown ones, whose names may be
// secrets, are left out.
func (s Shown) Redact(arguments json.RawMessage) json.RawMessage {
	if s == nil {
		return arguments
	}
	return jsonx.AppendEdited(nil, arguments, func(name, value []byte) []byte {
		show, known := s[jsonx.String(name)]
		switch {
		case show:
			return value
		case known:
			return []byte(`"[redacted]"`)
		}
		return nil
	})
}

// InErrors returns the compiled schema, written by hand, with errors that do not repeat secret values.
func InErrors(compiled reflectx.RawSchema, schema []byte) reflectx.RawSchema {
	shown := OfSchema(schema)
	if shown == nil {
		return compiled
	}
	return secretSchema{compiled, shown}
}

// A secretSchema is a schema whose errors do not repeat secret values.
type secretSchema struct {
	reflectx.RawSchema
	shown Shown
}

func (s secretSchema) Validate(value json.RawMessage) error {
	err := s.RawSchema.Validate(value)
	wrong, ok := errors.AsType[*reflectx.ArgumentError](err)
	if ok {
		s.Hide(wrong)
	}
	return err
}

// Hide removes secret values from the errors about arguments.
func (s secretSchema) Hide(wrong *reflectx.ArgumentError) {
	for i := range wrong.Violations {
		v := &wrong.Violations[i]
		name, _, _ := strings.Cut(strings.TrimPrefix(v.Pointer, "/"), "/")
		show, known := s.shown[name]
		switch {
		case show:
			continue
		case known:
			v.Pointer = "/" + name
		case v.Pointer != "":
			v.Pointer = "/***"
		}
		v.Got = "***"
		if !strings.Contains(v.Want, ": missing propert") {
			v.Want = "what the schema says" // details may quote values and names
		}
	}
}

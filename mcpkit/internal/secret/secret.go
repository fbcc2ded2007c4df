// Package secret knows which arguments of a call logs may show.
package secret

import (
	"encoding/json"
	"errors"
	"reflect"
	"strconv"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

// redacted replaces what logs may not show.
const redacted = `"[redacted]"`

// A Secrecy says which members of an arguments object logs may show. Nil means all.
type Secrecy struct {
	hide    bool                // not shown at all
	members map[string]*Secrecy // of an object, or of the objects of an array; other members are hidden
}

// shown is the secrecy of a value that logs may show.
var shown = &Secrecy{}

// hidden is the secrecy of a value that logs may not show.
var hidden = &Secrecy{hide: true}

// OfFields returns the secrecy of fields; nil if none has the tag secret.
func OfFields(fields []reflectx.Field) *Secrecy {
	found := false
	s := ofFields(fields, &found)
	if !found {
		return nil
	}
	return s
}

func ofFields(fields []reflectx.Field, found *bool) *Secrecy {
	s := &Secrecy{members: make(map[string]*Secrecy, len(fields))}
	for _, f := range fields {
		switch {
		case f.Secret:
			s.members[f.Name], *found = hidden, true
		case len(f.Fields) > 0:
			s.members[f.Name] = ofFields(f.Fields, found)
		case isStruct(f.Type):
			s.members[f.Name] = hidden // a recursive type, whose secret fields are not listed again
		default:
			s.members[f.Name] = shown
		}
	}
	return s
}

func isStruct(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	return t.Kind() == reflect.Struct
}

// OfSchema returns the secrecy of a schema written by hand, in which properties that are writeOnly
// or passwords are secret; nil if there are none.
func OfSchema(schema []byte) *Secrecy {
	found := false
	s := ofNode(schema, &found)
	if !found {
		return nil
	}
	return s
}

func ofNode(schema []byte, found *bool) *Secrecy {
	if string(jsonx.Member(schema, "writeOnly")) == "true" || jsonx.IsString(jsonx.Member(schema, "format"), "password") {
		*found = true
		return hidden
	}
	if items := jsonx.Member(schema, "items"); jsonx.Kind(items) == '{' {
		return ofNode(items, found)
	}
	properties := jsonx.Member(schema, "properties")
	switch {
	case jsonx.Kind(properties) == '{':
	case jsonx.Kind(jsonx.Member(schema, "type")) == '"' && !jsonx.IsString(jsonx.Member(schema, "type"), "object"):
		return shown
	default:
		return hidden // other schemas are not examined
	}
	s := &Secrecy{members: map[string]*Secrecy{}}
	for name, property := range jsonx.Members(properties) {
		s.members[jsonx.String(name)] = ofNode(property, found)
	}
	return s
}

// appendShown appends the part of a value that logs may show.
func (s *Secrecy) appendShown(b, value []byte) []byte {
	kind := jsonx.Kind(value)
	switch {
	case s.hide:
		return append(b, redacted...)
	case s.members == nil:
		return append(b, value...)
	case kind == '{':
		return s.AppendObject(b, value)
	case kind == '[':
		b = append(b, '[')
		for element := range jsonx.Elements(value) {
			b = s.appendShown(jsonx.AppendComma(b), element)
		}
		return append(b, ']')
	case kind == 'n':
		return append(b, value...)
	default: // not an object: perhaps one as text
		return append(b, redacted...)
	}
}

// AppendObject appends the part of an object that logs may show.
func (s *Secrecy) AppendObject(b, object []byte) []byte {
	return jsonx.AppendEdited(b, object, func(name, value []byte) []byte {
		member := s.members[jsonx.String(name)]
		if member == nil {
			member = hidden // perhaps a misspelt secret
		}
		return member.appendShown(nil, value)
	})
}

// InErrors returns the compiled schema, written by hand, with errors that do not repeat secret values.
func InErrors(compiled reflectx.RawSchema, schema []byte) reflectx.RawSchema {
	secrets := OfSchema(schema)
	if secrets == nil {
		return compiled
	}
	return secretSchema{compiled, secrets}
}

// A secretSchema is a schema whose errors do not repeat secret values.
type secretSchema struct {
	reflectx.RawSchema
	secrets *Secrecy
}

func (s secretSchema) Validate(value json.RawMessage) error {
	err := s.RawSchema.Validate(value)
	if wrong, ok := errors.AsType[*reflectx.ArgumentError](err); ok {
		s.secrets.hideIn(wrong)
	}
	return err
}

// hideIn takes secret values out of an error about the arguments.
func (s *Secrecy) hideIn(wrong *reflectx.ArgumentError) {
	for i := range wrong.Violations {
		v := &wrong.Violations[i]
		switch at := s.at(v.Pointer); {
		case at.hide:
			v.Got, v.Want = "***", "what the schema says" // details may quote the value
		case at.members != nil:
			v.Got = "***"
		}
	}
}

var pointerEscapes = strings.NewReplacer("~1", "/", "~0", "~")

// at returns the secrecy of the value that a JSON pointer names.
func (s *Secrecy) at(pointer string) *Secrecy {
	for _, token := range strings.Split(pointer, "/")[1:] {
		member := s.members[pointerEscapes.Replace(token)]
		_, notIndex := strconv.Atoi(token)
		switch {
		case s.members == nil:
			return s
		case member != nil:
			s = member
		case notIndex != nil:
			return hidden // perhaps a misspelt secret
		}
	}
	return s
}

// Package secret knows which arguments of a call logs may show.
package secret

import (
	"reflect"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

// redacted stands for what is not shown.
const redacted = `"[redacted]"`

// A Secrecy says which members of an arguments object may be shown. It is nil where all may.
type Secrecy struct {
	hide    bool                // not shown at all
	members map[string]*Secrecy // of an object, or of the objects of an array; a member that is not here is hidden
}

// shown is the secrecy of a member that may be shown whole.
var shown = &Secrecy{}

// hidden is the secrecy of a member of which nothing may be shown.
var hidden = &Secrecy{hide: true}

// OfFields finds the fields that are tagged secret; nil when there is none.
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
			*found = true
			s.members[f.Name] = hidden
		case len(f.Fields) > 0:
			s.members[f.Name] = ofFields(f.Fields, found)
		case isStruct(f.Type):
			s.members[f.Name] = hidden // a type within itself: what of it is secret is not listed again
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
	return t.Kind() == reflect.Struct || t.Kind() == reflect.Interface && t.NumMethod() > 0 // a union of structs
}

// OfSchema finds the properties of a schema written by hand that are writeOnly or passwords; nil
// when there is none.
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
		return hidden // whatever it is that the schema says, here it is not looked at
	}
	s := &Secrecy{members: map[string]*Secrecy{}}
	for name, property := range jsonx.Members(properties) {
		s.members[jsonx.String(name)] = ofNode(property, found)
	}
	return s
}

// appendShown appends what may be shown of a value.
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
		comma := false
		for element := range jsonx.Elements(value) {
			if comma {
				b = append(b, ',')
			}
			comma = true
			b = s.appendShown(b, element)
		}
		return append(b, ']')
	case kind == 'n':
		return append(b, value...)
	default: // no object where one belongs: perhaps one as text
		return append(b, redacted...)
	}
}

func (s *Secrecy) AppendObject(b, object []byte) []byte {
	b = append(b, '{')
	comma := false
	for name, value := range jsonx.Members(object) {
		if comma {
			b = append(b, ',')
		}
		comma = true
		b = append(append(b, name...), ':')
		member := s.members[jsonx.String(name)]
		if member == nil {
			member = hidden // perhaps a secret whose name is misspelt
		}
		b = member.appendShown(b, value)
	}
	return append(b, '}')
}

package mcpkit

import (
	"encoding/json"
	"reflect"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

// redacted stands for what is not shown.
const redacted = `"[redacted]"`

// A secrecy says which members of an arguments object may be shown. It is nil where all may.
type secrecy struct {
	hide    bool                // not shown at all
	members map[string]*secrecy // of an object, or of the objects of an array; a member that is not here is hidden
}

// shown is the secrecy of a member that may be shown whole.
var shown = &secrecy{}

// hidden is the secrecy of a member of which nothing may be shown.
var hidden = &secrecy{hide: true}

// secrecyOf finds the fields that are tagged secret; nil when there is none.
func secrecyOf(fields []reflectx.Field) *secrecy {
	found := false
	s := secrecyOfFields(fields, &found)
	if !found {
		return nil
	}
	return s
}

func secrecyOfFields(fields []reflectx.Field, found *bool) *secrecy {
	s := &secrecy{members: make(map[string]*secrecy, len(fields))}
	for _, f := range fields {
		switch {
		case f.Secret:
			*found = true
			s.members[f.Name] = hidden
		case len(f.Fields) > 0:
			s.members[f.Name] = secrecyOfFields(f.Fields, found)
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

// secrecyOfSchema finds the properties of a schema written by hand that are writeOnly or passwords; nil when there is none.
func secrecyOfSchema(schema []byte) *secrecy {
	found := false
	s := secrecyOfNode(schema, &found)
	if !found {
		return nil
	}
	return s
}

func secrecyOfNode(schema []byte, found *bool) *secrecy {
	if string(jsonx.Member(schema, "writeOnly")) == "true" || jsonx.IsString(jsonx.Member(schema, "format"), "password") {
		*found = true
		return hidden
	}
	if items := jsonx.Member(schema, "items"); jsonx.Kind(items) == '{' {
		return secrecyOfNode(items, found)
	}
	properties := jsonx.Member(schema, "properties")
	switch {
	case jsonx.Kind(properties) == '{':
	case jsonx.Kind(jsonx.Member(schema, "type")) == '"' && !jsonx.IsString(jsonx.Member(schema, "type"), "object"):
		return shown
	default:
		return hidden // whatever it is that the schema says, here it is not looked at
	}
	s := &secrecy{members: map[string]*secrecy{}}
	for name, property := range jsonx.Members(properties) {
		s.members[jsonx.String(name)] = secrecyOfNode(property, found)
	}
	return s
}

// appendShown appends what may be shown of a value.
func (s *secrecy) appendShown(b, value []byte) []byte {
	kind := jsonx.Kind(value)
	switch {
	case s.hide:
		return append(b, redacted...)
	case s.members == nil:
		return append(b, value...)
	case kind == '{':
		return s.appendObject(b, value)
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

func (s *secrecy) appendObject(b, object []byte) []byte {
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

// RedactedArguments are the arguments as logs may have them: what is tagged secret, and what nothing is known of, is
// replaced by "[redacted]". In tools with a schema written by hand the writeOnly properties and those of the format
// password are secret. It is nil when there are no arguments; where nothing of the name is registered no value is shown.
func (c *Call) RedactedArguments() json.RawMessage {
	raw := c.Arguments()
	switch {
	case jsonx.Kind(raw) != '{':
		return nil
	case c.entry == nil:
		return (&secrecy{}).appendObject(nil, raw)
	case c.entry.secrets == nil:
		return raw
	default:
		return c.entry.secrets.appendObject(nil, raw)
	}
}

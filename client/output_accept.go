package client

import (
	"bytes"
	"math/big"
	"reflect"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// This file accepts most valid outputs directly from their JSON. The validator would need Go
// values, and costs several times as much as the rest of a call. What is not accepted here is for
// the validator to judge. The build tag mcpkit_plain turns the file off.

// Limits of what is accepted without the validator.
const (
	maxAcceptedSteps = 1 << 16 // schemas that all values of one output are checked against
	maxAcceptedDepth = 64      // of values in values, including references
	maxRequired      = 64      // required properties of one object
)

// usualKeywords are the fields of a schema that an acceptance checks, or that allow every value.
var usualKeywords = map[string]bool{
	"Bool": true, "Ref": true, "AnyOf": true, "Types": true, "Enum": true, "Minimum": true, "Maximum": true,
	"Properties": true, "Required": true, "AdditionalProperties": true, "Items2020": true,

	"DraftVersion": true, "Location": true, "ID": true, "Anchor": true, "Extensions": true, // of stepCounter
	"Title": true, "Description": true, "Default": true, "Comment": true, "Examples": true,
	"ReadOnly": true, "WriteOnly": true, "Deprecated": true,
}

// usual reports whether s, and the schemas in it, have no keywords but the usual ones. It adds them
// to seen.
func usual(s *jsonschema.Schema, seen map[*jsonschema.Schema]bool) bool {
	if s == nil || seen[s] {
		return true
	}
	seen[s] = true
	fields := reflect.ValueOf(s).Elem()
	for i := range fields.NumField() {
		if f := fields.Type().Field(i); f.IsExported() && !usualKeywords[f.Name] && !fields.Field(i).IsZero() {
			return false
		}
	}
	for _, property := range s.Properties {
		if !usual(property, seen) {
			return false
		}
	}
	for _, one := range s.AnyOf {
		if !usual(one, seen) {
			return false
		}
	}
	other, _ := s.AdditionalProperties.(*jsonschema.Schema)
	return len(s.Required) <= maxRequired && usual(s.Ref, seen) && usual(s.Items2020, seen) && usual(other, seen)
}

// An acceptance checks one output against a schema for which usual is true.
type acceptance struct{ steps int }

// accepts reports whether value is known to be valid. A nil schema accepts all values. The value is
// JSON without duplicate members.
func (a *acceptance) accepts(s *jsonschema.Schema, value []byte, depth int) bool {
	if s == nil {
		return plain(value)
	}
	if a.steps++; a.steps > maxAcceptedSteps || depth > maxAcceptedDepth {
		return false
	}
	switch {
	case s.Bool != nil:
		return *s.Bool && plain(value)
	case s.Types != nil && *s.Types&typesOf(value) == 0:
		return false
	case s.Enum != nil && !a.inEnum(s.Enum, value):
		return false
	case s.Ref != nil && !a.accepts(s.Ref, value, depth+1):
		return false
	case s.AnyOf != nil && !a.anyOf(s.AnyOf, value, depth):
		return false
	}
	switch jsonx.Kind(value) {
	case '{':
		return a.object(s, value, depth)
	case '[':
		for element := range jsonx.Elements(value) {
			if !a.accepts(s.Items2020, element, depth+1) {
				return false
			}
		}
	case '0':
		return plain(value) && within(s, value)
	}
	return true
}

func (a *acceptance) anyOf(schemas []*jsonschema.Schema, value []byte, depth int) bool {
	for _, s := range schemas {
		if a.accepts(s, value, depth+1) {
			return true
		}
	}
	return false
}

func (a *acceptance) object(s *jsonschema.Schema, value []byte, depth int) bool {
	missing := len(s.Required)
	for quoted, member := range jsonx.Members(value) {
		name, ok := unquoted(quoted)
		if !ok {
			return false
		}
		for _, required := range s.Required {
			if required == string(name) {
				missing--
			}
		}
		sub, declared := s.Properties[string(name)]
		if !declared {
			switch other := s.AdditionalProperties.(type) {
			case bool:
				if !other {
					return false
				}
			case *jsonschema.Schema:
				sub = other
			}
		}
		if !a.accepts(sub, member, depth+1) {
			return false
		}
	}
	return missing == 0
}

// unquoted returns the text of a JSON string; false if it has escapes.
func unquoted(quoted []byte) ([]byte, bool) {
	if len(quoted) < len(`""`) || bytes.IndexByte(quoted, '\\') >= 0 {
		return nil, false
	}
	return quoted[1 : len(quoted)-1], true
}

// inEnum reports whether value is one of the strings of enum. Other values are for the validator.
func (a *acceptance) inEnum(enum *jsonschema.Enum, value []byte) bool {
	text, ok := unquoted(value)
	if !ok || jsonx.Kind(value) != '"' {
		return false
	}
	for _, one := range enum.Values {
		a.steps++
		if s, ok := one.(string); ok && s == string(text) {
			return true
		}
	}
	return false
}

// within reports whether a number without exponent has the bounds of s.
func within(s *jsonschema.Schema, number []byte) bool {
	if s.Minimum == nil && s.Maximum == nil {
		return true
	}
	n, ok := new(big.Rat).SetString(string(number))
	return ok && (s.Minimum == nil || n.Cmp(s.Minimum) >= 0) && (s.Maximum == nil || n.Cmp(s.Maximum) <= 0)
}

var (
	typeNull    = typeNamed("null")
	typeBoolean = typeNamed("boolean")
	typeObject  = typeNamed("object")
	typeArray   = typeNamed("array")
	typeString  = typeNamed("string")
	typeNumber  = typeNamed("number")
	typeInteger = typeNamed("integer")
)

func typeNamed(name string) (t jsonschema.Types) {
	t.Add(name)
	return t
}

// typesOf returns the JSON Schema types of value. It counts 1.0 as no integer, unlike the
// validator.
func typesOf(value []byte) jsonschema.Types {
	switch jsonx.Kind(value) {
	case '{':
		return typeObject
	case '[':
		return typeArray
	case '"':
		return typeString
	case 't', 'f':
		return typeBoolean
	case 'n':
		return typeNull
	}
	if bytes.IndexByte(value, '.') >= 0 {
		return typeNumber
	}
	return typeNumber | typeInteger
}

// plain reports whether value contains no number that the validator might refuse.
func plain(value []byte) bool {
	switch jsonx.Kind(value) {
	case '{':
		for _, member := range jsonx.Members(value) {
			if !plain(member) {
				return false
			}
		}
	case '[':
		for element := range jsonx.Elements(value) {
			if !plain(element) {
				return false
			}
		}
	case '0':
		return len(value) <= maxNumberLength && bytes.IndexByte(value, 'e') < 0 && bytes.IndexByte(value, 'E') < 0
	}
	return true
}

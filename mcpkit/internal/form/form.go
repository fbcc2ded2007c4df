// Package form turns the schema of a Go type into the schema of an elicitation form, which has
// fewer keywords: rules that a form cannot carry become part of descriptions.
package form

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

// formKeywords are the keywords of the schema of a form's field (client/elicitation, "Requested
// Schema").
var formKeywords = []string{
	"type", "title", "description", "default", "enum", "oneOf", "format",
	"minLength", "maxLength", "minimum", "maximum", "items", "minItems", "maxItems",
}

// formFormats are the formats that a form may name.
var formFormats = []string{"email", "uri", "date", "date-time"}

// lostRule describes a keyword that a form cannot carry; "" if it demands nothing.
func lostRule(keyword string, value json.RawMessage) string {
	switch text := string(value); keyword {
	case "exclusiveMinimum":
		return "More than " + text + "."
	case "exclusiveMaximum":
		return "Less than " + text + "."
	case "multipleOf":
		return "A multiple of " + text + "."
	case "pattern":
		return "Matches the pattern " + jsonx.String(value) + "."
	case "format":
		return "Format: " + jsonx.String(value) + "."
	case "default":
		return "Default: " + strings.Trim(text, `"`) + "."
	case "uniqueItems":
		return "No value twice."
	case "enum":
		var values []string
		for v := range jsonx.Elements(value) {
			values = append(values, string(v))
		}
		return "One of " + strings.Join(values, ", ") + "."
	case "examples", "deprecated", "readOnly", "writeOnly", "$comment":
		return ""
	default:
		return "Has to fit " + strconv.Quote(keyword) + ": " + text + "."
	}
}

// formField returns the schema of a field with the members that keep accepts. It describes the
// others.
func formField(property []byte, keep func(keyword string, value json.RawMessage) bool) []byte {
	var words []string
	if text := jsonx.String(jsonx.Member(property, "description")); text != "" {
		if !strings.ContainsAny(text[len(text)-1:], ".!?") {
			text += "."
		}
		words = append(words, text)
	}
	described, lost := len(words), []byte{'{'}
	for name, value := range jsonx.Members(property) {
		switch keyword := jsonx.String(name); {
		case keyword == "description":
		case keep(keyword, value):
			lost = append(append(append(append(lost, name...), ':'), value...), ',')
		default:
			if rule := lostRule(keyword, value); rule != "" {
				words = append(words, rule)
			}
		}
	}
	if len(words) == described {
		return appendOnly(nil, property, formKeywords) // unchanged
	}
	lost = append(lost, `"description":`...)
	return append(jsonx.AppendString(lost, strings.Join(words, " ")), '}')
}

// carried reports whether the form of a field of type kind can carry a keyword.
func carried(kind, keyword string, value json.RawMessage) bool {
	switch {
	case !slices.Contains(formKeywords, keyword):
		return false
	case keyword == "format":
		return slices.Contains(formFormats, jsonx.String(value))
	case keyword == "enum":
		return kind == "string"
	}
	return true
}

// Older returns a form for version 2025-06-18: enum and enumNames instead of oneOf, no lists, and
// defaults only for bools.
func Older(schema json.RawMessage) (json.RawMessage, error) {
	b := []byte{'{'}
	for name, value := range jsonx.Members(schema) {
		if jsonx.IsString(name, "properties") {
			properties, err := olderFields(value)
			if err != nil {
				return nil, err
			}
			value = properties
		}
		b = append(append(append(append(b, name...), ':'), value...), ',')
	}
	return closeObject(b), nil
}

func olderFields(properties json.RawMessage) (json.RawMessage, error) {
	b := []byte{'{'}
	for name, field := range jsonx.Members(properties) {
		kind := jsonx.String(jsonx.Member(field, "type"))
		if kind == "array" {
			return nil, fmt.Errorf("forms of 2025-06-18 have no lists, and the field %s is one", jsonx.String(name))
		}
		older := formField(field, func(keyword string, _ json.RawMessage) bool { return keyword != "default" || kind == "boolean" })
		b = append(append(append(append(b, name...), ':'), namedValues(older)...), ',')
	}
	return closeObject(b), nil
}

// namedValues replaces the oneOf of a field by enum and enumNames.
func namedValues(field []byte) []byte {
	b := []byte{'{'}
	for name, value := range jsonx.Members(field) {
		if !jsonx.IsString(name, "oneOf") {
			b = append(append(append(append(b, name...), ':'), value...), ',')
			continue
		}
		values, titles := []byte{'['}, []byte{'['}
		for option := range jsonx.Elements(value) {
			values = append(append(values, jsonx.Member(option, "const")...), ',')
			titles = append(append(titles, jsonx.Member(option, "title")...), ',')
		}
		b = append(append(append(b, `"enum":`...), bytes.TrimSuffix(values, []byte{','})...), `],"enumNames":`...)
		b = append(append(b, bytes.TrimSuffix(titles, []byte{','})...), `],`...)
	}
	return closeObject(b)
}

// closeObject ends an object in which a comma follows each member.
func closeObject(b []byte) []byte { return append(bytes.TrimSuffix(b, []byte{','}), '}') }

// Flat returns the form of an input schema. Rules that it cannot carry are described, and enforced
// on the answer.
func Flat(t reflect.Type, in *reflectx.Input, descriptions reflectx.Descriptions) (json.RawMessage, error) {
	schema := in.Schema()
	titles := map[string]map[string]string{} // by property, by value as JSON
	for _, f := range in.Fields() {
		titles[f.Name] = valueTitles(f.Type, descriptions)
	}
	b := []byte(`{"type":"object","properties":{`)
	comma := false
	for name, property := range jsonx.Members(jsonx.Member(schema, "properties")) {
		kind := jsonx.String(jsonx.Member(property, "type"))
		if kind == "object" || kind == "" || kind == "array" && jsonx.Member(jsonx.Member(property, "items"), "enum") == nil {
			return nil, &reflectx.Error{Site: t.String(), Msg: fmt.Sprintf(
				"field %s cannot be asked for: a form has strings, numbers, bools, enums and slices of enums", name)}
		}
		if comma {
			b = append(b, ',')
		}
		comma = true
		b = append(append(b, name...), ':')
		property = formField(property, func(keyword string, value json.RawMessage) bool { return carried(kind, keyword, value) })
		b = appendFormField(b, property, titles[jsonx.String(name)])
	}
	b = append(b, '}')
	if required := jsonx.Member(schema, "required"); required != nil {
		b = append(append(b, `,"required":`...), required...)
	}
	return append(b, '}'), nil
}

// valueTitles returns the titles of the constants of a field's type, or of its elements.
func valueTitles(t reflect.Type, descriptions reflectx.Descriptions) map[string]string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	titles := map[string]string{}
	for _, v := range descriptions.Enum(t) {
		if v.Text != "" {
			titles[v.JSON] = strings.Join(strings.Fields(v.Text), " ")
		}
	}
	return titles
}

// appendFormField appends the schema of one field. Enums show titles if each value has one.
func appendFormField(b, property []byte, titles map[string]string) []byte {
	if items := jsonx.Member(property, "items"); items != nil {
		options := appendTitled([]byte(`{"anyOf":[`), items, titles)
		if options == nil {
			return appendOnly(b, property, formKeywords)
		}
		b = appendOnly(b, property, without(formKeywords, "items"))
		b = append(b[:len(b)-1], `,"items":`...)
		return append(append(b, options...), '}', '}')
	}
	options := appendTitled([]byte(`,"oneOf":[`), property, titles)
	if options == nil {
		return appendOnly(b, property, formKeywords)
	}
	b = appendOnly(b, property, without(formKeywords, "enum"))
	return append(append(b[:len(b)-1], options...), '}')
}

// appendTitled appends the values of an enum with their titles and a closing bracket; nil if it is
// not an enum of strings, or a value has no title.
func appendTitled(b, schema []byte, titles map[string]string) []byte {
	enum := jsonx.Member(schema, "enum")
	if enum == nil || !jsonx.IsString(jsonx.Member(schema, "type"), "string") {
		return nil
	}
	first := true
	for value := range jsonx.Elements(enum) {
		title, ok := titles[string(value)]
		if !ok {
			return nil
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(append(append(b, `{"const":`...), value...), `,"title":`...)
		b = append(jsonx.AppendString(b, title), '}')
	}
	return append(b, ']')
}

func without(names []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == name })
}

// appendOnly appends the object obj with only the named members.
func appendOnly(b, obj []byte, names []string) []byte {
	b = append(b, '{')
	comma := false
	for n, v := range jsonx.Members(obj) {
		if !slices.Contains(names, jsonx.String(n)) {
			continue
		}
		if comma {
			b = append(b, ',')
		}
		comma = true
		b = append(append(append(b, n...), ':'), v...)
	}
	return append(b, '}')
}

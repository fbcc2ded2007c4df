// Package form turns the schema of a Go type into the schema of an elicitation form, which has
// fewer keywords: rules that a form cannot carry become part of descriptions.
package form

import (
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
	described := len(words)
	field := jsonx.AppendEdited(nil, property, func(name, value []byte) []byte {
		switch keyword := jsonx.String(name); {
		case keyword == "description":
		case keep(keyword, value):
			return value
		default:
			if rule := lostRule(keyword, value); rule != "" {
				words = append(words, rule)
			}
		}
		return nil
	})
	if len(words) == described {
		return appendOnly(nil, property, formKeywords) // unchanged
	}
	return withMember(field, "description", jsonx.AppendString(nil, strings.Join(words, " ")))
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
func Older(schema json.RawMessage) (form json.RawMessage, err error) {
	form = jsonx.AppendEdited(nil, schema, func(name, value []byte) []byte {
		if jsonx.IsString(name, "properties") {
			value = jsonx.AppendEdited(nil, value, func(name, field []byte) []byte {
				kind := jsonx.String(jsonx.Member(field, "type"))
				if kind == "array" && err == nil {
					err = fmt.Errorf("forms of 2025-06-18 have no lists, and the field %s is one", jsonx.String(name))
				}
				return namedValues(formField(field, func(keyword string, _ json.RawMessage) bool { return keyword != "default" || kind == "boolean" }))
			})
		}
		return value
	})
	return form, err
}

// namedValues replaces the oneOf of a field by enum and enumNames.
func namedValues(field []byte) []byte {
	oneOf := jsonx.Member(field, "oneOf")
	if oneOf == nil {
		return field
	}
	values, titles := []byte{'['}, []byte{'['}
	for option := range jsonx.Elements(oneOf) {
		values = append(jsonx.AppendComma(values), jsonx.Member(option, "const")...)
		titles = append(jsonx.AppendComma(titles), jsonx.Member(option, "title")...)
	}
	field = appendOnly(nil, field, without(formKeywords, "oneOf"))
	return withMember(withMember(field, "enum", append(values, ']')), "enumNames", append(titles, ']'))
}

// withMember adds a member to an object.
func withMember(object []byte, name string, value []byte) []byte {
	return append(jsonx.AppendMember(object[:len(object)-1], strconv.AppendQuote(nil, name), value), '}')
}

// Flat returns the form of an input schema. Rules that it cannot carry are described, and enforced
// on the answer.
func Flat(t reflect.Type, in *reflectx.Input, descriptions reflectx.Descriptions) (json.RawMessage, error) {
	schema := in.Schema()
	titles := map[string]map[string]string{} // by property, by value as JSON
	for _, f := range in.Fields() {
		titles[f.Name] = valueTitles(f.Type, descriptions)
	}
	var err error
	properties := jsonx.AppendEdited(nil, jsonx.Member(schema, "properties"), func(name, property []byte) []byte {
		kind := jsonx.String(jsonx.Member(property, "type"))
		if err == nil && (kind == "object" || kind == "" || kind == "array" && jsonx.Member(jsonx.Member(property, "items"), "enum") == nil) {
			err = &reflectx.Error{Site: t.String(), Msg: fmt.Sprintf(
				"field %s cannot be asked for: a form has strings, numbers, bools, enums and slices of enums", name)}
		}
		field := formField(property, func(keyword string, value json.RawMessage) bool { return carried(kind, keyword, value) })
		return titled(field, titles[jsonx.String(name)])
	})
	if err != nil {
		return nil, err
	}
	form := withMember([]byte(`{"type":"object"}`), "properties", properties)
	if required := jsonx.Member(schema, "required"); required != nil {
		form = withMember(form, "required", required)
	}
	return form, nil
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

// titled returns the schema of one field with the titles of its enum, if each value has one.
func titled(field []byte, titles map[string]string) []byte {
	if items := jsonx.Member(field, "items"); items != nil {
		if options := titledOptions(items, titles); options != nil {
			return withMember(appendOnly(nil, field, without(formKeywords, "items")), "items", withMember([]byte("{}"), "anyOf", options))
		}
	} else if options := titledOptions(field, titles); options != nil {
		return withMember(appendOnly(nil, field, without(formKeywords, "enum")), "oneOf", options)
	}
	return appendOnly(nil, field, formKeywords)
}

// titledOptions returns the values of an enum with their titles; nil if it is not an enum of
// strings, or a value has no title.
func titledOptions(schema []byte, titles map[string]string) []byte {
	enum := jsonx.Member(schema, "enum")
	if enum == nil || !jsonx.IsString(jsonx.Member(schema, "type"), "string") {
		return nil
	}
	b := []byte{'['}
	for value := range jsonx.Elements(enum) {
		title, ok := titles[string(value)]
		if !ok {
			return nil
		}
		b = append(append(append(jsonx.AppendComma(b), `{"const":`...), value...), `,"title":`...)
		b = append(jsonx.AppendString(b, title), '}')
	}
	return append(b, ']')
}

func without(names []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == name })
}

// appendOnly appends the object obj with only the named members.
func appendOnly(b, obj []byte, names []string) []byte {
	return jsonx.AppendEdited(b, obj, func(name, value []byte) []byte {
		if slices.Contains(names, jsonx.String(name)) {
			return value
		}
		return nil
	})
}

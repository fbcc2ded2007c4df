// Package form turns the schema of a Go type into the schema of an elicitation form, which has
// fewer keywords, and validates answers.
package form

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

// A field is the schema of a form's field, with all keywords that there are (client/elicitation,
// "Requested Schema").
type field struct {
	Type        string            `json:"type,omitempty"`
	Title       string            `json:"title,omitempty"`
	Description string            `json:"description,omitempty"`
	Enum        []json.RawMessage `json:"enum,omitempty"`
	EnumNames   []string          `json:"enumNames,omitempty"` // only in 2025-06-18
	OneOf       []option          `json:"oneOf,omitempty"`     // in place of Enum
	AnyOf       []option          `json:"anyOf,omitempty"`     // in place of Enum, in Items
	MinItems    json.RawMessage   `json:"minItems,omitempty"`
	MaxItems    json.RawMessage   `json:"maxItems,omitempty"`
	Items       *field            `json:"items,omitempty"`
	MinLength   json.RawMessage   `json:"minLength,omitempty"`
	MaxLength   json.RawMessage   `json:"maxLength,omitempty"`
	Minimum     json.RawMessage   `json:"minimum,omitempty"`
	Maximum     json.RawMessage   `json:"maximum,omitempty"`
	Format      string            `json:"format,omitempty"`
	Default     json.RawMessage   `json:"default,omitempty"`
}

// An option is a value of an enum with its title.
type option struct {
	Const json.RawMessage `json:"const"`
	Title string          `json:"title"`
}

// formats are the formats that a field may name.
var formats = []string{"email", "uri", "date", "date-time"}

// edit returns a form for the schema of an object. change changes its fields.
func edit(schema json.RawMessage, change func(name string, f *field) error) (form json.RawMessage, err error) {
	form = jsonx.AppendEdited(nil, schema, func(keyword, value []byte) []byte {
		switch jsonx.String(keyword) {
		case "type", "required":
			return value
		case "properties":
			return jsonx.AppendEdited(nil, value, func(name, property []byte) []byte {
				var f field
				if err == nil {
					err = jsonx.Unmarshal(property, &f)
				}
				if err == nil {
					err = change(jsonx.String(name), &f)
				}
				text, _ := jsonx.Marshal(f) // what was decoded encodes
				return text
			})
		}
		return nil
	})
	return form, err
}

// Flat returns the form of an input. Rules that a form cannot carry are left out: answers are
// validated by them.
func Flat(t reflect.Type, in *reflectx.Input, descriptions reflectx.Descriptions) (json.RawMessage, error) {
	types := map[string]reflect.Type{}
	for _, f := range in.Fields() {
		if f.Secret {
			return nil, &reflectx.Error{Site: t.String(), Msg: fmt.Sprintf("field %q is secret, which a form may not ask for; use a URL", f.Name)}
		}
		types[f.Name] = f.Type
	}
	return edit(in.Schema(), func(name string, f *field) error {
		titles := valueTitles(types[name], descriptions)
		switch {
		case f.Type == "array" && f.Items != nil && f.Items.Enum != nil:
			f.Items = &field{Type: f.Items.Type, Enum: f.Items.Enum}
			if options := f.Items.options(titles); options != nil {
				f.Items = &field{AnyOf: options}
			}
		case f.Type == "" || f.Type == "array" || f.Type == "object":
			return &reflectx.Error{Site: t.String(), Msg: fmt.Sprintf(
				"field %q cannot be asked for: a form has strings, numbers, bools, enums and slices of enums", name)}
		default:
			if f.OneOf = f.options(titles); f.OneOf != nil || f.Type != "string" {
				f.Enum = nil
			}
		}
		if !slices.Contains(formats, f.Format) {
			f.Format = ""
		}
		return nil
	})
}

// options returns the values of an enum of strings with their titles; nil if a value has no title.
func (f *field) options(titles map[string]string) (options []option) {
	for _, value := range f.Enum {
		title, ok := titles[string(value)]
		if !ok || f.Type != "string" {
			return nil
		}
		options = append(options, option{value, title})
	}
	return options
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

// Older returns a form for version 2025-06-18: enum and enumNames instead of oneOf, no lists, and
// defaults only for bools.
func Older(schema json.RawMessage) (json.RawMessage, error) {
	return edit(schema, func(name string, f *field) error {
		if f.Type == "array" {
			return fmt.Errorf("forms of 2025-06-18 have no lists, and the field %s is one", name)
		}
		if f.Type != "boolean" {
			f.Default = nil
		}
		for _, o := range f.OneOf {
			f.Enum, f.EnumNames = append(f.Enum, o.Const), append(f.EnumNames, o.Title)
		}
		f.OneOf = nil
		return nil
	})
}

// Check validates content, the answer to a form, by the schema of the form, as arguments are by that
// of a tool. Content for a schema that cannot be read is not validated. The error is an
// [*reflectx.ArgumentError].
func Check(schema, content json.RawMessage) error {
	form, err := reflectx.CompileSchema(schema)
	if err != nil {
		return nil
	}
	return form.Validate(content)
}

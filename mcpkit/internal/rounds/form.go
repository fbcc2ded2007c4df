package rounds

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

// formats are the formats that a field may name.
var formats = []string{"email", "uri", "date", "date-time"}

// edit returns a form for the schema of an object. change changes its fields.
func edit(schema json.RawMessage, change func(name string, f *protocol.PrimitiveSchema) error) (form json.RawMessage, err error) {
	form = jsonx.AppendEdited(nil, schema, func(keyword, value []byte) []byte {
		switch jsonx.String(keyword) {
		case "type", "required":
			return value
		case "properties":
			return jsonx.AppendEdited(nil, value, func(name, property []byte) []byte {
				if !jsonx.IsString(jsonx.Member(property, "type"), "string") {
					property = jsonx.With(property, "enum", nil) // only strings have one
				}
				var f protocol.PrimitiveSchema
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
	return edit(in.Schema(), func(name string, f *protocol.PrimitiveSchema) error {
		titles := valueTitles(types[name], descriptions)
		switch {
		case f.Type == "array" && f.Items != nil && f.Items.Enum != nil:
			if options := optionsOf(f.Items.Enum, titles); options != nil {
				f.Items = &protocol.EnumItems{AnyOf: options}
			}
		case f.Type == "" || f.Type == "array" || f.Type == "object":
			return &reflectx.Error{Site: t.String(), Msg: fmt.Sprintf(
				"field %q cannot be asked for: a form has strings, numbers, bools, enums and slices of enums", name)}
		default:
			if f.OneOf = optionsOf(f.Enum, titles); f.OneOf != nil {
				f.Enum = nil
			}
		}
		if !slices.Contains(formats, f.Format) {
			f.Format = ""
		}
		return nil
	})
}

// optionsOf returns the values of an enum with their titles; nil if a value has no title.
func optionsOf(enum []string, titles map[string]string) (options []protocol.EnumOption) {
	for _, value := range enum {
		title, ok := titles[value]
		if !ok {
			return nil
		}
		options = append(options, protocol.EnumOption{Const: value, Title: title})
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
			titles[jsonx.String([]byte(v.JSON))] = strings.Join(strings.Fields(v.Text), " ")
		}
	}
	return titles
}

// Older returns a form for version 2025-06-18: enum and enumNames instead of oneOf, no lists, and
// defaults only for bools.
func Older(schema json.RawMessage) (json.RawMessage, error) {
	return edit(schema, func(name string, f *protocol.PrimitiveSchema) error {
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

// CheckContent validates content, the answer to a form, by the schema of the form, as arguments are by that
// of a tool. Content for a schema that cannot be read is not validated.
func CheckContent(schema, content json.RawMessage) error {
	form, err := reflectx.CompileSchema(schema)
	if err != nil {
		return nil
	}
	if content == nil {
		content = []byte("{}")
	}
	if jsonx.Kind(content) == '{' {
		content = jsonx.AppendEdited(nil, content, func(_, value []byte) []byte {
			if jsonx.Kind(value) == 'n' {
				return nil // clients send null for fields that are left empty
			}
			return value
		})
	}
	if err := form.Validate(content); err != nil {
		return fmt.Errorf("the content of the response does not fit the form: %v", err)
	}
	return nil
}

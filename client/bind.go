package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/nearest"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// Bind sets the function fields of the struct that dst points to. Each function calls a tool:
//
//	var shop struct {
//		Search func(ctx context.Context, in Query) ([]Hit, error) `mcp:"search"`
//		Ping   func(ctx context.Context) error                    `mcp:"ping"`
//	}
//	err := c.Bind(&shop)
//	hits, err := shop.Search(ctx, Query{Text: "tea"})
//
// Bind ignores fields without the tag mcp, or with mcp:"-". A function takes a context and
// optionally one input, which must encode as a JSON object. It returns the output, decoded as by
// [Call], and an error, or only an error.
//
// Bind lists the server's tools and checks every field: the tool exists, each field of the input is
// one of its arguments, no required argument is missing, and its output schema has each field of
// the output type, with a JSON type that decodes into it. The error lists all faults; Bind then
// sets no field.
func (c *Client) Bind(dst any) error {
	v := reflect.ValueOf(dst)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("client: Bind(%T): want a pointer to a struct", dst)
	}
	v = v.Elem()
	tools := map[string]*protocol.Tool{}
	for t, err := range c.Tools(c.base) {
		if err != nil {
			return err
		}
		tools[t.Name] = t
	}
	var errs []error
	bound := map[int]reflect.Value{}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, ok := f.Tag.Lookup("mcp")
		if !ok || name == "-" {
			continue
		}
		fn, faults := c.bind(f, name, tools)
		for _, fault := range faults {
			errs = append(errs, fmt.Errorf("client: Bind: %s: %w", fieldName(v.Type(), f), fault))
		}
		bound[i] = fn
	}
	if errs != nil {
		return errors.Join(errs...)
	}
	if len(bound) == 0 {
		return fmt.Errorf("client: Bind: %s has no field with the tag mcp", v.Type())
	}
	for i, fn := range bound {
		v.Field(i).Set(fn)
	}
	return nil
}

var (
	typeContext = reflect.TypeFor[context.Context]()
	typeError   = reflect.TypeFor[error]()
)

// fieldName returns the name of a field for errors. The text of a struct without a name would be
// that of all its fields.
func fieldName(t reflect.Type, f reflect.StructField) string {
	if t.Name() == "" {
		return "field " + f.Name
	}
	return t.String() + "." + f.Name
}

// bind returns the function for one field, or all its faults.
func (c *Client) bind(f reflect.StructField, name string, tools map[string]*protocol.Tool) (fn reflect.Value, faults []error) {
	t := f.Type
	switch {
	case !f.IsExported():
		return fn, []error{errors.New("it is not exported")}
	case t.Kind() != reflect.Func || t.IsVariadic() || t.NumIn() < 1 || t.NumIn() > 2 || t.In(0) != typeContext ||
		t.NumOut() < 1 || t.NumOut() > 2 || t.Out(t.NumOut()-1) != typeError:
		return fn, []error{fmt.Errorf("its type is %s; want func(context.Context, In) (Out, error), where In or Out may be missing", t)}
	}
	tool, ok := tools[name]
	if !ok {
		return fn, []error{fmt.Errorf("the server has no tool %q%s", name, nearest.Hint(name, slices.Sorted(maps.Keys(tools))))}
	}
	var in reflect.Type
	if t.NumIn() == 2 {
		in = t.In(1)
	}
	if err := c.Callable(tool); err != nil {
		return fn, []error{fmt.Errorf("tool %q: %w", name, err)}
	}
	faults = checkInput(in, tool.InputSchema)
	var out reflect.Type
	if t.NumOut() == 2 {
		out = t.Out(0)
	}
	if out != nil && out != reflect.TypeFor[*protocol.CallToolResult]() && out.Kind() != reflect.String {
		faults = append(faults, c.checkOutputType(out, tool)...)
	}
	for i, fault := range faults {
		faults[i] = fmt.Errorf("tool %q: %w", name, fault)
	}
	return reflect.MakeFunc(t, func(args []reflect.Value) []reflect.Value {
		ctx, _ := args[0].Interface().(context.Context)
		var input any
		if in != nil {
			input = args[1].Interface()
		}
		r, err := c.CallTool(ctx, name, input)
		if out == nil {
			return []reflect.Value{errorValue(err)}
		}
		value := reflect.New(out).Elem()
		if err == nil {
			err = c.output(name, r, value)
		}
		return []reflect.Value{value, errorValue(err)}
	}), faults
}

func errorValue(err error) reflect.Value {
	if err == nil {
		return reflect.Zero(typeError)
	}
	return reflect.ValueOf(&err).Elem()
}

// checkInput checks the input type of a function, nil for none, against the input schema of the
// tool.
func checkInput(in reflect.Type, schema []byte) []error {
	var s struct {
		Properties           map[string]json.RawMessage `json:"properties"`
		Required             []string                   `json:"required"`
		AdditionalProperties json.RawMessage            `json:"additionalProperties"`
	}
	if err := jsonx.Unmarshal(schema, &s); err != nil {
		return nil // an unreadable schema is not checked
	}
	for in != nil && in.Kind() == reflect.Pointer {
		in = in.Elem()
	}
	if in != nil && in.Kind() != reflect.Struct {
		if in.Kind() == reflect.Map || in.Kind() == reflect.Interface || in == reflect.TypeFor[json.RawMessage]() {
			return nil // its members are unknown before the call
		}
		return []error{fmt.Errorf("the input %s does not encode as an object", in)}
	}
	fields := map[string]reflect.Type{}
	if in != nil {
		jsonFields(in, fields)
	}
	open := len(s.AdditionalProperties) > 0 && string(s.AdditionalProperties) != "false" || s.Properties == nil
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		property, ok := s.Properties[name]
		switch {
		case !ok && !open:
			errs = append(errs, fmt.Errorf("it has no argument %q%s", name, known(name, s.Properties)))
		case ok:
			if want := jsonx.String(jsonx.Member(property, "type")); !encodesAs(fields[name], want) {
				errs = append(errs, fmt.Errorf("the argument %q has the JSON type %s, as which %s does not encode", name, want, fields[name]))
			}
		}
	}
	for _, name := range s.Required {
		if _, ok := fields[name]; !ok {
			errs = append(errs, fmt.Errorf("it requires the argument %q, which the input lacks", name))
		}
	}
	return errs
}

// known returns the end of an error about a name that is not in properties: the nearest one, or all.
func known(name string, properties map[string]json.RawMessage) string {
	names := slices.Sorted(maps.Keys(properties))
	if hint := nearest.Hint(name, names); hint != "" || len(names) == 0 {
		return hint
	}
	for i, name := range names {
		names[i] = strconv.Quote(name)
	}
	return "; it has " + strings.Join(names, ", ")
}

// checkOutputType checks the output type of a function against the output schema of the tool, if
// there is one.
func (c *Client) checkOutputType(out reflect.Type, tool *protocol.Tool) []error {
	schema := tool.OutputSchema
	if t, ok := c.tools.get(tool.Name); ok && t.wrapped {
		schema = jsonx.Member(jsonx.Member(schema, "properties"), "result")
	}
	var errs []error
	checkDecodes(out, schema, "", &errs)
	return errs
}

// checkDecodes reports to errs where values of the schema cannot decode into t, and the fields of t
// that the schema does not have. It uses only the keywords type, properties and items.
func checkDecodes(t reflect.Type, schema []byte, path string, errs *[]error) {
	for t.Kind() == reflect.Pointer && !decodesItself(t) {
		t = t.Elem()
	}
	if jsonx.Kind(schema) != '{' || decodesItself(t) {
		return
	}
	if want := jsonx.String(jsonx.Member(schema, "type")); !decodesFrom(t, want) {
		what := "the output"
		if path != "" {
			what = fmt.Sprintf("the field %q of the output", path)
		}
		*errs = append(*errs, fmt.Errorf("%s has the JSON type %s, which does not decode into %s", what, want, t))
		return
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array:
		checkDecodes(t.Elem(), jsonx.Member(schema, "items"), path+"[]", errs)
	case reflect.Map:
		checkDecodes(t.Elem(), jsonx.Member(schema, "additionalProperties"), path+"[]", errs)
	case reflect.Struct:
		checkFields(t, schema, path, errs)
	}
}

// checkFields is checkDecodes for the fields of a struct.
func checkFields(t reflect.Type, schema []byte, path string, errs *[]error) {
	properties := map[string]json.RawMessage{}
	if jsonx.Unmarshal(jsonx.Member(schema, "properties"), &properties) != nil || len(properties) == 0 {
		return
	}
	rest := jsonx.Member(schema, "additionalProperties")
	fields := map[string]reflect.Type{}
	jsonFields(t, fields)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		at := strings.TrimPrefix(path+"."+name, ".")
		if property, ok := properties[name]; ok {
			checkDecodes(fields[name], property, at, errs)
		} else if rest == nil || string(rest) == "false" {
			*errs = append(*errs, fmt.Errorf("the output has no field %q for the %s of %s%s", at, fields[name], t, known(name, properties)))
		}
	}
}

// decodesItself reports whether t has a method that decodes JSON.
func decodesItself(t reflect.Type) bool {
	return hasMethod(t, "UnmarshalJSON", "UnmarshalText", "UnmarshalJSONFrom")
}

// hasMethod reports whether t, or a pointer to it, has one of the methods.
func hasMethod(t reflect.Type, names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		_, ok := reflect.PointerTo(t).MethodByName(name)
		return ok
	})
}

// decodesFrom reports whether a value of the JSON Schema type can decode into t. It returns true in
// doubt.
func decodesFrom(t reflect.Type, from string) bool {
	types := jsonTypes(t)
	return from == "" || types == nil || slices.Contains(types, from)
}

// encodesAs reports whether a value of type t can encode as the JSON Schema type. It returns true
// in doubt.
func encodesAs(t reflect.Type, want string) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	types := jsonTypes(t)
	return want == "" || types == nil || slices.Contains(types, want) || want == "number" && slices.Contains(types, "integer") ||
		hasMethod(t, "MarshalJSON", "MarshalText", "MarshalJSONTo")
}

// jsonTypes returns the JSON Schema types of values of type t; nil for any.
func jsonTypes(t reflect.Type) []string {
	switch t.Kind() {
	case reflect.String:
		return []string{"string"}
	case reflect.Bool:
		return []string{"boolean"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return []string{"integer", "string"} // a duration, or json:",string"
	case reflect.Float32, reflect.Float64:
		return []string{"number", "integer"}
	case reflect.Map, reflect.Struct:
		return []string{"object"}
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return []string{"array", "string"}
		}
		return []string{"array"}
	}
	return nil
}

// jsonFields collects the JSON members of a struct.
func jsonFields(t reflect.Type, into map[string]reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		embedded := f.Type
		if embedded.Kind() == reflect.Pointer {
			embedded = embedded.Elem()
		}
		switch {
		case f.Tag.Get("json") == "-":
		case f.Anonymous && name == "" && embedded.Kind() == reflect.Struct:
			jsonFields(embedded, into)
		case !f.IsExported():
		case name != "":
			into[name] = f.Type
		default:
			into[f.Name] = f.Type
		}
	}
}

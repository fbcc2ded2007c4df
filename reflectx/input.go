package reflectx

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/go-playground/validator/v10"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// InputOptions configures inputs. The zero value is ready to use.
type InputOptions struct {
	// Descriptions describes types and fields. Nil means that only tags describe them.
	Descriptions Descriptions

	// Owner and Method are the method whose arguments are compiled, to find the descriptions of an
	// input struct without a name. Nil and "" mean none.
	Owner  reflect.Type
	Method string

	// Validate checks the rules of validate tags, except those about missing members, which a
	// decoded struct does not show. Register custom rules before compiling. Nil means a validator
	// with WithRequiredStructEnabled and only the standard rules; most rules are then compiled,
	// which makes them many times faster.
	Validate *validator.Validate

	// Repair accepts values that are wrong but unambiguous: "5" for 5, "true" for true, JSON in a
	// string for an object or array. The published schema does not mention it.
	Repair bool

	// Repaired, if not nil, is called for each repaired value, with the context of the call.
	Repaired func(ctx context.Context)

	// Form means that people fill in a form generated from the schema. A required member may then
	// have a default, which is the initial value in the form; otherwise that is an error, since the
	// default would never be used. A bool without a default starts as false.
	Form bool

	// NoSchema means that callers see the descriptions but not the schema, as for the arguments of
	// prompts. Each description then includes the allowed values and the default.
	NoSchema bool

	// OmitDescription leaves the doc comment of the struct type out of the schema: that of the
	// function describes both.
	OmitDescription bool

	// What is the name of the values in error messages: "variables of the URI". "" means arguments.
	What string

	// Give returns the advice, in errors, on how to decode an interface type: "register its types
	// with Union". Nil and "" mean none.
	Give func(t reflect.Type) string

	// Memo remembers types that several inputs and outputs have, which must have the same options
	// except for Owner, Method and What. Nil means that each compiles its types anew.
	Memo *Memo

	// Unions holds the unions of interface types with known implementations. See [NewUnion].
	Unions map[reflect.Type]*Union
}

// give returns the advice of o.Give for t, followed by a comma.
func (o *InputOptions) give(t reflect.Type) string {
	if o.Give == nil || o.Give(t) == "" {
		return ""
	}
	return o.Give(t) + ", "
}

// An Input describes the arguments of one function: the schema to publish, and a decoder that
// accepts exactly the arguments that the schema allows. Create one with [NewInput] or [NewParams].
//
// An Input never changes and is safe for concurrent use.
type Input struct {
	root     *node
	schema   json.RawMessage
	example  json.RawMessage
	what     string // name of the values in errors; "" means arguments
	repair   bool
	repaired func(context.Context) // not nil
	asks     bool                  // some rules need the whole struct and are checked last
	own      bool                  // the program's own validator checks all rules
	validate *validator.Validate
}

// A Field is one member of an input, or of an object within it.
type Field struct {
	// Name is the member's name in JSON.
	Name string
	// GoName and Index identify the field of the Go struct, as in reflect.VisibleFields.
	GoName string
	Index  []int
	Type   reflect.Type
	// Required means that the member must be present. For one that is not required, null counts as
	// absent.
	Required    bool
	Description string
	Title       string
	// Enum lists the allowed values as text. Nil means that they are not listed.
	Enum []string
	// Default is the value of an absent member, as JSON. Nil means the zero value.
	Default json.RawMessage
	// Header names the HTTP header Mcp-Param-<Header> that mirrors the value. "" means none.
	Header string
	// Complete names the method that completes the value. "" means none.
	Complete string
	// Secret means that logs and errors must not contain the value.
	Secret bool
	// Fields are the members of the object, or of the objects in the array or map, if the type is
	// or contains a struct. A recursive type is expanded once.
	Fields []Field
}

// NewInput compiles the struct type t. A field is required unless it has the json option omitempty
// or omitzero, a pointer type, a default, or a validate tag with omitempty or with a conditional
// rule such as required_if. The rule required makes any field required. Null for a field that is
// not required counts as absent, since models often write it, although the schema does not allow
// it. The error is an [Errors] with every mistake; each begins with site, such as "Notes.Search".
func NewInput(site string, t reflect.Type, o InputOptions) (*Input, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	c := newCompiler(site, o, forInput)
	if t.Kind() != reflect.Struct {
		return nil, Errors{{Site: site, Msg: fmt.Sprintf("the input is a %s; write a struct with a field for each argument", t)}}
	}
	return c.input(t)
}

// A Param is one plain parameter of a function.
type Param struct {
	Name string
	Type reflect.Type
	// Optional means that the parameter may be absent. One with a pointer type always may.
	Optional bool
	// Desc is the description of the parameter. "" means none.
	Desc string
	// Tag is a struct tag with rules, a default and so on. A desc in it replaces Desc. "" means
	// none.
	Tag reflect.StructTag
}

// NewParams compiles plain parameters into an Input whose struct type has the fields P0, P1 and so
// on. The error is an [Errors].
func NewParams(site string, params []Param, o InputOptions) (*Input, error) {
	fields := make([]reflect.StructField, len(params))
	seen := map[string]bool{}
	var errs Errors
	for i, p := range params {
		switch {
		case p.Name == "" || strings.ContainsAny(p.Name, ",\"\\"):
			errs = append(errs, &Error{Site: site, Msg: fmt.Sprintf("parameter %d has the name %q; write letters, digits and _", i+1, p.Name)})
		case seen[p.Name]:
			errs = append(errs, &Error{Site: site, Msg: fmt.Sprintf("parameter %q is named twice; give each its own name", p.Name)})
		}
		seen[p.Name] = true
		name := p.Name
		if p.Optional {
			name += ",omitempty"
		}
		tag := "json:" + strconv.Quote(name)
		if p.Tag != "" {
			tag += " " + string(p.Tag)
		}
		if p.Desc != "" && p.Tag.Get("desc") == "" {
			tag += " desc:" + strconv.Quote(p.Desc)
		}
		fields[i] = reflect.StructField{Name: "P" + strconv.Itoa(i), Type: p.Type, Tag: reflect.StructTag(tag)}
	}
	if len(errs) > 0 {
		return nil, errs
	}
	c := newCompiler(site, o, forInput)
	c.params = true
	return c.input(reflect.StructOf(fields))
}

// Type returns the struct type that [Input.Decode] fills.
func (in *Input) Type() reflect.Type { return in.root.t }

// Schema returns the JSON Schema (2020-12) to publish: compact, an object at the root. It must not
// be changed.
func (in *Input) Schema() json.RawMessage { return in.schema }

// Example returns an arguments object that [Input.Decode] accepts, or nil if none was found.
func (in *Input) Example() json.RawMessage { return in.example }

// Fields returns the members of the arguments object in the order of the schema. It builds them on
// each call, to save memory: call it during registration, not for each request.
func (in *Input) Fields() []Field { return in.root.obj.list(map[*object]bool{}) }

// Decode decodes args, which must be valid JSON, into v, an addressable zero value of the input's
// type. Absent members get their defaults. Nil args mean {}. The error is an [*ArgumentError] with
// every violation; v must then not be used.
func (in *Input) Decode(ctx context.Context, args json.RawMessage, v reflect.Value) error {
	d := decoders.Get().(*decoder)
	d.begin(ctx, in, args)
	if len(args) == 0 {
		d.b = emptyObject
	}
	start := jsonx.SkipSpace(d.b, 0)
	in.root.readValue(d, in.root, start, v)
	if in.asks && d.more == 0 {
		d.ask(v)
	}
	err := d.end()
	decoders.Put(d)
	return err
}

// DecodeText is like [Input.Decode] for values that are text: variables of a URI, arguments of a
// prompt. get returns the text of the member name, and whether it was given. A string is the text
// itself, other scalars, arrays and objects are decoded as JSON; an array of scalars may also be
// separated by commas.
func (in *Input) DecodeText(ctx context.Context, get func(name string) (string, bool), v reflect.Value) error {
	args := []byte{'{'}
	for _, f := range in.root.obj.fields {
		text, ok := get(f.Name)
		if !ok {
			continue
		}
		if len(args) > 1 {
			args = append(args, ',')
		}
		args = jsonx.AppendString(args, f.Name)
		args = append(args, ':')
		args = appendText(args, f.node, text)
	}
	return in.Decode(ctx, append(args, '}'), v)
}

// appendText appends the JSON value of text for n. A text that does not fit becomes a JSON string,
// so that the decoder reports what is allowed.
func appendText(dst []byte, n *node, text string) []byte {
	trimmed := strings.TrimSpace(text)
	switch n.shape {
	case shapeString, shapeBytes, shapeText, shapeTime, shapeDuration, shapeAny:
		return jsonx.AppendString(dst, text)
	case shapeBool, shapeInt, shapeUint, shapeFloat, shapeBig, shapeNumber:
		if strings.HasPrefix(trimmed, "\"") {
			break
		}
		if jsonx.Valid([]byte(trimmed)) {
			return append(dst, trimmed...)
		}
	case shapeSlice, shapeArray:
		if strings.HasPrefix(trimmed, "[") && jsonx.Valid([]byte(trimmed)) {
			return append(dst, trimmed...)
		}
		switch n.elem.shape {
		case shapeSlice, shapeArray, shapeMap, shapeStruct, shapeRaw, shapeCustom:
		default:
			return appendList(dst, n.elem, text)
		}
	default:
		if jsonx.Valid([]byte(trimmed)) {
			return append(dst, trimmed...)
		}
	}
	return jsonx.AppendString(dst, text)
}

func appendList(dst []byte, elem *node, text string) []byte {
	dst = append(dst, '[')
	if text != "" {
		for i, part := range strings.Split(text, ",") {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendText(dst, elem, strings.TrimSpace(part))
		}
	}
	return append(dst, ']')
}

var emptyObject = []byte("{}")

var decoders = sync.Pool{New: func() any { return new(decoder) }}

// defaultValidate returns the validator of inputs whose options have none.
var defaultValidate = sync.OnceValue(func() *validator.Validate {
	v := validator.New(validator.WithRequiredStructEnabled())
	v.RegisterTagNameFunc(jsonFieldName)
	if err := RegisterRules(v); err != nil {
		panic(err) // only if the name of a rule is wrong
	}
	return v
})

// jsonFieldName makes the validator use the JSON names of fields.
func jsonFieldName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "" || name == "-" {
		return f.Name
	}
	return name
}

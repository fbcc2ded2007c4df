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

// InputOptions says how inputs are compiled. The zero value serves.
type InputOptions struct {
	// Descriptions describes types and fields. Nil: only tags describe.
	Descriptions Descriptions

	// Owner and Method say whose arguments are compiled, so that the fields of an input struct
	// without a name find their descriptions. Nil and "" say nothing.
	Owner  reflect.Type
	Method string

	// Validate knows the rules of validate tags, and asks all of them except those about whether a
	// member is there, which a struct does not tell. Register custom rules before compiling. Nil
	// means one with WithRequiredStructEnabled that knows the rules of the validator package alone;
	// then most rules are compiled, which is many times as fast.
	Validate *validator.Validate

	// Repair accepts what is wrong but unambiguous: "5" for 5, "true" for true, JSON in a
	// string for an object or array. The published schema does not say so.
	Repair bool

	// Repaired, if not nil, is called for each value that was repaired, with the context of the
	// call.
	Repaired func(ctx context.Context)

	// Form says that people fill in what the schema describes. A member that is required may then
	// have a default, with which the form begins; elsewhere nothing would ever use it, which is a
	// mistake. A bool without a default begins with false.
	Form bool

	// NoSchema says that callers see the descriptions but not the schema, as with the arguments of
	// prompts. Each description then also says what values are allowed, and the default.
	NoSchema bool

	// What names the values in messages about those that do not fit: "variables of the URI". ""
	// means arguments.
	What string

	// Give says how an interface type gets values from JSON: "register its types with Union". Nil
	// and "" say nothing.
	Give func(t reflect.Type) string

	// Unions are the interface types whose implementations are known, by interface type. See
	// [NewUnion].
	Unions map[reflect.Type]*Union
}

// give says what to write so that values of t can be had, with a comma behind.
func (o *InputOptions) give(t reflect.Type) string {
	if o.Give == nil || o.Give(t) == "" {
		return ""
	}
	return o.Give(t) + ", "
}

// An Input is what is known about the arguments of one function: the schema to publish, and the
// decoder that accepts exactly what the schema says. Make one with [NewInput] or [NewParams].
//
// An Input never changes and is safe for concurrent use.
type Input struct {
	root     *node
	schema   json.RawMessage
	example  json.RawMessage
	what     string // are decoded; "" means arguments
	repair   bool
	repaired func(context.Context) // not nil
	asks     bool                  // rules that need the whole struct are asked in the end
	own      bool                  // the program's own validator asks all rules
	validate *validator.Validate
}

// A Field is one member of an input, or of an object within it.
type Field struct {
	// Name is the member's name in JSON.
	Name string
	// GoName and Index say which field of the Go struct it is, as reflect.VisibleFields does.
	GoName string
	Index  []int
	Type   reflect.Type
	// Required says that the member must be there. Null for one that need not be counts as absent.
	Required    bool
	Description string
	Title       string
	// Enum has the allowed values as text, nil where they are not listed.
	Enum []string
	// Default is what an absent member becomes, as JSON; nil for the zero value.
	Default json.RawMessage
	// Header names the HTTP header Mcp-Param-<Header> that mirrors the value. "" means none.
	Header string
	// Complete names the method that completes the value. "" means none.
	Complete string
	// Secret says that the value is not to be shown in logs or errors.
	Secret bool
	// Fields are the members of the object, or of the objects of the array or map, where the type
	// is or holds a struct. They end where a type contains itself.
	Fields []Field
}

// NewInput compiles the struct type t. A field is required unless it has the json option omitempty
// or omitzero, a pointer type, a default, or a validate tag with omitempty or with a rule about
// when it has to be there, such as required_if; the rule required makes any field required. Null
// for a field that is not required counts as absent, though the schema does not say so: models
// write it. The error is an [Errors] with every mistake found; site, such as "Notes.Search", begins
// each.
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
	// Optional says that the parameter may be absent, as one whose type is a pointer always may.
	Optional bool
	// Desc describes the parameter. "" says nothing.
	Desc string
	// Tag is the tag of the field that the parameter would be: rules, a default and so on. A desc
	// in it replaces Desc. "" means none.
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

// Example returns an arguments object that [Input.Decode] accepts, nil where none could be made.
func (in *Input) Example() json.RawMessage { return in.example }

// Fields returns the members of the arguments object in the order of the schema. It makes them anew
// each time, so that what few callers keep costs the others no memory: call it when something is
// registered, not for each call.
func (in *Input) Fields() []Field { return in.root.obj.list(map[*object]bool{}) }

// Decode decodes args, which must be valid JSON, into v, an addressable zero value of the input's
// type. Absent members get their defaults. Nil args mean {}. The error is an [*ArgumentError] with
// every violation; v is then of no use.
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

// DecodeText is like [Input.Decode] for values that come as text: variables of a URI, arguments of
// a prompt. get returns the text of the member name, and whether it was given. Strings take the
// text as it is, other scalars as in JSON, arrays and objects as JSON; an array of scalars may be
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

// appendText appends the JSON that text stands for at n. What does not fit becomes a JSON string,
// so that the decoder says what was wanted.
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

// defaultValidate serves the inputs whose options name none.
var defaultValidate = sync.OnceValue(func() *validator.Validate {
	v := validator.New(validator.WithRequiredStructEnabled())
	v.RegisterTagNameFunc(jsonFieldName)
	if err := RegisterRules(v); err != nil {
		panic(err) // a mistake in the name of a rule
	}
	return v
})

// jsonFieldName makes the validator name fields as the JSON does.
func jsonFieldName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "" || name == "-" {
		return f.Name
	}
	return name
}

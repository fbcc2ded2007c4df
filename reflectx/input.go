package reflectx

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-playground/validator/v10"
	"github.com/invopop/jsonschema"

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

	// Validate judges decoded values by the rules of validate tags, after the schema. Register rules
	// of your own before, and [RegisterRules]. Nil means a validator with WithRequiredStructEnabled
	// and the standard rules.
	Validate *validator.Validate

	// Repair accepts values that are wrong but unambiguous: "5" for 5, "true" for true, JSON in a
	// string for an object or array, one value for a list. The published schema does not mention it.
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
}

// An Input describes the arguments of one function: the schema to publish, and a decoder that
// enforces it. Create one with [NewInput] or [NewParams].
//
// An Input never changes and is safe for concurrent use.
type Input struct {
	t        reflect.Type
	root     *node
	schema   json.RawMessage
	example  json.RawMessage
	fields   []Field
	what     string // name of the values in errors; "" means arguments
	repair   bool
	repaired func(context.Context)
	judges   bool // there are rules for the validator
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

// input compiles the struct type t: invopop/jsonschema makes the schema, the walk folds the tags into
// it, and the check is compiled from what is published.
func (c *compiler) input(t reflect.Type) (*Input, error) {
	if m := ownJSON(t, forInput); m != "" {
		c.errorf("%s has the method %s, so its fields do not say what it takes; write a plain struct", typeText(t), m)
		return nil, c.errs
	}
	s, fields := c.root(t)
	in := &Input{t: t, fields: fields, what: c.o.What, repair: c.o.Repair, repaired: c.o.Repaired, validate: c.validate}
	in.root = c.compile(s, false)
	c.fill(s, map[*jsonschema.Schema]bool{})
	for _, f := range c.fields {
		if !c.hasMistake(f.where) {
			c.impossible(f)
		}
	}
	c.checkSamples()
	if in.judges = c.o.Validate != nil || c.ruled; in.judges && len(c.errs) == 0 {
		c.judgeOnce(t)
	}
	if s.AnyOf != nil || s.OneOf != nil || s.AllOf != nil || s.Not != nil {
		c.errorf("the schema has anyOf, oneOf, allOf or not at its root, for which clients refuse the whole list; move it to a field")
	}
	if len(c.errs) > 0 {
		return nil, c.errs
	}
	var err error
	if in.schema, err = c.publish(s); err != nil {
		return nil, err
	}
	in.example = c.acceptedExample(in, s)
	return in, nil
}

// acceptedExample returns an example that the input accepts, or nil. It adds the members that rules
// such as required_without demand.
func (c *compiler) acceptedExample(in *Input, s *jsonschema.Schema) json.RawMessage {
	root := *s
	for range 4 {
		raw, ok := c.exampleOf(&root)
		if !ok {
			return nil
		}
		err := in.Decode(context.Background(), raw, reflect.New(in.t).Elem())
		if err == nil {
			return raw
		}
		wrong, _ := errors.AsType[*ArgumentError](err)
		if wrong == nil {
			return nil
		}
		for _, v := range wrong.Violations {
			if v.Got == "" {
				root.Required = append(slices.Clip(root.Required), strings.TrimPrefix(v.Pointer, "/"))
			}
		}
	}
	return nil
}

// checkSamples checks the defaults and the examples.
func (c *compiler) checkSamples() {
	for _, sample := range c.samples {
		n := c.nodes[sample.f.s]
		if n == nil || c.hasMistake(sample.f.where) {
			continue
		}
		k := checker{b: sample.raw}
		k.value(n, 0)
		if len(k.err.Violations) == 0 {
			if err := jsonx.Unmarshal(k.edited(), reflect.New(sample.f.sf.Type).Interface()); err != nil {
				k.violate(n, sample.raw, n.want)
			}
		}
		if len(k.err.Violations) == 0 {
			continue
		}
		v := k.err.Violations[0]
		text := "is " + v.Got + ", which is not " + v.Want
		switch {
		case v.Want == "":
			text = "has an unknown member " + strconv.Quote(strings.TrimPrefix(v.Pointer, "/"))
		case v.Got == "":
			text = "lacks " + v.Want
		}
		if v.Pointer != "" && v.Want != "" {
			text = "at " + v.Pointer + " " + text
		}
		instead := "write one that is"
		switch n.kind {
		case '[':
			instead = `write JSON, such as ["a"] or [1]`
		case '{':
			instead = `write JSON, such as {"a":1}`
		}
		c.errorAt(sample.f.where, "the %s %s; %s", sample.what, text, instead)
	}
}

// hasMistake reports whether a mistake was found at a field or below it.
func (c *compiler) hasMistake(site string) bool {
	for _, e := range c.errs {
		if strings.HasPrefix(e.Site, site) {
			return true
		}
	}
	return false
}

// Type returns the struct type that [Input.Decode] fills.
func (in *Input) Type() reflect.Type { return in.t }

// Schema returns the JSON Schema (2020-12) to publish: compact, an object at the root. It must not
// be changed.
func (in *Input) Schema() json.RawMessage { return in.schema }

// Example returns an arguments object that [Input.Decode] accepts, or nil if none was found.
func (in *Input) Example() json.RawMessage { return in.example }

// Fields returns the members of the arguments object in the order of the schema. They must not be
// changed.
func (in *Input) Fields() []Field { return in.fields }

// Decode decodes args, which must be valid JSON, into v, an addressable zero value of the input's
// type. Absent members get their defaults. Nil args mean {}. An [*ArgumentError] has every violation
// of the schema, or else every one that only the validator finds; v must then not be used.
func (in *Input) Decode(ctx context.Context, args json.RawMessage, v reflect.Value) error {
	if len(args) == 0 {
		args = emptyObject
	}
	k := checker{ctx: ctx, b: args, repair: in.repair, repaired: in.repaired}
	k.path = k.room[:0]
	k.value(in.root, jsonx.SkipSpace(args, 0))
	if len(k.err.Violations) > 0 {
		return in.failed(k.err)
	}
	b := k.edited()
	if err := jsonx.Unmarshal(b, v.Addr().Interface()); err != nil {
		return in.failed(in.root.undecoded(err, b))
	}
	if !in.judges {
		return nil
	}
	return in.judge(ctx, v, args, b)
}

func (in *Input) failed(err ArgumentError) error {
	err.Example, err.what = in.example, in.what
	return &err
}

// undecoded returns the violation for a value that the schema allows and its type does not decode,
// such as the text of a netip.Addr.
func (n *node) undecoded(err error, b []byte) (wrong ArgumentError) {
	n, raw, pointer, secret := n.at(jsonx.ErrorPointer(err), b)
	want := n.want
	if n.any && n.t != nil && n.t.Kind() == reflect.Interface {
		want = "a value with numbers between -1.8e308 and 1.8e308"
	}
	wrong.add(Violation{Pointer: pointer, Got: n.got(raw, secret), Want: want})
	return wrong
}

// at returns the node and the value at a JSON pointer into b, and whether it is in a secret. It stops
// at a value whose parts the schema does not describe; known is the pointer to it.
func (n *node) at(pointer string, b []byte) (_ *node, raw []byte, known string, secret bool) {
	raw = b
	for rest := pointer; rest != "" && !n.any; {
		token, after, _ := strings.Cut(rest[1:], "/")
		known, rest = known+"/"+token, strings.Repeat("/", min(len(after), 1))+after
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		raw, secret = child(raw, token), secret || n.secret
		if at := n.find([]byte(token)); at >= 0 {
			n = n.props[at].node
		} else if n.items != nil {
			n = n.items
		} else {
			n = n.extra
		}
	}
	return n, raw, known, secret
}

var emptyObject = []byte("{}")

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

// RegisterRules registers the rule of this package that validator/v10 does not have: enum, which the
// schema checks. It does not replace a rule of the same name. Call it before v is used. A nil v is
// allowed.
func RegisterRules(v *validator.Validate) error {
	if v == nil || !panics(func() { _ = v.Var("", "omitempty,enum") }) {
		return nil
	}
	return v.RegisterValidationCtx("enum", func(ctx context.Context, _ validator.FieldLevel) bool {
		if asked, ok := ctx.Value(enumKey{}).(*bool); ok {
			*asked = true
		}
		return true
	})
}

type enumKey struct{}

// ownsEnum reports whether the rule enum of v is that of [RegisterRules], and not the program's own.
func ownsEnum(v *validator.Validate) (ours bool) {
	panics(func() { _ = v.VarCtx(context.WithValue(context.Background(), enumKey{}, &ours), "a", "enum") })
	return ours
}

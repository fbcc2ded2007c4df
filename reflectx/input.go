package reflectx

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
	"strings"

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

	// Validate judges decoded values by the rules of validate tags, after the schema. Register rules
	// of your own before, and [RegisterRules]. Nil means a validator with WithRequiredStructEnabled
	// and the standard rules.
	Validate *validator.Validate

	// Lenient are the mistakes that are accepted. The published schema does not mention them.
	Lenient []Leniency

	// Repaired, if not nil, is called with the context of a call and how many of its values were
	// repaired.
	Repaired func(ctx context.Context, values int)

	// Form means that people fill in a form generated from the schema. A required member may then
	// have a default, which is the initial value in the form; otherwise that is an error, since the
	// default would never be used. A bool without a default starts as false.
	Form bool

	// NoSchema means that callers see the descriptions but not the schema, as for the arguments of
	// prompts. Each description then includes the allowed values and the default.
	NoSchema bool

	// Schema is a schema written by hand, and SchemaText its text. It decides which arguments there are
	// and which of them are required; the rules of the type hold as well. NewInput then also takes a
	// map[string]any and a json.RawMessage, which get all arguments. Numbers in the map are float64.
	// Nil means that the schema comes from the type.
	Schema     RawSchema
	SchemaText json.RawMessage

	// What is the name of the values in error messages: "variables of the URI". "" means arguments.
	What string
}

// An Input describes the arguments of one function: the schema to publish, and a decoder that
// enforces it. Create one with [NewInput].
//
// An Input never changes and is safe for concurrent use.
type Input struct {
	t       reflect.Type
	o       InputOptions
	root    *node
	outline *node // of the schema written by hand, if there is one
	schema  json.RawMessage
	fields  []Field
	judges  bool // there may be rules for the validator
}

// A Field is one member of an input.
type Field struct {
	// Name is the member's name in JSON.
	Name string
	Type reflect.Type
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
	if o.Schema != nil && isWhole(t) {
		return &Input{t: t, o: o, root: &node{want: "a value"}, outline: outline(o.SchemaText, o.Lenient)}, nil
	}
	if t.Kind() != reflect.Struct {
		c.errorf("the input is a %s; write a struct with a field for each argument", t)
		return nil, c.errs
	}
	return c.input(t)
}

// input compiles the struct type t: invopop/jsonschema makes the schema, the walk folds the tags into
// it, and the check is compiled from what is published.
func (c *compiler) input(t reflect.Type) (*Input, error) {
	if m, _ := ownJSON(t, forInput); m != "" {
		c.errorf("%s has the method %s, so its fields do not say what it takes; write a plain struct", typeText(t), m)
		return nil, c.errs
	}
	s := c.root(t)
	in := &Input{t: t, o: c.o, fields: c.fields}
	in.root = c.compile(s)
	if c.o.Schema != nil {
		in.outline = outline(c.o.SchemaText, c.o.Lenient)
		c.compareByHand(in)
	}
	in.judges = c.asked
	if len(c.errs) == 0 {
		c.checkSamples()
	}
	if len(c.errs) == 0 && in.judges {
		c.judgeOnce(t)
	}
	if s.AnyOf != nil || s.OneOf != nil || s.AllOf != nil || s.Not != nil {
		c.errorf("the schema has anyOf, oneOf, allOf or not at its root, for which clients refuse the whole list; " +
			"move it to a field")
	}
	if len(c.errs) > 0 {
		return nil, c.errs
	}
	in.schema = c.publish(s)
	return in, c.errs.Err()
}

// Type returns the type that [Input.Decode] fills.
func (in *Input) Type() reflect.Type { return in.t }

// Schema returns the JSON Schema (2020-12) to publish: compact, an object at the root. It must not
// be changed.
func (in *Input) Schema() json.RawMessage { return in.schema }

// Fields returns the members of the arguments object in the order of the schema. They must not be changed.
func (in *Input) Fields() []Field { return in.fields }

// Decode decodes args, which must be valid JSON, into v, an addressable zero value of the input's
// type. Absent members get their defaults. Nil args mean {}. An [*ArgumentError] has every violation
// of the schema, or else every one that only the validator finds; v must then not be used.
func (in *Input) Decode(ctx context.Context, args json.RawMessage, v reflect.Value) error {
	args = bytes.TrimSpace(args)
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	mended := 0
	if in.o.Schema != nil {
		if len(in.o.Lenient) > 0 {
			hand := checker{lenient: in.o.Lenient}
			hand.value(in.outline, args)
			args, mended = hand.out, hand.mended
		}
		if err := in.o.Schema.Validate(args); err != nil {
			return err
		}
	}
	k := checker{lenient: in.o.Lenient, mended: mended, out: make([]byte, 0, len(args)+64)}
	k.value(in.root, args)
	if k.wrong() > 0 {
		return in.failed(k.err)
	}
	if in.t == rawType {
		v.SetBytes(k.out)
	} else if err := jsonx.Unmarshal(k.out, v.Addr().Interface()); err != nil {
		return in.failed(in.root.undecoded(err, k.out))
	}
	if in.judges {
		if k.mended > 0 {
			args = k.out
		}
		if err := in.judge(ctx, v, args, k.out); err != nil {
			return err
		}
	}
	if k.mended > 0 && in.o.Repaired != nil {
		in.o.Repaired(ctx, k.mended)
	}
	return nil
}

func (in *Input) failed(err ArgumentError) error {
	err.what = in.o.What
	if hand, ok := in.o.Schema.(interface{ Hide(*ArgumentError) }); ok {
		hand.Hide(&err)
	}
	return &err
}

// undecoded returns the violation for a value that the schema allows and its type does not decode,
// such as the text of a netip.Addr, or a name that occurs twice.
func (n *node) undecoded(err error, b []byte) (wrong ArgumentError) {
	n, raw, pointer, secret := n.at(jsonx.ErrorPointer(err), b)
	want := n.want
	switch {
	case !jsonx.Valid(b):
		want = "each name only once"
	case n.t != nil && n.t.PkgPath() != "":
		want += " that " + n.t.String() + " can read"
	case n.kind == 0:
		want += " with numbers between -1.8e308 and 1.8e308"
	}
	wrong.add(Violation{Pointer: pointer, Got: n.got(raw, secret), Want: want})
	return wrong
}

// at returns the node and the value at a JSON pointer into b, and whether it is in a secret. It stops
// at a value whose parts the schema does not describe; known is the pointer to it.
func (n *node) at(pointer string, b []byte) (_ *node, raw []byte, known string, secret bool) {
	raw = b
	for _, token := range strings.Split(pointer, "/")[1:] {
		name := unescapePointer.Replace(token)
		inner := n.items
		if at, ok := n.index[name]; ok {
			inner = n.props[at].node
		} else if inner == nil {
			inner = n.extra
		}
		if inner == nil {
			break
		}
		raw, known, secret = child(raw, name), known+pointerTo([]string{n.token(name, secret || n.secret)}), secret || n.secret
		n = inner
	}
	return n, raw, known, secret
}

// DecodeText is like [Input.Decode] for values that are text: variables of a URI, arguments of a
// prompt. get returns the text of the member name, and whether it was given. A string is the text
// itself, other scalars, arrays and objects are decoded as JSON; an array of scalars may also be
// separated by commas.
func (in *Input) DecodeText(ctx context.Context, get func(name string) (string, bool), v reflect.Value) error {
	args := []byte{'{'}
	for _, p := range in.root.props {
		if text, ok := get(p.name); ok {
			args = append(jsonx.AppendString(jsonx.AppendComma(args), p.name), ':')
			args = appendText(args, p.node, text)
		}
	}
	return in.Decode(ctx, append(args, '}'), v)
}

// appendText appends the JSON value of text for n. A text that does not fit becomes a JSON string,
// so that the check reports what is allowed.
func appendText(dst []byte, n *node, text string) []byte {
	raw := []byte(strings.TrimSpace(text))
	valid := jsonx.Valid(raw)
	switch {
	case n.kind == '"':
	case n.kind == '[' && (!valid || raw[0] != '[') && (n.items == nil || n.items.kind != '[' && n.items.kind != '{'):
		dst = append(dst, '[')
		for part := range strings.SplitSeq(text, ",") {
			if text != "" {
				dst = appendText(jsonx.AppendComma(dst), n.items, strings.TrimSpace(part))
			}
		}
		return append(dst, ']')
	case valid && (n.kind != 0 && raw[0] != '"' || raw[0] == '{' || raw[0] == '['): // for any, a text is as good as a number
		return append(dst, raw...)
	}
	return jsonx.AppendString(dst, text)
}

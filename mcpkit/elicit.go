package mcpkit

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/jsonrpc"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

// unsupported is ErrUnsupported, and for modern clients also the protocol error that says what they would have to declare.
type unsupported struct{ rpc *jsonrpc.Error }

func (e *unsupported) Error() string   { return e.rpc.Message }
func (e *unsupported) Unwrap() []error { return []error{ErrUnsupported, e.rpc} }

// asking returns the call of ctx, if its client declared on this very request (or when its session began) what has
// accepts; needed is what it would have to declare.
func asking(ctx context.Context, has func(protocol.ClientCapabilities) bool, needed protocol.ClientCapabilities, what string) (*Call, error) {
	c := CallFrom(ctx)
	if c == nil {
		return nil, fmt.Errorf("mcpkit: %s needs the context that the method was called with", what)
	}
	return c.canAsk(has, needed, what)
}

func (c *Call) canAsk(has func(protocol.ClientCapabilities) bool, needed protocol.ClientCapabilities, what string) (*Call, error) {
	switch {
	case has(c.ClientCapabilities()):
		return c, nil
	case c.version.Modern():
		return nil, &unsupported{protocol.MissingClientCapability(needed, "%s needs a capability that the client did not declare", what)}
	case c.session == nil:
		return nil, ErrNoWayBack
	}
	return nil, fmt.Errorf("%w: %s", ErrUnsupported, what)
}

// Elicit asks the user to fill in a form, which is T: a struct of strings, numbers, bools, enums and slices of enums,
// with the same tags as the input of a tool. The answer is validated by them.
//
// On legacy revisions Elicit waits for the answer. On 2026-07-28 it returns an error when the answer is not there yet: the
// method returns it, and is run again from its beginning when the client comes back with the answer (see [Once]).
// The errors are [ErrDeclined], [ErrCancelled], [ErrUnsupported] and [ErrNoWayBack]. Only tools, prompts and resources
// can ask.
func Elicit[T any](ctx context.Context, message string, opts ...AskOption) (T, error) {
	var answer T
	form, err := formOf(reflect.TypeFor[T]())
	if err != nil {
		return answer, err
	}
	result, err := ElicitForm(ctx, message, form.schema, opts...)
	if err != nil {
		return answer, err
	}
	if err := form.input.Decode(ctx, result.Content, reflect.ValueOf(&answer).Elem()); err != nil {
		return answer, Errorf("the user's answer does not fit: %v", err)
	}
	return answer, nil
}

// ElicitForm is [Elicit] for a form that is not a Go type: schema is a flat JSON Schema object as client/elicitation
// allows. The content of the accepted answer is not validated.
func ElicitForm(ctx context.Context, message string, schema json.RawMessage, opts ...AskOption) (*protocol.ElicitResult, error) {
	c, err := asking(ctx, func(caps protocol.ClientCapabilities) bool { return caps.Elicitation.SupportsForm() },
		protocol.ClientCapabilities{Elicitation: &protocol.ElicitationCapability{}}, "elicitation")
	if err != nil {
		return nil, err
	}
	return c.elicit(ctx, &protocol.ElicitParams{Message: message, RequestedSchema: schema}, opts)
}

// ElicitURL sends the user to a URL for what must not pass through the client: credentials, payments, consent.
// That it returns nil says only that the user agreed to go there.
func ElicitURL(ctx context.Context, message, url string, opts ...AskOption) error {
	c, err := asking(ctx, func(caps protocol.ClientCapabilities) bool { return caps.Elicitation.SupportsURL() },
		protocol.ClientCapabilities{Elicitation: &protocol.ElicitationCapability{URL: protocol.Object{}}}, "URL elicitation")
	if err != nil {
		return err
	}
	p := &protocol.ElicitParams{Mode: protocol.ElicitURL, Message: message, URL: url}
	if !c.version.Modern() {
		p.ElicitationID = rand.Text()
	}
	_, err = c.elicit(ctx, p, opts)
	return err
}

func (c *Call) elicit(ctx context.Context, p *protocol.ElicitParams, opts []AskOption) (*protocol.ElicitResult, error) {
	if p.Mode == "" && c.version >= protocol.V20251125 {
		p.Mode = protocol.ElicitForm
	}
	if c.version == protocol.V20250618 && p.RequestedSchema != nil {
		older, err := olderForm(p.RequestedSchema)
		if err != nil {
			return nil, err
		}
		p.RequestedSchema = older
	}
	raw, err := c.ask(ctx, protocol.MethodElicitationCreate, p, opts)
	if err != nil {
		return nil, err
	}
	var result protocol.ElicitResult
	if err := jsonx.Unmarshal(raw, &result); err != nil {
		return nil, invalidParams("the response to elicitation/create does not fit: %s", describeJSON(err))
	}
	switch result.Action {
	case protocol.ElicitAccept:
		return &result, nil
	case protocol.ElicitDecline:
		return nil, ErrDeclined
	case protocol.ElicitCancel:
		return nil, ErrCancelled
	}
	return nil, invalidParams("the response to elicitation/create has the unknown action %q", result.Action)
}

// Confirm asks the user yes or no. Declining is no.
func Confirm(ctx context.Context, message string, opts ...AskOption) (bool, error) {
	answer, err := Elicit[struct {
		Confirm bool `json:"confirm" validate:"required"`
	}](ctx, message, opts...)
	if err == ErrDeclined {
		return false, nil
	}
	return answer.Confirm, err
}

// Choose asks the user for one of several options.
func Choose(ctx context.Context, message string, options []string, opts ...AskOption) (string, error) {
	enum, err := jsonx.Marshal(options)
	if err != nil {
		return "", err
	}
	schema := `{"type":"object","properties":{"choice":{"type":"string","enum":` + string(enum) + `}},"required":["choice"]}`
	result, err := ElicitForm(ctx, message, json.RawMessage(schema), opts...)
	if err != nil {
		return "", err
	}
	choice := jsonx.String(jsonx.Member(result.Content, "choice"))
	if !slices.Contains(options, choice) {
		return "", Errorf("the user's answer %q is none of the options", choice)
	}
	return choice, nil
}

// Sample asks the client's model. See [Elicit] for how it waits and for its errors.
func Sample(ctx context.Context, p *protocol.CreateMessageParams, opts ...AskOption) (*protocol.CreateMessageResult, error) {
	needed := &protocol.SamplingCapability{}
	if p.Tools != nil || p.ToolChoice != nil {
		needed.Tools = protocol.Object{}
	}
	c, err := asking(ctx, func(caps protocol.ClientCapabilities) bool {
		return caps.Sampling != nil && (needed.Tools == nil || caps.Sampling.Tools != nil)
	}, protocol.ClientCapabilities{Sampling: needed}, "sampling")
	if err != nil {
		return nil, err
	}
	raw, err := c.ask(ctx, protocol.MethodSamplingCreateMessage, p, opts)
	if err != nil {
		return nil, err
	}
	var result protocol.CreateMessageResult
	if err := jsonx.Unmarshal(raw, &result); err != nil || len(result.Content) == 0 {
		return nil, invalidParams("the response to sampling/createMessage does not fit")
	}
	return &result, nil
}

// Roots asks which directories the client works in. See [Elicit] for how it waits and for its errors.
func Roots(ctx context.Context, opts ...AskOption) ([]protocol.Root, error) {
	c, err := asking(ctx, func(caps protocol.ClientCapabilities) bool { return caps.Roots != nil },
		protocol.ClientCapabilities{Roots: &protocol.RootsCapability{}}, "roots")
	if err != nil {
		return nil, err
	}
	raw, err := c.ask(ctx, protocol.MethodRootsList, &protocol.ListRootsParams{}, opts)
	if err != nil {
		return nil, err
	}
	var result protocol.ListRootsResult
	if err := jsonx.Unmarshal(raw, &result); err != nil {
		return nil, invalidParams("the response to roots/list does not fit: %s", describeJSON(err))
	}
	return result.Roots, nil
}

// Ask puts a question to the client as it stands: method is elicitation/create, sampling/createMessage or roots/list, params are an
// object that fits it, and the result is that of the client. See [Elicit] for how it waits and for its errors; the result of an
// elicitation is returned whatever its action is.
func (c *Call) Ask(ctx context.Context, method string, params json.RawMessage, opts ...AskOption) (json.RawMessage, error) {
	has, needed := demands(method, params)
	if _, err := c.canAsk(has, needed, shortName(method)); err != nil {
		return nil, err
	}
	return c.ask(ctx, method, params, opts)
}

// demands are the capabilities that a client needs to be asked a question.
func demands(method string, params json.RawMessage) (has func(protocol.ClientCapabilities) bool, needed protocol.ClientCapabilities) {
	switch {
	case method == protocol.MethodSamplingCreateMessage:
		tools := jsonx.Member(params, "tools") != nil || jsonx.Member(params, "toolChoice") != nil
		needed.Sampling = &protocol.SamplingCapability{}
		if tools {
			needed.Sampling.Tools = protocol.Object{}
		}
		return func(c protocol.ClientCapabilities) bool {
			return c.Sampling != nil && (!tools || c.Sampling.Tools != nil)
		}, needed
	case method == protocol.MethodRootsList:
		needed.Roots = &protocol.RootsCapability{}
		return func(c protocol.ClientCapabilities) bool { return c.Roots != nil }, needed
	case jsonx.IsString(jsonx.Member(params, "mode"), protocol.ElicitURL):
		needed.Elicitation = &protocol.ElicitationCapability{URL: protocol.Object{}}
		return func(c protocol.ClientCapabilities) bool { return c.Elicitation.SupportsURL() }, needed
	default:
		needed.Elicitation = &protocol.ElicitationCapability{}
		return func(c protocol.ClientCapabilities) bool { return c.Elicitation.SupportsForm() }, needed
	}
}

// A form is a Go type as the schema of an elicitation.
type form struct {
	input  *reflectx.Input
	schema json.RawMessage
	err    error
}

var forms sync.Map // reflect.Type -> *form

func formOf(t reflect.Type) (*form, error) {
	if f, ok := forms.Load(t); ok {
		return f.(*form), f.(*form).err
	}
	f := &form{}
	descriptions := reflectx.FirstDescriptions(reflectx.RegisteredDescriptions(), reflectx.SourceDescriptions())
	if f.input, f.err = reflectx.NewInput(t.String(), t, reflectx.InputOptions{Descriptions: descriptions, Form: true}); f.err == nil {
		f.schema, f.err = flatSchema(t, f.input, descriptions)
	}
	stored, _ := forms.LoadOrStore(t, f)
	return stored.(*form), stored.(*form).err
}

// formKeywords are what the schema of a form's field may say (client/elicitation, "Requested Schema").
var formKeywords = []string{
	"type", "title", "description", "default", "enum", "oneOf", "format",
	"minLength", "maxLength", "minimum", "maximum", "items", "minItems", "maxItems",
}

// formFormats are the formats that a form may name.
var formFormats = []string{"email", "uri", "date", "date-time"}

// lostRule says in words what a keyword demands that a form cannot carry; "" where it demands nothing.
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

// formField leaves of a field's schema the members that keep says a form has, and puts the others into its description.
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
		return appendOnly(nil, property, formKeywords) // as it was said
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

// olderForm writes a form as 2025-06-18 has it: enum and enumNames in place of oneOf, no lists, and defaults for bools alone.
func olderForm(schema json.RawMessage) (json.RawMessage, error) {
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
			return nil, fmt.Errorf("%w: forms of 2025-06-18 have no lists, and the field %s is one", ErrUnsupported, jsonx.String(name))
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

// closeObject ends an object each of whose members is followed by a comma.
func closeObject(b []byte) []byte { return append(bytes.TrimSuffix(b, []byte{','}), '}') }

// flatSchema leaves of an input schema what a form may say. Rules that it cannot say stand in descriptions, and hold for the
// answer.
func flatSchema(t reflect.Type, in *reflectx.Input, descriptions reflectx.Descriptions) (json.RawMessage, error) {
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

// valueTitles says what the constants of a field's type, or of the elements of a slice, are called.
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

// appendFormField appends the schema of one field. Strings that are chosen from a list are shown by their titles where
// each has one.
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

// appendTitled appends the values of the enum of schema with their titles and a closing bracket; nil where there is no
// enum of strings, or a value has no title.
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

package mcpkit

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/jsonrpc"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/form"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/rounds"
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
		return nil, ErrCannotAsk
	}
	return nil, fmt.Errorf("%w: %s", ErrUnsupported, what)
}

// Elicit asks the user to fill in a form, which is T: a struct of strings, numbers, bools, enums and slices of enums,
// with the same tags as the input of a tool. The answer is validated by them.
//
// On legacy revisions Elicit waits for the answer. On 2026-07-28 it returns an error when the answer is not there yet: the
// method returns it, and is run again from its beginning when the client comes back with the answer (see [Once]).
// The errors are [ErrDeclined], [ErrCancelled], [ErrUnsupported] and [ErrCannotAsk]. Only tools, prompts and resources
// can ask.
func Elicit[T any](ctx context.Context, message string, opts ...AskOption) (T, error) {
	var answer T
	f, err := formOf(reflect.TypeFor[T]())
	if err != nil {
		return answer, err
	}
	result, err := ElicitForm(ctx, message, f.schema, opts...)
	if err != nil {
		return answer, err
	}
	if err := f.input.Decode(ctx, result.Content, reflect.ValueOf(&answer).Elem()); err != nil {
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
		older, err := form.Older(p.RequestedSchema)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnsupported, err)
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
	if _, err := c.canAsk(has, needed, rounds.Short(method)); err != nil {
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

// A typedForm is a Go type as a form.
type typedForm struct {
	input  *reflectx.Input
	schema json.RawMessage
	err    error
}

var forms sync.Map // reflect.Type -> *typedForm

func formOf(t reflect.Type) (*typedForm, error) {
	if f, ok := forms.Load(t); ok {
		return f.(*typedForm), f.(*typedForm).err
	}
	f := &typedForm{}
	descriptions := reflectx.FirstDescriptions(reflectx.RegisteredDescriptions(), reflectx.SourceDescriptions())
	if f.input, f.err = reflectx.NewInput(t.String(), t, reflectx.InputOptions{Descriptions: descriptions, Form: true}); f.err == nil {
		f.schema, f.err = form.Flat(t, f.input, descriptions)
	}
	stored, _ := forms.LoadOrStore(t, f)
	return stored.(*typedForm), stored.(*typedForm).err
}

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
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/form"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/question"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

// unsupported is ErrUnsupported and, for modern clients, the protocol error with the missing
// capability.
type unsupported struct{ rpc *jsonrpc.Error }

func (e *unsupported) Error() string   { return e.rpc.Message }
func (e *unsupported) Unwrap() []error { return []error{ErrUnsupported, e.rpc} }

// errNoQuestions is ErrUnsupported for versions without elicitation.
var errNoQuestions = Errorf("%w: its protocol version has no questions, which exist from 2025-06-18", ErrUnsupported)

// Elicit asks the user to fill in a form, which is T: a struct of strings, numbers, bools, enums
// and slices of enums, with the tags of tool inputs. The answer is validated by these tags.
//
// Up to and including version 2025-11-25, Elicit waits for the answer. In version 2026-07-28 it
// returns [ErrAsked] if the answer has not arrived: the method returns the error, the client sends
// the call again with the answer, and the method runs again from its beginning (see [Once]). Other
// errors are [ErrDeclined], [ErrCancelled], [ErrUnsupported] and [ErrCannotAsk]. Only tools,
// prompts and resources, and middleware in their calls, can ask.
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

// ElicitForm is [Elicit] for a form that is not a Go type. schema is a flat JSON Schema object
// (client/elicitation). In version 2026-07-28 and in tasks, the content of the answer is validated by
// the keywords that forms may have there; otherwise it is not validated.
func ElicitForm(ctx context.Context, message string, schema json.RawMessage, opts ...AskOption) (*protocol.ElicitResult, error) {
	return elicit(ctx, &protocol.ElicitParams{Message: message, RequestedSchema: schema}, opts)
}

// ElicitURL asks the user to open a URL, for what must not pass through the client: credentials,
// payments, consent. A nil error means only that the user agreed to open it.
func ElicitURL(ctx context.Context, message, url string, opts ...AskOption) error {
	_, err := elicit(ctx, &protocol.ElicitParams{Mode: protocol.ElicitURL, Message: message, URL: url}, opts)
	return err
}

func elicit(ctx context.Context, p *protocol.ElicitParams, opts []AskOption) (*protocol.ElicitResult, error) {
	if c := CallFrom(ctx); c != nil {
		if err := c.fitElicitation(p); err != nil {
			return nil, err
		}
	}
	var result protocol.ElicitResult
	if err := askFor(ctx, protocol.MethodElicitationCreate, p, &result, opts); err != nil {
		return nil, err
	}
	switch result.Action {
	case protocol.ElicitDecline:
		return nil, ErrDeclined
	case protocol.ElicitCancel:
		return nil, ErrCancelled
	}
	return &result, nil
}

// fitElicitation adapts p to the version of the call.
func (c *Call) fitElicitation(p *protocol.ElicitParams) error {
	switch {
	case p.Mode == protocol.ElicitURL && !c.version.Modern():
		p.ElicitationID = rand.Text()
	case p.Mode == "" && c.version >= protocol.V20251125:
		p.Mode = protocol.ElicitForm
	case c.version == protocol.V20250618 && p.RequestedSchema != nil:
		older, err := form.Older(p.RequestedSchema)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrUnsupported, err)
		}
		p.RequestedSchema = older
	}
	return nil
}

// Confirm asks the user yes or no. A user who declines says no, without an error; a user who closes
// the question is [ErrCancelled].
//
// The form has one field, confirm. A client may repeat the round: see [Once].
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

// Sample asks the client's model. It waits and fails like [Elicit].
func Sample(ctx context.Context, p *protocol.CreateMessageParams, opts ...AskOption) (*protocol.CreateMessageResult, error) {
	var result protocol.CreateMessageResult
	if err := askFor(ctx, protocol.MethodSamplingCreateMessage, p, &result, opts); err != nil {
		return nil, err
	}
	return &result, nil
}

// Roots asks which directories the client works in. It waits and fails like [Elicit].
func Roots(ctx context.Context, opts ...AskOption) ([]protocol.Root, error) {
	var result protocol.ListRootsResult
	err := askFor(ctx, protocol.MethodRootsList, &protocol.EmptyParams{}, &result, opts)
	return result.Roots, err
}

// askFor asks the client of the call that ctx belongs to, and decodes the response.
func askFor(ctx context.Context, method string, params, result any, opts []AskOption) error {
	raw, err := jsonx.Marshal(params)
	if err != nil {
		return err
	}
	c := CallFrom(ctx)
	if c == nil {
		what, _ := question.Demands(method, raw)
		return fmt.Errorf("mcpkit: %s needs the context that the method was called with", what)
	}
	if raw, err = c.Ask(ctx, method, raw, opts...); err != nil {
		return err
	}
	if err := question.Decode(method, raw, result); err != nil {
		return invalidParams("%v", err)
	}
	return nil
}

// Ask sends a question with raw params: method is elicitation/create, sampling/createMessage or
// roots/list. It returns the client's result, for an elicitation whatever its action is. It waits
// and fails like [Elicit].
func (c *Call) Ask(ctx context.Context, method string, params json.RawMessage, opts ...AskOption) (json.RawMessage, error) {
	what, needed := question.Demands(method, params)
	switch {
	case question.Supported(c.ClientCapabilities(), needed):
		return c.ask(ctx, method, params, opts)
	case c.version.Modern():
		return nil, &unsupported{protocol.MissingClientCapability(needed, "%s needs a capability that the client did not declare", what)}
	case c.session == nil:
		return nil, ErrCannotAsk
	case needed.Elicitation != nil && c.version < protocol.V20250618:
		return nil, errNoQuestions
	}
	return nil, fmt.Errorf("%w: %s", ErrUnsupported, what)
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
	if f.input, f.err = reflectx.NewInput(t.String(), t, reflectx.InputOptions{Descriptions: descriptions, Form: true}); f.err == nil {
		f.schema, f.err = form.Flat(t, f.input, descriptions)
	}
	stored, _ := forms.LoadOrStore(t, f)
	return stored.(*typedForm), stored.(*typedForm).err
}

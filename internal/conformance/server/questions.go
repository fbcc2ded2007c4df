package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// Questions has the tools and prompts that ask questions. Each works on all protocol versions.
type Questions struct {
	_ struct {
		Sampling             mcpkit.Tool   `name:"test_sampling"`
		Elicitation          mcpkit.Tool   `name:"test_elicitation"`
		ElicitationDefaults  mcpkit.Tool   `name:"test_elicitation_sep1034_defaults"`
		ElicitationEnums     mcpkit.Tool   `name:"test_elicitation_sep1330_enums"`
		MissingCapability    mcpkit.Tool   `name:"test_missing_capability"`
		StreamingElicitation mcpkit.Tool   `name:"test_streaming_elicitation"`
		AskName              mcpkit.Tool   `name:"test_input_required_result_elicitation"`
		AskModel             mcpkit.Tool   `name:"test_input_required_result_sampling"`
		AskRoots             mcpkit.Tool   `name:"test_input_required_result_list_roots"`
		AskWithState         mcpkit.Tool   `name:"test_input_required_result_request_state"`
		AskAll               mcpkit.Tool   `name:"test_input_required_result_multiple_inputs"`
		AskTwice             mcpkit.Tool   `name:"test_input_required_result_multi_round"`
		AskSealed            mcpkit.Tool   `name:"test_input_required_result_tampered_state"`
		AskWhatIsPossible    mcpkit.Tool   `name:"test_input_required_result_capabilities"`
		AskForPrompt         mcpkit.Prompt `name:"test_input_required_result_prompt"`
	}
}

// PromptText holds a prompt for the model.
type PromptText struct {
	// The prompt to send to the model.
	Prompt string `json:"prompt"`
}

// Sampling asks the client's model.
func (q *Questions) Sampling(ctx context.Context, in PromptText) (string, error) {
	text, err := sample(ctx, in.Prompt)
	return "LLM response: " + text, err
}

func sample(ctx context.Context, prompt string, opts ...mcpkit.AskOption) (string, error) {
	question := protocol.SamplingContents{mcpkit.Text(prompt)}
	result, err := mcpkit.Sample(ctx, &protocol.CreateMessageParams{
		Messages:  []protocol.SamplingMessage{{Role: protocol.RoleUser, Content: question}},
		MaxTokens: 100,
	}, opts...)
	if err != nil {
		return "", err
	}
	if text, ok := result.Content[0].(*protocol.TextContent); ok {
		return text.Text, nil
	}
	return "(no text)", nil
}

// MessageText holds a message for the user.
type MessageText struct {
	// The message to show to the user.
	Message string `json:"message"`
}

// Account is a form for a name and an address.
type Account struct {
	// User's response.
	Username string `json:"username"`
	// User's email address.
	Email string `json:"email"`
}

// Elicitation asks the user for a name and an address.
func (q *Questions) Elicitation(ctx context.Context, in MessageText) (string, error) {
	a, err := mcpkit.Elicit[Account](ctx, in.Message)
	switch {
	case errors.Is(err, mcpkit.ErrDeclined):
		return "User response: declined", nil
	case errors.Is(err, mcpkit.ErrCancelled):
		return "User response: cancelled", nil
	}
	return fmt.Sprintf("User response: %s <%s>", a.Username, a.Email), err
}

// Defaults is a form with a default for each field.
type Defaults struct {
	// User name.
	Name string `json:"name" default:"John Doe"`
	// User age.
	Age int `json:"age" default:"30"`
	// User score.
	Score float64 `json:"score" default:"95.5"`
	// User status.
	Status string `json:"status" validate:"oneof=active inactive pending" default:"active"`
	// Verification status.
	Verified bool `json:"verified" default:"true"`
}

// ElicitationDefaults sends a form with a default for each field.
func (q *Questions) ElicitationDefaults(ctx context.Context) (string, error) {
	d, err := mcpkit.Elicit[Defaults](ctx, "Please review and update the form fields with defaults")
	return fmt.Sprintf("Elicitation completed: %+v", d), err
}

// enumForm has each kind of enum. The superseded kind has no Go type.
const enumForm = `{"type":"object","properties":{
	"untitledSingle":{"type":"string","description":"Select one option","enum":["option1","option2","option3"]},
	"titledSingle":{"type":"string","description":"Select one option with titles","oneOf":[
		{"const":"value1","title":"First Option"},{"const":"value2","title":"Second Option"},
		{"const":"value3","title":"Third Option"}]},
	"legacyEnum":{"type":"string","description":"Select one option (superseded form)",
		"enum":["opt1","opt2","opt3"],"enumNames":["Option One","Option Two","Option Three"]},
	"untitledMulti":{"type":"array","description":"Select several options",
		"items":{"type":"string","enum":["option1","option2","option3"]}},
	"titledMulti":{"type":"array","description":"Select several options with titles","items":{"anyOf":[
		{"const":"value1","title":"First Choice"},{"const":"value2","title":"Second Choice"},
		{"const":"value3","title":"Third Choice"}]}}
}}`

// ElicitationEnums sends a form with enums.
func (q *Questions) ElicitationEnums(ctx context.Context) (string, error) {
	r, err := mcpkit.ElicitForm(ctx, "Please select options from the enum fields", json.RawMessage(enumForm))
	if err != nil {
		return "", err
	}
	return "Elicitation completed: " + string(r.Content), nil
}

// MissingCapability needs a client that supports sampling.
func (q *Questions) MissingCapability(ctx context.Context) (string, error) {
	return sample(ctx, "Are you there?")
}

// Confirmation is a yes or no.
type Confirmation struct {
	OK bool `json:"ok" validate:"required"`
}

// StreamingElicitation reports progress and then asks.
func (q *Questions) StreamingElicitation(ctx context.Context, call *mcpkit.Call) (string, error) {
	call.Progress(1, 2, "asking")
	c, err := mcpkit.Elicit[Confirmation](ctx, "Go on?")
	return fmt.Sprintf("Answer: %v", c.OK), err
}

// PersonName is somebody's name.
type PersonName struct {
	// What is your name?
	Name string `json:"name"`
}

func askName(ctx context.Context) (string, error) {
	n, err := mcpkit.Elicit[PersonName](ctx, "What is your name?", mcpkit.Key("user_name"))
	return n.Name, err
}

// AskName asks the user for a name.
func (q *Questions) AskName(ctx context.Context) (string, error) {
	name, err := askName(ctx)
	return "Hello, " + name + "!", err
}

// AskModel asks the client's model.
func (q *Questions) AskModel(ctx context.Context) (string, error) {
	return sample(ctx, "What is the capital of France?", mcpkit.Key("capital_question"))
}

// AskRoots asks for the client's roots.
func (q *Questions) AskRoots(ctx context.Context) (string, error) {
	roots, err := mcpkit.Roots(ctx, mcpkit.Key("client_roots"))
	return fmt.Sprintf("%d roots: %v", len(roots), roots), err
}

// AskWithState asks, and finds the answer in the request state.
func (q *Questions) AskWithState(ctx context.Context) (string, error) {
	if _, err := mcpkit.Elicit[Confirmation](ctx, "Please confirm.", mcpkit.Key("confirm")); err != nil {
		return "", err
	}
	return "state-ok", nil
}

// AskAll asks the user, the model and the client at once.
func (q *Questions) AskAll(ctx context.Context) (string, error) {
	var name, greeting string
	var roots []protocol.Root
	err := mcpkit.Ask(ctx,
		func(ctx context.Context) (err error) { name, err = askName(ctx); return },
		func(ctx context.Context) (err error) {
			greeting, err = sample(ctx, "Write a greeting.", mcpkit.Key("greeting"))
			return
		},
		func(ctx context.Context) (err error) {
			roots, err = mcpkit.Roots(ctx, mcpkit.Key("client_roots"))
			return
		},
	)
	return fmt.Sprintf("%s, %s (%d roots)", greeting, name, len(roots)), err
}

// AskTwice asks two questions in a row.
func (q *Questions) AskTwice(ctx context.Context) (string, error) {
	name, err := mcpkit.Elicit[PersonName](ctx, "What is your name?", mcpkit.Key("step1"))
	if err != nil {
		return "", err
	}
	color, err := mcpkit.Elicit[struct {
		// Favourite colour.
		Color string `json:"color"`
	}](ctx, "Hello, "+name.Name+". What is your favourite colour?", mcpkit.Key("step2"))
	return name.Name + " likes " + color.Color, err
}

// AskSealed asks. The client cannot change its request state.
func (q *Questions) AskSealed(ctx context.Context) (string, error) {
	if _, err := mcpkit.Elicit[Confirmation](ctx, "Please confirm.", mcpkit.Key("confirm")); err != nil {
		return "", err
	}
	return "confirmed", nil
}

// AskWhatIsPossible asks a question that the client supports.
func (q *Questions) AskWhatIsPossible(ctx context.Context, call *mcpkit.Call) (string, error) {
	caps := call.ClientCapabilities()
	switch {
	case caps.Elicitation.SupportsForm():
		return askName(ctx)
	case caps.Sampling != nil:
		return sample(ctx, "What is the capital of France?")
	}
	return "There is nobody to ask.", nil
}

// AskForPrompt asks the user and returns a prompt with the answer.
func (q *Questions) AskForPrompt(ctx context.Context) (string, error) {
	c, err := mcpkit.Elicit[struct {
		// What the prompt is about.
		Context string `json:"context"`
	}](ctx, "What context should the prompt use?", mcpkit.Key("user_context"))
	return "Use this context: " + c.Context, err
}

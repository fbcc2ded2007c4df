package protocol

import "github.com/mcpkit/mcpkit-go/internal/jsonx"

// Types of a [CompletionRef].
const (
	RefPrompt   = "ref/prompt"
	RefResource = "ref/resource"
)

// A CompletionRef names the prompt, or the resource template, whose argument is being typed.
type CompletionRef struct {
	Type  string `json:"type"`           // RefPrompt or RefResource
	Name  string `json:"name,omitzero"`  // of the prompt
	Title string `json:"title,omitzero"` // of the prompt; 2025-06-18 and later
	URI   string `json:"uri,omitzero"`   // URI or URI template of the resource
}

// MarshalJSON writes the reference. It always writes the name of a prompt and the URI of a
// resource.
func (r CompletionRef) MarshalJSON() ([]byte, error) {
	switch r.Type {
	case RefPrompt:
		return jsonx.Marshal(struct {
			Type  string `json:"type"`
			Name  string `json:"name"`
			Title string `json:"title,omitzero"`
		}{r.Type, r.Name, r.Title})
	case RefResource:
		return jsonx.Marshal(struct {
			Type string `json:"type"`
			URI  string `json:"uri"`
		}{r.Type, r.URI})
	}
	type plain CompletionRef
	return jsonx.Marshal(plain(r))
}

// CompleteParams are the params of completion/complete.
type CompleteParams struct {
	Ref      CompletionRef      `json:"ref"`
	Argument CompletionArgument `json:"argument"`
	Context  *CompletionContext `json:"context,omitzero"` // 2025-06-18 and later
	Meta     Meta               `json:"_meta,omitzero"`
}

// A CompletionArgument is the argument being typed and its value so far.
type CompletionArgument struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// A CompletionContext holds the arguments that are already known.
type CompletionContext struct {
	Arguments map[string]string `json:"arguments,omitzero"`
}

// A CompleteResult is the result of completion/complete.
type CompleteResult struct {
	Completion Completion `json:"completion"`
	ResultType string     `json:"resultType,omitzero"`
	Meta       Meta       `json:"_meta,omitzero"`
}

// MaxCompletionValues is the most values a [Completion] may hold.
const MaxCompletionValues = 100

// A Completion lists values for an argument, best first.
type Completion struct {
	Values  []string `json:"values"` // at most MaxCompletionValues
	Total   *int64   `json:"total,omitzero"`
	HasMore *bool    `json:"hasMore,omitzero"`
}

// MarshalJSON writes the completion; nil values are written as [].
func (c Completion) MarshalJSON() ([]byte, error) {
	type plain Completion
	return jsonx.Marshal(plain(c))
}

package protocol

import (
	"errors"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// A Prompt describes a template for messages to a model.
type Prompt struct {
	Name        string           `json:"name"`
	Title       string           `json:"title,omitzero"` // 2025-06-18 and later
	Description string           `json:"description,omitzero"`
	Arguments   []PromptArgument `json:"arguments,omitzero"`
	Icons       []Icon           `json:"icons,omitzero"` // 2025-11-25 and later
	Meta        Meta             `json:"_meta,omitzero"` // 2025-06-18 and later
}

// A PromptArgument describes an argument of a prompt. Its values are strings.
type PromptArgument struct {
	Name        string `json:"name"`
	Title       string `json:"title,omitzero"` // 2025-06-18 and later
	Description string `json:"description,omitzero"`
	Required    *bool  `json:"required,omitzero"` // nil means false
}

// A ListPromptsResult is a page of prompts.
type ListPromptsResult struct {
	Prompts    []Prompt `json:"prompts"`
	NextCursor *string  `json:"nextCursor,omitzero"` // nil on the last page
	Cache
	ResultType string `json:"resultType,omitzero"`
	Meta       Meta   `json:"_meta,omitzero"`
}

// MarshalJSON writes the page; nil prompts are written as [].
func (r ListPromptsResult) MarshalJSON() ([]byte, error) {
	type plain ListPromptsResult
	return jsonx.Marshal(plain(r))
}

// GetPromptParams are the params of prompts/get.
type GetPromptParams struct {
	Name      string            `json:"name"`
	Arguments map[string]string `json:"arguments,omitzero"`
	Inputs
	Meta Meta `json:"_meta,omitzero"`
}

// A GetPromptResult is the result of prompts/get.
type GetPromptResult struct {
	Description string          `json:"description,omitzero"`
	Messages    []PromptMessage `json:"messages"`
	ResultType  string          `json:"resultType,omitzero"`
	Meta        Meta            `json:"_meta,omitzero"`
}

// MarshalJSON writes the result; nil messages are written as [].
func (r GetPromptResult) MarshalJSON() ([]byte, error) {
	type plain GetPromptResult
	return jsonx.Marshal(plain(r))
}

// A Role is the author of a message.
type Role string

// The roles.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
)

// A PromptMessage is one message of a prompt.
type PromptMessage struct {
	Role    Role
	Content Content
}

// MarshalJSON writes the message.
func (m PromptMessage) MarshalJSON() ([]byte, error) {
	dst := append([]byte(nil), `{"role":`...)
	dst = jsonx.AppendString(dst, string(m.Role))
	dst = append(dst, `,"content":`...)
	dst, err := appendContent(dst, m.Content)
	return append(dst, '}'), err
}

// UnmarshalJSON reads a message.
func (m *PromptMessage) UnmarshalJSON(data []byte) error {
	var w struct {
		Role    Role    `json:"role"`
		Content content `json:"content"`
	}
	if err := jsonx.Unmarshal(data, &w); err != nil {
		return err
	}
	if w.Content.Content == nil {
		return errors.New("message has no content")
	}
	*m = PromptMessage{Role: w.Role, Content: w.Content.Content}
	return nil
}

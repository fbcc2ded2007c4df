package protocol

import (
	"encoding/json"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// CreateMessageParams are the params of sampling/createMessage, which asks a client to run its
// model. Sampling is deprecated since 2026-07-28.
type CreateMessageParams struct {
	Messages         []SamplingMessage `json:"messages"`
	ModelPreferences *ModelPreferences `json:"modelPreferences,omitzero"`
	SystemPrompt     string            `json:"systemPrompt,omitzero"`
	IncludeContext   string            `json:"includeContext,omitzero"` // "none", "thisServer" or "allServers"
	Temperature      *float64          `json:"temperature,omitzero"`
	MaxTokens        int64             `json:"maxTokens"`
	StopSequences    []string          `json:"stopSequences,omitzero"`
	Metadata         json.RawMessage   `json:"metadata,omitzero"`   // an object for the provider of the model
	Tools            []Tool            `json:"tools,omitzero"`      // 2025-11-25 and later
	ToolChoice       *ToolChoice       `json:"toolChoice,omitzero"` // 2025-11-25 and later
	Task             json.RawMessage   `json:"task,omitzero"`       // 2025-11-25 only
	Meta             Meta              `json:"_meta,omitzero"`
}

// MarshalJSON writes the params; nil messages are written as [].
func (p CreateMessageParams) MarshalJSON() ([]byte, error) {
	type plain CreateMessageParams
	return jsonx.Marshal(plain(p))
}

// A ToolChoice says whether the model may, must or must not use tools.
type ToolChoice struct {
	Mode string `json:"mode,omitzero"` // "auto" (the default), "required" or "none"
}

// ModelPreferences are a server's wishes for the choice of a model. The priorities go from 0 to 1.
type ModelPreferences struct {
	Hints                []ModelHint `json:"hints,omitzero"` // most preferred first
	CostPriority         *float64    `json:"costPriority,omitzero"`
	SpeedPriority        *float64    `json:"speedPriority,omitzero"`
	IntelligencePriority *float64    `json:"intelligencePriority,omitzero"`
}

// A ModelHint names a model, or a part of its name.
type ModelHint struct {
	Name string `json:"name,omitzero"`
}

// A SamplingMessage is one message of a conversation with a model.
type SamplingMessage struct {
	Role    Role             `json:"role"`
	Content SamplingContents `json:"content"`
	Meta    Meta             `json:"_meta,omitzero"` // 2025-11-25 and later
}

// SamplingContents are the blocks of a [SamplingMessage]. One block is written as an object, which
// all versions can read. Several blocks, or none, are written as an array, which versions from
// 2025-11-25 on can read.
type SamplingContents []Content

// MarshalJSON writes the blocks.
func (c SamplingContents) MarshalJSON() ([]byte, error) {
	if len(c) == 1 {
		return appendContent(nil, c[0])
	}
	return appendContents(nil, c)
}

// UnmarshalJSON reads one block or an array of them.
func (c *SamplingContents) UnmarshalJSON(data []byte) error {
	if jsonx.Kind(data) == '[' {
		return (*Contents)(c).UnmarshalJSON(data)
	}
	one, err := UnmarshalContent(data)
	if err != nil {
		return err
	}
	*c = SamplingContents{one}
	return nil
}

// A CreateMessageResult is the message that the model wrote.
type CreateMessageResult struct {
	Role       Role             `json:"role"`
	Content    SamplingContents `json:"content"`
	Model      string           `json:"model"`
	StopReason string           `json:"stopReason,omitzero"` // "endTurn", "stopSequence", "maxTokens", "toolUse" or another
	Meta       Meta             `json:"_meta,omitzero"`
}

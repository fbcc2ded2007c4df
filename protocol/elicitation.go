package protocol

import (
	"encoding/json"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// Modes of [ElicitParams]. An absent mode is a form.
const (
	ElicitForm = "form"
	ElicitURL  = "url"
)

// ElicitParams are the params of elicitation/create, which asks the user to fill in a form or to
// visit a URL.
type ElicitParams struct {
	Mode            string          `json:"mode,omitzero"` // "" and ElicitForm mean a form; 2025-11-25 and later
	Message         string          `json:"message"`
	RequestedSchema json.RawMessage `json:"requestedSchema,omitzero"` // form: a flat object schema
	URL             string          `json:"url,omitzero"`             // url
	ElicitationID   string          `json:"elicitationId,omitzero"`   // url; 2025-11-25 only
	Task            json.RawMessage `json:"task,omitzero"`            // 2025-11-25 only
	Meta            Meta            `json:"_meta,omitzero"`
}

// Actions of an [ElicitResult].
const (
	ElicitAccept  = "accept"
	ElicitDecline = "decline"
	ElicitCancel  = "cancel"
)

// An ElicitResult is the user's response to an [ElicitParams].
type ElicitResult struct {
	Action  string          `json:"action"`           // ElicitAccept, ElicitDecline or ElicitCancel
	Content json.RawMessage `json:"content,omitzero"` // an object; only if a form was accepted
	Meta    Meta            `json:"_meta,omitzero"`   // legacy
}

// ElicitationCompleteParams report that the user has finished at a URL. 2025-11-25 only.
type ElicitationCompleteParams struct {
	ElicitationID string `json:"elicitationId"`
	Meta          Meta   `json:"_meta,omitzero"`
}

// An InputRequest is a server request inside an [InputRequiredResult].
type InputRequest struct {
	Method string          `json:"method"`          // MethodElicitationCreate, MethodSamplingCreateMessage or MethodRootsList
	Params json.RawMessage `json:"params,omitzero"` // ElicitParams, CreateMessageParams or EmptyParams
}

// InputRequests are server requests by keys that the server chooses.
type InputRequests map[string]InputRequest

// InputResponses are the responses by the same keys. Each is an ElicitResult, CreateMessageResult
// or ListRootsResult.
type InputResponses map[string]json.RawMessage

// An InputRequiredResult is the result of a call that cannot continue before the client responds to
// its server requests. Modern; for tools/call, prompts/get and resources/read only.
type InputRequiredResult struct {
	InputRequests InputRequests `json:"inputRequests,omitzero"`
	RequestState  *string       `json:"requestState,omitzero"` // opaque to the client; nil when absent
	ResultType    string        `json:"resultType"`            // ResultInputRequired; "" is written as that
	Meta          Meta          `json:"_meta,omitzero"`
}

// MarshalJSON writes the result.
func (r InputRequiredResult) MarshalJSON() ([]byte, error) {
	type plain InputRequiredResult
	if r.ResultType == "" {
		r.ResultType = ResultInputRequired
	}
	return jsonx.Marshal(plain(r))
}

// Inputs are what the client sends when it retries a call after an [InputRequiredResult]. Modern.
type Inputs struct {
	InputResponses InputResponses `json:"inputResponses,omitzero"`
	RequestState   *string        `json:"requestState,omitzero"` // exactly as received; nil if there was none
}

// A PrimitiveSchema describes one field of a form: a string, a number, an integer, a boolean, a
// choice of one (Enum or OneOf) or of several (an array with Items). See
// [ElicitParams.RequestedSchema].
type PrimitiveSchema struct {
	Type        string          `json:"type"` // "string", "number", "integer", "boolean" or "array"
	Title       string          `json:"title,omitzero"`
	Description string          `json:"description,omitzero"`
	MinLength   *int64          `json:"minLength,omitzero"` // characters
	MaxLength   *int64          `json:"maxLength,omitzero"` // characters
	Format      string          `json:"format,omitzero"`    // "email", "uri", "date" or "date-time"
	Minimum     *float64        `json:"minimum,omitzero"`
	Maximum     *float64        `json:"maximum,omitzero"`
	Enum        []string        `json:"enum,omitzero"`
	EnumNames   []string        `json:"enumNames,omitzero"` // titles of Enum; superseded by OneOf in 2025-11-25
	OneOf       []EnumOption    `json:"oneOf,omitzero"`     // choices with titles; 2025-11-25 and later
	MinItems    *int64          `json:"minItems,omitzero"`
	MaxItems    *int64          `json:"maxItems,omitzero"`
	Items       *EnumItems      `json:"items,omitzero"` // 2025-11-25 and later
	Default     json.RawMessage `json:"default,omitzero"`
}

// An EnumOption is a choice with the title that users see.
type EnumOption struct {
	Const string `json:"const"`
	Title string `json:"title"`
}

// EnumItems are the choices of which the user may take several: Enum, or AnyOf if they have titles.
type EnumItems struct {
	Type  string       `json:"type,omitzero"` // "string" with Enum
	Enum  []string     `json:"enum,omitzero"`
	AnyOf []EnumOption `json:"anyOf,omitzero"`
}

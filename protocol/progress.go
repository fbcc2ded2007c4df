package protocol

import "encoding/json"

// ProgressParams tell how far a request has come.
type ProgressParams struct {
	ProgressToken json.RawMessage `json:"progressToken"` // string or integer, as the request gave it
	Progress      float64         `json:"progress"`      // grows with every notification
	Total         *float64        `json:"total,omitzero"`
	Message       string          `json:"message,omitzero"` // 2025-03-26 and later
	Meta          Meta            `json:"_meta,omitzero"`
}

package protocol

import "encoding/json"

// ProgressParams are the params of notifications/progress.
type ProgressParams struct {
	ProgressToken json.RawMessage `json:"progressToken"` // string or integer, as in the request
	Progress      float64         `json:"progress"`      // grows with every notification
	Total         *float64        `json:"total,omitzero"`
	Message       string          `json:"message,omitzero"` // 2025-03-26 and later
	Meta          Meta            `json:"_meta,omitzero"`
}

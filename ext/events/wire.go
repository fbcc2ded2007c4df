package events

import (
	"encoding/json"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

// A Descriptor says what may happen.
type Descriptor struct {
	Name        string          `json:"name"`
	Title       string          `json:"title,omitzero"`
	Description string          `json:"description,omitzero"`
	Delivery    []string        `json:"delivery"` // some of Poll, Push and Webhook
	Input       json.RawMessage `json:"inputSchema"`
	Payload     json.RawMessage `json:"payloadSchema"`
	Meta        protocol.Meta   `json:"_meta,omitzero"`
}

// An Occurrence is something that happened: an item of a poll, the params of [NotificationEvent], the
// body of a webhook.
type Occurrence struct {
	EventID   string          `json:"eventId"`
	Name      string          `json:"name"`
	Timestamp time.Time       `json:"timestamp"`
	Data      json.RawMessage `json:"data"`
	Cursor    *string         `json:"cursor,omitzero"` // the position after it, of push and webhooks
	Meta      protocol.Meta   `json:"_meta,omitzero"`
}

// ListParams are the params of events/list.
type ListParams struct {
	Cursor *string `json:"cursor,omitzero"`
}

// A Subscription says what a client wants to know of. It is part of the params of all other methods.
type Subscription struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments,omitzero"`
}

// A Position says where occurrences begin.
type Position struct {
	Cursor   *string `json:"cursor"` // nil: from now on
	MaxAgeMs *int64  `json:"maxAgeMs,omitzero"`
}

// PollParams are the params of events/poll.
type PollParams struct {
	Subscription
	Position
	MaxEvents int `json:"maxEvents,omitzero"`
}

// A PollResult is the result of events/poll.
type PollResult struct {
	Events     []Occurrence `json:"events"`
	Cursor     *string      `json:"cursor"`
	Truncated  bool         `json:"truncated"` // some may be missing before the events
	HasMore    bool         `json:"hasMore"`
	NextPollMs int64        `json:"nextPollMs"`
}

// StreamParams are the params of events/stream.
type StreamParams struct {
	Subscription
	Position
}

// ActiveParams are the params of [NotificationActive], which comes first on a stream, and again when
// some occurrences may be missing. The _meta of all notifications of a stream names its request.
type ActiveParams struct {
	Cursor    *string       `json:"cursor"`
	Truncated bool          `json:"truncated"`
	Meta      protocol.Meta `json:"_meta,omitzero"`
}

// HeartbeatParams are the params of [NotificationHeartbeat].
type HeartbeatParams struct {
	Cursor *string       `json:"cursor"`
	Meta   protocol.Meta `json:"_meta,omitzero"`
}

// ErrorParams are the params of [NotificationError] and of [NotificationTerminated], which ends a
// stream.
type ErrorParams struct {
	Error *jsonrpc.Error `json:"error"`
	Meta  protocol.Meta  `json:"_meta,omitzero"`
}

// A StreamResult is the result of events/stream.
type StreamResult struct {
	Meta protocol.Meta `json:"_meta,omitzero"`
}

// SubscribeParams are the params of events/subscribe.
type SubscribeParams struct {
	Subscription
	Position
	Delivery Delivery `json:"delivery"`
	// TTLMs is for how long the client would like to be subscribed. Null asks for a subscription
	// that does not expire.
	TTLMs reflectx.Nullable[int64] `json:"ttlMs,omitzero"`
}

// Delivery says where webhooks go.
type Delivery struct {
	Mode   string `json:"mode,omitzero"` // Webhook
	URL    string `json:"url"`
	Secret Secret `json:"secret,omitzero"`
}

// A SubscribeResult is the result of events/subscribe.
type SubscribeResult struct {
	ID            string          `json:"id"`
	RefreshBefore *time.Time      `json:"refreshBefore"` // nil: the subscription does not expire
	Cursor        *string         `json:"cursor"`
	Truncated     bool            `json:"truncated"`
	Status        *DeliveryStatus `json:"deliveryStatus,omitzero"`
}

// A DeliveryStatus says how the deliveries of a subscription went until it was refreshed.
type DeliveryStatus struct {
	Active         bool       `json:"active"`         // false: it was suspended, and no longer is
	LastDeliveryAt *time.Time `json:"lastDeliveryAt"` // nil: never
	LastError      *string    `json:"lastError"`      // one of the Fail constants; nil: none
	FailedSince    *time.Time `json:"failedSince,omitzero"`
}

// What is said of a delivery that failed. Nothing else of an endpoint reaches a subscriber.
const (
	FailRefused   = "connection_refused"
	FailTimeout   = "timeout"
	FailTLS       = "tls_error"
	Fail4xx       = "http_4xx"
	Fail5xx       = "http_5xx"
	FailChallenge = "challenge_failed"
)

// UnsubscribeParams are the params of events/unsubscribe.
type UnsubscribeParams struct {
	Subscription
	Delivery Delivery `json:"delivery"`
}

// A Control is the body of a webhook that is not an [Occurrence].
type Control struct {
	Type      string         `json:"type"`               // one of the Control constants
	Challenge string         `json:"challenge,omitzero"` // of a verification; the response repeats it
	Cursor    *string        `json:"cursor,omitzero"`    // of a gap
	Error     *jsonrpc.Error `json:"error,omitzero"`     // of a terminated subscription
}

// The types of controls.
const (
	ControlVerification = "verification"
	ControlGap          = "gap"
	ControlTerminated   = "terminated"
)

// MaxBody is how long the body of a webhook may be, in bytes.
const MaxBody = 256 << 10

// loose decodes params as clients send them: unknown members are ignored.
type loose[T any] struct{ params T }

// UnmarshalJSON implements json.Unmarshaler.
func (l *loose[T]) UnmarshalJSON(text []byte) error { return jsonx.Unmarshal(text, &l.params) }

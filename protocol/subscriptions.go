package protocol

// A SubscriptionFilter lists the notifications that a subscriptions/listen stream carries. The
// server sends no others.
type SubscriptionFilter struct {
	ToolsListChanged      bool     `json:"toolsListChanged,omitzero"`
	PromptsListChanged    bool     `json:"promptsListChanged,omitzero"`
	ResourcesListChanged  bool     `json:"resourcesListChanged,omitzero"`
	ResourceSubscriptions []string `json:"resourceSubscriptions,omitzero"` // URIs
}

// SubscriptionsListenParams are the params of subscriptions/listen, which opens a stream of
// notifications. Modern.
type SubscriptionsListenParams struct {
	Notifications SubscriptionFilter `json:"notifications"`
	Meta          Meta               `json:"_meta,omitzero"`
}

// SubscriptionsAcknowledgedParams are the params of the first notification on the stream: which of
// the requested notifications the server will send.
type SubscriptionsAcknowledgedParams struct {
	Notifications SubscriptionFilter `json:"notifications"`
	Meta          Meta               `json:"_meta,omitzero"` // holds MetaSubscriptionID
}

// A SubscriptionsListenResult ends the stream.
type SubscriptionsListenResult struct {
	ResultType string `json:"resultType,omitzero"`
	Meta       Meta   `json:"_meta,omitzero"` // holds MetaSubscriptionID
}

package protocol

// A SubscriptionFilter says what a subscriptions/listen stream carries. What is not said is not
// sent.
type SubscriptionFilter struct {
	ToolsListChanged      bool     `json:"toolsListChanged,omitzero"`
	PromptsListChanged    bool     `json:"promptsListChanged,omitzero"`
	ResourcesListChanged  bool     `json:"resourcesListChanged,omitzero"`
	ResourceSubscriptions []string `json:"resourceSubscriptions,omitzero"` // URIs
}

// SubscriptionsListenParams open a stream of notifications. Modern.
type SubscriptionsListenParams struct {
	Notifications SubscriptionFilter `json:"notifications"`
	Meta          Meta               `json:"_meta,omitzero"`
}

// SubscriptionsAcknowledgedParams open the answer: what the server will send of what was asked.
type SubscriptionsAcknowledgedParams struct {
	Notifications SubscriptionFilter `json:"notifications"`
	Meta          Meta               `json:"_meta,omitzero"` // holds MetaSubscriptionID
}

// A SubscriptionsListenResult ends the stream.
type SubscriptionsListenResult struct {
	ResultType string `json:"resultType,omitzero"`
	Meta       Meta   `json:"_meta,omitzero"` // holds MetaSubscriptionID
}

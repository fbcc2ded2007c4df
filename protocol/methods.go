package protocol

// Requests of clients.
const (
	MethodInitialize             = "initialize"               // legacy
	MethodPing                   = "ping"                     // legacy, both ways
	MethodDiscover               = "server/discover"          // modern
	MethodToolsList              = "tools/list"               //
	MethodToolsCall              = "tools/call"               //
	MethodPromptsList            = "prompts/list"             //
	MethodPromptsGet             = "prompts/get"              //
	MethodResourcesList          = "resources/list"           //
	MethodResourcesTemplatesList = "resources/templates/list" //
	MethodResourcesRead          = "resources/read"           //
	MethodResourcesSubscribe     = "resources/subscribe"      // legacy
	MethodResourcesUnsubscribe   = "resources/unsubscribe"    // legacy
	MethodSubscriptionsListen    = "subscriptions/listen"     // modern
	MethodEventsStream           = "events/stream"            // of the extension Events
	MethodCompletionComplete     = "completion/complete"      //
	MethodLoggingSetLevel        = "logging/setLevel"         // legacy
)

// Requests of servers. Legacy servers send them as requests, modern ones embed them in an
// [InputRequiredResult].
const (
	MethodSamplingCreateMessage = "sampling/createMessage"
	MethodElicitationCreate     = "elicitation/create" // 2025-06-18 and later
	MethodRootsList             = "roots/list"
)

// Requests about tasks. In 2025-11-25 they are part of the core, in both directions; in modern
// versions clients send those of [ExtensionTasks].
const (
	MethodTasksGet    = "tasks/get"
	MethodTasksUpdate = "tasks/update" // modern
	MethodTasksCancel = "tasks/cancel"
	MethodTasksResult = "tasks/result" // 2025-11-25 only
	MethodTasksList   = "tasks/list"   // 2025-11-25 only
)

// Notifications.
const (
	NotificationInitialized               = "notifications/initialized" // legacy, by clients
	NotificationCancelled                 = "notifications/cancelled"
	NotificationProgress                  = "notifications/progress"
	NotificationMessage                   = "notifications/message"
	NotificationToolsListChanged          = "notifications/tools/list_changed"
	NotificationPromptsListChanged        = "notifications/prompts/list_changed"
	NotificationResourcesListChanged      = "notifications/resources/list_changed"
	NotificationResourcesUpdated          = "notifications/resources/updated"
	NotificationRootsListChanged          = "notifications/roots/list_changed"         // legacy, by clients
	NotificationElicitationComplete       = "notifications/elicitation/complete"       // 2025-11-25 only
	NotificationTasks                     = "notifications/tasks"                      // modern, of ExtensionTasks
	NotificationTasksStatus               = "notifications/tasks/status"               // 2025-11-25 only
	NotificationSubscriptionsAcknowledged = "notifications/subscriptions/acknowledged" // modern
)

// StaysOpen reports whether requests of the method end only when the client or the server ends them.
func StaysOpen(method string) bool {
	return method == MethodSubscriptionsListen || method == MethodEventsStream
}

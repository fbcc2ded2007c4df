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

// Requests about tasks, in both directions. Part of the core in 2025-11-25 only.
const (
	MethodTasksGet    = "tasks/get"
	MethodTasksResult = "tasks/result"
	MethodTasksList   = "tasks/list"
	MethodTasksCancel = "tasks/cancel"
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
	NotificationTasksStatus               = "notifications/tasks/status"               // 2025-11-25 only
	NotificationSubscriptionsAcknowledged = "notifications/subscriptions/acknowledged" // modern
)

package protocol

import (
	"encoding/json"
	"time"

	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// ExtensionTasks identifies the extension Tasks of modern versions: a server may respond to
// tools/call with a task, and the client asks for its result later. Its settings are {} on both
// sides. Version 2025-11-25 has tasks of another form in its core.
const ExtensionTasks = "io.modelcontextprotocol/tasks"

// ResultTask is the resultType of a [CreateTaskResult].
const ResultTask = "task"

// A TaskStatus says how far a task is.
type TaskStatus string

// The statuses of tasks. Completed, failed and cancelled are terminal: such a task no longer
// changes.
const (
	TaskWorking       TaskStatus = "working"
	TaskInputRequired TaskStatus = "input_required"
	TaskCompleted     TaskStatus = "completed" // also if the tool reports an error
	TaskFailed        TaskStatus = "failed"    // with a protocol error
	TaskCancelled     TaskStatus = "cancelled"
)

// Terminal reports whether a task with this status has ended.
func (s TaskStatus) Terminal() bool {
	return s == TaskCompleted || s == TaskFailed || s == TaskCancelled
}

// Known reports whether the extension defines the status.
func (s TaskStatus) Known() bool {
	return s == TaskWorking || s == TaskInputRequired || s.Terminal()
}

// A Task is what a server says about a task in each result and notification.
type Task struct {
	TaskID        string     `json:"taskId"`
	Status        TaskStatus `json:"status"`
	StatusMessage string     `json:"statusMessage,omitzero"` // for people
	CreatedAt     time.Time  `json:"createdAt"`
	LastUpdatedAt time.Time  `json:"lastUpdatedAt"`
	// TTLMs is the time in milliseconds, from CreatedAt, after which the server may delete the
	// task; nil means never. It is written as null.
	TTLMs *int64 `json:"ttlMs"`
	// PollIntervalMs is the time in milliseconds that a client should wait between two requests for
	// the task; nil leaves it to the client.
	PollIntervalMs *int64 `json:"pollIntervalMs,omitzero"`
}

// A CreateTaskResult is a result of tools/call that stands for the result of the tool: the call
// has become a task.
type CreateTaskResult struct {
	Task
	ResultType string `json:"resultType"` // ResultTask
	Meta       Meta   `json:"_meta,omitzero"`
}

// A DetailedTask is the result of tasks/get, and the params of [NotificationTasks].
type DetailedTask struct {
	Task
	InputRequests InputRequests   `json:"inputRequests,omitzero"` // all without a response; only with TaskInputRequired
	Result        json.RawMessage `json:"result,omitzero"`        // a CallToolResult; only with TaskCompleted
	Error         *jsonrpc.Error  `json:"error,omitzero"`         // only with TaskFailed
	ResultType    string          `json:"resultType,omitzero"`    // ResultComplete; "" in notifications
	Meta          Meta            `json:"_meta,omitzero"`
}

// TaskParams are the params of tasks/get and tasks/cancel. Over HTTP, the header Mcp-Name mirrors
// the ID.
type TaskParams struct {
	TaskID string `json:"taskId"`
	Meta   Meta   `json:"_meta,omitzero"`
}

// UpdateTaskParams are the params of tasks/update, which answers input requests of a task. Over
// HTTP, the header Mcp-Name mirrors the ID.
type UpdateTaskParams struct {
	TaskID         string         `json:"taskId"`
	InputResponses InputResponses `json:"inputResponses"` // to some or all of the input requests
	Meta           Meta           `json:"_meta,omitzero"`
}

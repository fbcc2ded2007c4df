package protocol_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	. "github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

func TestTasksAreFlatOnTheWire(t *testing.T) {
	at := time.Date(2026, 11, 22, 18, 0, 0, 0, time.UTC)
	task := Task{TaskID: "7", Status: TaskWorking, CreatedAt: at, LastUpdatedAt: at}
	const common = `"taskId":"7","createdAt":"2026-11-22T18:00:00Z","lastUpdatedAt":"2026-11-22T18:00:00Z"`
	interval, ttl := int64(200), int64(60_000)
	slow := task
	slow.StatusMessage, slow.PollIntervalMs, slow.TTLMs = "half", &interval, &ttl
	asks, failed, done := task, task, task
	asks.Status, failed.Status, done.Status = TaskInputRequired, TaskFailed, TaskCompleted
	for _, test := range []struct {
		value any
		want  string
	}{
		{&CreateTaskResult{Task: task, ResultType: ResultTask}, `{` + common + `,"status":"working","ttlMs":null,"resultType":"task"}`},
		{&CreateTaskResult{Task: slow, ResultType: ResultTask}, `{` + common + `,"status":"working","statusMessage":"half","ttlMs":60000,"pollIntervalMs":200,"resultType":"task"}`},
		{&DetailedTask{Task: asks, ResultType: ResultComplete, InputRequests: InputRequests{"a": {Method: MethodRootsList}}},
			`{` + common + `,"status":"input_required","ttlMs":null,"inputRequests":{"a":{"method":"roots/list"}},"resultType":"complete"}`},
		{&DetailedTask{Task: failed, Error: jsonrpc.Errorf(-32603, "the server restarted")},
			`{` + common + `,"status":"failed","ttlMs":null,"error":{"code":-32603,"message":"the server restarted"}}`},
		{&DetailedTask{Task: done, Result: []byte(`{"content":[]}`)}, `{` + common + `,"status":"completed","ttlMs":null,"result":{"content":[]}}`},
		{&UpdateTaskParams{TaskID: "7", InputResponses: InputResponses{"a": []byte(`{"roots":[]}`)}}, `{"taskId":"7","inputResponses":{"a":{"roots":[]}}}`},
	} {
		text, err := jsonx.Marshal(test.value)
		require.NoError(t, err)
		require.JSONEq(t, test.want, string(text))
	}
	var back DetailedTask
	require.NoError(t, jsonx.Unmarshal([]byte(`{`+common+`,"status":"failed","ttlMs":null,"error":{"code":-1,"message":"m","data":[1]},"resultType":"complete"}`), &back))
	require.Equal(t, &jsonrpc.Error{Code: -1, Message: "m", Data: []byte("[1]")}, back.Error)
}

func TestTaskStatusesAreTerminalOrNot(t *testing.T) {
	for status, terminal := range map[TaskStatus]bool{
		TaskWorking: false, TaskInputRequired: false, TaskCompleted: true, TaskFailed: true, TaskCancelled: true,
	} {
		require.Equal(t, terminal, status.Terminal(), status)
		require.True(t, status.Known(), status)
	}
	require.False(t, TaskStatus("done").Known())
	require.False(t, TaskStatus("").Terminal())
}

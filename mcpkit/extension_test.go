package mcpkit_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// answers makes a middleware that returns what result gives in place of a tool's.
func answers(result func() (mcpkit.Result, error)) mcpkit.Middleware {
	return func(mcpkit.Handler) mcpkit.Handler {
		return func(context.Context, *mcpkit.Call) (mcpkit.Result, error) { return result() }
	}
}

func TestResultsOfExtensionsHaveTheirTypeForModernClients(t *testing.T) {
	srv := newServer(t, nil)
	require.NoError(t, srv.Add(mcpkit.NewTool("start", func() string { return "" })))
	srv.Use(func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
			if call.Method() != protocol.MethodToolsCall {
				return next(ctx, call)
			}
			return mcpkit.Extension("task", map[string]any{"taskId": "7"})
		}
	})
	require.JSONEq(t, `{"taskId":"7"}`, legacy(t, srv, protocol.V20251125).result("tools/call", `{"name":"start"}`))
	result := modern(t, srv).result("tools/call", `{"name":"start"}`)
	require.Equal(t, `"task"`, member(t, result, "resultType"))
	require.Equal(t, `"7"`, member(t, result, "taskId"))
}

func TestExtensionRefusesWhatIsNotAResultOfAnExtension(t *testing.T) {
	for _, test := range []struct {
		name, resultType string
		value            any
		err              string
	}{
		{"no type", "", map[string]any{}, `mcpkit: Extension(""): not a result type of an extension`},
		{"complete", "complete", map[string]any{}, `mcpkit: Extension("complete"): not a result type of an extension`},
		{"input_required", "input_required", map[string]any{}, `mcpkit: Extension("input_required"): not a result type of an extension`},
		{"a type of its own", "task", map[string]any{"resultType": "other"}, `mcpkit: Extension("task"): the value has a resultType of its own; leave it out`},
		{"not an object", "task", []int{1}, `mcpkit: a result is a JSON object, not [1]`},
	} {
		r, err := mcpkit.Extension(test.resultType, test.value)
		require.EqualError(t, err, test.err, test.name)
		require.Nil(t, r, test.name)
	}
	_, err := mcpkit.Extension("task", func() {})
	require.Error(t, err, "it does not encode")
}

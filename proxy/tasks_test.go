package proxy_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/proxy"
)

// taskServer returns a server whose tool brew runs only as a task, which asks a question. Its list
// says so unless silent is set. Pour is a plain tool.
func taskServer(t *testing.T, v protocol.Version, silent bool) string {
	mark := `,"execution":{"taskSupport":"required"}`
	if v.Modern() {
		mark = `,"_meta":{"io.github.mcpkit/task":"required"}`
	}
	if silent {
		mark = ""
	}
	const text = `{"resultType":"complete","content":[{"type":"text","text":"tea"}]}`
	task := func(resultType, status, rest string) string {
		return `{"resultType":"` + resultType + `","taskId":"t1","status":"` + status + `","createdAt":"2026-11-22T18:00:00Z","lastUpdatedAt":"2026-11-22T18:00:00Z","ttlMs":null,"pollIntervalMs":100` + rest + `}`
	}
	var mu sync.Mutex
	answered := false
	respond := func(req *jsonrpc.Request) (string, *jsonrpc.Error) {
		mu.Lock()
		defer mu.Unlock()
		switch req.Method {
		case "server/discover":
			if v.Modern() {
				return `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}},"ttlMs":0,"cacheScope":"public"}`, nil
			}
		case "initialize":
			return `{"protocolVersion":"` + string(v) + `","capabilities":{"tools":{}},"serverInfo":{"name":"tea","version":"1"}}`, nil
		case "tools/list":
			return `{"resultType":"complete","ttlMs":0,"cacheScope":"public","tools":[{"name":"brew","inputSchema":{"type":"object"}` + mark + `},{"name":"pour","inputSchema":{"type":"object"}}]}`, nil
		case "tools/call":
			switch {
			case string(req.Param("name")) == `"pour"`:
				return text, nil
			case strings.Contains(string(req.Params), protocol.ExtensionTasks):
				answered = false
				return task("task", "working", `,"statusMessage":"boiling"`), nil
			}
			return "", protocol.MissingClientCapability(protocol.ClientCapabilities{Extensions: map[string]protocol.Object{protocol.ExtensionTasks: {}}}, "brew needs tasks")
		case "tasks/update":
			answered = true
			return `{"resultType":"complete"}`, nil
		case "tasks/get":
			if answered {
				return task("complete", "completed", `,"result":`+text), nil
			}
			return task("complete", "input_required", `,"inputRequests":{"k":{"method":"elicitation/create","params":{"mode":"form","message":"kind?","requestedSchema":{"type":"object","properties":{"days":{"type":"integer"}}}}}}`), nil
		}
		return "", jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "no such method")
	}
	return answering(t, respond)
}

func TestToolsThatRunOnlyAsTasksAreNotOffered(t *testing.T) {
	for _, v := range []protocol.Version{protocol.V20251125, protocol.V20260728} {
		t.Run(string(v), func(t *testing.T) {
			c := dial(t, mounted(t, taskServer(t, v, false), v), protocol.V20260728)
			var names []string
			for tool, err := range c.Tools(t.Context()) {
				require.NoError(t, err)
				names = append(names, tool.Name)
			}
			require.Equal(t, []string{"far_pour"}, names)
			out, err := client.Call[string](t.Context(), c, "far_pour", nil)
			require.NoError(t, err)
			require.Equal(t, "tea", out)
		})
	}
}

func TestACallOfAToolThatRunsOnlyAsATaskSaysSo(t *testing.T) {
	near := mounted(t, taskServer(t, protocol.V20260728, true), protocol.V20260728)
	for _, v := range []protocol.Version{protocol.V20251125, protocol.V20260728} {
		_, err := dial(t, near, v, client.Tasks()).CallTool(t.Context(), "far_brew", nil)
		require.EqualError(t, err, `tool "far_brew": this tool of the remote server "remote" runs only as a task, and this server does not call it as one`)
	}
}

func TestTheProxyFollowsTasks(t *testing.T) {
	for _, v := range []protocol.Version{protocol.V20251125, protocol.V20260728} {
		t.Run(string(v), func(t *testing.T) {
			near := mounted(t, taskServer(t, protocol.V20260728, false), protocol.V20260728, proxy.Dial(client.Tasks()))
			u := &user{}
			c := dial(t, near, v, client.Handlers(u))
			out, err := client.Call[string](t.Context(), c, "far_brew", nil)
			require.NoError(t, err)
			require.Equal(t, "tea", out)
			require.Equal(t, []string{"kind?"}, u.asked)
		})
	}
}

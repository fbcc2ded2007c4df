package mcpkit_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// passOn answers calls of definitions: it logs, asks a question, and returns the name that was
// called.
func passOn(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
	call.SendLog(&protocol.LoggingMessageParams{Level: protocol.LevelWarning, Data: json.RawMessage(`"passed on"`)})
	raw, err := call.Ask(ctx, protocol.MethodElicitationCreate, json.RawMessage(`{"mode":"form","message":"Sure?","requestedSchema":{"type":"object","properties":{}}}`), mcpkit.Key("sure"))
	if err != nil {
		return nil, err
	}
	return mcpkit.NewToolResult(&protocol.CallToolResult{Content: []protocol.Content{&protocol.TextContent{Text: call.Name() + " " + string(raw)}}})
}

func TestDefinitionsOfAnotherServerAreReplacedAsAWhole(t *testing.T) {
	srv := newServer(t, nil)
	require.NoError(t, srv.Add(mcpkit.NewTool("own", func() {})))
	tool := func(name string) json.RawMessage {
		return json.RawMessage(`{"name":"` + name + `","inputSchema":{"type":"object"},"x-kept":[1]}`)
	}
	d := mcpkit.Definitions{Site: "elsewhere", Tools: []json.RawMessage{tool("a"), tool("b"), tool("a"), tool("no name")},
		Resources: []json.RawMessage{[]byte(`{"uri":"x://1","name":"one"}`)}}
	skipped, err := srv.SetDefinitions(d, passOn)
	require.NoError(t, err)
	require.Len(t, skipped, 2)
	require.EqualError(t, skipped[0], `elsewhere: "a" comes twice`)
	require.ErrorContains(t, skipped[1], `elsewhere: "no name": name "no name" contains ' '`)
	require.Equal(t, []string{"a", "b", "own"}, names(t, modern(t, srv), "tools/list", "tools", "name"))
	require.Contains(t, modern(t, srv).result("tools/list", "{}"), `"x-kept":[1]`)

	p := legacy(t, srv, protocol.V20251125)
	p.take()
	_, err = srv.SetDefinitions(d, passOn)
	require.NoError(t, err)
	require.Empty(t, p.take(), "nothing changed, so nobody is told")
	_, err = srv.SetDefinitions(mcpkit.Definitions{Site: "elsewhere", Tools: []json.RawMessage{tool("c"), tool("own")}}, passOn)
	require.ErrorContains(t, err, `tool "own" is registered twice, by mcpkit: tool "own" (definitions_test.go:`)
	require.ErrorContains(t, err, `and elsewhere (own)`)
	require.Equal(t, []string{"a", "b", "own"}, names(t, p, "tools/list", "tools", "name"), "a refused change changes nothing")

	p.answer = func(*jsonrpc.Request) *jsonrpc.Response {
		return &jsonrpc.Response{Result: json.RawMessage(`{"action":"accept","content":{}}`)}
	}
	require.Contains(t, p.result("tools/call", `{"name":"a"}`), `a {\"action\":\"accept\",\"content\":{}}`)
	require.Contains(t, p.take(), `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning","data":"passed on"}}`)
}

func TestAMethodCanTellThatItsQuestionIsOnItsWay(t *testing.T) {
	srv := newServer(t, nil)
	asked := false
	require.NoError(t, srv.Add(mcpkit.NewTool("ask", func(ctx context.Context) (bool, error) {
		sure, err := mcpkit.Confirm(ctx, "Sure?")
		asked = asked || errors.Is(err, mcpkit.ErrAsked)
		return sure, err
	})))
	require.Contains(t, modern(t, srv).result("tools/call", `{"name":"ask"}`), `"resultType":"input_required"`)
	require.True(t, asked)
}

func TestCanReadLooksAtTheScopesOfTheCaller(t *testing.T) {
	srv := newServer(t, &guarded{}, mcpkit.Authenticated())
	var can []bool
	srv.Use(func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
			can = append(can, call.CanRead("doc://one"), call.CanRead("any://x"), call.CanRead("none://x"))
			return next(ctx, call)
		}
	})
	p := modern(t, srv)
	p.rpc(as(p), p.request("tools/list", "{}"))
	p.rpc(as(p, "notes:read"), p.request("tools/list", "{}"))
	require.Equal(t, []bool{false, false, false, true, true, false}, can)
}

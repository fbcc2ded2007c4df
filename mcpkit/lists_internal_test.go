package mcpkit

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// barePeer is a client without a session.
type barePeer struct{ transport.Peer }

func (barePeer) Session() *transport.Session { return nil }
func (barePeer) Header() transport.Header    { return nil }

// listAs returns the list of tools after a tool that a caller with these scopes gets.
func listAs(t *testing.T, s *Server, p *oauth.Principal, after string) json.RawMessage {
	t.Helper()
	params := `{}`
	if after != "" {
		params = fmt.Sprintf(`{"cursor":%q}`, encodeCursor(after))
	}
	req, bad := jsonrpc.Decode([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":` + params + `}`))
	require.Nil(t, bad)
	resp := s.ServeRPC(oauth.NewContext(t.Context(), p), req.Request, barePeer{})
	require.Nil(t, resp.Error)
	return resp.Result
}

func TestListsShowEachCallerWhatItMayCall(t *testing.T) {
	s, other := MustNew(nil, Authenticated()), MustNew(nil, Authenticated())
	s.MustMount("far", other)
	require.NoError(t, s.Add(NewTool("open", func() {}), NewTool("write", func() {}).Scopes("r", "w")))
	require.NoError(t, other.Add(NewTool("read", func() {}).Scopes("r")))
	ann := &oauth.Principal{Subject: "ann", Scopes: []string{"r"}}
	require.Contains(t, string(listAs(t, s, ann, "")), `"far_read"`)
	require.NotContains(t, string(listAs(t, s, ann, "")), `"write"`)
	require.Contains(t, string(listAs(t, s, &oauth.Principal{Subject: "cid", Scopes: []string{"w", "r"}}, "")), `"write"`)
	require.NotContains(t, string(listAs(t, s, nil, "")), `"far_read"`)
	require.NoError(t, other.Add(NewTool("late", func() {}).Scopes("r")))
	require.Contains(t, string(listAs(t, s, ann, "")), `"far_late"`, "a change is seen at once")
	require.NotContains(t, string(listAs(t, s, nil, "")), `"far_late"`)
}

func TestStepUpShowsPrincipalsWhatTheyLackScopesFor(t *testing.T) {
	s := MustNew(nil, Authenticated(), StepUp())
	require.NoError(t, s.Add(NewTool("open", func() {}), NewTool("read", func() {}).Scopes("r")))
	require.Contains(t, string(listAs(t, s, &oauth.Principal{Subject: "ann"}, "")), `"read"`)
	require.NotContains(t, string(listAs(t, s, nil, "")), `"read"`)
}

func TestInventedCursorsDoNotGrowTheHeap(t *testing.T) {
	s := MustNew(nil)
	items := make([]Item, 1000)
	for i := range items {
		items[i] = NewTool(fmt.Sprintf("t%03d", i), func() {})
	}
	require.NoError(t, s.Add(items...))
	listAs(t, s, nil, "") // encodes the tools
	before := heap()
	for i := range items {
		listAs(t, s, nil, fmt.Sprintf("t%03d", i))
	}
	require.Less(t, heap(), before+(1<<20))
	runtime.KeepAlive(s)
}

// heap returns the bytes in use.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

package mcpkit

import (
	"fmt"
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

// listAs returns the list of tools that a caller with these scopes gets.
func listAs(t *testing.T, s *Server, p *oauth.Principal) []byte {
	t.Helper()
	req, bad := jsonrpc.Decode([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`))
	require.Nil(t, bad)
	resp := s.ServeRPC(oauth.NewContext(t.Context(), p), req.Request, barePeer{})
	require.Nil(t, resp.Error)
	return resp.Result
}

func pagesOf(s *Server) (n int) {
	s.catalog.Load().tools.view.pages.Range(func(any, any) bool { n++; return true })
	return n
}

func TestCallersThatSeeTheSameShareTheirPages(t *testing.T) {
	s, other := MustNew(nil, Authenticated()), MustNew(nil, Authenticated())
	s.MustMount("far", other)
	require.NoError(t, s.Add(NewTool("open", func() {}), NewTool("read", func() {}).Scopes("r"), NewTool("write", func() {}).Scopes("r", "w")))
	require.NoError(t, other.Add(NewTool("read", func() {}).Scopes("r")))
	ann, bob := &oauth.Principal{Subject: "ann", Scopes: []string{"r"}}, &oauth.Principal{Subject: "bob", Scopes: []string{"r", "x"}}
	writer := &oauth.Principal{Subject: "cid", Scopes: []string{"w", "r"}}
	require.Equal(t, string(listAs(t, s, ann)), string(listAs(t, s, bob)))
	require.Contains(t, string(listAs(t, s, ann)), `"far_read"`)
	require.NotContains(t, string(listAs(t, s, ann)), `"write"`)
	require.Equal(t, 1, pagesOf(s))
	require.Contains(t, string(listAs(t, s, writer)), `"write"`)
	require.NotContains(t, string(listAs(t, s, nil)), `"read"`)
	require.Equal(t, 3, pagesOf(s))
	require.NoError(t, other.Add(NewTool("late", func() {}).Scopes("r")))
	require.Contains(t, string(listAs(t, s, ann)), `"far_late"`, "a change is seen at once")
	require.NotContains(t, string(listAs(t, s, nil)), `"far_late"`)
	for i := range 70 { // more lists of scopes than there are bits
		require.NoError(t, s.Add(NewTool(fmt.Sprintf("t%d", i), func() {}).Scopes(fmt.Sprintf("s%d", i))))
	}
	last := &oauth.Principal{Subject: "dan", Scopes: []string{"s69"}}
	require.Contains(t, string(listAs(t, s, last)), `"t69"`)
	require.NotContains(t, string(listAs(t, s, last)), `"t68"`)
	require.Zero(t, pagesOf(s))
}

func TestStepUpShowsAllPrincipalsTheSame(t *testing.T) {
	s := MustNew(nil, Authenticated(), StepUp())
	require.NoError(t, s.Add(NewTool("open", func() {}), NewTool("read", func() {}).Scopes("r")))
	require.Contains(t, string(listAs(t, s, &oauth.Principal{Subject: "ann"})), `"read"`)
	require.NotContains(t, string(listAs(t, s, nil)), `"read"`)
	require.Equal(t, 2, pagesOf(s))
}

package mcpkit_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport"
)

type scoped struct {
	_ struct {
		Closed mcpkit.Tool `scopes:"a b"`
	}
}

func (scoped) Closed() string { return "closed" }

// Needs is a tool that finds out itself what it lacks.
func (scoped) Needs() error { return &oauth.InsufficientScopeError{Scopes: []string{"c"}} }

func TestScopesNeedAuthentication(t *testing.T) {
	_, err := mcpkit.New(&scoped{})
	require.ErrorContains(t, err, `scoped.Closed (authorize_test.go:22): it demands the scopes "a b", but nobody authenticates callers: `+
		`give mcpkit.Authenticated() if a resource server or other middleware does, or mcpkit.TrustLocal("a", "b") to trust local callers`)
	srv, err := mcpkit.New(nil)
	require.NoError(t, err)
	require.Error(t, srv.Register(&scoped{}))
	require.ErrorContains(t, srv.Add(mcpkit.NewTool("x", func() string { return "" }).Scopes("s")), `it demands the scopes "s"`)
	_, err = mcpkit.New(&scoped{}, mcpkit.TrustLocal())
	require.EqualError(t, err, `mcpkit: TrustLocal() trusts with nothing; name the scopes, for example TrustLocal("notes:read", "notes:write")`)
	for _, opt := range []mcpkit.Option{mcpkit.Authenticated(), mcpkit.TrustLocal("a")} {
		_, err := mcpkit.New(&scoped{}, opt)
		require.NoError(t, err)
	}
}

func TestOnlyRequestsThatDidNotComeOverHTTPAreTrusted(t *testing.T) {
	srv := newServer(t, &scoped{}, mcpkit.TrustLocal("a", "b"))
	p := legacy(t, srv, protocol.V20251125)
	call := p.request("tools/call", `{"name":"closed"}`)
	require.Nil(t, p.rpc(t.Context(), call).Error, "no HTTP, nobody in the context")
	require.NotNil(t, p.rpc(as(p, "a"), call).Error, "somebody else is in the context")
	require.NotNil(t, p.rpc(oauth.NewContext(t.Context(), nil), call).Error, "somebody said that it is nobody")
	p.header = transport.Header{}
	require.NotNil(t, p.rpc(t.Context(), call).Error, "HTTP")
}

func TestStepUpSaysWhichScopesACallNeeds(t *testing.T) {
	srv := newServer(t, &scoped{}, mcpkit.Authenticated(), mcpkit.StepUp())
	for _, p := range []*peer{modern(t, srv), legacy(t, srv, protocol.V20251125)} {
		list := func(ctx context.Context) string {
			return string(p.rpc(ctx, p.request("tools/list", `{}`)).Result)
		}
		require.Contains(t, list(as(p)), `"closed"`)
		require.NotContains(t, list(t.Context()), `"closed"`, "nobody")

		ctx, demand := oauth.WithScopeDemand(as(p, "a"))
		resp := p.rpc(ctx, p.request("tools/call", `{"name":"closed"}`))
		require.EqualError(t, resp.Error, `insufficient scope: this needs "a b" (code -31001)`)
		require.JSONEq(t, `{"scopes":["a","b"]}`, string(resp.Error.Data))
		require.Equal(t, http.StatusForbidden, resp.HTTPStatus)
		require.Equal(t, []string{"a", "b"}, demand.Scopes())

		resp = p.rpc(as(p, "a"), p.request("tools/call", `{"name":"closed"}`))
		require.Equal(t, mcpkit.CodeForbidden, resp.Error.Code)
		require.Zero(t, resp.HTTPStatus, "nobody wants to know")

		require.Nil(t, p.rpc(as(p, "a", "b"), p.request("tools/call", `{"name":"closed"}`)).Error)
		require.EqualError(t, p.rpc(t.Context(), p.request("tools/call", `{"name":"closed"}`)).Error, `unknown tool "closed" (code -32602)`)
	}
}

func TestAMethodMaySayItselfWhichScopesItNeeds(t *testing.T) {
	srv := newServer(t, &scoped{}, mcpkit.Authenticated())
	p := modern(t, srv)
	ctx, demand := oauth.WithScopeDemand(as(p))
	resp := p.rpc(ctx, p.request("tools/call", `{"name":"needs"}`))
	require.EqualError(t, resp.Error, `insufficient scope: this needs "c" (code -31001)`)
	require.Equal(t, http.StatusForbidden, resp.HTTPStatus)
	require.Equal(t, []string{"c"}, demand.Scopes())
}

func TestCanReadLooksAtTheScopesOfTheCaller(t *testing.T) {
	srv := newServer(t, &guarded{}, mcpkit.Authenticated())
	var can []bool
	srv.Use(before(func(call *mcpkit.Call) {
		can = append(can, call.CanRead("doc://one"), call.CanRead("any://x"), call.CanRead("none://x"))
	}))
	p := modern(t, srv)
	p.rpc(as(p), p.request("tools/list", "{}"))
	p.rpc(as(p, "notes:read"), p.request("tools/list", "{}"))
	require.Equal(t, []bool{false, false, false, true, true, false}, can)
}

// onlyAnn lets ann alone see what is not named own. Callers share a list by their names.
func onlyAnn(_ context.Context, call *mcpkit.Call) (func(mcpkit.Entry) bool, string) {
	who := ""
	if p := call.Principal(); p != nil {
		who = p.Subject
	}
	return func(e mcpkit.Entry) bool { return e.Name() == "own" || who == "ann" }, who
}

// Callers have lists of their own, although lists are kept. What is hidden from all is in
// TestEachWayToHideTellsNothing.
func TestCallersSeeWhatIsVisibleForThem(t *testing.T) {
	srv := newServer(t, &library{}, mcpkit.Visible(onlyAnn))
	require.NoError(t, srv.Add(mcpkit.NewTool("own", func() string { return "" })))
	for version, p := range versionPeers(t, srv) {
		send := func(who, method, params string) string {
			return p.raw(oauth.NewContext(t.Context(), &oauth.Principal{Subject: who}), p.request(method, params))
		}
		for range 2 {
			require.NotContains(t, send("bob", "tools/list", `{}`), "take", version)
			require.Contains(t, send("bob", "tools/list", `{}`), `"own"`)
			require.Contains(t, send("ann", "tools/list", `{}`), `"take"`)
			require.NotContains(t, send("bob", "resources/list", `{}`), "shelf:")
		}
		require.Contains(t, send("bob", "resources/read", `{"uri":"shelf://index"}`), "not found")
		require.Contains(t, send("ann", "resources/read", `{"uri":"shelf://index"}`), "the index")
	}
}

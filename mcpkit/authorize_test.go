package mcpkit_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
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
	require.ErrorContains(t, err, `scoped.Closed (authorize_test.go:24): it demands the scopes "a b", but nobody authenticates callers: `+
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

// What Visible refuses answers like what does not exist, and is not listed, wherever the option is.
func TestWhatIsNotVisibleDoesNotExist(t *testing.T) {
	own := mcpkit.NewTool("own", func() string { return "" })
	allow := mcpkit.Visible(onlyAnn)
	for name, build := range map[string]func() *mcpkit.Server{
		"the server": func() *mcpkit.Server { return newServer(t, &library{}, allow) },
		"a service":  func() *mcpkit.Server { return newServer(t, nil, mcpkit.With(&library{}, allow)) },
		"a mount": func() *mcpkit.Server {
			srv := newServer(t, nil)
			srv.MustMount("", newServer(t, &library{}), allow)
			return srv
		},
		"a mounted server": func() *mcpkit.Server {
			srv, middle := newServer(t, nil), newServer(t, nil)
			srv.MustMount("", middle)
			middle.MustMount("", newServer(t, &library{}, allow))
			return srv
		},
	} {
		t.Run(name, func(t *testing.T) {
			srv := build()
			require.NoError(t, srv.Add(own))
			for version, p := range versionPeers(t, srv) {
				send := func(who, method, params string) string {
					resp := p.rpc(oauth.NewContext(t.Context(), &oauth.Principal{Subject: who}), p.request(method, params))
					return string(jsonrpc.AppendResponse(nil, resp))
				}
				require.NotContains(t, send("bob", "tools/list", `{}`), "take", version)
				require.Contains(t, send("bob", "tools/list", `{}`), `"own"`)
				require.Contains(t, send("ann", "tools/list", `{}`), `"take"`)
				require.NotContains(t, send("bob", "resources/list", `{}`), "shelf:")
				for _, r := range []struct{ method, params, missing string }{
					{"tools/call", `{"name":"take"}`, `{"name":"kate"}`},
					{"tools/call", `{"name":"take","arguments":7}`, `{"name":"kate","arguments":7}`},
					{"prompts/get", `{"name":"blurb","arguments":{"title":"x"}}`, `{"name":"brulb","arguments":{"title":"x"}}`},
					{"resources/read", `{"uri":"shelf://index"}`, `{"uri":"shelf://indix"}`},
					{"resources/read", `{"uri":"shelf://book/x"}`, `{"uri":"shelf://boak/x"}`},
					{"resources/subscribe", `{"uri":"shelf://index"}`, `{"uri":"shelf://indix"}`},
					{"completion/complete", `{"ref":{"type":"ref/prompt","name":"blurb"},"argument":{"name":"title","value":""}}`,
						`{"ref":{"type":"ref/prompt","name":"brulb"},"argument":{"name":"title","value":""}}`},
				} {
					if !offered(r.method, version) {
						continue
					}
					same := strings.NewReplacer("kate", "take", "brulb", "blurb", "indix", "index", "boak", "book").Replace(send("bob", r.method, r.missing))
					require.Equal(t, same, send("bob", r.method, r.params), "%s %s", r.method, r.params)
				}
				require.Contains(t, send("ann", "resources/read", `{"uri":"shelf://index"}`), "the index")
				require.NotContains(t, send("ann", "resources/read", `{"uri":"shelf://index"}`), `"public"`)
			}
		})
	}
	require.EqualError(t, modern(t, newServer(t, &library{}, mcpkit.Visible(nil))).fails("tools/call", `{"name":"take"}`), `unknown tool "take" (code -32602)`)
}

package mcpkit_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/ext/catalog"
	"github.com/mcpkit/mcpkit-go/ext/tasks"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport/stdio"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

// A gate is a set of scopes. The tools, prompts and resources that need them are named after it.
type gate struct {
	name   string
	scopes []string
}

var gates = []gate{
	{"open", nil},
	{"alpha", []string{"a"}},
	{"both", []string{"a", "b"}},
	{"wide", []string{"a:*"}}, // the star has no special meaning
}

// A vault counts which of its methods were reached.
type vault struct {
	mu      sync.Mutex
	reached []string
}

func (v *vault) enter(kind, gate string) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.reached = append(v.reached, kind+" "+gate)
	return secret(gate)
}

func (v *vault) words(gate string) ([]string, error) {
	return []string{v.enter("completion", gate)}, nil
}

// take returns what was reached since the last take.
func (v *vault) take() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	reached := v.reached
	v.reached = nil
	return reached
}

// secret is in all definitions, results and completions behind a gate.
func secret(gate string) string { return "secret-of-" + gate }

// vaultWords has a prompt and a template with completions behind every gate.
type vaultWords struct {
	_ struct {
		PromptOpen    mcpkit.Prompt   `name:"prompt-open" desc:"secret-of-open" params:"x" complete:"x=WordsOpen"`
		PromptAlpha   mcpkit.Prompt   `name:"prompt-alpha" desc:"secret-of-alpha" params:"x" complete:"x=WordsAlpha" scopes:"a"`
		PromptBoth    mcpkit.Prompt   `name:"prompt-both" desc:"secret-of-both" params:"x" complete:"x=WordsBoth" scopes:"a b"`
		PromptWide    mcpkit.Prompt   `name:"prompt-wide" desc:"secret-of-wide" params:"x" complete:"x=WordsWide" scopes:"a:*"`
		TemplateOpen  mcpkit.Resource `uri:"open://at/{x}" desc:"secret-of-open" params:"x" complete:"x=WordsOpen"`
		TemplateAlpha mcpkit.Resource `uri:"alpha://at/{x}" desc:"secret-of-alpha" params:"x" complete:"x=WordsAlpha" scopes:"a"`
		TemplateBoth  mcpkit.Resource `uri:"both://at/{x}" desc:"secret-of-both" params:"x" complete:"x=WordsBoth" scopes:"a b"`
		TemplateWide  mcpkit.Resource `uri:"wide://at/{x}" desc:"secret-of-wide" params:"x" complete:"x=WordsWide" scopes:"a:*"`
	}
	v *vault
}

func (w *vaultWords) PromptOpen(string) string    { return w.v.enter("prompt", "open") }
func (w *vaultWords) PromptAlpha(string) string   { return w.v.enter("prompt", "alpha") }
func (w *vaultWords) PromptBoth(string) string    { return w.v.enter("prompt", "both") }
func (w *vaultWords) PromptWide(string) string    { return w.v.enter("prompt", "wide") }
func (w *vaultWords) TemplateOpen(string) string  { return w.v.enter("template", "open") }
func (w *vaultWords) TemplateAlpha(string) string { return w.v.enter("template", "alpha") }
func (w *vaultWords) TemplateBoth(string) string  { return w.v.enter("template", "both") }
func (w *vaultWords) TemplateWide(string) string  { return w.v.enter("template", "wide") }

func (w *vaultWords) WordsOpen(context.Context, string) ([]string, error)  { return w.v.words("open") }
func (w *vaultWords) WordsAlpha(context.Context, string) ([]string, error) { return w.v.words("alpha") }
func (w *vaultWords) WordsBoth(context.Context, string) ([]string, error)  { return w.v.words("both") }
func (w *vaultWords) WordsWide(context.Context, string) ([]string, error)  { return w.v.words("wide") }

// vaultServer has a tool, a hidden tool, a raw tool, a prompt, a resource and a template behind
// every gate. Half of the tools and resources come after the first calls.
func vaultServer(t *testing.T, opts ...mcpkit.Option) (*mcpkit.Server, *vault) {
	v := &vault{}
	srv := newServer(t, &vaultWords{v: v}, append([]mcpkit.Option{rawSchemas, mcpkit.Authenticated(), mcpkit.PageSize(2), mcpkit.Name("vault", "1.0.0")}, opts...)...)
	for i, g := range gates {
		if i == 2 {
			modern(t, srv).result("tools/list", "{}")
			modern(t, srv).result("resources/list", "{}")
		}
		hit := func(kind string) func() string {
			return func() string { return v.enter(kind, g.name) }
		}
		raw := func(context.Context, *mcpkit.Call) (any, error) { return v.enter("raw", g.name), nil }
		mirrored := func(in struct {
			Region string `json:"region" header:"Region"`
		}) string {
			return v.enter("mirrored "+in.Region, g.name)
		}
		require.NoError(t, srv.Add(
			mcpkit.NewTool("tool-"+g.name, hit("tool")).Desc(secret(g.name)).Scopes(g.scopes...).Tag("alias", "alias-"+g.name),
			mcpkit.NewTool("hidden-"+g.name, hit("hidden")).Desc(secret(g.name)).Scopes(g.scopes...).Hidden(),
			mcpkit.NewTool("mirrored-"+g.name, mirrored).Desc(secret(g.name)).Scopes(g.scopes...),
			mcpkit.NewTool("raw-"+g.name, raw).Desc(secret(g.name)).Scopes(g.scopes...).Input(`{"type":"object"}`),
			mcpkit.NewResource("doc://"+g.name, "doc "+g.name, hit("resource")).Desc(secret(g.name)).Scopes(g.scopes...).Cache("60s,public"),
		))
	}
	return srv, v
}

// A caller has these scopes; nil is an unauthenticated caller.
type caller struct {
	name string
	p    *oauth.Principal
}

var callers = []caller{
	{"nobody", nil},
	{"somebody without scopes", &oauth.Principal{Subject: "eve"}},
	{"a", &oauth.Principal{Subject: "ann", Scopes: []string{"a"}}},
	{"b", &oauth.Principal{Subject: "bob", Scopes: []string{"b"}}},
	{"a and b", &oauth.Principal{Subject: "cyd", Scopes: []string{"b", "a"}}},
	{"words that look alike", &oauth.Principal{Subject: "mal", Scopes: []string{"A", "B", "a:", "*", "a b", "", "a,b"}}},
	{"everything", &oauth.Principal{Subject: "root", Scopes: []string{"a", "b", "a:*"}}},
}

func (c caller) ctx(t *testing.T) context.Context {
	if c.p == nil {
		return t.Context()
	}
	return oauth.NewContext(t.Context(), c.p)
}

// sees reports whether c may know of the entries behind a gate.
func (c caller) sees(g gate, stepUp bool) bool {
	return c.p.Has(g.scopes...) || stepUp && c.p != nil
}

// versionPeers are clients of all versions.
func versionPeers(t *testing.T, srv *mcpkit.Server) map[protocol.Version]*peer {
	peers := map[protocol.Version]*peer{protocol.V20260728: modern(t, srv)}
	for _, v := range []protocol.Version{protocol.V20241105, protocol.V20250326, protocol.V20250618, protocol.V20251125} {
		peers[v] = legacy(t, srv, v)
	}
	return peers
}

// A reach is a request that reaches a method if the caller has the scopes.
type reach struct {
	kind, method, params string // %s in params is the name of a gate
}

var reaches = []reach{
	{"tool", "tools/call", `{"name":"tool-%s"}`},
	{"tool", "tools/call", `{"name":"alias-%s"}`},
	{"hidden", "tools/call", `{"name":"hidden-%s"}`},
	{"raw", "tools/call", `{"name":"raw-%s","arguments":{}}`},
	{"prompt", "prompts/get", `{"name":"prompt-%s","arguments":{"x":"y"}}`},
	{"resource", "resources/read", `{"uri":"doc://%s"}`},
	{"template", "resources/read", `{"uri":"%s://at/x"}`},
	{"completion", "completion/complete", `{"ref":{"type":"ref/prompt","name":"prompt-%s"},"argument":{"name":"x","value":"z"}}`},
	{"completion", "completion/complete", `{"ref":{"type":"ref/resource","uri":"%s://at/{x}"},"argument":{"name":"x","value":"z"}}`},
	{"", "resources/subscribe", `{"uri":"doc://%s"}`},
	{"", "resources/subscribe", `{"uri":"%s://at/x"}`},
	// Other spellings of its name are unknown names.
	{"none", "tools/call", `{"name":"TOOL-%s"}`},
	{"none", "tools/call", `{"name":"tool-%s "}`},
	{"none", "resources/read", `{"uri":"doc://%s/"}`},
	{"none", "resources/read", `{"uri":"DOC://%s"}`},
}

// offered reports whether a version has the method.
func offered(method string, v protocol.Version) bool {
	switch method {
	case "resources/subscribe", "resources/unsubscribe", "logging/setLevel", "ping", "initialize":
		return !v.Modern()
	case "subscriptions/listen", "server/discover":
		return v.Modern()
	}
	return true
}

// TestNothingReachesAMethodUnauthorized sends all requests that could reach a method, in every
// version, for every caller and every gate.
func TestNothingReachesAMethodUnauthorized(t *testing.T) {
	for name, opts := range map[string][]mcpkit.Option{"hidden": nil, "step up": {mcpkit.StepUp()}} {
		t.Run(name, func(t *testing.T) {
			srv, v := vaultServer(t, opts...)
			tried := 0
			for version, p := range versionPeers(t, srv) {
				for _, r := range reaches {
					if !offered(r.method, version) {
						continue
					}
					for _, g := range gates {
						for _, c := range callers {
							tried++
							probe(t, p, v, r, g, c, len(opts) > 0)
						}
					}
				}
			}
			require.Greater(t, tried, 1000)
		})
	}
}

// probe sends one request and checks the response against the scopes of c.
func probe(t *testing.T, p *peer, v *vault, r reach, g gate, c caller, stepUp bool) {
	t.Helper()
	what := fmt.Sprintf("%s %s for %s behind %s", r.method, r.params, c.name, g.name)
	ask := func(gate string) (*jsonrpc.Response, string) {
		ctx, demand := oauth.WithScopeDemand(c.ctx(t))
		resp := p.rpc(ctx, p.request(r.method, fmt.Sprintf(r.params, gate)))
		text := string(jsonrpc.AppendResponse(nil, resp))
		if demanded := demand.Scopes(); demanded != nil {
			require.Equal(t, g.scopes, demanded, what)
		}
		return resp, text
	}
	resp, text := ask(g.name)
	reached := v.take()
	may := c.p.Has(g.scopes...)
	switch {
	case r.kind == "none" && c.sees(g, stepUp): // and may get a hint
		require.NotNil(t, resp.Error, what)
		require.Empty(t, reached, what)
	case may && r.kind == "":
		require.Nil(t, resp.Error, what)
	case may:
		require.Equal(t, []string{r.kind + " " + g.name}, reached, what)
		require.Contains(t, text, secret(g.name), what)
	case c.sees(g, stepUp):
		require.Empty(t, reached, what)
		require.NotContains(t, text, secret(g.name), what)
		require.Equal(t, mcpkit.CodeForbidden, resp.Error.Code, what)
		require.Equal(t, http.StatusForbidden, resp.HTTPStatus, what)
	default:
		require.Empty(t, reached, what)
		require.NotContains(t, text, secret(g.name), what)
		require.NotNil(t, resp.Error, what)
		// The same response as for a name that does not exist.
		_, other := ask("zzzzz")
		require.Empty(t, v.take())
		require.Equal(t, strings.ReplaceAll(other, "zzzzz", g.name), text, what)
	}
}

// TestListsShowWhatTheCallerMayReach pages through every list, from the beginning and from every
// cursor that could be made up.
func TestListsShowWhatTheCallerMayReach(t *testing.T) {
	for name, opts := range map[string][]mcpkit.Option{"hidden": nil, "step up": {mcpkit.StepUp()}} {
		t.Run(name, func(t *testing.T) {
			srv, v := vaultServer(t, opts...)
			for version, p := range versionPeers(t, srv) {
				for _, c := range callers {
					for _, l := range []struct{ method, member, key, format string }{
						{"tools/list", "tools", "name", "tool-%s"},
						{"tools/list", "tools", "name", "raw-%s"},
						{"prompts/list", "prompts", "name", "prompt-%s"},
						{"resources/list", "resources", "uri", "doc://%s"},
						{"resources/templates/list", "resourceTemplates", "uriTemplate", "%s://at/{x}"},
					} {
						what := fmt.Sprintf("%s of %s, %s", l.method, version, c.name)
						keys, all := pages(t, p, c, l.method, l.member, l.key, "")
						for _, g := range gates {
							require.Equal(t, c.sees(g, len(opts) > 0), slices.Contains(keys, fmt.Sprintf(l.format, g.name)), what)
							require.NotContains(t, all, "hidden-")
							if c.sees(g, len(opts) > 0) {
								continue
							}
							require.NotContains(t, all, secret(g.name), what)
							// A cursor shows only entries of the list, and does not reveal whether
							// its key exists.
							_, there := pages(t, p, c, l.method, l.member, l.key, fmt.Sprintf(l.format, g.name))
							_, none := pages(t, p, c, l.method, l.member, l.key, fmt.Sprintf(l.format, g.name)+"\x00")
							require.Equal(t, none, there, what)
							require.NotContains(t, there, secret(g.name), what)
						}
						if version.Modern() {
							require.Contains(t, all, `"cacheScope":"private"`)
							require.NotContains(t, all, `"cacheScope":"public"`)
						}
					}
				}
			}
			require.Empty(t, v.take())
		})
	}
}

// pages reads the pages of a list after a key. It returns the keys and the text of all pages.
func pages(t *testing.T, p *peer, c caller, method, member, key, after string) (keys []string, all string) {
	t.Helper()
	params := "{}"
	if after != "" {
		params = fmt.Sprintf(`{"cursor":%q}`, base64.RawURLEncoding.EncodeToString([]byte("after:"+after)))
	}
	for {
		resp := p.rpc(c.ctx(t), p.request(method, params))
		require.Nil(t, resp.Error)
		all += string(resp.Result)
		var page map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(resp.Result, &page))
		var items []map[string]any
		require.NoError(t, json.Unmarshal(page[member], &items))
		require.LessOrEqual(t, len(items), 2)
		for _, item := range items {
			keys = append(keys, item[key].(string))
		}
		if page["nextCursor"] == nil {
			return keys, all
		}
		params = `{"cursor":` + string(page["nextCursor"]) + `}`
	}
}

// TestClientsAreNotNotifiedOfWhatTheyMayNotRead subscribes to everything, in every version, and
// changes everything.
func TestClientsAreNotNotifiedOfWhatTheyMayNotRead(t *testing.T) {
	for name, opts := range map[string][]mcpkit.Option{"hidden": nil, "step up": {mcpkit.StepUp()}} {
		t.Run(name, func(t *testing.T) {
			for _, c := range callers {
				srv, _ := vaultServer(t, opts...)
				var uris []string
				for _, g := range gates {
					uris = append(uris, "doc://"+g.name, g.name+"://at/x")
				}
				may := func(uri string) bool {
					return slices.ContainsFunc(gates, func(g gate) bool { return strings.Contains(uri, g.name) && c.p.Has(g.scopes...) })
				}
				for version, p := range versionPeers(t, srv) {
					var heard []string
					if version.Modern() {
						heard = listens(t, srv, p, c, uris, len(opts) > 0)
					} else {
						for _, uri := range uris {
							resp := p.rpc(c.ctx(t), p.request("resources/subscribe", fmt.Sprintf(`{"uri":%q}`, uri)))
							require.Equal(t, may(uri), resp.Error == nil, uri)
						}
						p.take()
						for _, uri := range uris {
							srv.ResourceUpdated(uri)
						}
						heard = p.take()
					}
					for _, uri := range uris {
						require.Equal(t, may(uri), strings.Contains(strings.Join(heard, "\n"), `"`+uri+`"`), "%s of %s in %s", uri, c.name, version)
					}
				}
			}
		})
	}
}

// listens subscribes to each URI with a request, changes the resources, and returns the
// notifications.
func listens(t *testing.T, srv *mcpkit.Server, p *peer, c caller, uris []string, stepUp bool) (heard []string) {
	t.Helper()
	for _, uri := range uris {
		filter := fmt.Sprintf(`{"notifications":{"resourceSubscriptions":[%q,"doc://open"]}}`, uri)
		// Each peer gets only the notifications of its own request.
		own := &listeningPeer{peer: modern(t, srv), said: make(chan string, 16)}
		ctx, cancel := context.WithCancel(c.ctx(t))
		ended := make(chan *jsonrpc.Response, 1)
		msg, bad := jsonrpc.Decode([]byte(p.request("subscriptions/listen", filter)))
		require.Nil(t, bad)
		// Ends with ctx, or at once when it is refused.
		go func() { ended <- srv.ServeRPC(ctx, msg.Request, own) }()
		select {
		case resp := <-ended:
			cancel()
			require.True(t, stepUp, "only who may know of it is told what it lacks")
			require.Equal(t, mcpkit.CodeForbidden, resp.Error.Code)
			continue
		case ack := <-own.said:
			require.Contains(t, ack, "notifications/subscriptions/acknowledged")
			heard = append(heard, ack)
		}
		srv.ResourceUpdated(uri)
		// This one comes last, so the other notifications are sent before the request ends.
		srv.ResourceUpdated("doc://open")
		for text := range own.said {
			if heard = append(heard, text); strings.Contains(text, "doc://open") {
				break
			}
		}
		cancel()
		<-ended
		close(own.said)
		for text := range own.said {
			heard = append(heard, text)
		}
	}
	return heard
}

// A listeningPeer passes on its notifications.
type listeningPeer struct {
	*peer
	said chan string
}

func (p *listeningPeer) Notify(_ context.Context, n *jsonrpc.Request) error {
	p.said <- string(jsonrpc.AppendRequest(nil, n))
	return nil
}

// A diary is for nobody.
type diary struct {
	_ struct {
		Page mcpkit.Resource `uri:"file://home/diary/{day}"`
	}
}

func (*diary) Page(day string) string { return "page " + day }

// Neither do other spellings of a URI.
func TestAWiderTemplateDoesNotBypassANarrowerOne(t *testing.T) {
	srv := newServer(t, nil, mcpkit.Authenticated(), mcpkit.With(&diary{}, mcpkit.Visible(nil)), mcpkit.Items(
		mcpkit.NewResource("file://home/key", "key", func() string { return "key" }).Scopes("a"),
		mcpkit.NewResource("file://home/k%c3%a4se", "cheese", func() string { return "cheese" }).Scopes("a"),
		mcpkit.NewResource("file://home/secret/{name}", "secrets", func(name string) string { return "secret " + name }).Scopes("a"),
		mcpkit.NewResource("file://{+path}{?rev}", "files", func(path string, _ *string) string { return "open " + path }),
	))
	p := modern(t, srv)
	read := func(ctx context.Context, uri string) *jsonrpc.Response {
		return p.rpc(ctx, p.request("resources/read", fmt.Sprintf(`{"uri":%q}`, uri)))
	}
	require.Contains(t, string(read(as(p, "a"), "file://home/secret/x").Result), "secret x")
	require.Contains(t, string(read(as(p, "a"), "file://home/secret/x%2Fy").Result), "secret x/y")
	for _, uri := range []string{
		"file://home/secret/x", "file://home/%73ecret/x", "file://home/secret%2Fx", "file://home%2fsecret/x", "file://home//secret/x",
		"file://home/secret//x", "file://./home/secret/x", "file://home/secret/%2E/x", "file://home/secret/x/", "file://home%5Csecret%5Cx",
		"file://home/%73ecret/x%5Cy", "file://home/ke%79", "file://home/key/", "file://home//key", "file://home/k%C3%A4se",
		"file://home/diary/1", "file://home/%64iary/1", "file://home/key?rev=1", "file://home/%73ecret/x?rev=1",
	} {
		require.EqualError(t, read(as(p), uri).Error, fmt.Sprintf("resource %q not found (code -32602)", uri))
		if uri != "file://home/secret/x" {
			require.NotNil(t, read(as(p, "a"), uri).Error, "%s is the same for all", uri)
		}
	}
	for uri, path := range map[string]string{
		"file://home/x": "home/x", "file://home/x%2Fy": "home/x/y", "file://home//x": "home//x", "file://home/secrets?rev=1": "home/secrets",
		"file://home/secret/x/y": "home/secret/x/y", "file://home/%2573ecret/x": "home/%73ecret/x",
	} {
		require.Contains(t, string(read(as(p), uri).Result), "open "+path)
	}
}

func TestContentsBehindScopesAreNeverPublic(t *testing.T) {
	srv, _ := vaultServer(t)
	p := modern(t, srv)
	for gate, want := range map[string]string{"open": `"public"`, "alpha": `"private"`} {
		resp := p.rpc(as(p, "a"), p.request("resources/read", `{"uri":"doc://`+gate+`"}`))
		require.Nil(t, resp.Error)
		require.Equal(t, want, member(t, string(resp.Result), "cacheScope"))
	}
	p = modern(t, newServer(t, &lodger{}, mcpkit.Visible(onlyAnn)))
	require.Equal(t, `"private"`, member(t, string(p.rpc(as(p), p.request("resources/read", `{"uri":"lodger://page"}`)).Result), "cacheScope"))
}

func TestListeningEndsWithTheToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, _ := vaultServer(t)
		p := modern(t, srv)
		ctx := oauth.NewContext(t.Context(), &oauth.Principal{Subject: "ann", Scopes: []string{"a"}, Expires: time.Now().Add(time.Minute)})
		ended := make(chan *jsonrpc.Response, 1)
		// Ends with the token.
		go func() {
			ended <- p.rpc(ctx, p.request("subscriptions/listen", `{"notifications":{"resourceSubscriptions":["doc://alpha"]}}`))
		}()
		time.Sleep(time.Minute - 1) // of the clock of synctest
		synctest.Wait()
		srv.ResourceUpdated("doc://alpha")
		synctest.Wait()
		require.Len(t, p.take(), 2, "the acknowledgement and the update")
		require.Empty(t, ended)
		time.Sleep(time.Nanosecond)
		require.Nil(t, (<-ended).Error)
		srv.ResourceUpdated("doc://alpha")
		synctest.Wait()
		require.Empty(t, p.take())
	})
}

// TestHeadersTellNothingOfWhatIsHidden sends requests over HTTP with headers that mirror the body, that
// contradict it, and without them. Names that need scopes, that are not visible and that do not exist
// get the same status, headers and body.
func TestHeadersTellNothingOfWhatIsHidden(t *testing.T) {
	allow := mcpkit.Visible(func(context.Context, *mcpkit.Call) (func(mcpkit.Entry) bool, string) {
		return func(e mcpkit.Entry) bool { return !strings.Contains(e.Name(), "wide") }, "all"
	})
	srv, v := vaultServer(t, allow, tasks.New(), mcpkit.Logger(slog.New(slog.DiscardHandler)))
	h := streamable.NewHandler(srv, &streamable.Options{Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() { h.Close(); require.NoError(t, srv.Close()) })
	post := func(ctx context.Context, body string, header http.Header) (status int, headers http.Header, text string) {
		r := httptest.NewRequestWithContext(ctx, "POST", "/", strings.NewReader(body))
		r.Header = header
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code, w.Header(), w.Body.String()
	}
	ctx := as(modern(t, srv), "b")
	for _, version := range []string{"2025-03-26", "2026-07-28"} {
		for _, params := range []string{
			`"name":"mirrored-%s","arguments":{"region":"eu"}`, `"name":"mirrored-%s","arguments":{"region":7,"x":1}`, `"name":"tool-%s"`, `"name":"tool-%s","arguments":[]`,
			`"name":"raw-%s","arguments":{"x":"` + strings.Repeat("x", 9000) + `"}`, `"name":"tool-%s","task":{}`, `"name":"tool-%s","requestState":"x","inputResponses":{}`,
			`"name":"tool-%s","requestState":7`, `"name":"hidden-%s"`, `"name":"alias-%s"`, `"name":"prompt-%s","arguments":{"x":"y"}`, `"name":"prompt-%s","arguments":{"x":5}`,
			`"uri":"doc://%s"`, `"uri":"%s://at/x"`, `"uri":"%s://at/../x"`, `"uri":"doc://%s","cursor":7`, `"notifications":{"resourceSubscriptions":["doc://%s"]},"uri":"%[1]s"`,
			`"ref":{"type":"ref/prompt","name":"prompt-%s"},"argument":{"name":"x","value":"z"}`, `"ref":{"type":"ref/prompt","name":"prompt-%s"},"argument":{"name":7}`,
			`"ref":{"type":"ref/resource","uri":"%s://at/{x}"},"argument":{"name":"nope","value":"z"}`, `"ref":{"type":"ref/resource","uri":"doc://%s"},"argument":{"name":"x","value":"z"}`,
			`"taskId":"%s"`,
		} {
			for _, method := range []string{"tools/call", "prompts/get", "resources/read", "resources/subscribe", "completion/complete", "tasks/get", "tasks/result", "tasks/cancel"} {
				for _, change := range []http.Header{
					nil, {"Mcp-Name": nil}, {"Mcp-Name": {"other"}}, {"Mcp-Param-Region": {"eu"}}, {"Mcp-Param-Region": {"us"}}, {"Mcp-Method": {"ping"}}, {"Accept": {"application/json"}},
				} {
					answer := func(gate string) string {
						body := fmt.Sprintf("{"+params+"}", gate)
						name := strings.Trim(member(t, body, "name")+member(t, body, "uri"), `"`)
						header := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Mcp-Protocol-Version": {version}, "Mcp-Method": {method}, "Mcp-Name": {name}}
						if version == "2026-07-28" {
							body = withMeta(body)
						}
						maps.Copy(header, change)
						status, headers, text := post(ctx, `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+body+`}`, header)
						return strings.ReplaceAll(fmt.Sprint(status, headers, text), gate, "zzzz")
					}
					none := answer("zzzz")
					for _, gate := range []string{"both", "wide"} {
						require.Equal(t, none, answer(gate), "%s %s of %s with %v for %s", method, params, version, change, gate)
					}
				}
			}
		}
	}
	require.Empty(t, v.take())

	params := withMeta(`{"name":"mirrored-both","arguments":{"region":"eu"}}`)
	status, _, text := post(as(modern(t, srv), "a", "b"), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":`+params+`}`, http.Header{"Content-Type": {"application/json"},
		"Accept": {"application/json"}, "Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"mirrored-both"}, "Mcp-Param-Region": {"eu"}})
	require.Equal(t, 200, status, text)
	require.Equal(t, []string{"mirrored eu both"}, v.take(), "who may gets there")
}

// Over stdio, names that need scopes, that are not visible and that do not exist get the same bytes.
func TestStdioTellsNothingOfWhatIsHidden(t *testing.T) {
	allow := mcpkit.Visible(func(context.Context, *mcpkit.Call) (func(mcpkit.Entry) bool, string) {
		return func(e mcpkit.Entry) bool { return !strings.Contains(e.Name(), "open") }, "all"
	})
	srv, _ := vaultServer(t, allow, mcpkit.TrustLocal("a"))
	for _, version := range []protocol.Version{protocol.V20251125, protocol.V20260728} {
		c := serveLines(t, srv, stdio.Lines)
		answer := func(method, params, gate string) string {
			if params = fmt.Sprintf(params, gate); version.Modern() {
				params = withMeta(params)
			}
			c.send(`{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + `}`)
			return strings.ReplaceAll(c.receive(), gate, "zzzz")
		}
		answer("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"%s"}}`, "1")
		for _, r := range reaches {
			none := answer(r.method, r.params, "zzzz")
			for _, gate := range []string{"open", "both", "wide"} {
				require.Equal(t, none, answer(r.method, r.params, gate), "%s %s in %s for %s", r.method, r.params, version, gate)
			}
			if r.kind != "none" && offered(r.method, version) {
				require.NotEqual(t, none, answer(r.method, r.params, "alpha"), "who may gets there")
			}
		}
	}
}

// A cave has one of each kind, with all their names, in a toolset.
type cave struct {
	_ mcpkit.Info `toolset:"secret-of-cave"`
	_ struct {
		Tool     mcpkit.Tool     `name:"tool-cave" alias:"alias-cave"`
		Old      mcpkit.Tool     `name:"twice-cave" variant:"old"`
		New      mcpkit.Tool     `name:"twice-cave" variant:"new" scopes:"new"`
		Prompt   mcpkit.Prompt   `name:"prompt-cave" alias:"said-cave" params:"x" complete:"x=Words"`
		Doc      mcpkit.Resource `uri:"doc://cave"`
		Template mcpkit.Resource `uri:"cave://at/{x}" complete:"x=Words"`
	}
}

func (*cave) Tool() string                                    { return secret("cave") }
func (*cave) Old() string                                     { return secret("cave") }
func (*cave) New() string                                     { return secret("cave") }
func (*cave) Prompt(string) string                            { return secret("cave") }
func (*cave) Doc() string                                     { return secret("cave") }
func (*cave) Template(string) string                          { return secret("cave") }
func (*cave) Words(context.Context, string) ([]string, error) { return []string{secret("cave")}, nil }

// What is hidden in any way gets the responses of what does not exist, misspelt names included.
func TestEachWayToHideTellsNothing(t *testing.T) {
	with := func(opts ...mcpkit.Option) *mcpkit.Server {
		srv := newServer(t, nil, append(opts, mcpkit.Authenticated(), mcpkit.Name("vault", "1.0.0"))...)
		require.NoError(t, srv.Add(mcpkit.NewResource("doc://open", "open", func() string { return "" })))
		return srv
	}
	in, none := mcpkit.With(&cave{}), catalog.Selection{Toolsets: []string{}}
	mounted, around := with(), with()
	mounted.MustMount("m", newServer(t, &cave{}, mcpkit.Authenticated(), mcpkit.Visible(nil)))
	around.MustMount("m", newServer(t, &cave{}, mcpkit.Authenticated()), mcpkit.Visible(nil))
	for way, srv := range map[string]*mcpkit.Server{
		"nothing": with(in), "Visible": with(mcpkit.With(&cave{}, mcpkit.Visible(nil))), "Select": with(in, catalog.Select(none)),
		"Narrow": with(in, catalog.Narrow(func(*mcpkit.Call) catalog.Selection { return none })), "Dynamic": with(in, catalog.Dynamic(time.Hour)),
		"mounted": mounted, "mount": around,
	} {
		for version, p := range versionPeers(t, srv) {
			answer := func(r reach, gate string) string {
				if strings.HasPrefix(way, "mount") {
					r.params = strings.Replace(r.params, `"name":"`, `"name":"m_`, 1)
				}
				return strings.ReplaceAll(p.raw(as(p), p.request(r.method, fmt.Sprintf(r.params, gate))), gate, "zzzz")
			}
			for _, r := range []reach{
				{"", "tools/call", `{"name":"tool-%s"}`}, {"", "tools/call", `{"name":"alias-%s"}`}, {"", "tools/call", `{"name":"twice-%s"}`},
				{"none", "tools/call", `{"name":"tool-%sx"}`}, {"none", "tools/call", `{"name":"alias-%sx"}`}, {"none", "prompts/get", `{"name":"prompt-%sx"}`},
				{"", "prompts/get", `{"name":"prompt-%s","arguments":{"x":"y"}}`}, {"", "prompts/get", `{"name":"said-%s","arguments":{"x":"y"}}`},
				{"", "completion/complete", `{"ref":{"type":"ref/prompt","name":"said-%s"},"argument":{"name":"x","value":"s"}}`},
				{"", "completion/complete", `{"ref":{"type":"ref/resource","uri":"%s://at/{x}"},"argument":{"name":"x","value":"s"}}`},
				{"", "resources/read", `{"uri":"doc://%s"}`}, {"", "resources/read", `{"uri":"%s://at/x"}`}, {"", "resources/subscribe", `{"uri":"doc://%s"}`},
			} {
				switch none, cave := answer(r, "zzzz"), answer(r, "cave"); {
				case way != "nothing":
					require.Equal(t, none, cave, "%s: %s %s in %s", way, r.method, r.params, version)
				case r.kind == "" && offered(r.method, version):
					require.NotEqual(t, none, cave, "%s %s in %s", r.method, r.params, version)
				}
			}
			if way == "nothing" {
				continue
			}
			for _, method := range []string{"tools/list", "prompts/list", "resources/list", "resources/templates/list"} {
				require.NotContains(t, p.result(method, "{}"), "cave", way)
			}
			if version.Modern() {
				none, cave := listens(t, srv, p, callers[1], []string{"doc://zzzz"}, false), listens(t, srv, p, callers[1], []string{"doc://cave"}, false)
				require.Equal(t, none, strings.Split(strings.ReplaceAll(strings.Join(cave, "\n"), "cave", "zzzz"), "\n"))
			}
		}
	}
}

// TestSubscriptionsEndWithTheRightToRead takes scopes away from subscribers, and adds scopes to the
// resources.
func TestSubscriptionsEndWithTheRightToRead(t *testing.T) {
	srv, _ := vaultServer(t)
	p := legacy(t, srv, protocol.V20251125)
	for _, uri := range []string{"doc://alpha", "doc://open"} {
		require.Nil(t, p.rpc(as(p, "a"), p.request("resources/subscribe", `{"uri":"`+uri+`"}`)).Error)
	}
	hears := func(uri string) bool {
		srv.ResourceUpdated(uri)
		return len(p.take()) > 0
	}
	require.True(t, hears("doc://alpha"))
	require.Nil(t, p.rpc(as(p, "b"), p.request("ping", "{}")).Error, "another token of the same principal")
	require.False(t, hears("doc://alpha"))
	require.True(t, hears("doc://open"))
	require.Nil(t, p.rpc(as(p, "a"), p.request("ping", "{}")).Error)
	require.True(t, hears("doc://alpha"))

	require.True(t, srv.RemoveResources("doc://open"))
	require.NoError(t, srv.Add(mcpkit.NewResource("doc://open", "closed", func() string { return "" }).Scopes("c")))
	p.take()
	require.False(t, hears("doc://open"))
}

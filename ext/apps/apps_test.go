package apps_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/ext/apps"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/mcptest"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/proxy"
)

func TestMain(m *testing.M) { testkit.VerifyTestMain(m) }

const boardHTML = `<!doctype html><title>Board</title><p>hello</p>`

// board returns the page with the URI.
func board(uri string) apps.Page { return apps.Page{URI: uri, HTML: boardHTML} }

type notes struct {
	_ struct {
		Board mcpkit.Tool `app:"ui://notes/board"`
		Move  mcpkit.Tool `app:"visibility=app"`
		Plain mcpkit.Tool
	}
}

func (notes) Board(ctx context.Context) string {
	if apps.Shown(ctx) {
		return "shown"
	}
	return "as text"
}
func (notes) Move() string  { return "moved" }
func (notes) Plain() string { return "" }

// as is a server whose callers have scopes.
func as(t *testing.T, srv *mcpkit.Server, scopes ...string) *mcptest.Server {
	return mcptest.New(t, srv).As(&oauth.Principal{Subject: "ann", Scopes: scopes})
}

func dial(t *testing.T, target any, opts ...client.DialOption) *client.Client {
	t.Helper()
	c, err := client.Dial(t.Context(), target, append(opts, client.Timeout(0))...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// ask sends a request and returns its result, or its error, as text.
func ask(t *testing.T, c *client.Client, method, params string) string {
	t.Helper()
	var result json.RawMessage
	if err := c.Request(t.Context(), method, json.RawMessage(params), &result); err != nil {
		return err.Error()
	}
	return string(result)
}

func TestToolsNameTheirPages(t *testing.T) {
	srv, err := mcpkit.New(&notes{}, apps.Pages(apps.Page{URI: "ui://notes/board", HTML: boardHTML, Title: "Board", Description: "All cards"}))
	require.NoError(t, err)
	for _, v := range protocol.Supported {
		c := dial(t, srv, client.Version(v))
		list := ask(t, c, "tools/list", `{}`)
		require.Contains(t, list, `"_meta":{"io.github.mcpkit/name":"board","ui":{"resourceUri":"ui://notes/board"},"ui/resourceUri":"ui://notes/board"}`)
		require.Contains(t, list, `"_meta":{"ui":{"visibility":["app"]}}`)
		require.Contains(t, ask(t, c, "resources/list", `{}`), `{"uri":"ui://notes/board","name":"notes/board","title":"Board","description":"All cards","mimeType":"text/html;profile=mcp-app","size":`)
	}
}

func TestPagesAreReadWithWhatTheyMayLoad(t *testing.T) {
	srv, err := mcpkit.New(&notes{}, apps.Pages(apps.Page{
		URI: "ui://notes/board", HTML: boardHTML, Border: new(false), Permissions: []string{"camera", "clipboardWrite"}, Domain: "x.claudemcpcontent.com",
		CSP: apps.CSP{
			Connect: []string{"https://api.example.com"}, Resources: []string{"https://*.example.com"},
			Frames: []string{"https://video.example.com"}, BaseURIs: []string{"https://example.com"},
		},
	}))
	require.NoError(t, err)
	c := dial(t, srv)
	const meta = `"_meta":{"ui":{"csp":{"connectDomains":["https://api.example.com"],"resourceDomains":["https://*.example.com"],"frameDomains":["https://video.example.com"],"baseUriDomains":["https://example.com"]},"permissions":{"camera":{},"clipboardWrite":{}},"domain":"x.claudemcpcontent.com","prefersBorder":false}}`
	require.Contains(t, ask(t, c, "resources/list", `{}`), meta)
	read := ask(t, c, "resources/read", `{"uri":"ui://notes/board"}`)
	require.Contains(t, read, `"uri":"ui://notes/board","mimeType":"text/html;profile=mcp-app","text":"`)
	require.Contains(t, read, meta)
}

func TestCallsKnowWhetherTheClientShowsPages(t *testing.T) {
	srv, err := mcpkit.New(&notes{}, apps.Pages(board("ui://notes/board")))
	require.NoError(t, err)
	for _, v := range protocol.Supported {
		for _, test := range []struct {
			name     string
			settings any
			want     string
		}{
			{"shows pages", map[string]any{"mimeTypes": []string{"text/plain", apps.MIMEType}}, "shown"},
			{"other types", map[string]any{"mimeTypes": []string{"text/plain"}}, "as text"},
			{"no types", map[string]any{}, "as text"},
			{"wrong types", map[string]any{"mimeTypes": 3}, "as text"},
		} {
			c := dial(t, srv, client.Version(v), client.Extension(apps.ID, test.settings))
			require.Contains(t, ask(t, c, "tools/call", `{"name":"board"}`), `"text":"`+test.want+`"`, "%s %s", v, test.name)
		}
		require.Contains(t, ask(t, dial(t, srv, client.Version(v)), "tools/call", `{"name":"board"}`), `"text":"as text"`)
	}
	require.False(t, apps.Shown(t.Context()))
}

// scoped has two tools with pages, for other callers.
type scoped struct {
	_ struct {
		Board  mcpkit.Tool `app:"ui://board" scopes:"notes:read"`
		Admin  mcpkit.Tool `app:"ui://admin" scopes:"notes:read admin"`
		Secret mcpkit.Tool `app:"ui://secret" hidden:"true"`
	}
}

func (scoped) Board() string  { return "" }
func (scoped) Admin() string  { return "" }
func (scoped) Secret() string { return "" }

// Callers who may not know of a tool may not know of its page either.
func TestPagesHaveTheScopesOfTheirTools(t *testing.T) {
	pages := apps.Pages(board("ui://board"), board("ui://admin"), board("ui://secret"))
	srv, err := mcpkit.New(&scoped{}, mcpkit.Authenticated(), pages)
	require.NoError(t, err)
	for _, test := range []struct {
		scopes   []string
		readable []string
	}{
		{nil, []string{"secret"}},
		{[]string{}, []string{"secret"}},
		{[]string{"notes:read"}, []string{"board", "secret"}},
		{[]string{"admin"}, []string{"secret"}},
		{[]string{"notes:read", "admin"}, []string{"board", "admin", "secret"}},
	} {
		caller := mcptest.New(t, srv)
		if test.scopes != nil {
			caller = as(t, srv, test.scopes...)
		}
		c, legacy := caller.Client(), caller.Version(protocol.V20251125).Client()
		list := ask(t, c, "resources/list", `{}`)
		require.NotContains(t, list, "ui://secret", "its tool is hidden")
		for _, name := range []string{"board", "admin", "secret"} {
			readable := strings.Contains(strings.Join(test.readable, " "), name)
			read := ask(t, c, "resources/read", `{"uri":"ui://`+name+`"}`)
			subscribed := ask(t, legacy, "resources/subscribe", `{"uri":"ui://`+name+`"}`)
			if readable {
				require.Contains(t, read, "hello", "%v reads %s", test.scopes, name)
				require.Equal(t, "{}", subscribed)
				continue
			}
			require.Equal(t, strings.ReplaceAll(ask(t, legacy, "resources/subscribe", `{"uri":"ui://nothing"}`), "nothing", name), subscribed)
			unknown := ask(t, c, "resources/read", `{"uri":"ui://nothing"}`)
			require.Equal(t, strings.ReplaceAll(unknown, "nothing", name), read, "%v reads %s", test.scopes, name)
			require.NotContains(t, list, "ui://"+name)
			require.NotContains(t, ask(t, c, "tools/list", `{}`), "ui://"+name)
		}
	}
}

// mixed has a page whose tools need different scopes.
type mixed struct {
	_ struct {
		Board mcpkit.Tool `app:"ui://board" scopes:"notes:read"`
		Admin mcpkit.Tool `app:"ui://board" scopes:"notes:read admin"`
	}
}

func (mixed) Board() string { return "" }
func (mixed) Admin() string { return "" }

func TestAPageOfToolsWithDifferentScopesNamesItsOwn(t *testing.T) {
	page := board("ui://board")
	_, err := mcpkit.New(&mixed{}, mcpkit.Authenticated(), apps.Pages(page))
	require.ErrorContains(t, err, `page "ui://board": mixed.Admin (apps_test.go:`)
	require.ErrorContains(t, err, `needs the scopes ["notes:read" "admin"], and mixed.Board (apps_test.go:`)
	require.ErrorContains(t, err, `["notes:read"]; set Scopes of the page to those that callers need for it`)
	page.Scopes = []string{"notes:read"}
	srv, err := mcpkit.New(&mixed{}, mcpkit.Authenticated(), apps.Pages(page))
	require.NoError(t, err)
	require.Contains(t, ask(t, as(t, srv, "notes:read").Client(), "resources/read", `{"uri":"ui://board"}`), "hello")
	require.NotContains(t, ask(t, as(t, srv, "admin").Client(), "resources/read", `{"uri":"ui://board"}`), "hello")
}

func TestToolsThatAreRegisteredLaterUsePagesThatHaveATool(t *testing.T) {
	opt := apps.Pages(board("ui://board"), board("ui://admin"), board("ui://secret"))
	for range 2 { // one option for several servers
		srv, err := mcpkit.New(&scoped{}, mcpkit.Authenticated(), opt)
		require.NoError(t, err)
		tool := func() *mcpkit.Builder { return mcpkit.NewTool("later", func() string { return "" }) }
		require.ErrorContains(t, srv.Add(tool().Tag("app", "ui://bord")), `tag app: there is no page "ui://bord"; did you mean "ui://board"?; known are ui://admin, ui://board, ui://secret`)
		require.NoError(t, srv.Add(tool().Tag("app", "ui://board").Scopes("notes:read")))
		require.Contains(t, ask(t, as(t, srv, "notes:read").Client(), "tools/list", `{}`), `{"name":"later",`)
	}
}

func TestPagesOfMountedServers(t *testing.T) {
	child, err := mcpkit.New(&notes{}, apps.Pages(board("ui://notes/board")))
	require.NoError(t, err)
	parent := mcpkit.MustNew(nil)
	require.NoError(t, parent.Mount("team", child))
	c := dial(t, parent)
	require.Contains(t, ask(t, c, "server/discover", `{}`), `"io.modelcontextprotocol/ui":{}`)
	list := ask(t, c, "tools/list", `{}`)
	require.Contains(t, list, `{"name":"team_board",`)
	require.Contains(t, list, `"_meta":{"io.github.mcpkit/name":"board","ui":{"resourceUri":"ui://notes/board"}`, "mcp-app.js finds the prefix with it")
	require.Contains(t, ask(t, c, "resources/read", `{"uri":"ui://notes/board"}`), "hello")
}

func TestPagesOfAServerAndOfOneThatIsMountedInIt(t *testing.T) {
	child, err := mcpkit.New(&notes{}, apps.Pages(board("ui://notes/board")))
	require.NoError(t, err)
	parent, err := mcpkit.New(&tagged{}, apps.Pages(apps.Page{URI: "ui://board", HTML: "<p>parent"}))
	require.NoError(t, err)
	require.NoError(t, parent.Mount("team", child))
	c := dial(t, parent)
	require.Contains(t, ask(t, c, "resources/read", `{"uri":"ui://board"}`), "parent")
	require.Contains(t, ask(t, c, "resources/read", `{"uri":"ui://notes/board"}`), "hello")
	require.Contains(t, ask(t, c, "tools/list", `{}`), `"name":"team_board"`)
	err = parent.Add(mcpkit.NewTool("x", func() string { return "" }).Tag("app", "ui://notes/board"))
	require.ErrorContains(t, err, `tag app: there is no page "ui://notes/board"`, "the pages of a mounted server are for its own tools")
}

// A proxy shows the pages of the remote server, with its own scopes.
func TestPagesThroughAProxy(t *testing.T) {
	remote, err := mcpkit.New(&notes{}, apps.Pages(board("ui://notes/board")))
	require.NoError(t, err)
	front := mcpkit.MustNew(nil, mcpkit.Authenticated())
	require.NoError(t, front.Mount("remote", proxy.MustNew(remote, proxy.Scopes("notes:read"))))
	require.NoError(t, front.Start(t.Context()))
	defer func() { require.NoError(t, front.Close()) }()
	c := as(t, front, "notes:read").Client()
	require.Contains(t, ask(t, c, "tools/list", `{}`), `"_meta":{"io.github.mcpkit/name":"board","ui":{"resourceUri":"ui://notes/board"}`)
	require.Contains(t, ask(t, c, "resources/read", `{"uri":"ui://notes/board"}`), "hello")
	require.NotContains(t, ask(t, dial(t, front), "resources/read", `{"uri":"ui://notes/board"}`), "hello")
}

func TestServersWithoutTheExtensionRefuseTheTag(t *testing.T) {
	_, err := mcpkit.New(&notes{})
	require.ErrorContains(t, err, `unknown tag "app"; if it is of an extension, such as tasks.New or apps.Pages, add that to the options of New; known are `)
}

func TestToolsWithAHandWrittenDefinition(t *testing.T) {
	srv, err := mcpkit.New(&notes{}, apps.Pages(board("ui://notes/board")))
	require.NoError(t, err)
	handler := func(context.Context, *mcpkit.Call) (any, error) { return "", nil }
	add := func(name, ui string) error {
		return srv.Add(mcpkit.NewTool(name, handler).Meta("ui", json.RawMessage(ui)))
	}
	require.NoError(t, add("good", `{"resourceUri":"ui://notes/board"}`))
	require.Contains(t, ask(t, dial(t, srv), "tools/list", `{}`), `"_meta":{"io.github.mcpkit/name":"good","ui":{"resourceUri":"ui://notes/board"},"ui/resourceUri":"ui://notes/board"}`)
	require.ErrorContains(t, add("a", `{"resourceUri":"ui://notes/bord"}`), `there is no page "ui://notes/bord"; did you mean "ui://notes/board"?`)
	require.ErrorContains(t, add("d", `[]`), `_meta.ui: `)
}

func TestMistakesInTags(t *testing.T) {
	pages := apps.Pages(board("ui://board"))
	for tag, want := range map[string]string{
		``:                                     `it names no page; write for example app:"ui://notes/board"`,
		`board`:                                `unknown word "board"; known are the URI of a page and visibility; write for example app:"ui://notes/board"`,
		`ui://board ui://board`:                `it names two pages, "ui://board" and "ui://board"`,
		`ui://board,visibility=user`:           `unknown visibility "user"; known are app (the tool is for pages) and model (it is for models); without it, it is for both`,
		`ui://board,csp=https://example.com`:   `unknown word "csp=https://example.com"; known are the URI of a page and visibility`,
		`ui://bord`:                            `there is no page "ui://bord"; did you mean "ui://board"?; known are ui://board`,
		`ui://something/else,visibility=model`: `there is no page "ui://something/else"; known are ui://board`,
	} {
		srv, err := mcpkit.New(nil, pages)
		if err == nil {
			err = srv.Add(mcpkit.NewTool("board", func() string { return "" }).Tag("app", tag))
		}
		require.ErrorContains(t, err, `no tool has it`)
		_, err = mcpkit.New(&tagged{}, pages, mcpkit.With(&tagged{}, mcpkit.Prefix("x")))
		require.NoError(t, err)
		srv, err = mcpkit.New(&tagged{}, pages)
		require.NoError(t, err)
		err = srv.Add(mcpkit.NewTool("other", func() string { return "" }).Tag("app", tag))
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "apps_test.go:", "it names the place")
	}
}

// tagged has the page ui://board.
type tagged struct {
	_ struct {
		Board mcpkit.Tool `app:"ui://board"`
	}
}

func (tagged) Board() string { return "" }

func TestMistakesInPages(t *testing.T) {
	for want, page := range map[string]apps.Page{
		`page "ui://board": it is empty or not in UTF-8`:                                                {URI: "ui://board", HTML: " \n"},
		`page "board": a URI is "ui://" and names of letters, digits and . _ ~ -, separated by slashes`: board("board"),
		`page "ui://{name}": a URI is`:                                                                  board("ui://{name}"),
		`unknown permission "camara"; did you mean "camera"?; known are camera, microphone, geolocation, clipboardWrite`: {
			URI: "ui://board", HTML: boardHTML, Permissions: []string{"camara"}},
	} {
		_, err := mcpkit.New(&tagged{}, apps.Pages(page))
		require.ErrorContains(t, err, `mcpkit: extension "io.modelcontextprotocol/ui": `)
		require.ErrorContains(t, err, want)
	}
	_, err := mcpkit.New(&tagged{}, apps.Pages(board("ui://board"), board("ui://board")))
	require.ErrorContains(t, err, `page "ui://board": another page has the same URI`)
	_, err = mcpkit.New(&tagged{}, apps.Pages(board("ui://board")), apps.Pages(board("ui://board")))
	require.ErrorContains(t, err, `the tag "app" means something already`)
}

// A value that is not an origin could add a directive to the page's content security policy.
func TestThePolicyOfAPageHasOriginsOnly(t *testing.T) {
	for _, text := range []string{
		"*", "https://*", "https://a.*.example.com", "example.com", "https://example.com/", "https://example.com/api", "https://example.com?", "https://example.com#",
		"https://ann@example.com", "https://example.com; script-src *", "https://example.com script-src", "https://example.com'", "data:", "javascript:alert(1)", "",
	} {
		for _, csp := range []apps.CSP{{Connect: []string{text}}, {Resources: []string{text}}, {Frames: []string{text}}, {BaseURIs: []string{text}}} {
			_, err := mcpkit.New(&tagged{}, apps.Pages(apps.Page{URI: "ui://board", HTML: boardHTML, CSP: csp}))
			require.ErrorContains(t, err, `is not an origin; write for example "https://api.example.com" or "https://*.example.com"`, text)
		}
	}
	for _, text := range []string{"https://example.com", "https://*.example.com", "wss://example.com:8443", "http://127.0.0.1:3000", "http://[::1]:3000"} {
		_, err := mcpkit.New(&tagged{}, apps.Pages(apps.Page{URI: "ui://board", HTML: boardHTML, CSP: apps.CSP{Connect: []string{text}}}))
		require.NoError(t, err, text)
	}
}

func TestPagesWithoutAToolAreFaults(t *testing.T) {
	_, err := mcpkit.New(&tagged{}, apps.Pages(board("ui://board"), board("ui://left"), board("ui://over")))
	require.EqualError(t, err, `mcpkit: extension "io.modelcontextprotocol/ui": page "ui://left": no tool has it; write app:"ui://left" in the tags of one
page "ui://over": no tool has it; write app:"ui://over" in the tags of one`)
}

// The script comes first in the head, so that the scripts of the page can use it.
func TestPagesGetTheScriptOfThePackage(t *testing.T) {
	script, err := os.ReadFile("mcp-app.js")
	require.NoError(t, err)
	for _, test := range []struct{ before, after string }{
		{"<!doctype html>\n<html lang=en><HEAD class=\"a\">", "<script>mcpApp.connect()</script></head><header>x</header></html>"},
		{"<!DOCTYPE html><html lang=en>", "<title>x</title>"},
		{"<!doctype html>", "<p>x</p>"},
		{"", "<p>x</p><header>y</header>"},
	} {
		srv, err := mcpkit.New(&tagged{}, apps.Pages(apps.Page{URI: "ui://board", HTML: test.before + test.after}))
		require.NoError(t, err)
		contents, err := dial(t, srv).ReadResource(t.Context(), "ui://board")
		require.NoError(t, err)
		require.Equal(t, test.before+"<script>"+string(script)+"</script>"+test.after, *contents.Contents[0].Text)
	}
}

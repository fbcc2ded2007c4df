package browser_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/ext/apps"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/mcptest/browser"
)

func TestMain(m *testing.M) {
	testkit.VerifyTestMain(m, func() { _ = os.RemoveAll(builtIn) })
}

func TestBrew(t *testing.T) { testBrew(t) }

// counter is the service of these tests. Its page has a log of what the host sent.
type counter struct {
	_ struct {
		Show   mcpkit.Tool     `app:"ui://counter" params:"from"`
		Add    mcpkit.Tool     `app:"visibility=app" params:"n"`
		Model  mcpkit.Tool     `app:"visibility=model"`
		Fail   mcpkit.Tool     `app:"visibility=app"`
		Limits mcpkit.Resource `uri:"counter://limits"`
	}
}

type count struct {
	Count int `json:"count"`
}

func (counter) Show(from int) count  { return count{from} }
func (counter) Add(n int) count      { return count{n + 1} }
func (counter) Model() string        { return "for models" }
func (counter) Fail() (count, error) { return count{}, mcpkit.Errorf("the counter is full") }
func (counter) Limits() string       { return "at most 10" }

// page returns a page with the body and a script, which has the variables app and log.
func page(body, script string) apps.Page {
	return apps.Page{URI: "ui://counter", HTML: `<!doctype html><title>Counter</title><style>body { margin: 0 }</style>` + body + `<ol id="log"></ol>
<script>
	const log = (...words) => document.getElementById("log").appendChild(document.createElement("li")).textContent = words.map((w) => typeof w === "string" ? w : JSON.stringify(w)).join(" ");
	const app = mcpApp.connect({
		name: "counter", version: "2.0.0", displayModes: ["inline"],
		onInput: (args) => log("input", args),
		onPartialInput: (args) => log("partial", args),
		onResult: (result) => log("result", mcpApp.value(result)),
		onCancelled: (reason) => log("cancelled", reason),
		onContext: (context) => log("theme", context.theme ?? "none"),
		onTeardown: () => log("teardown"),
	});
	const logged = (promise) => promise.then((v) => log("done", v ?? "nothing"), (err) => log("failed", err.message));
	` + script + `
</script>`}
}

func serve(t *testing.T, page apps.Page) *mcpkit.Server {
	t.Helper()
	browser.Need(t)
	srv, err := mcpkit.New(&counter{}, apps.Pages(page))
	require.NoError(t, err)
	return srv
}

// has waits for a line in the log of the page.
func has(app *browser.App, line string) {
	app.WaitFor(fmt.Sprintf(`[...document.querySelectorAll("#log li")].some((l) => l.textContent === %q)`, line))
}

func TestAPageGetsTheInputAndTheResultOfItsTool(t *testing.T) {
	app := browser.Show(t, serve(t, page("", "")), "show", map[string]int{"from": 3})
	has(app, `input {"from":3}`)
	has(app, `result {"count":3}`)
	require.JSONEq(t, `{"protocolVersion":"2026-01-26","appInfo":{"name":"counter","version":"2.0.0"},"appCapabilities":{"availableDisplayModes":["inline"]}}`,
		app.WaitReceived("ui/initialize", 1))
	app.Notify("ui/notifications/tool-input-partial", map[string]any{"arguments": map[string]int{"from": 7}})
	app.Notify("ui/notifications/tool-cancelled", map[string]string{"reason": "user action"})
	has(app, `partial {"from":7}`)
	has(app, `cancelled user action`)
}

func TestAPageCallsToolsAndReadsResources(t *testing.T) {
	app := browser.Show(t, serve(t, page(`<button id="add">+</button>`, `
		document.getElementById("add").addEventListener("click", () => logged(app.callTool("add", { n: 4 }).then(mcpApp.value)));
		logged(app.callTool("fail"));
		logged(app.callTool("unknown"));
		logged(app.callTool("model"));
		logged(app.readResource("counter://limits").then((contents) => contents[0].text));
	`)), "show", map[string]int{"from": 3})
	app.Click("#add")
	has(app, `done {"count":5}`)
	has(app, `failed the counter is full`)
	has(app, `failed the tool model is not for pages`)
	has(app, `failed unknown tool "unknown"`)
	has(app, `done at most 10`)
}

func TestAPageTalksToTheHost(t *testing.T) {
	app := browser.Show(t, serve(t, page(`<a id="away" href="https://example.com/a?b=1"><b>x</b></a> <a id="here" href="#log">y</a>`, `
		logged(app.sendMessage("hello"));
		logged(app.updateContext({ shown: 3 }));
		logged(app.updateContext("three cards"));
		logged(app.downloadFile({ type: "resource_link", uri: "counter://limits", name: "limits" }));
		logged(app.requestDisplayMode("fullscreen"));
		app.ready.then(() => { app.log("info", { a: 1 }); app.close(); });
	`)), "show", map[string]int{"from": 3})
	require.JSONEq(t, `{"role":"user","content":[{"type":"text","text":"hello"}]}`, app.WaitReceived("ui/message", 1))
	app.WaitReceived("ui/update-model-context", 2)
	require.Equal(t, []string{`{"structuredContent":{"shown":3}}`, `{"content":[{"type":"text","text":"three cards"}]}`}, app.Received("ui/update-model-context"))
	app.WaitReceived("ui/download-file", 1)
	require.JSONEq(t, `{"level":"info","logger":"counter","data":{"a":1}}`, app.WaitReceived("notifications/message", 1))
	app.WaitReceived("ui/notifications/request-teardown", 1)
	has(app, `done inline`)
	app.Click("#here")
	app.Click("#away b")
	require.JSONEq(t, `{"url":"https://example.com/a?b=1"}`, app.WaitReceived("ui/open-link", 1))
	require.Len(t, app.Received("ui/open-link"), 1, "the other link stays in the page")
}

func TestAPageHearsThatTheHostRefuses(t *testing.T) {
	app := browser.Show(t, serve(t, page("", `logged(app.openLink("https://example.com")); logged(app.sendMessage("x"));`)), "show", map[string]int{"from": 3}, browser.Refuse("ui/open-link"))
	has(app, `failed the host refused ui/open-link`)
	has(app, `done nothing`)
}

func TestAPageHasTheThemeOfTheHost(t *testing.T) {
	app := browser.Show(t, serve(t, page(`<p style="color: var(--color-text-primary)">x</p>`, "")), "show", map[string]int{"from": 3},
		browser.Context("theme", "light"), browser.Context("styles", map[string]any{"variables": map[string]string{"--color-text-primary": "rgb(1, 2, 3)"}}))
	has(app, "theme light")
	app.WaitFor(`getComputedStyle(document.querySelector("p")).color === "rgb(1, 2, 3)"`)
	app.Notify("ui/notifications/host-context-changed", map[string]any{"theme": "dark", "styles": map[string]any{"variables": map[string]string{"--color-text-primary": "rgb(4, 5, 6)"}}})
	has(app, "theme dark")
	app.WaitFor(`document.documentElement.dataset.theme === "dark" && getComputedStyle(document.documentElement).colorScheme === "dark"`)
	app.WaitFor(`getComputedStyle(document.querySelector("p")).color === "rgb(4, 5, 6)"`)
}

func TestAPageTellsItsSize(t *testing.T) {
	app := browser.Show(t, serve(t, page(`<button id="grow" onclick="this.style.height = '900px'">x</button><style>button { display: block; height: 100px } ol { display: none }</style>`, "")), "show", map[string]int{"from": 3})
	require.JSONEq(t, `{"width":800,"height":100}`, app.WaitReceived("ui/notifications/size-changed", 1))
	app.Click("#grow")
	require.JSONEq(t, `{"width":800,"height":900}`, app.WaitReceived("ui/notifications/size-changed", 2))
}

func TestAPageAnswersTheHost(t *testing.T) {
	app := browser.Show(t, serve(t, page("", "")), "show", map[string]int{"from": 3})
	require.Equal(t, `{}`, app.Request("ping", struct{}{}))
	require.Equal(t, `{}`, app.Request("ui/resource-teardown", struct{}{}))
	has(app, "teardown")
	require.JSONEq(t, `{"code":-32601,"message":"the page has no method tools/list"}`, app.Request("tools/list", struct{}{}))
}

func TestTheContentSecurityPolicyOfAPage(t *testing.T) {
	const script = `
		const load = (url) => { new Image().src = url; };
		load("https://allowed.example.com/x.png");
		load("https://other.example.com/x.png");
		fetch("https://api.example.com/x").catch(() => {});
		fetch("https://other.example.com/x").catch(() => {});
		document.body.append(Object.assign(document.createElement("iframe"), { src: "https://frame.example.com/" }));
	`
	allowed := page("", script)
	allowed.CSP = apps.CSP{Resources: []string{"https://allowed.example.com"}, Connect: []string{"https://api.example.com"}}
	app := browser.Show(t, serve(t, allowed), "show", map[string]int{"from": 3})
	app.WaitBlocked("img-src https://other.example.com/x.png")
	app.WaitBlocked("connect-src https://other.example.com/x")
	app.WaitBlocked("frame-src https://frame.example.com")
	require.Len(t, app.Blocked(), 3, "what the page may load is not blocked: %s", app.Blocked())

	strict := browser.Show(t, serve(t, page("", `fetch("https://api.example.com/x").catch(() => {})`)), "show", map[string]int{"from": 3})
	strict.WaitBlocked("connect-src https://api.example.com/x")
}

// A page of a server that is mounted with a prefix calls its tools by their own names.
func TestAPageOfAMountedServer(t *testing.T) {
	parent := mcpkit.MustNew(nil)
	outer := mcpkit.MustNew(nil)
	require.NoError(t, parent.Mount("team", serve(t, page("", `logged(app.callTool("add", { n: 4 }).then(mcpApp.value));`))))
	require.NoError(t, outer.Mount("all", parent))
	app := browser.Show(t, outer, "all_team_show", map[string]int{"from": 3})
	has(app, `done {"count":5}`)
}

// A message that does not come from the host is ignored.
func TestAPageIgnoresOtherWindows(t *testing.T) {
	app := browser.Show(t, serve(t, page("", `
		window.postMessage({ jsonrpc: "2.0", method: "ui/notifications/tool-input", params: { arguments: { evil: true } } }, "*");
		window.postMessage("end", "*");
		addEventListener("message", (event) => event.data === "end" && log("end"));
	`)), "show", map[string]int{"from": 3})
	has(app, "end")
	require.NotContains(t, app.Text("#log"), "evil")
}

// failing is a test that notes what fails it.
type failing struct {
	*testing.T
	faults []string
}

type stopped struct{}

func (f *failing) Fatal(args ...any) {
	f.faults = append(f.faults, fmt.Sprint(args...))
	panic(stopped{})
}

func TestShowRefusesToolsWithoutAPage(t *testing.T) {
	srv := serve(t, page("", ""))
	for tool, want := range map[string]string{"add": `the tool "add" has no page`, "none": `the server has no tool "none"`} {
		f := &failing{T: t}
		require.PanicsWithValue(t, stopped{}, func() { browser.Show(f, srv, tool, nil) })
		require.Equal(t, []string{want}, f.faults)
	}
}

// Package browser shows the pages of MCP Apps in Chromium, in a host for tests.
//
//	app := browser.Show(t, srv, "board", nil)
//	app.WaitFor(`document.querySelectorAll(".card").length === 3`)
//	app.Drag("#card-1", "#done")
//	app.WaitReceived("tools/call", 1)
//
// The host speaks its side of version 2026-01-26: it calls the tool, reads the tool's page, and shows
// it in a sandboxed frame of another origin, with the content security policy that the page asked
// for. It forwards calls of tools and reads of resources to the server, and records what the page
// sends.
//
// The package is a module of its own, since it needs a driver for Chromium.
package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/ext/apps"
)

// patience is how long an App waits for the browser, which may be slow on a busy machine.
const patience = 2 * time.Minute

// Width and Height are the size of the browser's window in pixels. The page is as wide.
const (
	Width  = 800
	Height = 600
)

// names are the programs that may be Chromium.
var names = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}

// Path returns the path of Chromium, or "" if it is not on PATH.
func Path() string {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// Need skips the test if Chromium is not on PATH. With CI=true in the environment the test fails.
func Need(t testing.TB) {
	t.Helper()
	if Path() != "" {
		return
	}
	reason := fmt.Sprintf("Chromium is not installed: none of %s is on PATH; on Debian, run apt-get install chromium", strings.Join(names, ", "))
	if os.Getenv("CI") == "true" {
		t.Fatal(reason)
	}
	t.Skip(reason)
}

// Declare is the option with which the client of a host says that it shows pages.
func Declare() client.DialOption {
	return client.Extension(apps.ID, map[string][]string{"mimeTypes": {apps.MIMEType}})
}

// An Option configures [Show].
type Option func(*host)

// Context adds to the context that the host gives the page: "theme" or "locale", for example.
func Context(name string, value any) Option { return func(h *host) { h.context[name] = value } }

// Refuse makes the host refuse requests of the page, such as "ui/open-link".
func Refuse(methods ...string) Option {
	return func(h *host) { h.refused = append(h.refused, methods...) }
}

// An App is a page that is shown until the test ends. Its methods fail the test if the browser or the
// page fails, or if what they wait for does not happen within two minutes. They are for the goroutine
// of the test.
type App struct {
	t     testing.TB
	host  *host
	tab   context.Context
	world runtime.ExecutionContextID // in which scripts of the test run
}

// Show calls a tool of a server and shows its page. target is what [client.Dial] takes: a server, a
// URL or a command. The test is skipped if Chromium is not installed, see [Need].
func Show(t testing.TB, target any, tool string, args any, opts ...Option) *App {
	t.Helper()
	Need(t)
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	if args == nil {
		raw = json.RawMessage("{}")
	}
	ctx, stop := context.WithCancel(context.Background())
	c, err := client.Dial(ctx, target, Declare(), client.Info("mcptest/browser", "1.0.0"))
	if err != nil {
		stop()
		t.Fatal(err)
	}
	h := &host{client: c, args: raw, ctx: ctx, context: map[string]any{}, answers: map[int]message{}, changed: make(chan struct{})}
	a := &App{t: t, host: h}
	if err := h.load(tool); err != nil {
		stop()
		t.Fatal(err)
	}
	h.context["toolInfo"] = map[string]any{"tool": h.tool}
	h.context["containerDimensions"] = map[string]int{"width": Width, "maxHeight": Height}
	for _, o := range opts {
		o(h)
	}
	site, frame := httptest.NewServer(h.hostSite()), httptest.NewServer(h.frameSite())
	h.frame = frame.URL + "/page"
	closeTab := a.open(site.URL)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("messages of the page: %s", a.messages())
		}
		closeTab()
		stop()
		site.CloseClientConnections()
		frame.CloseClientConnections()
		site.Close()
		frame.Close()
		h.calls.Wait()
		_ = c.Close()
	})
	a.WaitReceived("ui/notifications/initialized", 1)
	a.enter()
	return a
}

// open opens the host's page in Chromium.
func (a *App) open(url string) (closeTab func()) {
	opts := slices.Concat(chromedp.DefaultExecAllocatorOptions[:], []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(Path()), chromedp.DisableGPU, chromedp.WindowSize(Width, Height), chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true),
		// The frame runs in the process of the host's page, so that one session reaches both.
		chromedp.Flag("disable-features", "Translate,BlinkGenPropertyTrees,IsolateSandboxedIframes,IsolateOrigins,site-per-process"),
		chromedp.Flag("disable-site-isolation-trials", true),
	})
	allocator, stop := chromedp.NewExecAllocator(context.Background(), opts...)
	tab, closeContext := chromedp.NewContext(allocator)
	a.tab = tab
	closeTab = func() {
		ctx, cancel := context.WithTimeout(tab, patience)
		defer cancel()
		_ = chromedp.Cancel(ctx)
		closeContext()
		stop()
	}
	if err := chromedp.Do(tab, chromedp.Navigate(url)); err != nil {
		closeTab()
		a.t.Fatalf("Chromium does not show the host's page: %v", err)
	}
	return closeTab
}

// enter finds the frame of the page.
func (a *App) enter() {
	a.t.Helper()
	world, err := run(a, func(ctx context.Context, t *chromedp.Target) (runtime.ExecutionContextID, error) {
		tree, err := cdp.Call(ctx, t, page.GetFrameTree, cdp.Empty{})
		if err != nil {
			return 0, err
		}
		if len(tree.FrameTree.ChildFrames) != 1 {
			return 0, fmt.Errorf("the host's page has %d frames", len(tree.FrameTree.ChildFrames))
		}
		world, err := cdp.Call(ctx, t, page.CreateIsolatedWorld, page.CreateIsolatedWorldParams{FrameID: tree.FrameTree.ChildFrames[0].Frame.ID, WorldName: "test"})
		return world.ExecutionContextID, err
	})
	if err != nil {
		a.t.Fatalf("the frame of the page: %v", err)
	}
	a.world = world
}

// run runs an action in the tab, for at most patience.
func run[T any](a *App, action chromedp.Action[T]) (T, error) {
	ctx, cancel := context.WithTimeout(a.tab, patience)
	defer cancel()
	return chromedp.Run(ctx, action)
}

// evaluate evaluates a script in the page.
func evaluate[T any](a *App, script string) (T, error) {
	return run(a, chromedp.Evaluate[T](script, func(p *runtime.EvaluateParams) { p.ContextID = a.world }, chromedp.EvalAwaitPromise))
}

// Eval evaluates a JavaScript expression in the page and stores its value, as JSON, in dst. The script
// sees the document, but not the variables of the page's own scripts.
func (a *App) Eval(script string, dst any) {
	a.t.Helper()
	raw, err := evaluate[[]byte](a, script)
	if err == nil {
		err = json.Unmarshal(raw, dst)
	}
	if err != nil {
		a.t.Fatalf("evaluate %s: %v", script, err)
	}
}

// Text returns the text of the first element that matches the CSS selector.
func (a *App) Text(selector string) (text string) {
	a.t.Helper()
	a.Eval(fmt.Sprintf(`document.querySelector(%q)?.textContent ?? "there is no " + %[1]q`, selector), &text)
	return text
}

// WaitFor waits until a JavaScript expression is true in the page.
func (a *App) WaitFor(condition string) {
	a.t.Helper()
	script := fmt.Sprintf(`new Promise((resolve) => {
		const holds = () => { try { return !!(%s); } catch { return false; } };
		const look = () => holds() ? resolve(true) : setTimeout(look, 10);
		look();
	})`, condition)
	if _, err := evaluate[bool](a, script); err != nil {
		text, _ := evaluate[string](a, "document.documentElement.outerHTML")
		a.t.Fatalf("wait for %s: %v; the page is %s", condition, err, text)
	}
}

// place returns the middle of an element.
func (a *App) place(selector string) (x, y float64) {
	a.t.Helper()
	var at *[2]float64
	a.Eval(fmt.Sprintf(`(() => {
		const e = document.querySelector(%q);
		e?.scrollIntoView({ block: "nearest" });
		const box = e?.getBoundingClientRect();
		return box ? [box.x + box.width / 2, box.y + box.height / 2] : null;
	})()`, selector), &at)
	if at == nil {
		a.t.Fatalf("the page has no element %q", selector)
	}
	return at[0], at[1]
}

// mouse sends an event of the mouse.
func (a *App) mouse(kind input.DispatchMouseEventType, x, y float64) {
	a.t.Helper()
	_, err := run(a, chromedp.MouseEvent(kind, x, y, func(p *input.DispatchMouseEventParams) {
		p.Button, p.ClickCount = input.MouseButtonLeft, 1
		if kind != chromedp.MouseReleased {
			p.Buttons = 1
		}
	}))
	if err != nil {
		a.t.Fatalf("mouse: %v", err)
	}
}

// Click clicks on an element.
func (a *App) Click(selector string) {
	a.t.Helper()
	x, y := a.place(selector)
	a.mouse(chromedp.MousePressed, x, y)
	a.mouse(chromedp.MouseReleased, x, y)
}

// Keys that [App.Type] types.
const (
	Enter      = kb.Enter
	Tab        = kb.Tab
	Escape     = kb.Escape
	ArrowLeft  = kb.ArrowLeft
	ArrowRight = kb.ArrowRight
)

// Type types text, or keys such as [Enter], into the element that has the focus.
func (a *App) Type(keys string) {
	a.t.Helper()
	if _, err := run(a, chromedp.KeyEvent(keys)); err != nil {
		a.t.Fatalf("type %q: %v", keys, err)
	}
}

// Drag drags one element to another with the mouse.
func (a *App) Drag(from, to string) {
	a.t.Helper()
	x, y := a.place(from)
	toX, toY := a.place(to)
	a.mouse(chromedp.MousePressed, x, y)
	const steps = 5
	for i := 1.0; i <= steps; i++ {
		a.mouse(chromedp.MouseMoved, x+(toX-x)*i/steps, y+(toY-y)*i/steps)
	}
	a.mouse(chromedp.MouseReleased, toX, toY)
}

// Received returns the params of the requests and notifications that the page has sent with the
// method, in order.
func (a *App) Received(method string) []string {
	a.host.mu.Lock()
	defer a.host.mu.Unlock()
	return a.host.params(method)
}

func (h *host) params(method string) (all []string) {
	for _, m := range h.received {
		if m.Method == method {
			all = append(all, string(m.Params))
		}
	}
	return all
}

// WaitReceived waits until the page has sent n requests or notifications with the method, and returns
// the params of the last.
func (a *App) WaitReceived(method string, n int) (params string) {
	a.t.Helper()
	a.wait(fmt.Sprintf("%d × %s", n, method), func() bool { return len(a.host.params(method)) >= n })
	return a.Received(method)[n-1]
}

// WaitBlocked waits until the content security policy has blocked something: a directive and a URL,
// such as "img-src https://example.com/x.png".
func (a *App) WaitBlocked(what string) {
	a.t.Helper()
	a.wait("blocked "+what, func() bool { return slices.Contains(a.host.blocked, what) })
}

// Blocked returns what the content security policy has blocked so far.
func (a *App) Blocked() []string {
	a.host.mu.Lock()
	defer a.host.mu.Unlock()
	return slices.Clone(a.host.blocked)
}

func (a *App) wait(what string, done func() bool) {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := a.host.await(ctx, done); err != nil {
		a.t.Fatalf("wait for %s: %v; the page sent %s; the policy blocked %q", what, err, a.messages(), a.Blocked())
	}
}

// messages returns what the page has sent.
func (a *App) messages() string {
	a.host.mu.Lock()
	defer a.host.mu.Unlock()
	text, _ := json.Marshal(a.host.received)
	return string(text)
}

// Notify sends the page a notification of the host: "ui/notifications/host-context-changed", for
// example.
func (a *App) Notify(method string, params any) { a.host.notify(method, params) }

// Request sends the page a request of the host, waits for its response, and returns the result or the
// error as JSON.
func (a *App) Request(method string, params any) string {
	a.t.Helper()
	var id int
	a.host.note(func() {
		a.host.lastID++
		id = a.host.lastID
		a.host.outbox = append(a.host.outbox, map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	})
	a.wait("the response to "+method, func() bool { _, ok := a.host.answers[id]; return ok })
	a.host.mu.Lock()
	defer a.host.mu.Unlock()
	m := a.host.answers[id]
	var text []byte
	if m.Error != nil {
		text, _ = json.Marshal(m.Error)
	} else {
		text, _ = json.Marshal(m.Result)
	}
	return string(text)
}

// Screenshot returns what the browser shows, as PNG.
func (a *App) Screenshot() []byte {
	a.t.Helper()
	png, err := run(a, chromedp.CaptureScreenshot())
	if err != nil {
		a.t.Fatalf("screenshot: %v", err)
	}
	return png
}

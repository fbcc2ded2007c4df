package browser_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/ext/apps"
	"github.com/mcpkit/mcpkit-go/ext/events"
	"github.com/mcpkit/mcpkit-go/ext/skills"
	"github.com/mcpkit/mcpkit-go/ext/tasks"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/mcptest"
	"github.com/mcpkit/mcpkit-go/mcptest/browser"
	"github.com/mcpkit/mcpkit-go/middleware"
	"github.com/mcpkit/mcpkit-go/playground"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// Bakery takes orders for bread and cakes.
type Bakery struct {
	_ mcpkit.Info `name:"bakery" title:"Bakery" version:"1.2.0"`
	_ struct {
		Order    mcpkit.Tool     `title:"Order cakes" hints:"additive" desc:"Orders bread and cakes for one customer."`
		Bake     mcpkit.Tool     `hints:"readonly" params:"minutes" rules:"minutes:min=1,max=100" desc:"Bakes, and reports how far it is."`
		Wedding  mcpkit.Tool     `hints:"additive" task:"optional" params:"name" desc:"Plans a wedding cake with the customer."`
		Photo    mcpkit.Tool     `hints:"readonly" desc:"Returns a picture, a sound and links."`
		Advise   mcpkit.Tool     `hints:"readonly" params:"guest" desc:"Asks a model what a guest would like."`
		Burn     mcpkit.Tool     `hints:"destructive" desc:"Fails."`
		Pantry   mcpkit.Tool     `hints:"readonly" desc:"Asks for the roots of the client."`
		Window   mcpkit.Tool     `hints:"readonly" app:"ui://window" desc:"Shows the shop window."`
		Recipe   mcpkit.Resource `uri:"recipe://{name}" mime:"text/markdown" complete:"name=Names" desc:"A recipe."`
		Opening  mcpkit.Resource `uri:"bakery://opening" mime:"text/plain" desc:"When the bakery is open."`
		Announce mcpkit.Prompt   `params:"cake,tone?" complete:"cake=Names" desc:"Announces a cake."`
	}
}

// A Topping goes on a cake.
type Topping string

// The toppings.
const (
	Sugar  Topping = "sugar"
	Cherry Topping = "cherry"
)

// An Address is where an order goes.
type Address struct {
	Street string `json:"street" desc:"Street and number." validate:"min=3"`
	City   string `json:"city" default:"Lisbon"`
}

// A Line is a part of an order.
type Line struct {
	Cake   string `json:"cake" example:"lemon"`
	Pieces int    `json:"pieces" validate:"min=1,max=50" default:"1"`
}

// Order is a tool.
func (*Bakery) Order(ctx context.Context, call *mcpkit.Call, in struct {
	Customer string   `json:"customer" desc:"Who orders." validate:"min=2"`
	Lines    []Line   `json:"lines" desc:"What to bake." validate:"min=1"`
	Topping  Topping  `json:"topping,omitempty" validate:"enum"`
	Gift     bool     `json:"gift,omitempty"`
	Weight   float64  `json:"weight,omitempty" desc:"In kilograms." validate:"max=20"`
	Address  *Address `json:"address,omitempty" desc:"Without it the customer comes to the shop."`
	PIN      string   `json:"pin,omitempty" desc:"The customer's PIN." secret:"true"`
	Note     string   `json:"note,omitempty" title:"Remark"`
	Picture  []byte   `json:"picture,omitempty"`
}) (struct {
	ID    int    `json:"id"`
	Total string `json:"total"`
}, error) {
	var out struct {
		ID    int    `json:"id"`
		Total string `json:"total"`
	}
	if in.Customer == "nobody" {
		return out, mcpkit.Errorf("nobody orders nothing")
	}
	call.Logger().Info("order taken", "customer", in.Customer, "lines", len(in.Lines))
	out.ID, out.Total = 17, fmt.Sprintf("%d euros", 3*len(in.Lines))
	return out, nil
}

// Bake is a tool.
func (*Bakery) Bake(ctx context.Context, call *mcpkit.Call, minutes int) (string, error) {
	call.Logger().Debug("the oven is hot", "degrees", 220)
	for i := range minutes {
		call.Progress(float64(i+1), float64(minutes), "baking")
		if minutes == 100 { // until it is cancelled
			<-ctx.Done()
			return "", ctx.Err()
		}
	}
	return "done", nil
}

// Wedding is a tool.
func (*Bakery) Wedding(ctx context.Context, call *mcpkit.Call, name string) (string, error) {
	number, err := mcpkit.Once(ctx, "number", func() (int, error) { return 42, nil })
	if err != nil {
		return "", err
	}
	cake, err := mcpkit.Elicit[struct {
		Tiers int    `json:"tiers" validate:"min=1,max=5" default:"3"`
		Taste string `json:"taste" validate:"oneof=lemon vanilla"`
	}](ctx, "How should the cake for "+name+" be?")
	if err != nil {
		return "", err
	}
	call.Logger().Info("the cake is planned", "tiers", cake.Tiers)
	ok, err := mcpkit.Confirm(ctx, fmt.Sprintf("Bake %d tiers of %s?", cake.Tiers, cake.Taste))
	if err != nil || !ok {
		return "nothing is baked", err
	}
	return fmt.Sprintf("cake %d: %d tiers of %s for %s", number, cake.Tiers, cake.Taste, name), nil
}

// pixel is a PNG of 1 × 1.
var pixel = []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\b\x06\x00\x00\x00\x1f\x15\xc4\x89\x00\x00\x00\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\x00\x05\x00\x01\xff\x89\x99=\x1d\x00\x00\x00\x00IEND\xaeB`\x82")

// Photo is a tool.
func (*Bakery) Photo() []protocol.Content {
	return []protocol.Content{
		&protocol.TextContent{Text: "the window at noon"},
		&protocol.ImageContent{Data: pixel, MIMEType: "image/png"},
		&protocol.AudioContent{Data: []byte("RIFF"), MIMEType: "audio/wav"},
		&protocol.ResourceLink{URI: "bakery://opening", Name: "opening"},
	}
}

// Advise is a tool.
func (*Bakery) Advise(ctx context.Context, guest string) (string, error) {
	answer, err := mcpkit.Sample(ctx, &protocol.CreateMessageParams{
		Messages:  []protocol.SamplingMessage{{Role: protocol.RoleUser, Content: protocol.SamplingContents{mcpkit.Text("What would " + guest + " like?")}}},
		MaxTokens: 100,
	})
	if err != nil {
		return "", err
	}
	text, _ := answer.Content[0].(*protocol.TextContent)
	return "the model says: " + text.Text, nil
}

// Burn is a tool.
func (*Bakery) Burn() error { return errors.New("the oven caught fire at 300 degrees") }

// Pantry is a tool.
func (*Bakery) Pantry(ctx context.Context) (string, error) {
	roots, err := mcpkit.Roots(ctx)
	if err != nil || len(roots) == 0 {
		return "no roots", err
	}
	return "the pantry is " + roots[0].URI, nil
}

// Window is a tool.
func (*Bakery) Window() string { return "three cakes" }

// Recipe is a resource template.
func (*Bakery) Recipe(name string) string { return "# " + name + "\n\nFlour and water." }

// Opening is a resource.
func (*Bakery) Opening() string { return "7 to 18" }

// Announce is a prompt.
func (*Bakery) Announce(cake, tone string) string { return "Announce the " + cake + " " + tone }

// Names completes names of cakes.
func (*Bakery) Names(_ context.Context, prefix string) ([]string, error) {
	return slices.DeleteFunc([]string{"lemon", "lime", "vanilla"}, func(s string) bool { return !strings.HasPrefix(s, prefix) }), nil
}

const windowPage = `<!doctype html><title>window</title><button id="more">More</button><p id="seen"></p><p id="calls"></p>
<script>
const app = mcpApp.connect({ name: "window", onResult: (r) => { document.getElementById("seen").textContent = mcpApp.value(r); } });
document.getElementById("more").onclick = async () => { document.getElementById("calls").textContent = mcpApp.value(await app.callTool("photo")); };
</script>`

// A Loaf is what the event bread_baked tells.
type Loaf struct {
	Kind string `json:"kind"`
}

var baked = events.NewType("bread_baked", "Bread has left the oven.", func(_ context.Context, l, want Loaf) bool { return l == want })

// newBakery returns a server with everything that the playground shows.
func newBakery(t testing.TB) *mcpkit.Server {
	t.Helper()
	folder := fstest.MapFS{"knead/SKILL.md": {Data: []byte("---\nname: knead\ndescription: Kneads dough\n---\n\nTen minutes.\n")}}
	srv, err := mcpkit.New(&Bakery{}, mcpkit.Logger(slog.New(slog.DiscardHandler)), mcpkit.Instructions("Ask for the customer's name first."),
		tasks.New(tasks.PollInterval(50*time.Millisecond)), events.New(baked), skills.FS(folder), apps.Pages(apps.Page{URI: "ui://window", HTML: windowPage}))
	require.NoError(t, err)
	srv.Use(middleware.Logging(slog.New(slog.DiscardHandler)), middleware.RateLimit(1e6, 1e6))
	return srv
}

// A tab shows the playground in Chromium.
type tab struct {
	*browser.App
	t   testing.TB
	url string // without the token

	mu     sync.Mutex
	faults []string // guarded by mu: what the console says, violations of the policy among it
}

// play shows the playground of a server, and fails the test if the console has something to say.
func play(t testing.TB, srv *mcpkit.Server, width, height int64) *tab {
	t.Helper()
	browser.Need(t)
	h := playground.NewHandler(srv, &playground.Options{Logger: slog.New(slog.DiscardHandler)})
	mux := http.NewServeMux()
	mux.Handle("/playground/", h)
	site := httptest.NewServer(mux)
	p := openTab(t, width, height)
	p.url = site.URL + "/playground/"
	t.Cleanup(func() {
		h.Close()
		site.CloseClientConnections()
		site.Close()
		require.NoError(t, srv.Close())
	})
	p.navigate(h.URL(p.url))
	p.WaitFor(`document.body.dataset.ready`)
	p.click("#tabs button", "Tools")
	t.Cleanup(func() { require.Empty(t, p.said(), "the console and the content security policy") })
	return p
}

// Keys besides those of package browser.
const (
	arrowDown = kb.ArrowDown
	home      = kb.Home
)

// openTab opens an empty page.
func openTab(t testing.TB, width, height int64) *tab {
	t.Helper()
	app, closeTab := browser.Open(t, "about:blank")
	t.Cleanup(closeTab)
	p := &tab{App: app, t: t}
	note := func(format string, args ...any) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.faults = append(p.faults, fmt.Sprintf(format, args...))
	}
	require.NoError(t, chromedp.Listen(app.Context(), func(ev any) {
		switch ev := ev.(type) {
		case *log.EventEntryAdded:
			note("log: %s %s", ev.Entry.Text, ev.Entry.URL)
		case *runtime.EventExceptionThrown:
			text, _ := json.Marshal(ev.ExceptionDetails)
			note("exception: %s", text)
		case *runtime.EventConsoleAPICalled:
			if ev.Type == "error" || ev.Type == "warning" {
				text, _ := json.Marshal(ev.Args)
				note("console: %s", text)
			}
		}
	}))
	require.NoError(t, chromedp.Do(app.Context(), chromedp.EmulateViewport(width, height)))
	_, err := browser.Run(app, func(ctx context.Context, t *chromedp.Target) (cdppage.AddScriptToEvaluateOnNewDocumentResult, error) {
		return cdp.Call(ctx, t, cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{
			Source: `addEventListener("securitypolicyviolation", (e) => console.error("policy", e.violatedDirective, e.blockedURI));`,
		})
	})
	require.NoError(t, err)
	return p
}

func (p *tab) said() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.faults)
}

func (p *tab) navigate(url string) {
	p.t.Helper()
	_, err := browser.Run(p.App, chromedp.Navigate(url))
	require.NoError(p.t, err)
}

// eval evaluates an expression, and waits for a promise.
func eval[T any](p *tab, script string) (v T) {
	p.t.Helper()
	p.Eval(script, &v)
	return v
}

// click clicks on the first visible element that matches the selector and has the text.
func (p *tab) click(selector string, text ...string) {
	p.t.Helper()
	find := fmt.Sprintf(`[...document.querySelectorAll(%q)].find((e) => e.checkVisibility() && e.textContent.includes(%q))`, selector, strings.Join(text, " "))
	p.WaitFor(find)
	at := eval[[2]float64](p, fmt.Sprintf(`(() => { const e = %s; e.scrollIntoView({ block: "nearest" }); const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()`, find))
	p.ClickAt(at[0], at[1])
}

// press types text or keys.
func (p *tab) press(keys string, modifiers ...chromedp.Modifier) {
	p.t.Helper()
	_, err := browser.Run(p.App, chromedp.KeyEvent(keys, chromedp.KeyModifiers(modifiers...)))
	require.NoError(p.t, err)
}

// use switches to a version of the protocol.
func (p *tab) use(version string) {
	p.t.Helper()
	if version == "2026-07-28" {
		return
	}
	eval[bool](p, `document.getElementById("version").focus() ?? true`)
	p.press(version[:4])
	p.WaitFor(fmt.Sprintf(`document.body.dataset.ready === %q`, version))
}

// shortcut presses a key that the page handles, so that no character follows.
func (p *tab) shortcut(key rune) {
	p.t.Helper()
	for _, event := range kb.Encode(key) {
		if event.Type == kb.KeyChar {
			continue
		}
		_, err := browser.Run(p.App, func(ctx context.Context, t *chromedp.Target) (cdp.Empty, error) {
			return cdp.Call(ctx, t, input.DispatchKeyEvent, *event)
		})
		require.NoError(p.t, err)
	}
}

// answer presses Enter in a question, without the character that follows: the next question may have
// come by then, and a select opens its list on that character.
func (p *tab) answer() {
	p.t.Helper()
	p.shortcut('\r')
}

// field puts the cursor into a field of the form with this label, and selects its text.
func (p *tab) field(label string) {
	p.t.Helper()
	p.WaitFor(fmt.Sprintf(`(() => {
		const l = [...document.querySelectorAll("#detail label")].filter((e) => e.checkVisibility() && e.textContent.startsWith(%q)).at(-1);
		const f = document.getElementById(l.htmlFor);
		f.scrollIntoView({ block: "nearest" });
		f.focus();
		f.select?.();
		return document.activeElement === f;
	})()`, label))
}

// fill types into a field.
func (p *tab) fill(label, text string) {
	p.t.Helper()
	p.field(label)
	p.press(text)
}

// choose chooses an option of a select.
func (p *tab) choose(label, option string) {
	p.t.Helper()
	p.field(label)
	p.press(option) // typing selects it
}

// shows waits until an element contains a text.
func (p *tab) shows(selector, text string) {
	p.t.Helper()
	p.WaitFor(fmt.Sprintf(`[...document.querySelectorAll(%q)].some((e) => e.checkVisibility() && e.textContent.includes(%q))`, selector, text))
}

// planWedding calls the tool wedding and answers its questions.
func (p *tab) planWedding() {
	p.t.Helper()
	p.click("#items .row", "wedding")
	p.fill("name", "Ann"+browser.Enter)
	p.shows(".question", "How should the cake for Ann be?")
	p.choose("taste", "lemon")
	p.answer()
	p.shows(".question", "Bake 3 tiers of lemon?")
	p.click(".question button", "Yes")
	p.shows(".result", "cake 42: 3 tiers of lemon for Ann")
}

func TestPlaygroundCallsATool(t *testing.T) {
	p := play(t, newBakery(t), 1440, 900)
	p.click("#items .row", "Order")
	p.click("button.main", "Call")
	p.shows(".message", "is required")
	p.fill("customer", "Ann")
	p.click("button", "Add item")
	p.press("lemon")
	p.choose("topping", "cherry")
	p.click("button", "Add address")
	p.fill("street", "Rua 1")
	p.fill("pin", "hush-1234")
	require.Equal(t, "password", eval[string](p, `document.activeElement.type`))
	p.fill("Remark note", "no sugar")
	p.field("picture")
	eval[bool](p, `(() => { const all = new DataTransfer(); all.items.add(new File(["cake"], "cake.txt"));
		document.activeElement.files = all.files; return document.activeElement.dispatchEvent(new Event("change")); })()`)
	p.shows(".field", "4 B, as base64")
	p.click("button.main", "Call")
	p.shows(".result pre", `"total": "3 euros"`)
	p.shows("#call pre", `"picture": "Y2FrZQ=="`)
	p.click("#tabs button", "Overview")
	p.shows("#detail", "Ask for the customer's name first.")
	p.click("#detail button", "Order cakes order")
	p.shows("#detail h2", "Order")
}

func TestPlaygroundShowsTheStepsOfACall(t *testing.T) {
	p := play(t, newBakery(t), 1440, 900)
	p.planWedding()
	p.shows("#call .waterfall", "Logging (logging.go:")
	p.WaitFor(`document.querySelectorAll("#call .round").length === 3`)
	p.shows("#call [data-kind=once]", "kept, not run again")
	p.shows("#call [data-kind=log]", "the cake is planned tiers=3")
	p.shows("#call [data-kind=span]", "Bakery.Wedding")
	p.shows("#call", "input_required")
	if file := os.Getenv("SCREENSHOT"); file != "" {
		require.NoError(t, os.WriteFile(file, p.Screenshot(), 0o644))
	}
}

func TestPlaygroundWorksWithTheKeyboard(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			p := play(t, newBakery(t), 1440, 900)
			p.use(version)
			eval[bool](p, `document.activeElement.blur() ?? true`)
			p.shortcut('/')
			p.press("wedd" + arrowDown)
			p.WaitFor(`document.activeElement.id === "items"`)
			p.press(browser.Enter)
			p.WaitFor(`document.activeElement.matches("#detail textarea")`)
			p.press("Bo" + browser.Enter)
			p.shows(".question", "How should the cake for Bo be?")
			p.WaitFor(`document.activeElement.matches(".question input")`)
			p.press(browser.Tab + "v")
			p.answer()
			p.shows(".question", "Bake 3 tiers of vanilla?")
			p.WaitFor(`document.activeElement.textContent === "No"`) // the default
			p.press(browser.Tab, chromedp.ModifierShift)
			p.press(browser.Enter)
			p.shows(".result", "cake 42: 3 tiers of vanilla for Bo")

			eval[bool](p, `document.activeElement.blur() ?? true`)
			p.shortcut('t')
			p.WaitFor(`document.activeElement.id === "calls"`)
			p.press(home)
			p.shows("#call", "Bakery.Wedding")
			p.WaitFor(`matchMedia("all") && getComputedStyle(document.activeElement).outlineStyle !== "none"`)
			p.shortcut('?')
			p.shows("dialog", "Keyboard shortcuts")
			p.press(browser.Escape)
			p.WaitFor(`!document.querySelector("dialog").open`)
			p.shortcut('3')
			p.shows("#items", "recipe://{name}")
			p.shortcut('8')
			p.shows("#items", "tools/call · ok")

			p.shortcut('2')
			p.shortcut('/')
			p.press("bake" + arrowDown + browser.Enter)
			p.WaitFor(`document.activeElement.matches("#detail input")`)
			p.press("100" + browser.Enter)
			p.shows(".progress", "1 % · baking")
			p.press(browser.Escape)
			p.shows(".result.error", "The call was cancelled.")
			p.shows("#call", "cancelled")
		})
	}
}

func TestPlaygroundShowsAllKindsOfResults(t *testing.T) {
	p := play(t, newBakery(t), 1440, 900)
	p.click("#items .row", "photo")
	p.click("button.main", "Call")
	p.shows(".result", "the window at noon")
	p.WaitFor(`document.querySelector(".result img").naturalWidth === 1 && !!document.querySelector(".result audio")`)
	p.click(".result button", "Read")
	p.shows(".output .resource", "7 to 18")

	p.click("#items .row", "burn")
	p.click("button.main", "Call")
	p.shows(".result.error", "internal error")
	p.shows("#call", "the oven caught fire at 300 degrees")

	p.click("#items .row", "advise")
	p.fill("guest", "Zoe"+browser.Enter)
	p.shows(".question", "What would Zoe like?")
	p.press("rye bread")
	p.answer()
	p.shows(".result", "the model says: rye bread")

	p.click("#items .row", "pantry")
	p.click("button.main", "Call")
	p.shows(".question", "The server asks for your roots")
	p.press("file:///home/ann")
	p.click(".question button.main", "Answer")
	p.shows(".result", "the pantry is file:///home/ann")
	p.click("button.main", "Call")
	p.click(".question button", "Refuse")
	p.shows(".result.error", "the user refused")

	p.click("#items .row", "Order")
	p.click("button", "JSON")
	p.field("Arguments as JSON")
	p.press(`{"customer": "x", "lines": [{"cake": "a", "pieces": 99}]}`)
	p.click("button", "JSON")
	p.click("button.main", "Call")
	p.shows(".message", "needs at least 2 characters")
	p.shows(".message", "must be at most 50")
	p.click("button", "JSON")
	p.click("button.main", "Call")
	p.shows(".result.error", "/lines/0/pieces: got 99")
	p.shows("#call .faults", "/lines/0/pieces")
	p.shows("#call .badge.bad, #calls .badge.bad", "2 faults")
}

func TestPlaygroundReadsResourcesAndPrompts(t *testing.T) {
	p := play(t, newBakery(t), 1440, 900)
	p.click("#tabs button", "Resources")
	p.click("#items .row", "recipe://{name}")
	p.fill("name", "l")
	p.WaitFor(`[...document.querySelectorAll("#detail datalist option")].map((o) => o.value).join() === "lemon,lime"`)
	p.press("emon cake" + browser.Enter)
	p.shows(".result", "# lemon cake")
	p.shows(".result", "recipe://lemon%20cake")
	p.click("#tabs button", "Prompts")
	p.click("#items .row", "nnounce")
	p.click("button.main", "Get")
	p.shows(".message", "is required")
	p.fill("cake", "v")
	p.WaitFor(`[...document.querySelectorAll("#detail datalist option")].map((o) => o.value).join() === "vanilla"`)
	p.press("anilla" + browser.Enter)
	p.shows(".result", "Announce the vanilla")
	p.click("#tabs button", "Skills")
	p.click("#items .row", "knead")
	p.click(".files button", "SKILL.md")
	p.shows(".resource", "Ten minutes.")
	p.shows(".output", "The size and the digest are right.")
}

func TestPlaygroundFollowsTasks(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(version, func(t *testing.T) { followTasks(t, version) })
	}
}

func followTasks(t *testing.T, version string) {
	p := play(t, newBakery(t), 1440, 900)
	p.use(version)
	for _, end := range []string{"completed", "cancelled"} {
		p.click("#tabs button", "Tools")
		p.click("#items .row", "wedding")
		p.fill("name", "Eve")
		p.WaitFor(`(document.querySelector("[name=task]").checked = true)`)
		p.click("button.main", "Call")
		p.shows(".result", "The call runs as a task")
		p.click(".result button", "wedding")
		p.shows(".question", "How should the cake for Eve be?")
		p.shows("#detail .facts", "input_required")
		if end == "cancelled" {
			p.click("button", "Cancel the task")
			p.shows("#detail .facts", "cancelled")
			continue
		}
		p.choose("taste", "lemon")
		p.answer()
		p.shows(".question", "Bake 3 tiers of lemon?")
		p.click(".question button", "Yes")
		p.shows(".result", "cake 42: 3 tiers of lemon for Eve")
		p.shows("#detail .facts", "completed")
		p.shows("#calls .badge", "task")
		require.NotContains(t, eval[string](p, `document.getElementById("calls").textContent`), "tasks/get")
	}
}

func TestPlaygroundShowsEvents(t *testing.T) {
	p := play(t, newBakery(t), 1400, 900)
	p.click("#tabs button", "Events")
	p.click("#items .row", "bread_baked")
	p.fill("kind", "rye")
	p.click("button.main", "Listen")
	p.shows(".logs", "active")
	require.NoError(t, baked.Emit(t.Context(), Loaf{"wheat"}))
	require.NoError(t, baked.Emit(t.Context(), Loaf{"rye"}))
	p.shows(".logs", "kind=rye")
	p.click("#detail button", "Cancel")
	p.shows("#detail .result", "The call was cancelled.")
	p.WaitFor(`!document.querySelector(".logs").textContent.includes("wheat")`)
}

func TestPlaygroundShowsPagesOfApps(t *testing.T) {
	p := play(t, newBakery(t), 1440, 900)
	p.click("#items .row", "window")
	p.click("button.main", "Call")
	inFrame := func(script string) string {
		world, err := browser.Run(p.App, func(ctx context.Context, t *chromedp.Target) (runtime.ExecutionContextID, error) {
			tree, err := cdp.Call(ctx, t, cdppage.GetFrameTree, cdp.Empty{})
			if err != nil || len(tree.FrameTree.ChildFrames) != 1 {
				return 0, fmt.Errorf("%d frames: %w", len(tree.FrameTree.ChildFrames), err)
			}
			w, err := cdp.Call(ctx, t, cdppage.CreateIsolatedWorld, cdppage.CreateIsolatedWorldParams{FrameID: tree.FrameTree.ChildFrames[0].Frame.ID, WorldName: "test"})
			return w.ExecutionContextID, err
		})
		require.NoError(t, err)
		got, err := browser.Run(p.App, chromedp.Evaluate[string](script, func(e *runtime.EvaluateParams) { e.ContextID = world }, chromedp.EvalAwaitPromise))
		require.NoError(t, err)
		return got
	}
	p.WaitFor(`document.querySelector(".apphost").textContent.includes("ui/notifications/initialized")`)
	text := func(id string) string {
		return inFrame(`new Promise((resolve) => { const look = () => { const t = document.getElementById("` + id + `")?.textContent; t ? resolve(t) : setTimeout(look, 10); }; look(); })`)
	}
	require.Equal(t, "three cakes", text("seen"))
	inFrame(`document.getElementById("more").click() ?? ""`)
	require.Equal(t, "the window at noon", text("calls"))
	require.Equal(t, "null", inFrame(`self.origin`), "the page has an origin of its own")
	p.shows("#calls .row", "photo")
}

func TestPlaygroundCopiesCalls(t *testing.T) {
	p := play(t, newBakery(t), 1440, 900)
	copied := func(what string) string {
		eval[bool](p, `document.querySelector(".copied")?.remove() ?? true`)
		p.click(`[data-copy=` + what + `]`)
		p.WaitFor(`document.querySelector(".copied pre")`)
		return eval[string](p, `document.querySelector(".copied pre").textContent`)
	}
	run := func(command string) string {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", command).CombinedOutput()
		require.NoError(t, err, "%s\n%s", command, out)
		return string(out)
	}
	p.click("#items .row", "Order")
	p.fill("customer", "Ann's `shop` \"$HOME\" é")
	p.click("button", "Add item")
	p.press("lemon")
	p.click("button.main", "Call")
	p.shows(".result", "3 euros")

	if _, err := exec.LookPath("curl"); err == nil {
		require.Contains(t, run(copied("curl")), `\"total\":\"3 euros\"`)
	}
	mcpkit := filepath.Join(t.TempDir(), "mcpkit")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", mcpkit, "./cmd/mcpkit")
	build.Dir = filepath.Join("..", "..")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	command, found := strings.CutPrefix(copied("command"), "mcpkit ")
	require.True(t, found)
	require.Contains(t, run(mcpkit+" "+command), "3 euros")

	test := copied("test")
	require.Equal(t, "func TestOrder(t *testing.T) {\n\ts := mcptest.New(t, newService()) // your service\n"+
		"\ts.Call(\"order\", json.RawMessage(\"{\\\"customer\\\":\\\"Ann's `shop` \\\\\\\"$HOME\\\\\\\" é\\\",\\\"lines\\\":[{\\\"cake\\\":\\\"lemon\\\",\\\"pieces\\\":1}]}\")).OK().JSON(`{\"id\":17,\"total\":\"3 euros\"}`)\n}\n", test)
	_, err = parser.ParseFile(token.NewFileSet(), "x_test.go", "package x\n"+test, 0)
	require.NoError(t, err)

	p.planWedding()
	require.Contains(t, copied("test"), "s.Answer(\"How should the cake for Ann be?\", json.RawMessage(`{\"tiers\":3,\"taste\":\"lemon\"}`)).Answer(\"Bake 3 tiers of lemon?\", true)"+
		".Call(\"wedding\", json.RawMessage(`{\"name\":\"Ann\"}`)).OK().Text(\"cake 42: 3 tiers of lemon for Ann\")")
}

func TestPlaygroundReplaysCalls(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			srv := newBakery(t)
			p := play(t, srv, 1440, 900)
			p.use(version)
			p.planWedding()
			p.click("#tabs button", "History")
			p.click("#items .row", "tools/call")
			p.click("[data-do=replay]")
			p.shows("#detail", "The outcome is the same.")
			p.click("[data-do=replay-all]")
			p.shows("#items .badge", "same")
			transcript := eval[string](p, `[...document.querySelectorAll("#detail details")].find((e) => e.textContent.startsWith("Transcript")).querySelector("pre").textContent`)
			file := filepath.Join(t.TempDir(), "call.txtar")
			require.NoError(t, os.WriteFile(file, []byte(transcript), 0o600))
			mcptest.New(t, srv).Replay(file)
		})
	}
}

func TestPlaygroundFollowsChangesOfTheServer(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			srv := newBakery(t)
			p := play(t, srv, 1440, 900)
			p.use(version)
			p.shows("#calls-count", "0") // lists and the like are hidden
			eval[bool](p, `(document.getElementById("calls-kind").value = "all") && document.getElementById("calls-kind").dispatchEvent(new Event("change"))`)
			p.shows("#calls", map[string]string{"2026-07-28": "subscriptions/listen", "2025-11-25": "tools/list"}[version])
			require.NoError(t, srv.Add(mcpkit.NewTool("knead", func() string { return "soft" }).Desc("Kneads.")))
			p.click("#items .row", "knead")
			p.click("button.main", "Call")
			p.shows(".result", "soft")
		})
	}
}

func TestPlaygroundFits360Pixels(t *testing.T) {
	p := play(t, newBakery(t), 360, 740)
	fits := func() {
		t.Helper()
		require.LessOrEqual(t, eval[int](p, `document.documentElement.scrollWidth`), 360)
		require.Empty(t, eval[[]string](p, `[...document.querySelectorAll("main *, #top *")].filter((e) => e.checkVisibility() && !e.closest("pre, .list, .waterfall") && e.getBoundingClientRect().right > 361).map((e) => e.outerHTML.slice(0, 80))`))
	}
	for _, tab := range []string{"Overview", "Resources", "Prompts", "Skills", "Tasks", "History", "Tools"} {
		p.click("#tabs button", tab)
		fits()
	}
	p.click("#items .row", "Order")
	fits()
	p.fill("customer", "Ann")
	p.click("button", "Add item")
	p.press("lemon")
	p.click("button", "Add address")
	p.fill("street", "Rua 1")
	fits()
	p.click("button.main", "Call")
	p.shows(".result", "3 euros")
	fits()
	p.click(".back", "Back")
	p.click("#items .row", "wedding")
	p.fill("name", "Ann"+browser.Enter)
	p.shows(".question", "How should")
	fits()
	p.press(browser.Escape)
	p.shows(".result.error", "cancelled")
	p.click("#tabs button", "Timeline")
	p.click("#calls .row", "order")
	p.shows("#call", "Bakery.Order")
	fits()
}

func TestPlaygroundRefusesOthers(t *testing.T) {
	p := play(t, newBakery(t), 1440, 900)
	tokenOf := eval[string](p, `sessionStorage.getItem("playground-token")`)
	require.Equal(t, "", eval[string](p, `location.hash`), "the token does not stay in the address")
	p.navigate(p.url)
	p.WaitFor(`document.body.dataset.ready`) // the tab knows the token

	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, `<!doctype html><iframe src=%q></iframe>`, p.url)
	}))
	defer other.Close()
	q := openTab(t, 800, 600)
	q.navigate(p.url)
	q.WaitFor(`document.body.textContent.includes("The token is missing")`)
	q.navigate(p.url + "#token=wrong")
	q.navigate("about:blank")
	q.navigate(p.url + "#token=wrong")
	q.WaitFor(`document.body.textContent.includes("The token is missing")`)
	q.navigate(other.URL)
	for _, call := range []string{`fetch(%q + "info", { headers: { "Playground-Token": %q } })`, `fetch(%q + "mcp", { method: "POST", headers: { "Playground-Token": %q, "Content-Type": "application/json" }, body: "{}" })`} {
		require.Equal(t, "refused", eval[string](q, fmt.Sprintf(call, p.url, tokenOf)+`.then((r) => "status " + r.status, () => "refused")`))
	}
	require.Contains(t, strings.Join(q.said(), "\n"), "frame-ancestors", "other pages cannot show it in a frame")
}

func TestPlaygroundSurvivesARestart(t *testing.T) {
	browser.Need(t)
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			// The program behind the address is another one after the restart.
			var program atomic.Pointer[playground.Handler]
			start := func(answer string) *mcpkit.Server {
				srv, err := mcpkit.New(nil, mcpkit.Name("phoenix", "1.0.0"), mcpkit.Logger(slog.New(slog.DiscardHandler)))
				require.NoError(t, err)
				require.NoError(t, srv.Add(mcpkit.NewTool(answer, func() string { return answer }).Desc("Answers.")))
				if old := program.Swap(playground.NewHandler(srv, &playground.Options{Token: "same", Logger: slog.New(slog.DiscardHandler)})); old != nil {
					old.Close()
				}
				return srv
			}
			start("before")
			site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { program.Load().ServeHTTP(w, r) }))
			p := openTab(t, 1440, 900)
			t.Cleanup(func() {
				program.Load().Close()
				site.CloseClientConnections()
				site.Close()
			})
			p.navigate(site.URL + "/#token=same")
			p.WaitFor(`document.body.dataset.ready`)
			p.click("#tabs button", "Tools")
			p.use(version)
			p.click("#items .row", "before")
			p.click("button.main", "Call")
			p.shows(".result", "before")

			start("after")
			p.click("button.main", "Call")
			p.shows(".result.error", `unknown tool "before"`)
			p.click("#items .row", "after")
			p.click("button.main", "Call")
			p.shows(".result", "after")
			p.shows("#calls", "after")
		})
	}
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/ext/events"
	"github.com/mcpkit/mcpkit-go/ext/tasks"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth/oauthtest"
	"github.com/mcpkit/mcpkit-go/oauth/resource"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

// Desk sells tickets.
type Desk struct {
	_ mcpkit.Info `name:"desk" version:"1.0.0"`
	_ struct {
		Order mcpkit.Tool   `hints:"additive" desc:"Orders tickets."`
		Pay   mcpkit.Tool   `desc:"Takes money."`
		Count mcpkit.Tool   `hints:"readonly" params:"to" desc:"Counts."`
		Wait  mcpkit.Tool   `desc:"Waits until nobody wants to know."`
		Greet mcpkit.Prompt `params:"name,tone?" desc:"Greets."`
	}
	waiting chan struct{}
}

type order struct {
	Seat   string   `json:"seat" validate:"omitempty,oneof=aisle window" desc:"Where to sit."`
	People int      `json:"people" validate:"min=1,max=4" default:"2"`
	Meals  []string `json:"meals" validate:"omitempty,dive,oneof=fish rice"`
	Name   string   `json:"name" validate:"required,min=3"`
	Agreed bool     `json:"agreed" validate:"required"`
}

func (*Desk) Order(ctx context.Context) (order, error) {
	return mcpkit.Elicit[order](ctx, "Which seats?")
}

func (*Desk) Pay(ctx context.Context) (string, error) {
	if err := mcpkit.ElicitURL(ctx, "Pay there.", "https://bank.example.com/pay?id=7"); err != nil {
		return "", err
	}
	return "paid", nil
}

func (*Desk) Count(call *mcpkit.Call, to int) int {
	for i := range to {
		call.Progress(float64(i+1), float64(to), "counting\x1b[2J")
	}
	return to
}

func (d *Desk) Wait(ctx context.Context) error {
	close(d.waiting)
	<-ctx.Done()
	return ctx.Err()
}

func (*Desk) Greet(name, tone string) string { return "Greet " + name + tone }

// serve serves a service over HTTP in the handler that wrap returns, and returns the URL.
func serve(t *testing.T, wrap func(http.Handler) http.Handler, service any, opts ...mcpkit.Option) (string, *mcpkit.Server) {
	t.Helper()
	srv, err := mcpkit.New(service, append(opts, mcpkit.Logger(slog.New(slog.DiscardHandler)))...)
	require.NoError(t, err)
	h := streamable.NewHandler(srv, &streamable.Options{Logger: slog.New(slog.DiscardHandler)})
	web := httptest.NewServer(wrap(h))
	t.Cleanup(func() { h.Close(); web.Close(); require.NoError(t, srv.Close()) })
	return web.URL, srv
}

func desk(t *testing.T, wrap func(http.Handler) http.Handler) string {
	t.Helper()
	url, _ := serve(t, wrap, &Desk{waiting: make(chan struct{})})
	return url
}

func bare(h http.Handler) http.Handler { return h }

// terminal is a stream that counts as a terminal.
type terminal struct {
	io.Reader
	bytes.Buffer
}

func (*terminal) IsTerminal() bool             { return true }
func (t *terminal) Read(p []byte) (int, error) { return t.Reader.Read(p) }

func typed(lines ...string) *terminal {
	return &terminal{Reader: strings.NewReader(strings.Join(lines, "\n") + "\n")}
}

func TestFormsAreAskedAtThePrompt(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	t.Setenv("TERM", "xterm")
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			url := desk(t, bare)
			screen := new(terminal)
			var out bytes.Buffer
			in := typed("middle", "2", "seven", "9", "", "rice, 1", "Al", "Ada", "perhaps", "yes", "y")
			require.Equal(t, exitOK, run(t.Context(), []string{"call", "-o", "json", "--protocol-version", version, url, "order"}, streams{in: in, out: &out, err: screen}), screen.String())
			var res struct{ StructuredContent order }
			require.NoError(t, json.Unmarshal(out.Bytes(), &res))
			require.Equal(t, order{Seat: "window", People: 2, Meals: []string{"rice", "fish"}, Name: "Ada", Agreed: true}, res.StructuredContent)
			require.Equal(t, `The server asks: Which seats?
seat (Where to sit.)
  1  aisle
  2  window
  [empty for none]: `+`  "middle" is not one of the choices
seat (Where to sit.)
  1  aisle
  2  window
  [empty for none]: `+`people [integer, 2 when empty]: `+`  "seven" is not a number
people [integer, 2 when empty]: `+`  maximum: got 9, want 4
people [integer, 2 when empty]: `+`meals
  1  fish
  2  rice
  [numbers, separated by commas, empty for none]: `+`name [required]: `+`  minLength: got 2, want 3
name [required]: agreed [yes or no, false when empty]:   write yes or no
agreed [yes or no, false when empty]: Send this to the server? [Y/n] `, screen.String())
		})
	}
}

func TestQuestionsMayBeLeftUnanswered(t *testing.T) {
	for _, test := range []struct {
		name  string
		tool  string
		lines *terminal
		code  int
		want  string
	}{
		{"declined", "order", typed("1", "", "", "Ada", "y", "n"), exitFault, "declined"},
		{"end of input", "order", typed("1"), exitFault, "cancel"},
		{"page refused", "pay", typed(""), exitFault, "declined"},
	} {
		t.Run(test.name, func(t *testing.T) {
			screen := new(terminal)
			var out bytes.Buffer
			require.Equal(t, test.code, run(t.Context(), []string{"call", desk(t, bare), test.tool}, streams{in: test.lines, out: &out, err: screen}), screen.String())
			require.Contains(t, screen.String(), test.want)
		})
	}
}

// A watcher is a terminal that calls a function when it shows a text.
type watcher struct {
	terminal
	text string
	seen func()
}

func (w *watcher) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(w.text)) {
		w.seen()
	}
	return w.terminal.Write(p)
}

func TestQuestionsAreInterrupted(t *testing.T) {
	for _, tool := range []string{"pay", "order"} {
		in, silent := io.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		screen := &watcher{text: map[string]string{"pay": "[y/N]", "order": "seat"}[tool], seen: cancel}
		var out bytes.Buffer
		require.Equal(t, exitInterrupted, run(ctx, []string{"call", desk(t, bare), tool}, streams{in: &terminal{Reader: in}, out: &out, err: screen}), screen.String())
		require.Empty(t, out.String())
		require.NoError(t, silent.Close())
	}
}

func TestPagesAreVisitedWithConsent(t *testing.T) {
	t.Setenv("TERM", "dumb")
	screen, visited := new(terminal), ""
	var out bytes.Buffer
	std := streams{in: typed("what?", "yes"), out: &out, err: screen, browse: func(_ context.Context, page string) error {
		visited = page
		return errors.New("no browser here")
	}}
	require.Equal(t, exitOK, run(t.Context(), []string{"call", desk(t, bare), "pay"}, std), screen.String())
	require.Equal(t, "https://bank.example.com/pay?id=7", visited)
	require.Equal(t, "paid\n", out.String())
	require.Equal(t, `The server wants you to visit a page: Pay there.
https://bank.example.com/pay?id=7
Open it in the browser? [y/N] Open it in the browser? [y/N] Continue in the browser:
https://bank.example.com/pay?id=7
The browser cannot be opened (no browser here); open the page yourself.
`, screen.String())
}

func TestProgressIsReplacedOnTerminalsOnly(t *testing.T) {
	url := desk(t, bare)
	for _, test := range []struct {
		name, term, noColor string
		want                string
	}{
		{"colour", "xterm", "", "\x1b[2mprogress: 1/2 counting\\x1b[2J\x1b[0m\r\x1b[K\x1b[2mprogress: 2/2 counting\\x1b[2J\x1b[0m\r\x1b[K"},
		{"no colour", "xterm", "1", "progress: 1/2 counting\\x1b[2J\r\x1b[Kprogress: 2/2 counting\\x1b[2J\r\x1b[K"},
		{"dumb", "dumb", "", "progress: 1/2 counting\\x1b[2J\nprogress: 2/2 counting\\x1b[2J\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("TERM", test.term)
			t.Setenv("NO_COLOR", test.noColor)
			screen, out := new(terminal), new(terminal)
			require.Equal(t, exitOK, run(t.Context(), []string{"call", url, "count", "to:=2"}, streams{out: out, err: screen}))
			require.Equal(t, test.want, screen.String())
			require.Equal(t, "2\n", out.String())
		})
	}
}

func TestResultsAreJSONOnRequest(t *testing.T) {
	url := desk(t, bare)
	for _, args := range [][]string{{"list", url}, {"inspect", url}, {"call", url, "count", "to:=1"}, {"prompt", url, "greet", "name=Ada"}} {
		out, _ := said(t, exitOK, append(args, "-o", "json")...)
		require.True(t, json.Valid([]byte(out)), out)
		require.NotContains(t, out, "null")
	}
}

func TestInspect(t *testing.T) {
	t.Setenv("TERM", "dumb")
	out := new(terminal)
	require.Equal(t, exitOK, run(t.Context(), []string{"inspect", desk(t, bare)}, streams{out: out, err: io.Discard}))
	require.Contains(t, out.String(), `desk 1.0.0
speaks 2026-07-28, 2025-11-25, 2025-06-18, 2025-03-26, 2024-11-05
can logging, prompts, tools
Desk sells tickets.
4 tools cost a model about 138 tokens (their names, descriptions and inputs as JSON, bytes/4)
`)
	require.Contains(t, out.String(), `
tool count reads only, 40 tokens
  Counts.
  takes to integer
  gives integer
`)
	require.Contains(t, out.String(), `
tool order only adds, 32 tokens
  Orders tickets.
  gives seat string Where to sit.
  gives people integer (default 2)
`)
	require.Contains(t, out.String(), `
prompt greet
  Greets.
  takes name
  takes tone?
`)
}

// TestTheReferenceIsComplete checks that the reference has every command and every flag.
func TestTheReferenceIsComplete(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "cli.md"))
	require.NoError(t, err)
	for _, c := range commands(streams{}) {
		require.Regexp(t, "`(mcpkit )?"+c.Name()+"[ `]", string(page))
		help, _ := said(t, exitOK, c.Name(), "-h")
		for _, f := range regexp.MustCompile(`(?m)^      (--[a-z-]+)`).FindAllStringSubmatch(help, -1) {
			require.Contains(t, string(page), "`"+f[1], c.Name())
		}
	}
}

func TestLogin(t *testing.T) {
	as := oauthtest.New(t, nil)
	url := guarded(t, as)
	for _, name := range []string{"XDG_CONFIG_HOME", "HOME", "AppData"} {
		t.Setenv(name, t.TempDir())
	}
	settings, err := os.UserConfigDir()
	require.NoError(t, err)
	tokens := filepath.Join(settings, "mcpkit", "tokens")
	var logins atomic.Int32
	call := func(code int, args ...string) (out, errs string) {
		var o, e bytes.Buffer
		require.Equal(t, code, run(t.Context(), args, streams{out: &o, err: &e, browse: func(ctx context.Context, page string) error {
			logins.Add(1)
			return oauthtest.Open(ctx, page)
		}}), &e)
		return o.String(), e.String()
	}

	_, errs := call(exitProtocol, "call", url, "count", "to:=1")
	require.Contains(t, errs, "write --login to log in with the browser")

	for range 2 { // the second run has the token of the first
		out, _ := call(exitOK, "call", "--login", url, "count", "to:=1")
		require.Equal(t, "1\n", out)
		require.EqualValues(t, 1, logins.Load())
	}
	files, err := filepath.Glob(filepath.Join(tokens, "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		info, err := os.Stat(file)
		require.NoError(t, err)
		if runtime.GOOS != "windows" { // which has lists instead
			require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		}
	}
	elsewhere := t.TempDir()
	call(exitOK, "list", "--login", "--tokens", elsewhere, url)
	require.EqualValues(t, 2, logins.Load())

	token := refreshToken(t, tokens)
	call(exitOK, "list", "--logout", url)
	require.False(t, as.Revoke(token), "it was revoked already")
	require.Empty(t, refreshToken(t, tokens))
	require.NotEmpty(t, refreshToken(t, elsewhere))
	call(exitOK, "list", "--login", url)
	require.EqualValues(t, 3, logins.Load())

	_, errs = call(exitFault, "dev", "--http", "127.0.0.1:0", url)
	require.Regexp(t, `\nmcpkit dev: .* 401.*; write --login to log in with the browser\n$`, errs)
	ctx, stop := context.WithCancel(t.Context())
	var log testkit.Buffer
	ended := make(chan int)
	go func() {
		ended <- run(ctx, []string{"dev", "--login", "--http", "127.0.0.1:0", url}, streams{in: strings.NewReader(""), out: io.Discard, err: &log})
	}()
	connect := regexp.MustCompile(regexp.QuoteMeta("mcpkit dev: "+url) + `; clients connect to (\S+)\n`)
	require.Eventually(t, func() bool { return connect.MatchString(log.String()) }, time.Minute, time.Millisecond)
	out, _ := call(exitOK, "call", connect.FindStringSubmatch(log.String())[1], "count", "to:=1")
	require.Equal(t, "1\n", out, "it has the token of list")
	stop()
	require.Equal(t, exitOK, <-ended)

	_, errs = call(exitConnection, "list", "--login", "go version")
	require.Equal(t, "mcpkit list: --login and --logout need a server at an http or https URL; \"go version\" is not one\n", errs)
}

// refreshToken returns the refresh token that is stored in dir, or "" if there is none.
func refreshToken(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	require.NoError(t, err)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		if m := regexp.MustCompile(`"refresh_token":"([^"]+)"`).FindSubmatch(data); m != nil {
			return string(m[1])
		}
	}
	return ""
}

func TestLoginIsNotUsedUnlessTheServerRequiresIt(t *testing.T) {
	var out, errs bytes.Buffer
	std := streams{out: &out, err: &errs, browse: func(context.Context, string) error {
		t.Error("a browser was opened")
		return nil
	}}
	require.Equal(t, exitOK, run(t.Context(), []string{"call", "--login", "--tokens", t.TempDir(), desk(t, bare), "count", "to:=1"}, std), errs.String())
	require.Equal(t, "1\n", out.String())
	require.NotContains(t, errs.String(), "browser")

	require.Equal(t, exitUsage, run(t.Context(), []string{"list", "--login", "--header", "authorization: Bearer x", "https://example.com"}, std))
	require.Equal(t, "mcpkit list: use --login or --header Authorization, not both\n", errs.String()[strings.LastIndex(errs.String(), "mcpkit list"):])
}

func TestLoginWithKnownCredentials(t *testing.T) {
	as := oauthtest.New(t, &oauthtest.Options{
		Metadata: func(doc map[string]any) { delete(doc, "registration_endpoint") },
		Clients:  []oauthtest.Client{{ID: "cli", Secret: "s3cret", RedirectURIs: []string{"http://127.0.0.1/callback"}}},
	})
	url := guarded(t, as)
	list := func(code int, args ...string) string {
		var e bytes.Buffer
		std := streams{out: io.Discard, err: &e, browse: oauthtest.Open}
		require.Equal(t, code, run(t.Context(), append([]string{"list", "--login", "--tokens", t.TempDir()}, append(args, url)...), std), &e)
		return e.String()
	}
	errs := list(exitConnection)
	require.Contains(t, errs, "does not know the client and has no dynamic registration")
	require.Contains(t, errs, "mcpkit list: the authorization server does not let programs register themselves; write --client-id and --issuer of a registration that you have\n")
	errs = list(exitConnection, "--client-id", "cli")
	require.Equal(t, "mcpkit list: --client-id and --issuer need each other; write both or neither\n", errs)
	t.Setenv(secretVariable, "an0ther")
	errs = list(exitConnection, "--client-id", "cli", "--issuer", as.Issuer)
	require.Contains(t, errs, "invalid_client")
	require.NotContains(t, errs, "an0ther")
	t.Setenv(secretVariable, "s3cret")
	list(exitOK, "--client-id", "cli", "--issuer", as.Issuer, "--private-network", "10.0.0.0/8")
	errs = list(exitUsage, "--private-network", "ten")
	require.Contains(t, errs, `invalid argument "ten" for "--private-network" flag`)
}

// guarded is like desk, and requires tokens of as.
func guarded(t *testing.T, as *oauthtest.Server) string {
	t.Helper()
	var guard atomic.Pointer[resource.Guard]
	url := desk(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			g := guard.Load()
			if strings.HasPrefix(r.URL.Path, "/.well-known/") {
				g.Metadata().ServeHTTP(w, r)
				return
			}
			g.Wrap(h).ServeHTTP(w, r)
		})
	}) + "/mcp"
	g, err := resource.New(resource.Options{Issuer: as.Issuer, Resource: url, InsecureLoopback: true, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	guard.Store(g)
	return url
}

// A Garage repairs cars, which takes long.
type Garage struct {
	_ struct {
		Repair mcpkit.Tool `task:"optional" desc:"Repairs a car."`
		Scrap  mcpkit.Tool `task:"required" desc:"Scraps a car."`
		Wash   mcpkit.Tool `desc:"Washes a car."`
		Paint  mcpkit.Tool `hidden:"true" desc:"Paints a car."`
	}
}

func (*Garage) Repair(ctx context.Context, call *mcpkit.Call) (string, error) {
	call.Progress(1, 2, "lifting")
	ok, err := mcpkit.Confirm(ctx, "Change the oil?")
	if err != nil || !ok {
		return "", mcpkit.Errorf("not repaired")
	}
	return "repaired", nil
}

func (*Garage) Paint(ctx context.Context) error {
	_, err := mcpkit.Confirm(ctx, "In red?")
	return err
}

func (*Garage) Scrap() string { return "scrapped" }
func (*Garage) Wash() string  { return "washed" }

// serveGarage serves tasks over HTTP and returns the URL.
func serveGarage(t *testing.T) string {
	t.Helper()
	url, _ := serve(t, bare, &Garage{}, tasks.New(tasks.PollInterval(10*time.Millisecond)))
	return url
}

func TestCallFollowsTasks(t *testing.T) {
	url := serveGarage(t)
	out, errs := said(t, exitOK, "call", "--yes", url, "repair")
	require.Equal(t, "repaired\n", out)
	require.Contains(t, errs, "lifting")
	out, _ = said(t, exitOK, "call", url, "scrap")
	require.Equal(t, "scrapped\n", out)
	out, _ = said(t, exitOK, "call", "--start", url, "wash")
	require.Equal(t, "washed\n", out, "a tool that does not run as a task")
	_, errs = said(t, exitFault, "call", "--start", url, "paint")
	require.Contains(t, errs, `the server asks "In red?" before the call is a task; run the command in a terminal, or write --answer name=value or --yes`)
	_, errs = said(t, exitProtocol, "call", "--protocol-version", "2025-11-25", url, "scrap")
	require.Contains(t, errs, "the tool runs only as a task of version 2025-11-25, which this client does not support")
}

func TestListMarksToolsThatRunOnlyAsTasks(t *testing.T) {
	url := serveGarage(t)
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		out, _ := said(t, exitOK, "list", "--protocol-version", version, url)
		require.Equal(t, "tool      repair                   Repairs a car.\n"+
			"task tool scrap                    Scraps a car.\n"+
			"tool      wash                     Washes a car.\n", out)
	}
}

func TestTasksAreShownAnsweredAndCancelled(t *testing.T) {
	url := serveGarage(t)
	start := func() string {
		out, _ := said(t, exitOK, "call", "--start", url, "repair")
		return strings.TrimSpace(out)
	}
	id := start()
	out := ""
	for !strings.Contains(out, "input_required") { // soon: the method asks at once
		<-time.After(50 * time.Millisecond) // the server limits how often it is asked
		out, _ = said(t, exitOK, "tasks", url, id)
	}
	require.Contains(t, out, "question  Change the oil?\n")
	_, errs := said(t, exitOK, "tasks", "--yes", url, id, "answer")
	require.NotContains(t, errs, "asks nothing")
	out, _ = said(t, exitOK, "tasks", url, id, "wait")
	require.Equal(t, "repaired\n", out)
	out, errs = said(t, exitOK, "tasks", "-o", "json", url, id, "answer")
	require.Contains(t, errs, "mcpkit tasks: the task asks nothing\n")
	var state struct{ Status string }
	require.NoError(t, json.Unmarshal([]byte(out), &state))
	require.Equal(t, "completed", state.Status)
	out, _ = said(t, exitOK, "tasks", url, id)
	require.Contains(t, out, "\nrepaired\n")

	id = start()
	said(t, exitOK, "tasks", url, id, "cancel")
	_, errs = said(t, exitFault, "tasks", url, id, "wait")
	require.Contains(t, errs, "the task was cancelled")

	_, errs = said(t, exitProtocol, "tasks", url, "unknown")
	require.Contains(t, errs, `client: task "unknown": tasks/get: `)
	_, errs = said(t, exitUsage, "tasks", url)
	require.Equal(t, "mcpkit tasks: the ID of the task is missing; mcpkit call --start "+url+" TOOL prints it\n", errs)
	_, errs = said(t, exitUsage, "tasks", url, id, "stop")
	require.Equal(t, "mcpkit tasks: after the ID, write wait, answer, cancel or nothing\n", errs)
}

// A Ring is what the event bell_rang tells.
type Ring struct {
	Door int `json:"door"`
}

// EventTime returns a time that does not change.
func (Ring) EventTime() time.Time { return time.Date(2026, 11, 28, 9, 0, 0, 0, time.UTC) }

func TestEventsAreListedAndShown(t *testing.T) {
	rang := events.NewType("bell_rang", "Somebody rang.\nMore.", func(_ context.Context, r, want Ring) bool { return r == want })
	url, _ := serve(t, bare, &Lab{}, events.New(rang))
	out, _ := said(t, exitOK, "events", url)
	require.Equal(t, "poll,push,webhook bell_rang                Somebody rang.\n", out)
	out, _ = said(t, exitOK, "inspect", url)
	require.Contains(t, out, "extends MCP by io.modelcontextprotocol/events, beta\n")

	for output, want := range map[string]string{
		"text": `2026-11-28T09:00:00Z {"door":2}`,
		"json": `"timestamp": "2026-11-28T09:00:00Z"`,
	} {
		ctx, cancel := context.WithCancel(t.Context())
		var ringing sync.WaitGroup
		ringing.Go(func() { // until the command has ended
			for ctx.Err() == nil {
				_, _ = rang.Emit(ctx, Ring{1}), rang.Emit(ctx, Ring{2})
			}
		})
		var errs bytes.Buffer
		shown := &watcher{text: want, seen: cancel}
		args := []string{"events", url, "bell_rang", "door=2", "--output", output}
		require.Equal(t, exitInterrupted, run(ctx, args, streams{in: strings.NewReader(""), out: shown, err: &errs}), errs.String())
		require.NotContains(t, shown.String(), `"door":1`)
		ringing.Wait()
	}
	_, errs := said(t, exitConnection, "events", url, "doors")
	require.Contains(t, errs, `the server offers no stream and no polls of "doors"`)
}

package apps_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/ext/apps"
	"github.com/mcpkit/mcpkit-go/mcpkit"
)

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
		require.ErrorContains(t, err, "faults_test.go:", "it names the place")
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

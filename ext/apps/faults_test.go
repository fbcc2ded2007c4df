package apps_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/ext/apps"
	"github.com/mcpkit/mcpkit-go/mcpkit"
)

func TestMistakesInTags(t *testing.T) {
	pages := apps.FS(files("board.html", boardHTML))
	for tag, want := range map[string]string{
		``:                                     `it names no page; write for example app:"ui://notes/board"`,
		`board`:                                `unknown word "board"; known are the URI of a page and visibility; write for example app:"ui://notes/board"`,
		`ui://board ui://board`:                `it names two pages, "ui://board" and "ui://board"`,
		`ui://board,visibility=user`:           `unknown visibility "user"; known are app (the tool is for pages) and model (it is for models); without it, it is for both`,
		`ui://board,csp=https://example.com`:   `csp belongs to the page, and hosts ignore it on a tool; write apps.Page("board", apps.Connect("https://api.example.com")) for the file board.html`,
		`ui://board,permissions=camera`:        `permissions belongs to the page, and hosts ignore it on a tool; write apps.Page("board", apps.Permissions("camera")) for the file board.html`,
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
	for _, test := range []struct {
		name    string
		page    string
		options []apps.Option
		want    string // a part of the fault; empty if there is none
	}{
		{"nothing from elsewhere", boardHTML, nil, ""},
		{"a link that people follow", `<a href="https://example.com">x</a>`, nil, ""},
		{"an image of another origin", "<p>\n<img src=\"https://cdn.example.com/x.png\">", nil,
			`page board.html, line 2: <img> loads "https://cdn.example.com/x.png", but the page may not load from https://cdn.example.com; write apps.Page("board", apps.Resources("https://cdn.example.com")), or put the file beside the page`},
		{"an image of an allowed origin", `<img src="https://cdn.example.com/x.png">`, []apps.Option{apps.Page("board", apps.Resources("https://cdn.example.com"))}, ""},
		{"an origin of all pages", `<img src="https://cdn.example.com/x.png">`, []apps.Option{apps.Resources("https://*.example.com")}, ""},
		{"a wildcard is not the domain", `<img src="https://example.com/x.png">`, []apps.Option{apps.Resources("https://*.example.com")}, `may not load from https://example.com`},
		{"another port", `<img src="https://example.com:8443/x.png">`, []apps.Option{apps.Resources("https://example.com")}, `may not load from https://example.com:8443`},
		{"the default port", `<img src="https://EXAMPLE.com:443/x.png">`, []apps.Option{apps.Resources("https://example.com")}, ""},
		{"http when https is allowed", `<img src="http://example.com/x.png">`, []apps.Option{apps.Resources("https://example.com")}, `may not load from http://example.com`},
		{"https when http is allowed", `<img src="https://example.com/x.png">`, []apps.Option{apps.Resources("http://example.com")}, ""},
		{"to connect is not to load", `<img src="https://example.com/x.png">`, []apps.Option{apps.Connect("https://example.com")}, `may not load from https://example.com`},
		{"no scheme", `<script src="//cdn.example.com/x.js"></script>`, nil, `<script> loads "//cdn.example.com/x.js", but the page may not load from https://cdn.example.com`},
		{"a style sheet", `<link rel="stylesheet" href="https://cdn.example.com/x.css">`, nil, `<link> loads "https://cdn.example.com/x.css"`},
		{"a link without a load", `<link rel="canonical" href="https://cdn.example.com/">`, nil, ""},
		{"srcset", `<img srcset="https://a.example.com/x.png 1x, https://b.example.com/x.png 2x">`, []apps.Option{apps.Resources("https://a.example.com")}, `may not load from https://b.example.com`},
		{"a frame", `<iframe src="https://video.example.com/x"></iframe>`, []apps.Option{apps.Resources("https://video.example.com")}, `apps.Frames("https://video.example.com")`},
		{"an allowed frame", `<iframe src="https://video.example.com/x"></iframe>`, []apps.Option{apps.Frames("https://video.example.com")}, ""},
		{"a base", `<base href="https://example.com/">`, nil, `apps.BaseURIs("https://example.com")`},
		{"an object", `<object data="https://example.com/x.swf"></object>`, []apps.Option{apps.Resources("https://example.com")}, `<object> loads "https://example.com/x.swf", which hosts never allow; remove it`},
		{"url() in a style sheet", `<style>p { background: url( 'https://cdn.example.com/x.png' ) }</style>`, nil, `<url()> loads "https://cdn.example.com/x.png"`},
		{"url() in a comment", `<style>/* url(https://cdn.example.com/x.png) */ p { color: red }</style>`, nil, ""},
		{"url() in an attribute", `<p style="background: URL(https://cdn.example.com/x.png)">`, nil, `<url()> loads "https://cdn.example.com/x.png"`},
		{"@import", `<style>@import "https://cdn.example.com/x.css";</style>`, nil, `<@import> loads "https://cdn.example.com/x.css"`},
		{"@import url()", `<style>@import url(https://cdn.example.com/x.css);</style>`, nil, `<@import> loads "https://cdn.example.com/x.css"`},
		{"a module", `<script type="module">import a, { b } from "https://esm.example.com/a.js"</script>`, nil, `<import> loads "https://esm.example.com/a.js"`},
		{"a module without names", `<script type="module">import"https://esm.example.com/a.js"</script>`, nil, `<import> loads`},
		{"an export", `<script type="module">export * from 'https://esm.example.com/a.js'</script>`, nil, `<import> loads`},
		{"a dynamic import", "<script>const a = await import(`https://esm.example.com/a.js`)</script>", nil, `<import> loads`},
		{"an import in a template", "<script>x = `a ${await import('https://esm.example.com/a.js')} b`</script>", nil, `<import> loads`},
		{"an import map", `<script type="importmap">{"imports":{"a":"https://esm.example.com/a.js"}}</script>`, nil, `<import> loads`},
		{"a broken import map", `<script type="importmap">{</script>`, nil, `the import map is not valid JSON`},
		{"an import in comments and texts", `<script>// import "https://a.example.com"
			/* import "https://a.example.com" */ const a = 'import "https://a.example.com"', b = /import "https:\/\/a"/, c = x.import("https://a.example.com"), d = Array.from("https://a.example.com")</script>`, nil, ""},
		{"data that is not a script", `<script type="application/json">{"a": "import 'https://a.example.com'"}</script>`, nil, ""},
		{"a relative import", `<script type="module">import "./x.js"</script>`, nil, `import "./x.js": a page has no server to load the file from; bundle the script into one file`},
		{"a missing script", `<script src="x.js"></script>`, nil, `<script> refers to the file "x.js", which the file system does not have`},
		{"a missing image", `<img src="/img/x.png">`, nil, `<img> refers to the file "/img/x.png", which the file system does not have`},
		{"a file outside", `<img src="../../x.png">`, nil, `which the file system does not have`},
		{"a local frame", `<iframe src="board.html"></iframe>`, nil, `<iframe> refers to the file "board.html", and a page has no server to load it from; write it into the page`},
		{"a deferred script", `<script src="script.js" defer></script>`, nil, `defer has no effect; move it to the end of the body, or make it a module`},
		{"an empty page", " \n", nil, `page board.html: it is empty or not in UTF-8`},
		{"an unknown page", boardHTML, []apps.Option{apps.Page("bord")}, `Page("bord"): there is no file bord.html; did you mean "board"?`},
		{"an unknown permission", boardHTML, []apps.Option{apps.Permissions("camara")}, `unknown permission "camara"; did you mean "camera"?; known are camera, microphone, geolocation, clipboardWrite`},
		{"a path", boardHTML, []apps.Option{apps.Connect("https://example.com/api")}, `"https://example.com/api" is not an origin; write for example "https://api.example.com" or "https://*.example.com"`},
		{"a directive", boardHTML, []apps.Option{apps.Connect("https://example.com; script-src *")}, `is not an origin`},
		{"a star", boardHTML, []apps.Option{apps.Connect("*")}, `is not an origin`},
		{"no directory", boardHTML, []apps.Option{apps.Dir("pages")}, `the pages cannot be read`},
		{"a directory outside", boardHTML, []apps.Option{apps.Dir("../x")}, `directory "../x"`},
		{"a bad prefix", boardHTML, []apps.Option{apps.Prefix("a b")}, `prefix "a b" has other characters than letters, digits and . _ ~ - /`},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := mcpkit.New(&tagged{}, apps.FS(files("board.html", test.page, "script.js", "go()"), test.options...))
			if test.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, `mcpkit: extension "io.modelcontextprotocol/ui": `)
			require.ErrorContains(t, err, test.want)
		})
	}
}

func TestPagesWithoutAToolAreFaults(t *testing.T) {
	_, err := mcpkit.New(&tagged{}, apps.FS(files("board.html", boardHTML, "left.html", boardHTML, "over.html", boardHTML)))
	require.EqualError(t, err, `mcpkit: extension "io.modelcontextprotocol/ui": page left.html: no tool has it; write app:"ui://left" in the tags of one, or remove the file
page over.html: no tool has it; write app:"ui://over" in the tags of one, or remove the file`)
	_, err = mcpkit.New(nil, apps.FS(files("x.txt", "")))
	require.ErrorContains(t, err, `directory "." of the file system has no file with the extension .html`)
	_, err = mcpkit.New(nil, apps.FS(nil))
	require.ErrorContains(t, err, `the file system is nil; embed the pages with //go:embed`)
	_, err = mcpkit.New(nil, apps.FS(files("a b.html", boardHTML)))
	require.ErrorContains(t, err, `page a b.html: its name has other characters than letters, digits and . _ ~ - /; rename the file`)
	_, err = mcpkit.New(&tagged{}, apps.FS(files("board.html", boardHTML)), apps.FS(files("board.html", boardHTML)))
	require.ErrorContains(t, err, `another extension has the tag "app"`)
}

// read returns the page that a server makes of files.
func read(t *testing.T, texts ...string) string {
	t.Helper()
	srv, err := mcpkit.New(&tagged{}, apps.FS(files(texts...)))
	require.NoError(t, err)
	contents, err := dial(t, srv).ReadResource(t.Context(), "ui://board")
	require.NoError(t, err)
	return *contents.Contents[0].Text
}

func TestFilesBecomePartsOfThePage(t *testing.T) {
	require.Equal(t, `<!doctype html><p class=a title='b'>&nbsp;x`, read(t, "board.html", `<!doctype html><p class=a title='b'>&nbsp;x`), "other text stays as it is")
	require.Equal(t, `<style media="print">p { background: url("data:image/png;base64,UE5H") }</style><script type="module">alert("<\/script>")</script><img alt="a" src="data:image/svg+xml;base64,PHN2Zy8+"/>`,
		read(t, "board.html", `<link rel="stylesheet" href="css/a.css" media="print"><script type="module" src="./a.js"></script><img alt="a" src="/css/a.svg"/>`,
			"css/a.css", `p { background: url(b.png) }`, "css/b.png", "PNG", "css/a.svg", "<svg/>", "a.js", `alert("</script>")`))
}

func TestFilesCannotEndTheirElement(t *testing.T) {
	require.Equal(t, `<script>a = "<\/Script><\!--"</script><style>p::after { content: "<\/STYLE>" }</style>`,
		read(t, "board.html", `<script src="a.js"></script><link rel="stylesheet" href="a.css">`,
			"a.js", `a = "</Script><!--"`, "a.css", `p::after { content: "</STYLE>" }`))
}

func TestPagesIncludeTheScriptOfThePackage(t *testing.T) {
	page := read(t, "board.html", `<script src="mcp-app.js"></script><script>mcpApp.connect()</script>`)
	require.True(t, strings.HasPrefix(page, "<script>// mcp-app.js connects a page"), page[:60])
	require.Contains(t, page, "</script><script>mcpApp.connect()</script>")
	require.Equal(t, 2, strings.Count(page, "</script>"))
}

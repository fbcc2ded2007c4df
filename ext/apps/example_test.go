package apps_test

import (
	"context"
	"fmt"
	"testing/fstest"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/ext/apps"
	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// Teapot brews tea.
type Teapot struct {
	_ struct {
		Brew mcpkit.Tool `app:"ui://teapot"`
	}
}

// Brew brews tea.
func (Teapot) Brew() string { return "The tea is ready." }

// A server ties a tool to a page, and a host reads the page.
func ExampleFS() {
	ctx := context.Background()
	pages := fstest.MapFS{"teapot.html": {Data: []byte(`<!doctype html><title>Teapot</title><p id="tea"></p>
<script src="mcp-app.js"></script>
<script>mcpApp.connect({ onResult: (r) => { document.getElementById("tea").textContent = mcpApp.value(r); } });</script>`)}}
	c, err := client.Dial(ctx, mcpkit.MustNew(&Teapot{}, apps.FS(pages)))
	if err != nil {
		panic(err)
	}
	defer c.Close()
	for tool, err := range c.Tools(ctx) {
		if err != nil {
			panic(err)
		}
		fmt.Println(tool.Name, string(tool.Meta["ui"]))
	}
	for page, err := range c.Resources(ctx) {
		if err != nil {
			panic(err)
		}
		fmt.Println(page.URI, page.Title, page.MIMEType)
	}
	// Output:
	// brew {"resourceUri":"ui://teapot"}
	// ui://teapot Teapot text/html;profile=mcp-app
}

// A page that loads from other origins names them.
func ExamplePage() {
	ctx := context.Background()
	pages := fstest.MapFS{"teapot.html": {Data: []byte(`<!doctype html><title>Teapot</title><script src="https://cdn.example.com/tea.js"></script>`)}}
	// docs:begin origins
	option := apps.FS(pages, apps.Page("teapot",
		apps.Resources("https://cdn.example.com"), // scripts, style sheets, images, fonts, media
		apps.Connect("https://api.example.com"),   // fetch and WebSockets
		apps.Frames("https://video.example.com"),
		apps.Permissions("clipboardWrite"),
	))
	// docs:end origins
	c, err := client.Dial(ctx, mcpkit.MustNew(&Teapot{}, option))
	if err != nil {
		panic(err)
	}
	defer c.Close()
	for page, err := range c.Resources(ctx) {
		if err != nil {
			panic(err)
		}
		fmt.Println(string(page.Meta["ui"]))
	}
	// Output:
	// {"csp":{"connectDomains":["https://api.example.com"],"resourceDomains":["https://cdn.example.com"],"frameDomains":["https://video.example.com"]},"permissions":{"clipboardWrite":{}}}
}

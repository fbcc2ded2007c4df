package apps_test

import (
	"context"
	"fmt"

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

const teapotHTML = `<!doctype html><title>Teapot</title><p id="tea"></p>
<script>mcpApp.connect({ onResult: (r) => { document.getElementById("tea").textContent = mcpApp.value(r); } });</script>`

// A server ties a tool to a page, and a host reads the page.
func ExamplePages() {
	ctx := context.Background()
	c, err := client.Dial(ctx, mcpkit.MustNew(&Teapot{}, apps.Pages(apps.Page{URI: "ui://teapot", Title: "Teapot", HTML: teapotHTML})))
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
func ExampleCSP() {
	ctx := context.Background()
	// docs:begin origins
	page := apps.Page{
		URI:  "ui://teapot",
		HTML: teapotHTML,
		CSP: apps.CSP{
			Resources: []string{"https://cdn.example.com"}, // scripts, style sheets, images, fonts, media
			Connect:   []string{"https://api.example.com"}, // fetch and WebSockets
			Frames:    []string{"https://video.example.com"},
		},
		Permissions: []string{"clipboardWrite"},
	}
	// docs:end origins
	c, err := client.Dial(ctx, mcpkit.MustNew(&Teapot{}, apps.Pages(page)))
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

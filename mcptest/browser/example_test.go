package browser_test

import (
	"testing"

	"github.com/mcpkit/mcpkit-go/ext/apps"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/mcptest/browser"
)

// Teapot brews tea.
type Teapot struct {
	_ struct {
		Brew mcpkit.Tool `app:"ui://teapot"`
	}
}

// Brew brews tea.
func (Teapot) Brew() string { return "The tea is ready." }

// teapot is the page of Brew.
var teapot = apps.Page{URI: "ui://teapot", HTML: `<!doctype html><title>Teapot</title><p id="tea"></p>
<script>mcpApp.connect({ onResult: (r) => { document.getElementById("tea").textContent = mcpApp.value(r); } });</script>`}

// In a test, Show calls the tool and shows its page, and the test waits for what a person would see.
func Example() {
	_ = testBrew // go test calls it as TestBrew
}

func testBrew(t *testing.T) {
	app := browser.Show(t, mcpkit.MustNew(&Teapot{}, apps.Pages(teapot)), "brew", nil)
	app.WaitFor(`document.getElementById("tea").textContent === "The tea is ready."`)
}

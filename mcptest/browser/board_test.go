package browser_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/mcptest/browser"
)

// builtIn is the directory with examples/board; "" if no test needed it.
var builtIn string

// build builds examples/board.
var build = sync.OnceValue(func() (err error) {
	if builtIn, err = os.MkdirTemp("", "board"); err != nil {
		return err
	}
	out, err := exec.Command("go", "build", "-o", filepath.Join(builtIn, "board"), "github.com/mcpkit/mcpkit-go/examples/board").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return err
})

// board is the command of examples/board.
func board(t *testing.T) *client.CommandTarget {
	t.Helper()
	browser.Need(t)
	require.NoError(t, build())
	return client.Command(filepath.Join(builtIn, "board"))
}

// inColumn is true if the titles of the cards in a column are these.
func inColumn(column, titles string) string {
	return `[...document.querySelectorAll("#` + column + ` .card")].map((c) => c.textContent).join() === "` + titles + `"`
}

func TestAPersonDragsCards(t *testing.T) {
	app := browser.Show(t, board(t), "show_board", nil, browser.Context("theme", "dark"))
	app.WaitFor(inColumn("todo", "Write the page,Test it in a browser"))

	app.Drag("#card-1", "#doing")
	app.WaitFor(inColumn("doing", "Write the page"))
	app.WaitFor(inColumn("todo", "Test it in a browser"))
	require.JSONEq(t, `{"name":"move_card","arguments":{"id":1,"to":"doing"}}`, app.WaitReceived("tools/call", 1))
	require.Contains(t, app.WaitReceived("ui/update-model-context", 1), "The user moved the card 1 to doing.")

	app.Drag("#card-2", "#card-3")
	app.WaitFor(inColumn("done", "Test it in a browser,Choose a name"))
	require.JSONEq(t, `{"name":"move_card","arguments":{"id":2,"to":"done","before":3}}`, app.WaitReceived("tools/call", 2))
	require.Empty(t, app.Blocked(), "the page loads nothing from elsewhere")
	if file := os.Getenv("SCREENSHOT"); file != "" {
		require.NoError(t, os.WriteFile(file, app.Screenshot(), 0o644))
	}
}

package browser

import (
	"context"
	"testing"

	"github.com/chromedp/chromedp"
)

// Open opens a URL that is not the page of a tool. Scripts run in the page itself.
func Open(t testing.TB, url string) (a *App, closeTab func()) {
	a = &App{t: t}
	return a, a.open(url)
}

// Context returns the context of the tab.
func (a *App) Context() context.Context { return a.tab }

// Run runs an action in the tab.
func Run[T any](a *App, action chromedp.Action[T]) (T, error) { return run(a, action) }

// ClickAt clicks somewhere.
func (a *App) ClickAt(x, y float64) {
	a.mouse(chromedp.MousePressed, x, y)
	a.mouse(chromedp.MouseReleased, x, y)
}

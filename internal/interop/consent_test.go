package interop

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
	"golang.org/x/oauth2"

	"github.com/mcpkit/mcpkit-go/mcptest/browser"
)

// faint lists the texts of a page whose contrast is below 4.5 (WCAG 2.2, criterion 1.4.3).
const faint = `(() => {
	const channels = (color) => color.match(/[\d.]+/g).map(Number);
	const luminance = ([r, g, b]) => {
		const [x, y, z] = [r, g, b].map((c) => c / 255).map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
		return 0.2126 * x + 0.7152 * y + 0.0722 * z;
	};
	const behind = (e) => {
		const color = getComputedStyle(e).backgroundColor;
		return channels(color)[3] === 0 ? behind(e.parentElement) : color;
	};
	return [...document.querySelectorAll("h1, p, li, button, a")].filter((e) => {
		const [dark, light] = [getComputedStyle(e).color, behind(e)].map(channels).map(luminance).sort((a, b) => a - b);
		return (light + 0.05) / (dark + 0.05) < 4.5;
	}).map((e) => e.textContent);
})()`

// The page names the program and where the login goes, can be read in light and dark, and needs no
// mouse. Chromium follows it to another site.
func TestConsentPageInChromium(t *testing.T) {
	row(t, func(t *testing.T) {
		browser.Need(t)
		mux, site := newSite(t)
		mux.Handle("/", newBroker(t, site))
		back := make(chan url.Values, 1)
		app := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/callback" {
				back <- r.URL.Query()
			}
		}))
		t.Cleanup(app.Close)
		const callback = "https://app.example/callback"
		resp, err := http.Post(site+"/register", "application/json",
			strings.NewReader(`{"client_name":"Editor","redirect_uris":["`+callback+`"]}`))
		require.NoError(t, err)
		defer resp.Body.Close()
		var registered struct {
			ID string `json:"client_id"`
		}
		require.NoError(t, json.NewDecoder(resp.Body).Decode(&registered))
		page := site + "/authorize?" + url.Values{
			"response_type": {"code"}, "client_id": {registered.ID}, "redirect_uri": {callback},
			"code_challenge_method": {"S256"}, "code_challenge": {oauth2.S256ChallengeFromVerifier("x")},
		}.Encode()

		allocator, stop := chromedp.NewExecAllocator(t.Context(), append(chromedp.DefaultExecAllocatorOptions[:],
			chromedp.ExecPath(browser.Path()), chromedp.DisableGPU, chromedp.Flag("ignore-certificate-errors", true),
			chromedp.Flag("host-resolver-rules", "MAP app.example "+app.Listener.Addr().String()))...)
		defer stop()
		tab, closeTab := chromedp.NewContext(allocator)
		defer closeTab()
		tab, cancel := context.WithTimeout(tab, timeout)
		defer cancel()
		for _, test := range []struct{ scheme, button, keys, answer string }{
			{"light", "Deny", kb.Tab, "access_denied"},
			{"dark", "Allow", kb.Tab + kb.Tab, ""},
		} {
			emulate := func(ctx context.Context, target *chromedp.Target) (cdp.Empty, error) {
				return cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
					Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: test.scheme}},
				})
			}
			_, err := chromedp.Run(tab, chromedp.Action[cdp.Empty](emulate))
			require.NoError(t, err)
			require.NoError(t, chromedp.Do(tab, chromedp.Navigate(page), chromedp.KeyEvent(test.keys)))
			text, err := chromedp.Run(tab, chromedp.Evaluate[string]("document.body.innerText"))
			require.NoError(t, err)
			for _, part := range []string{
				"Allow Editor to use Diary?", "as user@example.com.", "Nobody has verified it.",
				"The login goes to app.example.", "diary:write",
			} {
				require.Contains(t, text, part)
			}
			pale, err := chromedp.Run(tab, chromedp.Evaluate[[]string](faint))
			require.NoError(t, err)
			require.Empty(t, pale, test.scheme)
			focus, err := chromedp.Run(tab, chromedp.Evaluate[string](
				`(({ activeElement: e }) => e.textContent + " " + getComputedStyle(e).outlineStyle)(document)`))
			require.NoError(t, err)
			require.Equal(t, test.button+" solid", focus)
			require.NoError(t, chromedp.Do(tab, chromedp.KeyEvent(kb.Enter)))
			select {
			case q := <-back:
				require.Equal(t, test.answer, q.Get("error"))
				require.Equal(t, test.answer == "", q.Get("code") != "")
			case <-tab.Done():
				t.Fatal("Chromium does not reach the program")
			}
		}
	}, "chromium at mcpkit broker login", "consent")
}

package interop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"github.com/stretchr/testify/require"
	"golang.org/x/oauth2"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/mcptest/browser"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/oauth/oauthclient"
	"github.com/mcpkit/mcpkit-go/oauth/oauthtest"
	"github.com/mcpkit/mcpkit-go/oauth/resource"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

// A diary has a tool for each of two scopes.
type diary struct {
	_ mcpkit.Info `name:"diary" version:"1.0.0"`
	_ struct {
		Read  mcpkit.Tool `scopes:"diary:read"`
		Write mcpkit.Tool `scopes:"diary:read diary:write"`
	}
	entries []string
}

func (d *diary) Read() []string { return d.entries }

func (d *diary) Write(user *oauth.Principal, in struct {
	Text string `json:"text"`
}) string {
	d.entries = append(d.entries, in.Text)
	return "Written, " + user.Subject + "."
}

// serveDiary serves a diary whose authorization server agrees to everything.
func serveDiary(t *testing.T) (url string) {
	as := oauthtest.New(t, &oauthtest.Options{Scopes: []string{"diary:read", "diary:write"}})
	mux, web := newSite(t)
	return guardDiary(t, mux, resource.Options{
		Issuer: as.Issuer, Resource: web + "/mcp", InsecureLoopback: true, ScopesSupported: []string{"diary:read", "diary:write"},
	})
}

func newSite(t *testing.T) (mux *http.ServeMux, url string) {
	mux = http.NewServeMux()
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	return mux, web.URL
}

func guardDiary(t *testing.T, mux *http.ServeMux, opts resource.Options) (url string) {
	opts.Scopes = []string{"diary:read"}
	guard, err := resource.New(opts)
	require.NoError(t, err)
	srv, err := mcpkit.New(&diary{}, mcpkit.Authenticated(), mcpkit.StepUp())
	require.NoError(t, err)
	handler := streamable.NewHandler(srv, nil)
	t.Cleanup(handler.Close)
	if len(opts.JWKS) == 0 { // otherwise the broker serves the metadata
		guard.Mount(mux)
	}
	mux.Handle("/mcp", guard.Wrap(handler))
	return opts.Resource
}

// diaries are the servers that clients log in at, by what their rows are named for.
var diaries = map[string]func(t *testing.T) (url string){"": serveDiary, "broker ": serveDiaryBehindBroker}

func TestTypeScriptClientsLogInAtOurServer(t *testing.T) {
	at := func(sdk, version string) {
		for name, serve := range diaries {
			row(t, func(t *testing.T) {
				user := newPerson("user")
				mux, browser := newSite(t)
				mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
					if back, err := user.visit(r.Context(), r.FormValue("page")); err == nil {
						http.Redirect(w, r, back.String(), http.StatusFound)
					}
				})
				runNode(t, "login.mjs", task{SDK: sdk, Version: version, Server: &target{URL: serve(t)}, Browser: browser})
			}, sdk, "at mcpkit "+name+"login", version)
		}
	}
	at(sdk1, latest)
	at(sdk2, latest)
	at(sdk2, modern)
}

// redirect is an address without a listener: the tests read the code from the redirect itself.
const redirect = "http://127.0.0.1:1/callback"

func TestGoSDKClientLogsInAtOurServer(t *testing.T) {
	for name, serve := range diaries {
		row(t, func(t *testing.T) {
			user := newPerson("user")
			var scopes []string // the requested ones, for each login
			handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
				RedirectURL: redirect,
				AuthorizationCodeFetcher: func(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
					back, err := user.visit(ctx, args.URL)
					if err != nil {
						return nil, err
					}
					scopes = append(scopes, user.asked.Get("scope"))
					q := back.Query()
					return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
				},
				DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
					ClientName: "interop", RedirectURIs: []string{redirect}, TokenEndpointAuthMethod: "none",
					GrantTypes: []string{"authorization_code", "refresh_token"},
				}},
			})
			require.NoError(t, err)
			c := mcp.NewClient(&mcp.Implementation{Name: "interop", Version: "1.0.0"}, nil)
			session, err := c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: serve(t), OAuthHandler: handler},
				&mcp.ClientSessionOptions{ProtocolVersion: modern})
			require.NoError(t, err)
			call := func(tool string, args object) string {
				result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
				require.NoError(t, err)
				return result.Content[0].(*mcp.TextContent).Text
			}
			require.Equal(t, "[]", call("read", object{}))
			require.Equal(t, []string{"diary:read"}, scopes)
			require.Equal(t, "Written, user.", call("write", object{"text": "It rained."}))
			require.Len(t, scopes, 2)
			require.ElementsMatch(t, []string{"diary:read", "diary:write"}, strings.Fields(scopes[1]))
			require.NoError(t, session.Close())
		}, "go-sdk at mcpkit "+name+"login", modern)
	}
}

func TestOurClientLogsIn(t *testing.T) {
	row(t, func(t *testing.T) { logIn(t, serveGoSDKGreeter(t)) }, "mcpkit at go-sdk login", modern)
	row(t, func(t *testing.T) {
		// The example server of the SDK, with an authorization server of its own, ends on SIGINT.
		const example = "../node_modules/@modelcontextprotocol/sdk/dist/esm/examples/server/simpleStreamableHttp.js"
		addr := serveUntil(t, syscall.SIGINT, func(addr string) *exec.Cmd {
			cmd := node(t, filepath.FromSlash(example), nil)
			_, port, _ := strings.Cut(addr, ":")
			_, other, _ := strings.Cut(freeAddr(t), ":")
			cmd.Args = append(cmd.Args[:2], "--oauth", "--oauth-strict")
			cmd.Env = append(cmd.Environ(), "MCP_PORT="+port, "MCP_AUTH_PORT="+other)
			return cmd
		})
		logIn(t, "http://"+strings.Replace(addr, "127.0.0.1", "localhost", 1)+"/mcp")
	}, "mcpkit at", sdk1, "login", latest)
}

// logIn logs in to a server with our client, calls its tool, and connects once more with the token.
func logIn(t *testing.T, url string) {
	logins := 0
	browser := oauthclient.Loopback(&oauthclient.LoopbackOptions{Open: func(ctx context.Context, page string) error {
		logins++
		return oauthtest.Open(ctx, page)
	}})
	store := oauthclient.NewMemoryStore()
	for range 2 {
		tokens, err := oauthclient.New(url, &oauthclient.AuthorizationCode{Name: "interop", Browser: browser},
			&oauthclient.Options{Store: store, InsecureLoopback: true})
		require.NoError(t, err)
		c, err := client.Dial(t.Context(), url, client.HTTPClient(&http.Client{Transport: tokens}))
		require.NoError(t, err)
		greeting, err := client.Call[string](t.Context(), c, "greet", object{"name": "Ada"})
		require.NoError(t, err)
		require.Equal(t, "Hello, Ada!", greeting)
		token, err := tokens.Token(t.Context())
		require.NoError(t, err)
		require.Equal(t, url, token.Resource)
		require.Equal(t, []string{"mcp:tools"}, token.Granted)
		require.NoError(t, errors.Join(c.Close(), tokens.Close()))
		require.Equal(t, 1, logins)
	}
}

// serveGoSDKGreeter serves a tool behind go-sdk's middleware, which introspects tokens (RFC 7662).
func serveGoSDKGreeter(t *testing.T) (resource string) {
	const id, secret = "server", "interop-secret"
	as, err := oauthtest.Start(&oauthtest.Options{Clients: []oauthtest.Client{{ID: id, Secret: secret}}, Opaque: true})
	require.NoError(t, err)
	t.Cleanup(func() { as.Close() })
	mux := http.NewServeMux()
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	resource = web.URL + "/mcp"

	greeter := mcp.NewServer(&mcp.Implementation{Name: "greeter", Version: "1.0.0"}, nil)
	type input struct {
		Name string `json:"name"`
	}
	mcp.AddTool(greeter, &mcp.Tool{Name: "greet"},
		func(_ context.Context, _ *mcp.CallToolRequest, in input) (*mcp.CallToolResult, any, error) {
			return say("Hello, " + in.Name + "!"), nil, nil
		})
	verify := func(ctx context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		body := strings.NewReader(url.Values{"token": {token}}.Encode())
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, as.Endpoint("introspection"), body)
		if err != nil {
			return nil, err
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.SetBasicAuth(id, secret)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		var got struct {
			Active          bool
			Sub, Scope, Aud string
			Exp             int64
		}
		if err := json.NewDecoder(resp.Body).Decode(&got); err != nil {
			return nil, err
		}
		if !got.Active || got.Aud != resource {
			return nil, fmt.Errorf("%w: active %v, for %q", auth.ErrInvalidToken, got.Active, got.Aud)
		}
		return &auth.TokenInfo{Scopes: strings.Fields(got.Scope), Expiration: time.Unix(got.Exp, 0), UserID: got.Sub}, nil
	}
	const where = "/.well-known/oauth-protected-resource/mcp"
	mux.Handle(where, auth.ProtectedResourceMetadataHandler(&oauthex.ProtectedResourceMetadata{
		Resource: resource, AuthorizationServers: []string{as.Issuer}, ScopesSupported: []string{"mcp:tools"},
	}))
	mux.Handle("/mcp", auth.RequireBearerToken(verify, &auth.RequireBearerTokenOptions{
		ResourceMetadataURL: web.URL + where, Scopes: []string{"mcp:tools"},
	})(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return greeter }, nil)))
	return resource
}

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

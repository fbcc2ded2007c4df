package broker_test

import (
	"bytes"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/oauth2"

	"github.com/mcpkit/mcpkit-go/oauth/broker"
	"github.com/mcpkit/mcpkit-go/oauth/oauthclient"
	"github.com/mcpkit/mcpkit-go/oauth/resource"
)

const (
	stranger   = "The program is not registered here. Remove its login to this server, and log in again."
	foreign    = "This login has ended, or another browser began it. Log in again."
	notAllowed = "The program has sent a request that is not allowed."
)

// A request that is refused leads a program on the own machine back with an error. Strangers could
// register any other redirect URI, so the browser stays at a page, and never goes to an unknown URI.
func TestAuthorizationRequestsAreChecked(t *testing.T) {
	s := newSite(t, newProvider(t), nil)
	other := newSite(t, newProvider(t), func(o *broker.Options) { o.Keys = [][]byte{bytes.Repeat([]byte("n"), 32)} }).register(local).id
	for _, test := range []struct {
		name   string
		change []string
		err    string // code of the error for the client; "" for a page only
	}{
		{"no client", []string{"client_id", ""}, ""},
		{"an unknown client", []string{"client_id", "editor"}, ""},
		{"a client of another broker", []string{"client_id", other}, ""},
		{"no redirect URI", []string{"redirect_uri", ""}, ""},
		{"another redirect URI", []string{"redirect_uri", "https://evil.example/callback"}, ""},
		{"an implicit grant", []string{"response_type", "token"}, "unsupported_response_type"},
		{"PKCE left out", []string{"code_challenge", "", "code_challenge_method", ""}, "invalid_request"},
		{"PKCE without a method", []string{"code_challenge_method", ""}, "invalid_request"},
		{"PKCE downgraded", []string{"code_challenge_method", "plain"}, "invalid_request"},
		{"a short challenge", []string{"code_challenge", "abc"}, "invalid_request"},
		{"a response in a fragment", []string{"response_mode", "fragment"}, "invalid_request"},
		{"a request object", []string{"request", "e30.e30."}, "request_not_supported"},
		{"a request object by reference", []string{"request_uri", "https://evil.example/"}, "request_not_supported"},
		{"another resource", []string{"resource", "https://other.example/mcp"}, "invalid_target"},
		{"scopes that do not exist", []string{"scope", "openid email"}, "invalid_scope"},
		{"a key that is none", []string{"dpop_jkt", "x"}, "invalid_request"},
		{"a state that fits no cookie", []string{"state", strings.Repeat("s", 3000)}, "invalid_request"},
	} {
		t.Run(test.name, func(t *testing.T) {
			back := newBrowser(t, "ada")
			got := back.visit(s.register(local).page(test.change...))
			require.Equal(t, test.err, got.Get("error"))
			page := stranger
			if test.err != "" {
				require.Equal(t, []string{s.url}, got["iss"])
				require.Equal(t, "s", got.Get("state")[:1])
				page = notAllowed
			}
			away := newBrowser(t, "ada")
			require.Nil(t, away.visit(s.register(remote).page(test.change...)))
			require.Contains(t, away.page, page)
			require.Equal(t, test.err != "", strings.Contains(away.page, `href="`+remote+`?error=`+test.err), away.page)
			require.Zero(t, back.asked+away.asked)
		})
	}
	repeated := newBrowser(t, "ada").visit(s.register(local).page() + "&state=s2")
	require.Equal(t, "invalid_request", repeated.Get("error"))
}

func TestRedirectURIsAreCompared(t *testing.T) {
	s := newSite(t, newProvider(t), nil)
	for _, test := range []struct {
		registered    string
		same, another []string
	}{
		{"https://app.example/cb", []string{"https://app.example/cb"}, []string{
			"https://app.example/cb/", "https://app.example/CB", "https://APP.example/cb", "HTTPS://app.example/cb", "http://app.example/cb",
			"https://app.example:443/cb", "https://app.example:8443/cb", "https://app.example/cb?x=1", "https://app.example/cb#x",
			"https://app.example/cb#", "https://app.example/./cb", "https://app.example/%63b", "https://app.example/cb/../evil",
			"https://app.example.evil.example/cb", "https://app.example@evil.example/cb", "https://evil@app.example/cb",
			`https://evil.example\@app.example/cb`,
		}},
		{"http://127.0.0.1/cb", []string{"http://127.0.0.1/cb", "http://127.0.0.1:5000/cb"}, []string{
			"http://127.0.0.1:5000/", "http://localhost/cb", "http://127.0.0.2/cb", "https://127.0.0.1:5000/cb", "http://u@127.0.0.1/cb",
			"http://127.0.0.1.evil.example/cb", "http://127.0.0.1:80@evil.example/cb",
		}},
		{"http://127.0.0.1:4000/cb", []string{"http://127.0.0.1:5000/cb"}, nil},
		{"http://localhost:4000/cb", []string{"http://localhost/cb"}, []string{"http://LOCALHOST:4000/cb"}},
		{"http://[::1]:4000/cb", []string{"http://[::1]:5000/cb"}, []string{"http://[::2]:4000/cb"}},
	} {
		c := s.register(test.registered)
		for _, asked := range test.same {
			require.Equal(t, http.StatusFound, serve(s, "GET", c.page("redirect_uri", asked), "").Code, asked)
		}
		for _, asked := range test.another {
			require.Equal(t, http.StatusBadRequest, serve(s, "GET", c.page("redirect_uri", asked), "").Code, asked)
		}
	}
}

func TestRegistrationsAreChecked(t *testing.T) {
	s := newSite(t, newProvider(t), nil)
	redirects := func(uris ...string) string { return `"redirect_uris":["` + strings.Join(uris, `","`) + `"]` }
	good, many := redirects("https://a.example/"), strings.Split(strings.Repeat("https://a.example/ ", 11), " ")[:11]
	for code, bodies := range map[string][]string{
		"invalid_client_metadata": {
			`x`, `"client_name":"` + strings.Repeat("x", 70_000) + `"`, redirects("https://app.example/" + strings.Repeat("x", 1000)),
			good + `,"grant_types":["client_credentials"]`, good + `,"response_types":["token"]`,
		},
		"invalid_redirect_uri": {
			``, redirects(many...), redirects("http://app.example/cb"), redirects("https://app.example/cb#x"), redirects("//app.example/cb"),
			redirects("https://u@app.example/cb"), redirects("https://app.example;script-src/cb"), redirects("https://app.example/ cb"),
			redirects("javascript:alert(1)"), redirects("data:text/html,x"), redirects("editor://callback"),
			redirects("https://app.example/cb", "file:///etc"),
		},
		"": {good + `,"token_endpoint_auth_method":"x","x":1`, good + `,"grant_types":["authorization_code","x"]`},
	} {
		for _, body := range bodies {
			status, doc := s.post("/register", "{"+body+"}")
			require.Equal(t, code, or(doc["error"]), body)
			require.Equal(t, code == "", status == http.StatusCreated)
			if code == "" {
				require.Equal(t, []any{"none", []any{"authorization_code"}, nil}, []any{doc["token_endpoint_auth_method"], doc["grant_types"], doc["client_secret"]})
			}
		}
	}
}

// A flood of registrations leaves nothing behind: what is registered is in the client ID.
func TestRegistrationsTakeNoSpaceAndExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, again := newOnline(t), newOnline(t).s
		require.Less(t, len(c.id), 200)
		require.Equal(t, http.StatusFound, serve(again, "GET", c.page(), "").Code, "after a restart")
		time.Sleep(366 * 24 * time.Hour)
		require.Equal(t, http.StatusBadRequest, serve(again, "GET", c.page(), "").Code)
	})
}

// The confused deputy: the provider logs the user in without a question, so the broker must ask.
func TestConsentIsAskedForEachClient(t *testing.T) {
	s := newSite(t, newProvider(t), nil)
	ada, bob := newBrowser(t, "ada"), newBrowser(t, "bob")
	web, native, tls := s.register(remote), s.register(local), s.register(encrypted)
	two := s.register(remote + `","` + remote + `2`)
	two.redirect = remote
	for _, step := range []struct {
		name   string
		user   *browser
		client *program
		change []string
		asked  int
	}{
		{"a first login", ada, web, []string{"scope", "notes:read"}, 1},
		{"the same again", ada, web, []string{"scope", "notes:read"}, 0},
		{"more scopes", ada, web, []string{"scope", "notes:read notes:write"}, 1},
		{"fewer scopes", ada, web, []string{"scope", "notes:write"}, 0},
		{"another client with the same name and redirect URI", ada, s.register(remote), []string{"scope", "notes:read"}, 1},
		{"another user", bob, web, []string{"scope", "notes:read"}, 1},
		{"a redirect URI", ada, two, []string{"scope", "notes:read"}, 1},
		{"another redirect URI", ada, two, []string{"redirect_uri", remote + "2", "scope", "notes:read"}, 1},
		{"a program on the own machine", ada, native, []string{"scope", "notes:read"}, 1},
		{"which anyone can be", ada, native, []string{"scope", "notes:read"}, 1},
		{"a program on the own machine with a certificate", ada, tls, []string{"scope", "notes:read"}, 1},
		{"which anyone can be, too", ada, tls, []string{"scope", "notes:read"}, 1},
	} {
		step.user.asked = 0
		require.NotEmpty(t, step.user.visit(step.client.page(step.change...)).Get("code"), step.name)
		require.Equal(t, step.asked, step.user.asked, step.name)
	}
	ada.decide = "deny"
	got := ada.visit(s.register(remote).page())
	require.Equal(t, "access_denied", got.Get("error"))
	require.Equal(t, "s1", got.Get("state"))
	require.Empty(t, got.Get("code"))
}

func TestALoginEndsInTheBrowserThatBeganIt(t *testing.T) {
	p := newProvider(t)
	s := newSite(t, p, nil)
	c := s.register(local)
	// stop opens the page in a browser, up to a redirect to the endpoint of the broker.
	stop := func(b *browser, endpoint string) (stopped string) {
		b.through = func(next string) string {
			if strings.Contains(next, s.url+endpoint) {
				stopped, next = next, s.url+"/stopped"
			}
			return next
		}
		require.Nil(t, b.visit(c.page()))
		b.through = nil
		require.NotEmpty(t, stopped)
		return stopped
	}
	code, issuer := regexp.MustCompile(`code=[^&]+`), regexp.MustCompile(`iss=[^&]+`)
	for name, attack := range map[string]func(eve, ada *browser) string{
		"the attacker's login is finished by the victim": func(eve, ada *browser) string { return stop(eve, "/callback") },
		"the attacker's question is shown to the victim": func(eve, ada *browser) string { return stop(eve, "/consent") },
		"the code of another login": func(eve, ada *browser) string { // PKCE binds it to its own
			return code.ReplaceAllString(stop(ada, "/callback"), code.FindString(stop(eve, "/callback")))
		},
		"a response of another server": func(_, ada *browser) string {
			return issuer.ReplaceAllString(stop(ada, "/callback"), "iss=https%3A%2F%2Fevil.example")
		},
		"a response without a state":        func(_, ada *browser) string { return s.url + "/callback?code=x" },
		"a code that is not the provider's": func(_, ada *browser) string { return strings.Replace(stop(ada, "/callback"), "code=", "code=x", 1) },
		"a callback that comes twice": func(_, ada *browser) string {
			back := stop(ada, "/callback")
			ada.open(back)
			return back
		},
	} {
		t.Run(name, func(t *testing.T) {
			ada := newBrowser(t, "ada")
			require.Nil(t, ada.visit(attack(newBrowser(t, "bob"), ada)))
			require.Contains(t, ada.page, foreign)
			require.Zero(t, ada.asked)
		})
	}
	t.Run("a nonce of another login", func(t *testing.T) {
		p.change(func(p *provider) { p.claims = object{"nonce": "another"} })
		defer p.change(func(p *provider) { p.claims = nil })
		require.Nil(t, newBrowser(t, "ada").visit(c.page()))
	})
	ada := newBrowser(t, "ada")
	form := ada.open(c.page())
	for name, header := range map[string][]string{
		"a form of another site":    {"Cookie", ada.cookie(), "Origin", "https://evil.example"},
		"a form of a sibling":       {"Cookie", ada.cookie(), "Sec-Fetch-Site", "same-site"},
		"a form in a sandbox":       {"Cookie", ada.cookie(), "Origin", "null"},
		"a form of another browser": {"Cookie", newBrowser(t, "bob").cookie()},
	} {
		w := serve(s, "POST", "/consent", form, append(header, "Content-Type", "application/x-www-form-urlencoded")...)
		require.Equal(t, http.StatusBadRequest, w.Code, name)
	}
	require.Contains(t, ada.submit(s.url, form), "code=", "the user's own")
}

func TestAConsentBringsTokensOnce(t *testing.T) {
	s := newSite(t, newProvider(t), nil)
	ada, c := newBrowser(t, "ada"), s.register(local)
	form := ada.open(c.page())
	cookie := ada.cookie()
	click := func() string {
		w := serve(s, "POST", "/consent", form, "Cookie", cookie, "Content-Type", "application/x-www-form-urlencoded")
		back, err := url.Parse(strings.TrimPrefix(w.Header().Get("Refresh"), "0; url="))
		require.NoError(t, err)
		return back.Query().Get("code")
	}
	for i, code := range []string{click(), click()} { // a double click
		status, _ := c.redeem(code)
		require.Equal(t, []int{http.StatusOK, http.StatusBadRequest}[i], status)
	}
	require.Empty(t, click())
}

// A browser has at most three logins at a time, whose cookies are bounded.
func TestCookiesOfLoginsAreBounded(t *testing.T) {
	s := newSite(t, newProvider(t), nil)
	ada := newBrowser(t, "ada")
	for range 5 {
		ada.open(s.register(local).page("state", strings.Repeat("s", 500)))
	}
	require.Equal(t, 3, strings.Count(ada.cookie(), "mcp-login-"))
	require.Less(t, len(ada.cookie()), 7500)
	c := newOnline(t)
	cookie := serve(c.s, "GET", c.page(), "").Header().Get("Set-Cookie")
	require.Regexp(t, `^__Host-mcp-login-.{8}=.*; Path=/; Max-Age=600; HttpOnly; Secure; SameSite=Lax$`, cookie)
}

func TestPages(t *testing.T) {
	s := newSite(t, newProvider(t), func(o *broker.Options) {
		o.Translations = map[string]map[string]string{"de": {"Allow": "Erlauben", "Allow %[1]s to use %[2]s?": "Darf %[1]s %[2]s benutzen?"}}
	})
	c := s.register(remote)
	_, doc := s.post("/register", `{"client_name":"<script>x</script>\u202e Bank","redirect_uris":["`+local+`"]}`)
	c2 := &program{s: s, id: doc["client_id"].(string), redirect: local, verifier: "x"}
	var nonces []string
	for _, test := range []struct {
		page  string
		texts []string
	}{
		{c.page("scope", "notes:read"), []string{
			"Allow Editor to use Notes?", "You are logged in at Login as ada@example.com.", "Nobody has verified it", "The login goes to app.example.",
			"<li><code>notes:read</code></li>", `<html lang="en">`, `>Use another account</a>`,
		}},
		{c2.page(), []string{"Allow &lt;script&gt;x&lt;/script&gt; Bank to use Notes?", "a program on your computer"}},
		{c.page("redirect_uri", "https://evil.example/<script>"), []string{stranger}},
		{c.page("response_type", "<script>"), []string{notAllowed}},
		{s.url + "/callback?state=<script>&error=<script>&error_description=<script>", []string{foreign}},
		{s.url + "/consent?login=<script>", []string{foreign}},
		{s.url + "/switch?login=<script>", []string{foreign}},
	} {
		ada := newBrowser(t, "ada")
		ada.decide = ""
		require.Nil(t, ada.visit(test.page))
		for _, text := range test.texts {
			require.Contains(t, ada.page, text)
		}
		require.NotContains(t, ada.page, "script>")
		require.NotContains(t, ada.page, "\u202e")
		csp := regexp.MustCompile(`^default-src 'none'; style-src 'nonce-([A-Z2-7]{26})'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'$`)
		match := csp.FindStringSubmatch(ada.header.Get("Content-Security-Policy"))
		require.NotNil(t, match)
		require.Contains(t, ada.page, `<style nonce="`+match[1]+`">`)
		require.NotContains(t, nonces, match[1])
		nonces = append(nonces, match[1])
		require.Equal(t, []string{"DENY", "no-store", "nosniff", "same-origin"}, []string{
			ada.header.Get("X-Frame-Options"), ada.header.Get("Cache-Control"), ada.header.Get("X-Content-Type-Options"), ada.header.Get("Referrer-Policy"),
		})
	}
	ada := newBrowser(t, "ada")
	ada.language = "fr, de-AT;q=0.9"
	ada.open(c.page())
	for _, text := range []string{`<html lang="de`, "Darf Editor Notes benutzen?", ">Erlauben<", ">Deny<"} {
		require.Contains(t, ada.page, text)
	}
	text, err := os.ReadFile("page.html")
	require.NoError(t, err)
	for _, match := range regexp.MustCompile(`\$\.T "([^"]+)"`).FindAllStringSubmatch(string(text), -1) {
		require.Contains(t, broker.Texts(), match[1], "it can be translated")
	}
	for path, shared := range map[string]string{"/token": "*", "/register": "*", "/jwks.json": "*", "/consent": ""} {
		require.Equal(t, shared, serve(s, "OPTIONS", path, "").Header().Get("Access-Control-Allow-Origin"), "pages of other origins")
	}
}

func TestCodes(t *testing.T) {
	p := newProvider(t)
	s := newSite(t, p, nil)
	other := newSite(t, p, nil).register(local)
	prover, err := oauthclient.NewProver(nil)
	require.NoError(t, err)
	for _, test := range []struct {
		name   string
		change []string
		err    string
	}{
		{"good", nil, ""},
		{"without a redirect URI, as in OAuth 2.1", []string{"redirect_uri", ""}, ""},
		{"intercepted", []string{"code_verifier", oauth2.GenerateVerifier()}, "invalid_grant"},
		{"without a verifier", []string{"code_verifier", ""}, "invalid_grant"},
		{"by another client", []string{"client_id", s.register(local).id}, "invalid_grant"},
		{"by no client", []string{"client_id", ""}, "invalid_client"},
		{"for another redirect URI", []string{"redirect_uri", "http://127.0.0.1:2/callback"}, "invalid_grant"},
		{"for another resource", []string{"resource", "https://other.example"}, "invalid_target"},
		{"made up", []string{"code", "x"}, "invalid_grant"},
		{"of another broker", []string{"code", newBrowser(t, "ada").visit(other.page()).Get("code")}, "invalid_grant"},
		{"another grant", []string{"grant_type", "password"}, "unsupported_grant_type"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := s.register(local)
			code := newBrowser(t, "ada").visit(c.page()).Get("code")
			status, doc := c.redeem(code, test.change...)
			require.Equal(t, test.err, or(doc["error"]), doc)
			require.Equal(t, test.err == "", status == http.StatusOK)
			again, second := c.redeem(code)
			require.Equal(t, test.err != "", again == http.StatusOK, second)
			if test.err == "" { // a replay ends what the code has brought
				c.ended(doc["refresh_token"])
			}
		})
	}
	t.Run("bound to a key", func(t *testing.T) {
		c := s.register(local)
		code := newBrowser(t, "ada").visit(c.page("dpop_jkt", prover.Thumbprint())).Get("code")
		_, doc := c.redeem(code)
		require.Equal(t, "invalid_dpop_proof", doc["error"])
	})
}

func TestRefreshTokensRotate(t *testing.T) {
	s := newSite(t, newProvider(t), nil)
	c := s.register(local)
	first := c.login(newBrowser(t, "ada"))
	for name, change := range map[string][]string{
		"by another client":    {"client_id", s.register(local).id},
		"for another resource": {"resource", "https://other.example"},
		"made up":              {"refresh_token", "x"},
		"a code":               {"refresh_token", newBrowser(t, "ada").visit(c.page()).Get("code")},
		"an access token":      {"refresh_token", or(first["access_token"])},
	} {
		status, doc := c.refresh(first["refresh_token"], change...)
		require.Equal(t, http.StatusBadRequest, status, name)
		require.Contains(t, []any{"invalid_grant", "invalid_target"}, doc["error"], name)
	}
	status, second := c.refresh(first["refresh_token"], "scope", "notes:read")
	require.Equal(t, http.StatusOK, status, second)
	require.Equal(t, "notes:read", second["scope"])
	require.NotEqual(t, first["refresh_token"], second["refresh_token"])
	_, who := s.call(second["access_token"])
	require.Equal(t, "ada: notes:read", who)
	_, third := c.refresh(second["refresh_token"])
	require.Equal(t, "notes:read notes:write", third["scope"], "a refresh narrows one access token")

	var won atomic.Int32
	parallel(8, func(int) {
		if status, _ := c.refresh(third["refresh_token"]); status == http.StatusOK {
			won.Add(1)
		}
	})
	require.LessOrEqual(t, won.Load(), int32(1))
	c.ended(third["refresh_token"], "a thief and the client lose it alike")

	first = c.login(newBrowser(t, "ada"))
	_, second = c.refresh(first["refresh_token"])
	_, doc := c.refresh(first["refresh_token"])
	require.Equal(t, object{"error": "invalid_grant", "error_description": "it was used before, so the login has ended"}, doc)
	c.ended(second["refresh_token"])
	require.NotContains(t, s.log.String(), or(first["refresh_token"]))
}

func TestTokensAreRevoked(t *testing.T) {
	s := newSite(t, newProvider(t), nil)
	for _, kind := range []string{"refresh_token", "access_token"} {
		c := s.register(local)
		tokens := c.login(newBrowser(t, "ada"))
		form := url.Values{"token": {or(tokens[kind])}, "client_id": {s.register(local).id}}
		status, doc := s.post("/revoke", form.Encode())
		require.Equal(t, http.StatusBadRequest, status)
		require.Equal(t, "invalid_grant", doc["error"], "another client")
		form.Set("client_id", c.id)
		for range 2 {
			status, _ = s.post("/revoke", form.Encode())
			require.Equal(t, http.StatusOK, status)
		}
		c.ended(tokens["refresh_token"])
	}
	status, _ := s.post("/revoke", "token=x&client_id=x")
	require.Equal(t, http.StatusOK, status)
}

func TestBoundTokensNeedTheirKey(t *testing.T) {
	s := newSite(t, newProvider(t), nil)
	prover, err := oauthclient.NewProver(nil)
	require.NoError(t, err)
	c := s.register(local)
	code := newBrowser(t, "ada").visit(c.page()).Get("code")
	first, err := prover.Proof("POST", s.url+"/token", "", "")
	require.NoError(t, err)
	second, err := prover.Proof("POST", s.url+"/token", "", "")
	require.NoError(t, err)
	c.proofs = []string{"DPoP", first, "DPoP", first}
	_, doc := c.redeem(code)
	require.Equal(t, "invalid_dpop_proof", doc["error"])
	c.proofs = []string{"DPoP", first}
	_, tokens := c.redeem(code)
	require.Equal(t, "DPoP", tokens["token_type"])
	status, _ := s.call(tokens["access_token"])
	require.Equal(t, http.StatusUnauthorized, status, "as a bearer token")
	for _, stolen := range [][]string{nil, {"DPoP", first}} {
		c.proofs = stolen
		_, doc = c.refresh(tokens["refresh_token"])
		require.Equal(t, "invalid_dpop_proof", doc["error"], "without a new proof")
	}
	c.proofs = []string{"DPoP", second}
	status, _ = c.refresh(tokens["refresh_token"])
	require.Equal(t, http.StatusOK, status)
}

func TestAGuardElsewhereNeedsNoConfiguration(t *testing.T) {
	s := newSite(t, newProvider(t), nil)
	token := s.register(local).login(newBrowser(t, "ada"))["access_token"]
	for target, want := range map[string]int{s.url + "/mcp": http.StatusOK, s.url + "/other": http.StatusUnauthorized} {
		guard, err := resource.New(resource.Options{Issuer: s.url, Resource: target, InsecureLoopback: true, Client: http.DefaultClient})
		require.NoError(t, err)
		require.Equal(t, want, serve(guard.Wrap(nothing), "POST", target, "", "Authorization", "Bearer "+or(token)).Code, target)
	}
}

func TestKeysRotate(t *testing.T) {
	p := newProvider(t)
	first, second := bytes.Repeat([]byte("k"), 32), bytes.Repeat([]byte("n"), 32)
	s := newSite(t, p, nil)
	c := s.register(local)
	old := c.login(newBrowser(t, "ada"))
	for _, keys := range [][][]byte{{first, second}, {second, first}, {second}} {
		b := newBroker(t, p, s.url, func(o *broker.Options) { o.Keys = keys })
		known := len(keys) == 2
		w := serve(b.Protect(nothing), "POST", "/mcp", "", "Authorization", "Bearer "+or(old["access_token"]))
		require.Equal(t, known, w.Code == http.StatusOK)
		require.Equal(t, known, serve(b, "GET", c.page(), "").Code == http.StatusFound, "registrations")
		public := serve(b, "GET", "/jwks.json", "").Body.String()
		require.Equal(t, len(keys), strings.Count(public, `"kid"`))
		require.NotContains(t, public, `"d"`)
	}
}

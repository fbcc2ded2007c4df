package broker_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/oauth2"

	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/oauth/broker"
	"github.com/mcpkit/mcpkit-go/oauth/oauthtest"
)

func TestMain(m *testing.M) { testkit.VerifyTestMain(m, http.DefaultClient.CloseIdleConnections) }

type object = map[string]any

var (
	discard = slog.New(slog.DiscardHandler)
	nothing = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
)

// A provider is an authorization server with ID tokens and a userinfo endpoint. It remembers browsers,
// and never asks: who the user is stands in the cookie "user".
type provider struct {
	*oauthtest.Server
	refreshes bool         // with an ID token in the response
	down      atomic.Int32 // requests that failed, and one; 0 if none fails

	mu     sync.Mutex
	users  map[string]object    // claims, by subject; guarded by mu
	codes  map[string][2]string // subject and nonce; guarded by mu
	tokens map[string]string    // subjects by access or refresh token; guarded by mu
	claims object               // change those of ID tokens; guarded by mu
	asked  url.Values           // the last authorization request; guarded by mu
}

// newProvider starts a provider. Its access tokens live for an hour, or for the lifetime.
func newProvider(t testing.TB, lifetime ...time.Duration) *provider {
	p := &provider{users: map[string]object{}, codes: map[string][2]string{}, tokens: map[string]string{}, refreshes: true}
	for _, name := range []string{"ada", "bob"} {
		p.users[name] = object{"name": strings.ToUpper(name), "email": name + "@example.com", "email_verified": true, "groups": []string{"staff"}}
	}
	p.Server = oauthtest.New(t, &oauthtest.Options{
		Lifetime: append(lifetime, time.Hour)[0],
		Clients:  []oauthtest.Client{{ID: "broker", Secret: "upstream-secret", RedirectURIs: []string{"http://127.0.0.1/callback"}}},
		Metadata: func(doc object) {
			doc["id_token_signing_alg_values_supported"] = []string{"ES256"}
			doc["userinfo_endpoint"] = strings.Replace(doc["token_endpoint"].(string), "/token", "/userinfo", 1)
		},
		Wrap: p.wrap,
	})
	return p
}

func (p *provider) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		if p.down.Load() > 0 {
			p.down.Add(1)
			w.WriteHeader(http.StatusBadGateway)
			fmt.Fprint(w, r.PostForm.Encode())
			return
		}
		recorder := httptest.NewRecorder()
		next.ServeHTTP(recorder, r)
		p.mu.Lock()
		defer p.mu.Unlock()
		body := recorder.Body.Bytes()
		switch r.URL.Path {
		case "/authorize":
			user, _ := r.Cookie("user")
			if back, err := recorder.Result().Location(); err == nil && user != nil {
				p.asked = r.Form
				p.codes[back.Query().Get("code")] = [2]string{user.Value, r.Form.Get("nonce")}
			}
		case "/token":
			body = p.addIDToken(r.PostForm, body)
		case "/userinfo":
			name := p.tokens[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
			recorder = httptest.NewRecorder()
			recorder.Header().Set("Content-Type", "application/json")
			if p.users[name] == nil {
				recorder.Code = http.StatusUnauthorized
			}
			claims := object{"sub": name}
			maps.Copy(claims, p.users[name])
			body, _ = json.Marshal(claims)
		}
		maps.Copy(w.Header(), recorder.Header())
		w.WriteHeader(recorder.Code)
		_, _ = w.Write(body)
	})
}

// addIDToken adds an ID token to a token response. A user that was removed gets no tokens.
func (p *provider) addIDToken(form url.Values, body []byte) []byte {
	var doc object
	_ = json.Unmarshal(body, &doc)
	who := p.codes[form.Get("code")]
	refreshing := form.Get("grant_type") == "refresh_token"
	if refreshing {
		who = [2]string{p.tokens[form.Get("refresh_token")]}
	}
	if doc["access_token"] == nil || who[0] == "" {
		return body
	}
	if p.users[who[0]] == nil {
		return []byte(`{"error":"invalid_grant"}`)
	}
	for _, name := range []string{"access_token", "refresh_token"} {
		if text, ok := doc[name].(string); ok {
			p.tokens[text] = who[0]
		}
	}
	if !refreshing || p.refreshes {
		claims := object{"iss": p.Issuer, "aud": "broker", "sub": who[0], "exp": 1 << 40, "iat": 1, "nonce": who[1]}
		maps.Copy(claims, p.users[who[0]])
		maps.Copy(claims, p.claims)
		doc["id_token"] = p.Sign("JWT", claims)
	}
	body, _ = json.Marshal(doc)
	return body
}

func (p *provider) change(change func(p *provider)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p)
}

// A site is a broker in front of a resource that says who asks.
type site struct {
	*broker.Broker
	t       testing.TB
	url     string // issuer
	log     *testkit.Buffer
	handler http.Handler
	asking  http.Handler // takes the place of the resource
}

func newSite(t testing.TB, p *provider, change func(o *broker.Options)) *site {
	s := &site{t: t, log: new(testkit.Buffer)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }))
	t.Cleanup(server.Close)
	s.url = server.URL
	s.Broker = newBroker(t, p, s.url, func(o *broker.Options) {
		o.Logger = slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		if change != nil {
			change(o)
		}
	})
	s.handler = s.Protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.asking != nil {
			s.asking.ServeHTTP(w, r)
			return
		}
		user := oauth.FromContext(r.Context())
		fmt.Fprintf(w, "%s: %s", user.Subject, strings.Join(user.Scopes, " "))
	}))
	return s
}

func newBroker(t testing.TB, p *provider, url string, change func(o *broker.Options)) *broker.Broker {
	opts := broker.Options{
		Issuer: url, Resource: url + "/mcp", Name: "Notes", Decide: broker.Anyone, InsecureLoopback: true,
		Scopes: map[string][]string{"notes:read": nil, "notes:write": nil},
		Keys:   [][]byte{bytes.Repeat([]byte("k"), 32)},
	}
	if p != nil {
		opts.Provider = broker.Provider{Name: "Login", Issuer: p.Issuer, ClientID: "broker", ClientSecret: "upstream-secret"}
	}
	change(&opts)
	b, err := broker.New(opts)
	require.NoError(t, err)
	t.Cleanup(func() { _ = b.Close() })
	return b
}

const (
	local     = "http://127.0.0.1:1/callback"
	encrypted = "https://127.0.0.1:1/callback"
	remote    = "https://app.example/callback"
)

// A browser is a user with cookies, who follows redirects until one leaves for the client.
type browser struct {
	t        testing.TB
	http     *http.Client
	decide   string // what the user says when asked; "" closes the page
	language string // "" for none
	asked    int    // how often the user was asked
	page     string // the last page
	header   http.Header
	through  func(next string) string // may change where a redirect leads
}

func newBrowser(t testing.TB, user string) *browser {
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	jar.SetCookies(&url.URL{Scheme: "http", Host: "127.0.0.1"}, []*http.Cookie{{Name: "user", Value: user}})
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &browser{t: t, decide: "allow", http: &http.Client{
		Jar: jar, Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

var hidden = regexp.MustCompile(`name="login" value="([^"]+)"`)

// visit opens a page. It returns the parameters of the redirect to the client, or nil without one.
func (b *browser) visit(page string) url.Values {
	for range 10 {
		req, err := http.NewRequest(http.MethodGet, page, nil)
		require.NoError(b.t, err)
		req.Header.Set("Accept-Language", b.language)
		resp, err := b.http.Do(req)
		require.NoError(b.t, err)
		next := b.read(resp)
		if login := hidden.FindStringSubmatch(b.page); next == "" && login != nil && b.decide != "" {
			b.asked++
			next = b.submit(page, "login="+login[1]+"&decision="+b.decide)
		}
		if next == "" {
			return nil
		}
		if b.through != nil {
			next = b.through(next)
		}
		if strings.HasPrefix(next, local) || strings.HasPrefix(next, encrypted) || strings.HasPrefix(next, remote) {
			u, err := url.Parse(next)
			require.NoError(b.t, err)
			return u.Query()
		}
		page = next
	}
	b.t.Fatal("redirected without end")
	return nil
}

func (b *browser) submit(page, form string) string {
	origin := strings.Join(strings.Split(page, "/")[:3], "/")
	resp, err := b.http.Post(origin+"/consent", "application/x-www-form-urlencoded", strings.NewReader(form))
	require.NoError(b.t, err)
	return b.read(resp)
}

func (b *browser) cookie() string {
	var all []string
	for _, c := range b.http.Jar.Cookies(&url.URL{Scheme: "http", Host: "127.0.0.1", Path: "/"}) {
		all = append(all, c.Name+"="+c.Value)
	}
	return strings.Join(all, "; ")
}

func (b *browser) read(resp *http.Response) (next string) {
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(b.t, err)
	b.page, b.header = string(text), resp.Header
	if _, to, ok := strings.Cut(resp.Header.Get("Refresh"), "url="); ok {
		return to
	}
	if to, err := resp.Location(); err == nil {
		return to.String()
	}
	return ""
}

type program struct {
	s        *site
	id       string
	redirect string
	verifier string
	proofs   []string // headers of requests for tokens
}

func (s *site) register(redirect string) *program {
	status, doc := s.post("/register", `{"client_name":"Editor","redirect_uris":["`+redirect+`"],"grant_types":["authorization_code","refresh_token"],"token_endpoint_auth_method":"none"}`)
	require.Equal(s.t, http.StatusCreated, status, doc)
	return &program{s: s, id: doc["client_id"].(string), redirect: redirect, verifier: oauth2.GenerateVerifier()}
}

func (s *site) post(path, body string, header ...string) (int, object) {
	kind := "application/json"
	if !strings.HasPrefix(body, "{") {
		kind = "application/x-www-form-urlencoded"
	}
	w := serve(s.handler, "POST", path, body, append(header, "Content-Type", kind)...)
	var doc object
	if w.Body.Len() > 0 {
		require.NoError(s.t, json.Unmarshal(w.Body.Bytes(), &doc))
	}
	return w.Code, doc
}

func serve(h http.Handler, verb, path, body string, header ...string) *httptest.ResponseRecorder {
	w, r := httptest.NewRecorder(), httptest.NewRequest(verb, path, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	h.ServeHTTP(w, r)
	return w
}

func newOnline(t testing.TB) *program {
	s := &site{t: t, url: "https://notes.example.com"}
	s.Broker = newBroker(t, nil, s.url, func(o *broker.Options) {
		o.Provider, o.InsecureLoopback = broker.GitHub("id", "secret"), false
	})
	var doc object
	w := serve(s, "POST", "/register", `{"redirect_uris":["`+local+`"]}`)
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &doc))
	return &program{s: s, id: or(doc["client_id"]), redirect: local, verifier: "x"}
}

func (c *program) ended(token any, why ...any) {
	_, doc := c.refresh(token)
	require.Equal(c.s.t, "invalid_grant", doc["error"], why...)
}

func or(v any) string {
	text, _ := v.(string)
	return text
}

// page returns the URL of an authorization request, with changed parameters; an empty value removes one.
func (c *program) page(change ...string) string {
	q := url.Values{
		"response_type": {"code"}, "client_id": {c.id}, "redirect_uri": {c.redirect}, "state": {"s1"},
		"resource": {c.s.url + "/mcp"}, "code_challenge_method": {"S256"}, "code_challenge": {oauth2.S256ChallengeFromVerifier(c.verifier)},
	}
	return c.s.url + "/authorize?" + with(q, change).Encode()
}

func with(q url.Values, change []string) url.Values {
	for i := 0; i < len(change); i += 2 {
		if q.Set(change[i], change[i+1]); change[i+1] == "" {
			q.Del(change[i])
		}
	}
	return q
}

func (c *program) redeem(code string, change ...string) (int, object) {
	q := url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "client_id": {c.id}, "redirect_uri": {c.redirect},
		"code_verifier": {c.verifier}, "resource": {c.s.url + "/mcp"},
	}
	return c.s.post("/token", with(q, change).Encode(), c.proofs...)
}

func (c *program) refresh(token any, change ...string) (int, object) {
	q := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {fmt.Sprint(token)}, "client_id": {c.id}}
	return c.s.post("/token", with(q, change).Encode(), c.proofs...)
}

func (c *program) login(b *browser, change ...string) object {
	back := b.visit(c.page(change...))
	require.NotEmpty(c.s.t, back.Get("code"), "%v %s", back, b.page)
	status, doc := c.redeem(back.Get("code"))
	require.Equal(c.s.t, http.StatusOK, status, doc)
	return doc
}

func (s *site) call(token any) (int, string) {
	w := serve(s.handler, "POST", "/mcp", "", "Authorization", fmt.Sprint("Bearer ", token))
	return w.Code, w.Body.String()
}

// open opens a page that asks the user, and returns the form that says yes.
func (b *browser) open(page string) (form string) {
	b.decide = ""
	require.Nil(b.t, b.visit(page))
	return "login=" + hidden.FindStringSubmatch(b.page)[1] + "&decision=allow"
}

func parallel(n int, do func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		// Ends with do.
		wg.Go(func() { do(i) })
	}
	wg.Wait()
}

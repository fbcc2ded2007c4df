package oauthclient_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/oauth/oauthclient"
	"github.com/mcpkit/mcpkit-go/oauth/oauthtest"
	"github.com/mcpkit/mcpkit-go/oauth/resource"
)

func TestMain(m *testing.M) { testkit.VerifyTestMain(m) }

// A world is an MCP server and its authorization server at one address.
type world struct {
	*httptest.Server
	logins, tokens atomic.Int32
	mu             sync.Mutex
	good           string // the accepted token
	insatiable     bool   // whether every token lacks another scope
	asked          int    // how many scopes were demanded

	issuer, authorize, iss, resource string // false values to report
	noPKCE                           bool
	refresh                          string // that is given
}

const leaked = "very-secret"

func newWorld(t *testing.T) *world {
	w := &world{}
	w.Server = httptest.NewServer(http.HandlerFunc(w.serve))
	t.Cleanup(w.Close)
	w.issuer, w.authorize, w.iss, w.resource = w.URL, w.URL+"/authorize", w.URL, w.URL+"/mcp"
	return w
}

func (w *world) serve(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch r.URL.Path {
	case "/mcp":
		got := r.Header.Get("Authorization")
		switch {
		case w.good == "" || got != "Bearer "+w.good:
			rw.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+w.URL+`/prm", scope="read"`)
			rw.WriteHeader(http.StatusUnauthorized)
		case w.insatiable:
			w.asked++
			rw.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer error="insufficient_scope", scope="scope-%d"`, w.asked))
			rw.WriteHeader(http.StatusForbidden)
		default:
			_, _ = io.Copy(rw, r.Body)
		}
	case "/prm":
		reply(rw, `{"resource":%q,"authorization_servers":[%q]}`, w.resource, w.URL)
	case "/.well-known/oauth-authorization-server":
		pkce := `"S256"`
		if w.noPKCE {
			pkce = ""
		}
		reply(rw, `{"issuer":%q,"authorization_endpoint":%q,"token_endpoint":%q,"registration_endpoint":%q,"code_challenge_methods_supported":[%s],
			"authorization_response_iss_parameter_supported":true,"token_endpoint_auth_methods_supported":["none"]}`,
			w.issuer, w.authorize, w.URL+"/token", w.URL+"/register", pkce)
	case "/register":
		rw.WriteHeader(http.StatusCreated)
		reply(rw, `{"client_id":"me"}`)
	case "/token":
		n := w.tokens.Add(1)
		w.good = fmt.Sprintf("%s-%d", leaked, n)
		reply(rw, `{"access_token":%q,"token_type":"bearer","refresh_token":%q}`, w.good, w.refresh)
	default:
		http.NotFound(rw, r)
	}
}

func reply(w http.ResponseWriter, format string, args ...any) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, format, args...)
}

// visit approves every login.
func (w *world) visit(_ context.Context, page string) (url.Values, error) {
	w.logins.Add(1)
	u, err := url.Parse(page)
	if err != nil {
		return nil, err
	}
	back := url.Values{"code": {"c"}, "state": {u.Query().Get("state")}}
	if w.iss != "" {
		back.Set("iss", w.iss)
	}
	return back, nil
}

func (w *world) transport(t *testing.T, opts oauthclient.Options) *oauthclient.Transport {
	return connect(t, w.URL+"/mcp", visiting(w.visit), opts)
}

func post(t *testing.T, tr http.RoundTripper, target string) (status int, body string, err error) {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, target, strings.NewReader("hello"))
	require.NoError(t, err)
	resp, err := tr.RoundTrip(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(b), nil
}

func TestOneLoginServesAllRequests(t *testing.T) {
	w := newWorld(t)
	tr := w.transport(t, oauthclient.Options{})
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			status, body, err := post(t, tr, w.URL+"/mcp")
			if err != nil || status != 200 || body != "hello" {
				t.Errorf("got %d %q, %v", status, body, err)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, w.logins.Load())
	require.EqualValues(t, 1, w.tokens.Load())
}

func TestRefusals(t *testing.T) {
	for _, test := range []struct {
		name string
		make func(w *world)
		err  string // {} stands for the URL of the world
		in   bool   // whether the login page was opened
	}{
		{"another issuer answers", func(w *world) { w.iss = "https://evil.example" }, `the response is not from the authorization server "{}"`, true},
		{"a slash is another issuer", func(w *world) { w.iss = w.URL + "/" }, `the response is not from the authorization server "{}"`, true},
		{"a promised iss is missing", func(w *world) { w.iss = "" }, `the response has no iss parameter; "{}" promises one in its metadata`, true},
		{"metadata of another", func(w *world) { w.issuer = "https://evil.example" }, `the metadata of the authorization server "{}" names the issuer "https://evil.example"`, false},
		{"another resource", func(w *world) { w.resource = "https://evil.example/mcp" }, `the resource metadata is for "https://evil.example/mcp", not for "{}/mcp"`, false},
		{"a resource beside", func(w *world) { w.resource = w.URL + "/mc" }, `the resource metadata is for "{}/mc", not for "{}/mcp"`, false},
		{"a resource above", func(w *world) { w.resource = w.URL }, `the resource metadata is for "{}", not for "{}/mcp"`, false},
		{"a resource below", func(w *world) { w.resource = w.URL + "/mcp/x" }, `the resource metadata is for "{}/mcp/x", not for "{}/mcp"`, false},
		{"a resource with a slash", func(w *world) { w.resource = w.URL + "/mcp/" }, `the resource metadata is for "{}/mcp/", not for "{}/mcp"`, false},
		{"a resource with a query", func(w *world) { w.resource = w.URL + "/mcp?x" }, `the resource metadata is for "{}/mcp?x", not for "{}/mcp"`, false},
		{"a resource with a fragment", func(w *world) { w.resource = w.URL + "/mcp#" }, `the resource metadata is for "{}/mcp#", not for "{}/mcp"`, false},
		{"no PKCE", func(w *world) { w.noPKCE = true }, `the authorization server "{}" does not say that it supports PKCE with S256; MCP clients must refuse it`, false},
		{"a script for a page", func(w *world) { w.authorize = "javascript:alert(1)" }, `the authorization_endpoint of the authorization server "{}": "javascript:alert(1)" is not an absolute https URL`, false},
		{"a private address", func(w *world) { w.authorize = "https://10.0.0.1/" }, `the authorization_endpoint of the authorization server "{}": the address 10.0.0.1 is not public`, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			test.make(w)
			tr := w.transport(t, oauthclient.Options{})
			for range 2 { // the second request fails without an attempt
				_, _, err := post(t, tr, w.URL+"/mcp")
				require.EqualError(t, err, "oauthclient: "+strings.ReplaceAll(test.err, "{}", w.URL))
			}
			require.Zero(t, w.tokens.Load())
			require.Equal(t, test.in, w.logins.Load() == 1)
		})
	}
}

func TestTokensStayAtTheirOrigin(t *testing.T) {
	w := newWorld(t)
	tr := w.transport(t, oauthclient.Options{})
	_, _, err := post(t, tr, w.URL+"/mcp")
	require.NoError(t, err)
	var got atomic.Value
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got.Store(r.Header.Get("Authorization")) }))
	defer other.Close()
	_, _, err = post(t, tr, other.URL+"/mcp")
	require.NoError(t, err)
	require.Equal(t, "", got.Load())
}

func TestStoredTokensAreUsedAndPrintNoSecrets(t *testing.T) {
	w := newWorld(t)
	w.refresh = leaked + "-refresh"
	dir := filepath.Join(t.TempDir(), "tokens")
	store, err := oauthclient.NewFileStore(dir)
	require.NoError(t, err)
	for range 2 {
		status, _, err := post(t, w.transport(t, oauthclient.Options{Store: store}), w.URL+"/mcp")
		require.NoError(t, err)
		require.Equal(t, 200, status)
	}
	require.EqualValues(t, 1, w.logins.Load(), "the second run uses the token of the first")
	key := oauthclient.Key{Issuer: w.URL, Resource: w.URL + "/mcp"}
	r, err := store.Load(t.Context(), key)
	require.NoError(t, err)
	require.NotContains(t, fmt.Sprintf("%v %+v %#v %v %#v", r.Token, r.Token, *r.Token, r.Client, *r.Client), leaked)
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 3) // registration, token and its lock
	for _, f := range files {
		info, err := f.Info()
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode())
		require.NoError(t, os.Chmod(filepath.Join(dir, f.Name()), 0o644))
	}
	_, err = store.Load(t.Context(), key)
	require.ErrorContains(t, err, "it must be a file that only the user may read, -rw-------")
}

func TestOpenBrowserAcceptsWebPagesOnly(t *testing.T) {
	for _, page := range []string{"javascript:alert(1)", "file:///etc/passwd", "--help", "https:"} {
		require.EqualError(t, oauthclient.OpenBrowser(t.Context(), page), "only http and https URLs can be opened")
	}
}

// A record is a request that a server received.
type record struct {
	url    string // with the query
	path   string
	query  url.Values
	form   url.Values
	header http.Header
}

// A book records requests.
type book struct {
	mu      sync.Mutex
	records []record
}

func (b *book) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		form, _ := url.ParseQuery(string(body))
		b.mu.Lock()
		b.records = append(b.records, record{r.RequestURI, r.URL.Path, r.URL.Query(), form, r.Header.Clone()})
		b.mu.Unlock()
		next.ServeHTTP(w, r)
	})
}

// at returns the requests for a path.
func (b *book) at(path string) []record {
	b.mu.Lock()
	defer b.mu.Unlock()
	var found []record
	for _, r := range b.records {
		if r.path == path {
			found = append(found, r)
		}
	}
	return found
}

// A site is a resource at /mcp with its recorded requests.
type site struct {
	*httptest.Server
	url string
	mux *http.ServeMux
	book
}

// protect starts a resource that accepts tokens of as with the scope "read", and returns the
// caller. The path /mcp/write needs the scope "write".
func protect(t *testing.T, as *oauthtest.Server, change func(*resource.Options)) *site {
	s := new(site)
	mux := http.NewServeMux()
	s.mux = mux
	s.Server = httptest.NewServer(s.wrap(mux))
	t.Cleanup(s.Close)
	s.url = s.URL + "/mcp"
	opts := resource.Options{
		Issuer: as.Issuer, Resource: s.url, Scopes: []string{"read"}, InsecureLoopback: true, Client: as.Client(), CacheTime: -1,
	}
	if change != nil {
		change(&opts)
	}
	guard, err := resource.New(opts)
	require.NoError(t, err)
	guard.Mount(mux)
	answer := guard.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := oauth.FromContext(r.Context())
		if strings.HasSuffix(r.URL.Path, "/write") && !p.Has("write") {
			oauth.DemandScopes(r.Context(), "read", "write")
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = io.WriteString(w, p.Subject+" may "+strings.Join(p.Scopes, " "))
	}))
	mux.Handle("/mcp", answer)
	mux.Handle("/mcp/write", answer)
	return s
}

// visited is a site, its user, and a transport of the user.
func visited(t *testing.T, as *oauthtest.Server, change func(*resource.Options)) (*site, *user, *oauthclient.Transport) {
	s, u := protect(t, as, change), new(user)
	return s, u, connect(t, s.url, u.grant(), oauthclient.Options{})
}

// demandNonces refuses proofs without the nonce that it tells (RFC 9449, sections 8 and 9). Requests
// without a proof pass.
func demandNonces(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, proof, _ := strings.Cut(r.Header.Get("DPoP"), ".")
		text, _, _ := strings.Cut(proof, ".")
		claims, _ := base64.RawURLEncoding.DecodeString(text)
		switch {
		case r.URL.Path != "/token" && r.URL.Path != "/mcp", proof == "", strings.Contains(string(claims), `"nonce":"fresh"`):
			next.ServeHTTP(w, r)
			return
		case r.URL.Path == "/token":
			w.Header().Set("DPoP-Nonce", "fresh")
			w.WriteHeader(http.StatusBadRequest)
		default:
			w.Header().Set("DPoP-Nonce", "fresh")
			w.Header().Set("WWW-Authenticate", `Bearer, DPoP error="use_dpop_nonce"`)
			w.WriteHeader(http.StatusUnauthorized)
		}
		reply(w, `{"error":"use_dpop_nonce"}`)
	})
}

// at handles the requests of an authorization server for a path with a function, which may pass them
// on.
func at(path string, handle func(w http.ResponseWriter, r *http.Request, next http.Handler)) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == path {
				handle(w, r, next)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// unavailable refuses all requests for a path.
func unavailable(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
	w.WriteHeader(http.StatusServiceUnavailable)
}

// visiting is a grant whose browser visits pages with a function.
func visiting(visit func(ctx context.Context, page string) (url.Values, error)) *oauthclient.AuthorizationCode {
	return &oauthclient.AuthorizationCode{Name: "test", Browser: func(context.Context, oauthclient.LoginRequest) (*oauthclient.Login, error) {
		return &oauthclient.Login{RedirectURI: "http://127.0.0.1:1/callback", Visit: visit}, nil
	}}
}

// A user approves every login and counts the logins.
type user struct {
	mu     sync.Mutex
	scopes []string // the requested scopes, one entry for each login
}

func (u *user) browser(context.Context, oauthclient.LoginRequest) (*oauthclient.Login, error) {
	return &oauthclient.Login{RedirectURI: "http://127.0.0.1:1/callback", Visit: func(ctx context.Context, page string) (url.Values, error) {
		where, err := url.Parse(page)
		if err != nil {
			return nil, err
		}
		u.mu.Lock()
		u.scopes = append(u.scopes, where.Query().Get("scope"))
		u.mu.Unlock()
		return oauthtest.Visit(ctx, page)
	}}, nil
}

func (u *user) logins() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.scopes)
}

func (u *user) grant() *oauthclient.AuthorizationCode {
	return &oauthclient.AuthorizationCode{Name: "test", Browser: u.browser}
}

// connect returns a transport for a site.
func connect(t *testing.T, server string, g oauthclient.Grant, opts oauthclient.Options) *oauthclient.Transport {
	base := http.DefaultTransport.(*http.Transport).Clone()
	opts.InsecureLoopback, opts.Base = true, base
	tr, err := oauthclient.New(server, g, &opts)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, tr.Close())
		base.CloseIdleConnections()
	})
	return tr
}

// says returns the response of the site: the caller and its scopes.
func says(t *testing.T, tr http.RoundTripper, target string) string {
	status, body, err := post(t, tr, target)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, status, body)
	return body
}

// guardian holds the credentials of resources at the introspection endpoint.
var guardian = oauthtest.Client{ID: "resource", Secret: "guardian-secret"}

// introspected checks each token at the server, because a JWT does not show that it was revoked.
func introspected(as *oauthtest.Server) func(*resource.Options) {
	return func(o *resource.Options) {
		o.Introspection = &resource.Introspection{Endpoint: as.Endpoint("introspection"), ClientID: guardian.ID, ClientSecret: guardian.Secret}
	}
}

func decode(t *testing.T, data []byte, v any) {
	require.NoError(t, json.Unmarshal(data, v), "%s", data)
}

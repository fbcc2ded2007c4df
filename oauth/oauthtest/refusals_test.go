package oauthtest_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/oauth/oauthclient"
	"github.com/mcpkit/mcpkit-go/oauth/oauthtest"
	"github.com/mcpkit/mcpkit-go/oauth/resource"
)

const (
	callback = "http://127.0.0.1:1/callback"
	verifier = "0123456789012345678901234567890123456789012"
)

func challengeOf(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// form returns a form of alternating names and values.
func form(stringList ...string) url.Values {
	v := make(url.Values)
	for i := 0; i < len(stringList); i += 2 {
		v.Add(stringList[i], stringList[i+1])
	}
	return v
}

// with returns a form with changes. "" removes a value.
func with(v url.Values, stringList ...string) url.Values {
	out := make(url.Values)
	for name, values := range v {
		out[name] = values
	}
	for i := 0; i < len(stringList); i += 2 {
		out.Set(stringList[i], stringList[i+1])
		if stringList[i+1] == "" {
			out.Del(stringList[i])
		}
	}
	return out
}

// known lists the clients of these tests.
var known = []oauthtest.Client{
	{ID: "app", RedirectURIs: []string{callback, "https://app.example/back?x=1"}},
	{ID: "other", RedirectURIs: []string{callback}},
	{ID: "robot", Secret: "secret"},
}

func authorization() url.Values {
	return form("response_type", "code", "client_id", "app", "redirect_uri", callback, "state", "s",
		"code_challenge", challengeOf(verifier), "code_challenge_method", "S256")
}

// visit requests the authorization endpoint.
func visit(as *oauthtest.Server, q url.Values) *http.Response {
	w := httptest.NewRecorder()
	as.ServeHTTP(w, httptest.NewRequest(http.MethodGet, as.Endpoint("authorization")+"?"+q.Encode(), nil))
	return w.Result()
}

// codeFor returns a code for an authorization.
func codeFor(t *testing.T, as *oauthtest.Server, q url.Values) string {
	back, err := visit(as, q).Location()
	require.NoError(t, err)
	require.NotEmpty(t, back.Query().Get("code"), back)
	return back.Query().Get("code")
}

// send sends a form to an endpoint and returns the status and document of the response.
func send(t *testing.T, as *oauthtest.Server, endpoint string, f url.Values, header ...string) (int, map[string]any, http.Header) {
	r := httptest.NewRequest(http.MethodPost, as.Endpoint(endpoint), strings.NewReader(f.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	as.ServeHTTP(w, r)
	require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
	require.Equal(t, "application/json", w.Header().Get("Content-Type"))
	var doc map[string]any
	if w.Body.Len() > 0 {
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &doc), "%s", w.Body)
	}
	return w.Code, doc, w.Header()
}

// refused requires that a form is rejected.
func refused(t *testing.T, as *oauthtest.Server, f url.Values, want string, header ...string) {
	t.Helper()
	status, doc, _ := send(t, as, "token", f, header...)
	wantStatus := http.StatusBadRequest
	if strings.HasPrefix(want, "invalid_client: ") {
		wantStatus = http.StatusUnauthorized
	}
	require.Equal(t, fmt.Sprintf("%d %s", wantStatus, want), fmt.Sprintf("%d %s: %s", status, doc["error"], doc["error_description"]))
	require.NotContains(t, doc, "access_token")
}

func TestAuthorizationsThatAreRefused(t *testing.T) {
	as := oauthtest.New(t, &oauthtest.Options{
		Clients: known, Scopes: []string{"read"}, Consent: func(*oauthtest.Authorization) error { return errors.New("I do not know you") },
	})
	good := authorization()
	for _, test := range []struct {
		name string
		q    url.Values
		page string // the text of the page if there is no redirect
		err  string // the error in the redirect
	}{
		{"nobody", with(good, "client_id", "nobody"), `invalid_client: unknown client "nobody"`, ""},
		{"no client", with(good, "client_id", ""), "the request needs one client_id and one redirect_uri", ""},
		{"another redirect URI", with(good, "redirect_uri", "https://evil.example/"), `the client has registered ["http://127.0.0.1:1/callback" "https://app.example/back?x=1"], not the redirect URI "https://evil.example/"`, ""},
		{"another port that is no loopback's", with(good, "redirect_uri", "https://app.example:444/back?x=1"), `the client has registered ["http://127.0.0.1:1/callback" "https://app.example/back?x=1"], not the redirect URI "https://app.example:444/back?x=1"`, ""},
		{"no redirect URI", with(good, "redirect_uri", ""), "the request needs one client_id and one redirect_uri", ""},
		{"another type", with(good, "response_type", "token"), "", "unsupported_response_type: the response_type must be code"},
		{"no challenge", with(good, "code_challenge", ""), "", "invalid_request: a code_challenge with the method S256 is required"},
		{"plain", with(good, "code_challenge_method", "plain"), "", "invalid_request: a code_challenge with the method S256 is required"},
		{"another scope", with(good, "scope", "read write"), "", `invalid_scope: unknown scope "write"`},
		{"a resource with a fragment", with(good, "resource", "https://mcp.example/mcp#"), "", `invalid_target: the resource "https://mcp.example/mcp#" is not an absolute URI without a fragment`},
		{"the user", good, "", "access_denied: I do not know you"},
	} {
		t.Run(test.name, func(t *testing.T) {
			resp := visit(as, test.q)
			if test.page != "" {
				require.Equal(t, http.StatusBadRequest, resp.StatusCode)
				body, err := io.ReadAll(resp.Body)
				require.NoError(t, err)
				require.Equal(t, test.page+"\n", string(body))
				require.Empty(t, resp.Header.Get("Location"))
				return
			}
			back, err := resp.Location()
			require.NoError(t, err)
			require.Equal(t, "127.0.0.1:1", back.Host)
			require.Equal(t, test.err, back.Query().Get("error")+": "+back.Query().Get("error_description"))
			require.Equal(t, as.Issuer, back.Query().Get("iss"))
			require.Equal(t, "s", back.Query().Get("state"))
			require.False(t, back.Query().Has("code"))
		})
	}
}

func TestTokenRequestsThatAreRefused(t *testing.T) {
	as := oauthtest.New(t, &oauthtest.Options{Clients: known, Scopes: []string{"read", "write"}})
	redeem := func(q url.Values) url.Values {
		return form("grant_type", "authorization_code", "client_id", "app", "code", codeFor(t, as, q), "redirect_uri", callback, "code_verifier", verifier)
	}
	basic := func(id, secret string) []string {
		return []string{"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte(id+":"+secret))}
	}
	credentials := form("grant_type", "client_credentials")
	for _, test := range []struct {
		name   string
		form   func() url.Values
		header []string
		want   string
	}{
		{"no grant", func() url.Values { return form("client_id", "app") }, nil, `unsupported_grant_type: unknown grant type ""`},
		{"the grant password", func() url.Values { return form("client_id", "app", "grant_type", "password") }, nil, `unsupported_grant_type: unknown grant type "password"`},
		{"who?", func() url.Values { return credentials }, nil, "invalid_client: the request does not name its client"},
		{"nobody", func() url.Values { return with(credentials, "client_id", "nobody") }, nil, `invalid_client: unknown client "nobody"`},
		{"a wrong secret", func() url.Values { return credentials }, basic("robot", "wrong"), "invalid_client: the secret is incorrect"},
		{"a wrong secret in the form", func() url.Values { return with(credentials, "client_id", "robot", "client_secret", "wrong") }, nil, "invalid_client: the secret is incorrect"},
		{"no secret", func() url.Values { return with(credentials, "client_id", "robot") }, nil, "invalid_client: the client must authenticate with client_secret_basic or client_secret_post"},
		{"twice", func() url.Values { return with(credentials, "client_secret", "secret") }, basic("robot", "secret"), "invalid_request: the client authenticates twice"},
		{"two client IDs", func() url.Values { return with(credentials, "client_id", "app") }, basic("robot", "secret"), "invalid_request: the request has two different client IDs"},
		{"not encoded", func() url.Values { return credentials }, basic("robot", "100%"), "invalid_client: the ID and the secret are not form-encoded (RFC 6749, section 2.3.1)"},
		{"a public client", func() url.Values { return with(credentials, "client_id", "app") }, nil, "unauthorized_client: a public client cannot act for itself"},
		{"an unknown scope", func() url.Values { return with(credentials, "scope", "all") }, basic("robot", "secret"), `invalid_scope: unknown scope "all"`},
		{"two grants", func() url.Values { return form("grant_type", "client_credentials", "grant_type", "x") }, nil, "invalid_request: grant_type is repeated"},

		{"another code", func() url.Values { return with(redeem(authorization()), "code", "x") }, nil, "invalid_grant: the client has no such code"},
		{"the code of another", func() url.Values { return with(redeem(authorization()), "client_id", "other") }, nil, "invalid_grant: the client has no such code"},
		{"another redirect URI", func() url.Values { return with(redeem(authorization()), "redirect_uri", callback+"x") }, nil, "invalid_grant: the redirect_uri differs from that of the code"},
		{"no verifier", func() url.Values { return with(redeem(authorization()), "code_verifier", "") }, nil, "invalid_grant: the code_verifier does not match the code_challenge"},
		{"another verifier", func() url.Values { return with(redeem(authorization()), "code_verifier", verifier[1:]+"x") }, nil, "invalid_grant: the code_verifier does not match the code_challenge"},
		{"the challenge as verifier", func() url.Values {
			return with(redeem(authorization()), "code_verifier", challengeOf(verifier))
		}, nil, "invalid_grant: the code_verifier does not match the code_challenge"},
		{"another resource", func() url.Values {
			return with(redeem(with(authorization(), "resource", "https://a.example/")), "resource", "https://b.example/")
		}, nil, `invalid_target: only the resources ["https://a.example/"] were granted`},
		{"a code that is bound", func() url.Values { return redeem(with(authorization(), "dpop_jkt", "x")) }, nil, "invalid_dpop_proof: the code is bound to another key"},
		{"an invalid proof", func() url.Values { return redeem(authorization()) }, []string{"DPoP", "x"}, "invalid_dpop_proof: the proof is not a signed JWT"},

		{"an unknown refresh token", func() url.Values {
			return form("grant_type", "refresh_token", "client_id", "app", "refresh_token", "x")
		}, nil, "invalid_grant: the client has no such refresh token"},
	} {
		t.Run(test.name, func(t *testing.T) { refused(t, as, test.form(), test.want, test.header...) })
	}
	_, _, header := send(t, as, "token", credentials, basic("robot", "wrong")...)
	require.Equal(t, `Basic realm="clients"`, header.Get("WWW-Authenticate"))
}

func TestReplayedCodeOrRefreshTokenRevokesTheGrant(t *testing.T) {
	clients := append([]oauthtest.Client{{ID: "resource", Secret: "secret"}}, known...)
	as := oauthtest.New(t, &oauthtest.Options{Clients: clients})
	active := func(token any) any {
		_, doc, _ := send(t, as, "introspection", form("token", token.(string), "client_id", "resource", "client_secret", "secret"))
		return doc["active"]
	}
	redeem := form("grant_type", "authorization_code", "client_id", "app", "code", codeFor(t, as, authorization()), "redirect_uri", callback, "code_verifier", verifier)
	status, first, _ := send(t, as, "token", redeem)
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, true, active(first["access_token"]))
	refused(t, as, redeem, "invalid_grant: the code was used before")
	require.Equal(t, false, active(first["access_token"]))

	redeem.Set("code", codeFor(t, as, authorization()))
	_, first, _ = send(t, as, "token", redeem)
	refresh := form("grant_type", "refresh_token", "client_id", "app", "refresh_token", first["refresh_token"].(string))
	refused(t, as, with(refresh, "client_id", "other"), "invalid_grant: the client has no such refresh token")
	status, second, _ := send(t, as, "token", refresh)
	require.Equal(t, http.StatusOK, status)
	require.NotEqual(t, first["refresh_token"], second["refresh_token"])
	require.Equal(t, true, active(second["access_token"]))
	refused(t, as, refresh, "invalid_grant: the refresh token was used before")
	require.Equal(t, false, active(second["access_token"]))
	refused(t, as, with(refresh, "refresh_token", second["refresh_token"].(string)), "invalid_grant: the refresh token was revoked")
}

// The server checks documents for each authorization.
func TestDocumentsThatAreRefused(t *testing.T) {
	const id = "https://app.example/client.json"
	for _, test := range []struct {
		name, id, err string
		doc           map[string]any
	}{
		{"of another", id, `invalid_client: the document at "https://app.example/client.json" describes the client "https://evil.example/"`, map[string]any{"client_id": "https://evil.example/", "redirect_uris": []string{callback}}},
		{"with a secret", id, `invalid_client: the document at "https://app.example/client.json" names a method with a secret, but documents are public`, map[string]any{"client_id": id, "redirect_uris": []string{callback}, "token_endpoint_auth_method": "client_secret_post"}},
		{"without a redirect URI", id, `invalid_redirect_uri: the client needs redirect_uris`, map[string]any{"client_id": id}},
		{"without a path", "https://app.example", `invalid_client: unknown client "https://app.example"`, nil},
		{"not protected", "http://app.example/client.json", `invalid_client: unknown client "http://app.example/client.json"`, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			as := oauthtest.New(t, &oauthtest.Options{ClientMetadata: func(_ context.Context, url string) ([]byte, error) {
				require.Equal(t, id, url)
				return json.Marshal(test.doc)
			}})
			resp := visit(as, with(authorization(), "client_id", test.id))
			require.Equal(t, http.StatusBadRequest, resp.StatusCode)
			body, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.Equal(t, test.err+"\n", string(body))
		})
	}
	as := oauthtest.New(t, nil)
	resp := visit(as, with(authorization(), "client_id", "https://10.0.0.1/client.json"))
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, "invalid_client: the document of the client \"https://10.0.0.1/client.json\": the address 10.0.0.1 is not public\n", string(body))
}

func TestInvalidOptionsAreErrors(t *testing.T) {
	for _, test := range []struct {
		issuer string
		opts   *oauthtest.Options
		err    string
	}{
		{"as.example", nil, `oauthtest: issuer "as.example" is not an absolute https URL`},
		{"https://as.example", &oauthtest.Options{Clients: []oauthtest.Client{{}}}, `oauthtest: the client "": it needs an ID`},
	} {
		_, err := oauthtest.NewHandler(test.issuer, test.opts)
		require.EqualError(t, err, test.err)
	}
	_, err := oauthtest.Start(&oauthtest.Options{Addr: "nowhere"})
	require.ErrorContains(t, err, "oauthtest: listen tcp: address nowhere")
	require.Panics(t, func() {
		as, err := oauthtest.NewHandler("https://as.example", nil)
		require.NoError(t, err)
		as.Sign("JWT", map[string]any{"x": make(chan int)})
	})
}

// The token endpoint must not issue tokens to strangers, nor panic.
func FuzzTokenEndpoint(f *testing.F) {
	as, err := oauthtest.NewHandler("https://as.example", &oauthtest.Options{Clients: known, ClientMetadata: func(context.Context, string) ([]byte, error) { return nil, errors.New("nothing is fetched") }})
	require.NoError(f, err)
	for _, seed := range []string{
		"grant_type=authorization_code&client_id=app&code=x&code_verifier=y",
		"grant_type=refresh_token&client_id=app&refresh_token=x",
		"grant_type=urn:ietf:params:oauth:grant-type:jwt-bearer&assertion=eyJhbGciOiJFUzI1NiJ9.e30.eA",
		"grant_type=client_credentials&client_assertion_type=urn:ietf:params:oauth:client-assertion-type:jwt-bearer&client_assertion=eyJhbGciOiJub25lIn0.e30.",
		"grant_type=client_credentials&client_id=robot&client_secret=wrong",
		"%", "a=%zz",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		if strings.Contains(body, "secret") && !strings.Contains(body, "wrong") {
			return // the input may contain the secret of the test
		}
		r := httptest.NewRequest(http.MethodPost, "https://as.example/token", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		as.ServeHTTP(w, r)
		require.Contains(t, []int{http.StatusBadRequest, http.StatusUnauthorized}, w.Code, w.Body)
		require.Contains(t, w.Body.String(), `"error":`)
	})
}

func TestMain(m *testing.M) { testkit.VerifyTestMain(m) }

func TestConsentMayChangeOrDenyAnAuthorization(t *testing.T) {
	var got oauthtest.Authorization
	as := oauthtest.New(t, &oauthtest.Options{Consent: func(a *oauthtest.Authorization) error {
		got = *a
		a.Subject = "ada"
		a.Scopes = append(a.Scopes, "diary:write")
		a.Claims = map[string]any{"tenant": "t1"}
		return nil
	}})
	var caller *oauth.Principal
	url := start(t, as, func(o *resource.Options) {
		o.Policies = []resource.Policy{func(_ context.Context, p *oauth.Principal) error { caller = p; return nil }}
	})
	browser := func(context.Context, oauthclient.LoginRequest) (*oauthclient.Login, error) {
		return &oauthclient.Login{RedirectURI: "http://127.0.0.1:1/callback", Visit: oauthtest.Visit}, nil
	}
	require.Equal(t, "Written, ada.", write(t, as, url, &oauthclient.AuthorizationCode{Name: "My Program", Browser: browser}, oauthclient.Options{}))
	require.Equal(t, "t1", caller.Claims["tenant"])
	require.Equal(t, []string{"diary:read", "diary:write"}, caller.Scopes)
	require.Contains(t, got.ClientID, "client-")
	got.ClientID = ""
	require.Equal(t, oauthtest.Authorization{
		ClientName: "My Program", RedirectURI: "http://127.0.0.1:1/callback", Resources: []string{url}, Subject: "user", Scopes: []string{"diary:read"},
	}, got)
}

func TestKnownClientsLogIn(t *testing.T) {
	const document = "https://app.example/client.json"
	as := oauthtest.New(t, &oauthtest.Options{
		Metadata: func(doc map[string]any) { delete(doc, "registration_endpoint") },
		Clients: []oauthtest.Client{
			{ID: "public", RedirectURIs: []string{"http://127.0.0.1/callback"}},
			{ID: "secret: one", Secret: "s p/a+c%e", RedirectURIs: []string{"http://127.0.0.1/callback"}},
		},
		ClientMetadata: func(_ context.Context, url string) ([]byte, error) {
			require.Equal(t, document, url)
			return []byte(`{"client_id":"` + document + `","client_name":"App","redirect_uris":["http://127.0.0.1/callback"],
				"grant_types":["authorization_code","refresh_token"],"token_endpoint_auth_method":"none"}`), nil
		},
	})
	url := start(t, as, nil)
	browser := oauthclient.Loopback(&oauthclient.LoopbackOptions{Open: open})
	known := func(c oauthclient.Credentials) *oauthclient.AuthorizationCode {
		c.Issuer = as.Issuer
		return &oauthclient.AuthorizationCode{Known: []oauthclient.Credentials{c}, Browser: browser}
	}
	for name, g := range map[string]oauthclient.Grant{
		"public":      known(oauthclient.Credentials{ClientID: "public"}),
		"basic":       known(oauthclient.Credentials{ClientID: "secret: one", ClientSecret: "s p/a+c%e", AuthMethod: oauthclient.AuthBasic}),
		"post":        known(oauthclient.Credentials{ClientID: "secret: one", ClientSecret: "s p/a+c%e", AuthMethod: oauthclient.AuthPost}),
		"document":    &oauthclient.AuthorizationCode{MetadataURL: document, Browser: browser},
		"credentials": &oauthclient.ClientCredentials{Credentials: oauthclient.Credentials{Issuer: as.Issuer, ClientID: "secret: one", ClientSecret: "s p/a+c%e"}},
	} {
		t.Run(name, func(t *testing.T) {
			want := "Written, user."
			if name == "credentials" {
				want = "Written, secret: one."
			}
			require.Equal(t, want, write(t, as, url, g, oauthclient.Options{}))
		})
	}
}

func TestOpenReturnsTheTextOfThePage(t *testing.T) {
	as := oauthtest.New(t, nil)
	page := as.Endpoint("authorization") + "?" + url.Values{"client_id": {"nobody"}, "redirect_uri": {"https://app.example/"}}.Encode()
	require.EqualError(t, oauthtest.Open(t.Context(), page), `oauthtest: the page responded with status 400: "invalid_client: unknown client \"nobody\"\n"`)
}

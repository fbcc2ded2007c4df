package oauthtest_test

import (
	"context"
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

func TestMain(m *testing.M) { testkit.VerifyTestMain(m) }

// protect starts a resource that accepts tokens of as and returns the caller.
func protect(t *testing.T, as *oauthtest.Server, change func(*resource.Options)) string {
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	target := server.URL + "/mcp"
	opts := resource.Options{Issuer: as.Issuer, Resource: target, Scopes: []string{"read"}, InsecureLoopback: true, Client: as.Client()}
	if change != nil {
		change(&opts)
	}
	guard, err := resource.New(opts)
	require.NoError(t, err)
	guard.Mount(mux)
	mux.Handle("/mcp", guard.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := oauth.FromContext(r.Context())
		_, _ = io.WriteString(w, p.Subject+" may "+strings.Join(p.Scopes, " "))
	})))
	return target
}

// loopback is a browser on this machine whose user approves every login.
func loopback() oauthclient.Browser {
	return oauthclient.Loopback(&oauthclient.LoopbackOptions{Open: oauthtest.Open})
}

// connect returns a client for a resource.
func connect(t *testing.T, as *oauthtest.Server, target string, g oauthclient.Grant, opts *oauthclient.Options) *oauthclient.Transport {
	if opts == nil {
		opts = &oauthclient.Options{}
	}
	opts.InsecureLoopback, opts.Base = true, as.Client().Transport
	tr, err := oauthclient.New(target, g, opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tr.Close()) })
	return tr
}

// ask returns the caller that the resource sees.
func ask(t *testing.T, tr http.RoundTripper, target string) string {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
	require.NoError(t, err)
	resp, err := tr.RoundTrip(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.StatusCode, "%s %s", b, resp.Header.Get("WWW-Authenticate"))
	return string(b)
}

func TestConsentMayChangeOrDenyAnAuthorization(t *testing.T) {
	var got oauthtest.Authorization
	as := oauthtest.New(t, &oauthtest.Options{Consent: func(a *oauthtest.Authorization) error {
		got = *a
		a.Subject = "ada"
		a.Scopes = append(a.Scopes, "more")
		a.Claims = map[string]any{"tenant": "t1"}
		return nil
	}})
	target := protect(t, as, func(o *resource.Options) {
		o.Policies = []resource.Policy{func(_ context.Context, p *oauth.Principal) error {
			require.Equal(t, "t1", p.Claims["tenant"])
			return nil
		}}
	})
	browser := func(context.Context, oauthclient.LoginRequest) (*oauthclient.Login, error) {
		return &oauthclient.Login{RedirectURI: "http://127.0.0.1:1/callback", Visit: oauthtest.Visit}, nil
	}
	tr := connect(t, as, target, &oauthclient.AuthorizationCode{Name: "My Program", Browser: browser}, nil)
	require.Equal(t, "ada may read more", ask(t, tr, target))
	require.Contains(t, got.ClientID, "client-")
	got.ClientID = ""
	require.Equal(t, oauthtest.Authorization{
		ClientName: "My Program", RedirectURI: "http://127.0.0.1:1/callback", Resources: []string{target}, Subject: "user", Scopes: []string{"read"},
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
	target := protect(t, as, nil)
	known := func(c oauthclient.Credentials) *oauthclient.AuthorizationCode {
		c.Issuer = as.Issuer
		return &oauthclient.AuthorizationCode{Known: []oauthclient.Credentials{c}, Browser: loopback()}
	}
	for name, g := range map[string]oauthclient.Grant{
		"public":      known(oauthclient.Credentials{ClientID: "public"}),
		"basic":       known(oauthclient.Credentials{ClientID: "secret: one", ClientSecret: "s p/a+c%e", AuthMethod: oauthclient.AuthBasic}),
		"post":        known(oauthclient.Credentials{ClientID: "secret: one", ClientSecret: "s p/a+c%e", AuthMethod: oauthclient.AuthPost}),
		"document":    &oauthclient.AuthorizationCode{MetadataURL: document, Browser: loopback()},
		"credentials": &oauthclient.ClientCredentials{Credentials: oauthclient.Credentials{Issuer: as.Issuer, ClientID: "secret: one", ClientSecret: "s p/a+c%e"}},
	} {
		t.Run(name, func(t *testing.T) {
			want := "user may read"
			if name == "credentials" {
				want = "secret: one may read"
			}
			require.Equal(t, want, ask(t, connect(t, as, target, g, nil), target))
		})
	}
}

func TestOpenReturnsTheTextOfThePage(t *testing.T) {
	as := oauthtest.New(t, nil)
	page := as.Endpoint("authorization") + "?" + url.Values{"client_id": {"nobody"}, "redirect_uri": {"https://app.example/"}}.Encode()
	require.EqualError(t, oauthtest.Open(t.Context(), page), `oauthtest: the page responded with status 400: "oauthtest: invalid_client: unknown client \"nobody\"\n"`)
}

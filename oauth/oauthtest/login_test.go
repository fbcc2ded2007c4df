package oauthtest_test

import (
	"context"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/oauth/oauthclient"
	"github.com/mcpkit/mcpkit-go/oauth/oauthtest"
	"github.com/mcpkit/mcpkit-go/oauth/resource"
)

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

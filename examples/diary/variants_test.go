package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/oauth/oauthclient"
	"github.com/mcpkit/mcpkit-go/oauth/oauthtest"
	"github.com/mcpkit/mcpkit-go/oauth/resource"
	"github.com/mcpkit/mcpkit-go/protocol"
)

func TestPoliciesRestrictAccess(t *testing.T) {
	as := oauthtest.New(t, nil)
	url := start(t, as, func(opts *resource.Options) {
		// docs:begin policies
		opts.Policies = []resource.Policy{
			resource.Tenants("acme"),
			resource.Groups("diarists", "admins"),
			resource.RequireClaim("email_verified", true),
		}
		// docs:end policies
	})
	claims := map[string]any{"tenant": "acme", "groups": []string{"diarists"}, "email_verified": true}
	token := oauthtest.Token{Audience: []string{url}, Scopes: []string{"diary:read"}, Claims: claims}
	require.Equal(t, http.StatusOK, status(t, as, url, as.Token(token)))
	for name, value := range map[string]any{"tenant": "other", "groups": []string{"others"}, "email_verified": false} {
		good := claims[name]
		claims[name] = value
		require.Equal(t, http.StatusForbidden, status(t, as, url, as.Token(token)), name)
		claims[name] = good
	}
}

func TestOpaqueTokensAreIntrospected(t *testing.T) {
	as := oauthtest.New(t, &oauthtest.Options{Opaque: true, Clients: []oauthtest.Client{{ID: "diary", Secret: "secret"}}})
	url := start(t, as, func(opts *resource.Options) {
		// docs:begin introspection
		opts.Introspection = &resource.Introspection{
			Endpoint:     as.Endpoint("introspection"),
			ClientID:     "diary",
			ClientSecret: "secret",
		}
		opts.CacheTime = -1 // refuse revoked tokens at once
		// docs:end introspection
		opts.Client = as.Client()
	})
	token := as.Token(oauthtest.Token{Audience: []string{url}, Scopes: []string{"diary:read"}})
	require.Equal(t, http.StatusOK, status(t, as, url, token))
	as.Revoke(token)
	require.Equal(t, http.StatusUnauthorized, status(t, as, url, token))
}

// session calls the server with a grant and returns the principal that the server sees.
func session(t *testing.T, as *oauthtest.Server, url string, grant oauthclient.Grant, opts oauthclient.Options) string {
	opts.InsecureLoopback, opts.Base = true, as.Client().Transport
	tr, err := oauthclient.New(url, grant, &opts)
	require.NoError(t, err)
	c, err := client.Dial(t.Context(), url, client.HTTPClient(&http.Client{Transport: tr}))
	require.NoError(t, err)
	said, err := client.Call[string](t.Context(), c, "write", map[string]any{"text": "Hello."})
	require.NoError(t, err)
	require.NoError(t, c.Close())
	require.NoError(t, tr.Logout(t.Context()))
	require.NoError(t, tr.Close())
	return said
}

// A legacy session belongs to a user and a client. A program that registers again for each login
// would lose it.
func TestStepUpKeepsTheSession(t *testing.T) {
	for _, version := range []protocol.Version{"2025-11-25", "2026-07-28"} {
		t.Run(string(version), func(t *testing.T) {
			var clients []string
			as := oauthtest.New(t, &oauthtest.Options{Consent: func(a *oauthtest.Authorization) error {
				clients = append(clients, a.ClientID+" at "+a.RedirectURI)
				return nil
			}})
			url := start(t, as, nil)
			grant := &oauthclient.AuthorizationCode{Name: "Diary reader", Browser: oauthclient.Loopback(&oauthclient.LoopbackOptions{Open: oauthtest.Open})}
			tr, err := oauthclient.New(url, grant, &oauthclient.Options{InsecureLoopback: true, Base: as.Client().Transport})
			require.NoError(t, err)
			defer tr.Close()
			c, err := client.Dial(t.Context(), url, client.HTTPClient(&http.Client{Transport: tr}), client.Version(version))
			require.NoError(t, err)
			_, err = client.Call[[]Entry](t.Context(), c, "read", nil)
			require.NoError(t, err)
			said, err := client.Call[string](t.Context(), c, "write", map[string]any{"text": "Hello."})
			require.NoError(t, err)
			require.Equal(t, "Written, user.", said)
			require.NoError(t, c.Close())
			require.Len(t, clients, 2)
			_, first, _ := strings.Cut(clients[0], " at ")
			if strings.HasSuffix(clients[1], " at "+first) { // unless another program took the port
				require.Equal(t, clients[0], clients[1])
			}
		})
	}
}

func TestTokensBoundToAKey(t *testing.T) {
	as := oauthtest.New(t, nil)
	url := start(t, as, func(opts *resource.Options) {
		// docs:begin bound
		opts.DPoP = &resource.DPoP{Required: true}
		// docs:end bound
	})
	grant := &oauthclient.AuthorizationCode{Name: "Diary reader", Browser: oauthclient.Loopback(&oauthclient.LoopbackOptions{Open: oauthtest.Open})}
	prover, err := oauthclient.NewProver(nil) // a new key, kept in memory
	require.NoError(t, err)
	require.Equal(t, "Written, user.", session(t, as, url, grant, oauthclient.Options{DPoP: prover}))
	token := as.Token(oauthtest.Token{Audience: []string{url}, Scopes: []string{"diary:read"}})
	require.Equal(t, http.StatusUnauthorized, status(t, as, url, token))
}

func TestProgramsWithoutAUserLogIn(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	provider := oauthtest.New(t, &oauthtest.Options{Clients: []oauthtest.Client{{ID: "app", Secret: "secret"}}})
	as := oauthtest.New(t, &oauthtest.Options{
		Trusts:  []*oauthtest.Server{provider},
		Clients: []oauthtest.Client{{ID: "robot", Key: key.Public()}, {ID: "app", Secret: "secret"}},
	})
	url := start(t, as, nil)

	// docs:begin itself
	robot := &oauthclient.ClientCredentials{Credentials: oauthclient.Credentials{
		Issuer: as.Issuer, ClientID: "robot", Key: key, // or a ClientSecret
	}}
	// docs:end itself
	require.Equal(t, "Written, robot.", session(t, as, url, robot, oauthclient.Options{}))

	// A real platform writes the assertion into a file, for example.
	platformToken := func(audience string) string {
		return provider.Sign("JWT", map[string]any{"iss": provider.Issuer, "sub": "job-7", "aud": audience, "exp": time.Now().Add(time.Minute).Unix()})
	}
	// docs:begin workload
	workload := &oauthclient.WorkloadIdentity{
		Issuer: as.Issuer,
		Assertion: func(_ context.Context, to oauthclient.Audience) (string, error) {
			return platformToken(to.Issuer), nil
		},
	}
	// docs:end workload
	require.Equal(t, "Written, job-7.", session(t, as, url, workload, oauthclient.Options{}))

	idToken := provider.IDToken("ada", "app")
	// docs:begin enterprise
	enterprise := &oauthclient.EnterpriseManaged{
		Credentials:           oauthclient.Credentials{Issuer: as.Issuer, ClientID: "app", ClientSecret: "secret"},
		Provider:              oauthclient.Credentials{Issuer: provider.Issuer, ClientID: "app", ClientSecret: "secret"},
		ProviderTokenEndpoint: provider.Endpoint("token"),
		Subject: func(context.Context) (token, kind string, err error) {
			return idToken, oauthclient.TokenTypeID, nil // from the user's login at the provider
		},
	}
	// docs:end enterprise
	require.Equal(t, "Written, ada.", session(t, as, url, enterprise, oauthclient.Options{}))
}

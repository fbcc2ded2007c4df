package oauthclient_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/oauth/oauthclient"
	"github.com/mcpkit/mcpkit-go/oauth/oauthtest"
)

func TestIncompleteGrantsAreErrors(t *testing.T) {
	browser := oauthclient.Loopback(nil)
	me := oauthclient.Credentials{ClientID: "me", ClientSecret: leaked}
	assertion := func(context.Context, oauthclient.Audience) (string, error) { return leaked, nil }
	subject := func(context.Context) (string, string, error) { return leaked, oauthclient.TokenTypeID, nil }
	const hint = "; without it, any MCP server could name an authorization server of its own and be sent the secret"
	const server = "https://mcp.example/mcp"
	for _, test := range []struct {
		server string
		grant  oauthclient.Grant
		err    string
	}{
		{"http://mcp.example/mcp", nil, `tokens to "http://mcp.example/mcp" would be sent unencrypted; use https`},
		{"/mcp", nil, `the server must be an absolute URL without user and fragment, not "/mcp"`},
		{server, nil, "New needs a grant, for example *AuthorizationCode"},
		{server, &oauthclient.AuthorizationCode{Name: "x"}, "AuthorizationCode needs a Browser, for example Loopback(nil)"},
		{server, &oauthclient.AuthorizationCode{Browser: browser}, "AuthorizationCode needs Known, a MetadataURL or a Name"},
		{server, &oauthclient.AuthorizationCode{Browser: browser, Known: []oauthclient.Credentials{me}}, "each of AuthorizationCode.Known needs an Issuer and a ClientID"},
		{server, &oauthclient.AuthorizationCode{Browser: browser, MetadataURL: "http://app.example/x"}, `the MetadataURL "http://app.example/x" must be https and have a path`},
		{server, &oauthclient.AuthorizationCode{Browser: browser, MetadataURL: "https://app.example/"}, `the MetadataURL "https://app.example/" must be https and have a path`},
		{server, &oauthclient.ClientCredentials{Credentials: oauthclient.Credentials{Issuer: "https://as.example", ClientID: "x"}}, "ClientCredentials needs a ClientID, and a Key or a ClientSecret"},
		{server, &oauthclient.ClientCredentials{Credentials: me}, "ClientCredentials needs Credentials.Issuer" + hint},
		{server, &oauthclient.EnterpriseManaged{}, "EnterpriseManaged needs a ClientID at both servers, a ProviderTokenEndpoint and a Subject"},
		{server, &oauthclient.EnterpriseManaged{Credentials: me, Provider: me, ProviderTokenEndpoint: "https://idp.example/token", Subject: subject}, "EnterpriseManaged needs Credentials.Issuer" + hint},
		{server, &oauthclient.WorkloadIdentity{}, "WorkloadIdentity needs an Assertion"},
		{server, &oauthclient.WorkloadIdentity{Assertion: assertion}, "WorkloadIdentity needs an Issuer" + hint},
	} {
		_, err := oauthclient.New(test.server, test.grant, nil)
		require.EqualError(t, err, "oauthclient: "+test.err)
	}
}

// A silent authorization server does not send iss in its responses.
func silent(t *testing.T, b *book) *oauthtest.Server {
	return oauthtest.New(t, &oauthtest.Options{Wrap: b.wrap, Metadata: func(m map[string]any) { m["authorization_response_iss_parameter_supported"] = false }})
}

// Without iss in the responses, only the redirect URI identifies the issuer (RFC 9700, section
// 4.4.2.2).
func TestIssuersWithoutISSHaveSeparateRedirectURIs(t *testing.T) {
	paths := make(map[string]bool)
	store := oauthclient.NewMemoryStore()
	g := &oauthclient.AuthorizationCode{Name: "test", Browser: oauthclient.Loopback(&oauthclient.LoopbackOptions{Open: oauthtest.Open})}
	for range 2 {
		var b book
		as := silent(t, &b)
		s := protect(t, as, nil)
		for range 2 {
			tr := connect(t, s.url, g, oauthclient.Options{Store: store})
			require.Equal(t, "user may read", says(t, tr, s.url))
			require.NoError(t, tr.Logout(t.Context()))
		}
		asked := b.at("/authorize")
		require.Len(t, asked, 2)
		for _, r := range asked {
			u, err := url.Parse(r.query.Get("redirect_uri"))
			require.NoError(t, err)
			paths[u.Path] = true
		}
	}
	require.Len(t, paths, 2, "one for each issuer: %v", paths)
}

func TestRedirectURIIsBoundToOneIssuerWithoutISS(t *testing.T) {
	store, u := oauthclient.NewMemoryStore(), new(user)
	var first, second book
	honest, other := silent(t, &first), silent(t, &second)
	s := protect(t, honest, nil)
	require.Equal(t, "user may read", says(t, connect(t, s.url, u.grant(), oauthclient.Options{Store: store}), s.url))
	s = protect(t, other, nil)
	_, _, err := post(t, connect(t, s.url, u.grant(), oauthclient.Options{Store: store}), s.url)
	require.EqualError(t, err, fmt.Sprintf("oauthclient: the redirect URI %q is in use for the authorization server %q, and the responses of %q "+
		"do not name it (RFC 9207); use another redirect URI for it", "http://127.0.0.1/callback", honest.Issuer, other.Issuer))
	require.Empty(t, second.at("/authorize"))

	named := oauthtest.New(t, nil)
	s = protect(t, named, nil)
	require.Equal(t, "user may read", says(t, connect(t, s.url, u.grant(), oauthclient.Options{Store: store}), s.url), "issuers that send iss may share a redirect URI")
}

// A flakyStore fails to save and to load on demand.
type flakyStore struct {
	oauthclient.Store
	broken, unreadable atomic.Bool
}

func (s *flakyStore) Load(ctx context.Context, key oauthclient.Key) (*oauthclient.Record, error) {
	if s.unreadable.Load() {
		return nil, errors.New("the disk is gone")
	}
	return s.Store.Load(ctx, key)
}

func (s *flakyStore) Save(ctx context.Context, key oauthclient.Key, r *oauthclient.Record) error {
	if s.broken.Load() {
		return errors.New("the disk is full")
	}
	return s.Store.Save(ctx, key, r)
}

func TestFailedSaveKeepsTheTokenInUse(t *testing.T) {
	var b book
	as := oauthtest.New(t, &oauthtest.Options{Clients: []oauthtest.Client{guardian}, Wrap: b.wrap})
	s := protect(t, as, introspected(as))
	u, store := new(user), &flakyStore{Store: oauthclient.NewMemoryStore()}
	refreshes := func() (n int) {
		for _, r := range b.at("/token") {
			if r.form.Get("grant_type") == "refresh_token" {
				n++
			}
		}
		return n
	}
	var log strings.Builder
	tr := connect(t, s.url, u.grant(), oauthclient.Options{Store: store, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	store.broken.Store(true)
	require.Equal(t, "user may read", says(t, tr, s.url))
	const failed = `msg="oauthclient: the store failed to keep a token or a registration" issuer=%s resource=%s error="the disk is full"`
	require.Contains(t, log.String(), fmt.Sprintf(failed, as.Issuer, s.url))
	require.Contains(t, log.String(), fmt.Sprintf(failed, as.Issuer, `""`))
	spoil(t, as, tr)
	require.Equal(t, "user may read", says(t, tr, s.url))
	require.Equal(t, 1, refreshes())

	store.broken.Store(false)
	spoil(t, as, tr)
	require.Equal(t, "user may read", says(t, tr, s.url))
	require.Equal(t, 2, refreshes())

	store.broken.Store(true)
	for i := range 3 { // the store has an old refresh token
		spoil(t, as, tr)
		require.Equal(t, "user may read", says(t, tr, s.url))
		require.Equal(t, 3+i, refreshes())
	}
	require.Len(t, u.logins(), 1)
	require.Len(t, b.at("/register"), 1)
	require.NoError(t, tr.Logout(t.Context()))
	require.Equal(t, "user may read", says(t, tr, s.url), "a later login is accepted")
}

// The authorization server treats a refresh token that is used twice as stolen.
func TestProgramsWithASharedFolderRefreshOnce(t *testing.T) {
	var b book
	as := oauthtest.New(t, &oauthtest.Options{Clients: []oauthtest.Client{guardian}, Wrap: b.wrap})
	s := protect(t, as, introspected(as))
	u, dir := new(user), t.TempDir()
	var all []*oauthclient.Transport
	for range 8 {
		store, err := oauthclient.NewFileStore(dir)
		require.NoError(t, err)
		tr := connect(t, s.url, u.grant(), oauthclient.Options{Store: store})
		require.Equal(t, "user may read", says(t, tr, s.url))
		all = append(all, tr)
	}
	require.Len(t, u.logins(), 1)
	for round := range 4 {
		spoil(t, as, all[0])
		var wg sync.WaitGroup
		for _, tr := range all {
			wg.Go(func() {
				if status, body, err := post(t, tr, s.url); err != nil || status != http.StatusOK {
					t.Errorf("got %d %q, %v", status, body, err)
				}
			})
		}
		wg.Wait()
		require.Len(t, b.at("/token"), 2+round, "one code, and one refresh in each round")
	}
	require.Len(t, u.logins(), 1)
}

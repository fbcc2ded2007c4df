package oauthtest_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/oauth/oauthclient"
	"github.com/mcpkit/mcpkit-go/oauth/oauthtest"
	"github.com/mcpkit/mcpkit-go/oauth/resource"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

// The code of docs/howto/protect-a-server.md and docs/howto/log-in.md.

// docs:begin service

// Diary keeps a diary for each user.
type Diary struct {
	_ mcpkit.Info `name:"diary" version:"1.0.0"`
	_ struct {
		Read  mcpkit.Tool `hints:"readonly" scopes:"diary:read"`
		Write mcpkit.Tool `hints:"additive" scopes:"diary:read diary:write" params:"text"`
	}

	mu      sync.Mutex
	entries map[owner][]string
}

// An owner is a user, whatever client the user has.
type owner struct{ issuer, subject string }

// Read returns the entries of the user, the oldest first.
func (d *Diary) Read(user *oauth.Principal) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.entries[owner{user.Issuer, user.Subject}])
}

// docs:end service

// Write adds an entry to the diary of the user.
func (d *Diary) Write(user *oauth.Principal, text string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := owner{user.Issuer, user.Subject}
	d.entries[key] = append(d.entries[key], text)
	return "Written, " + user.Subject + "."
}

// docs:begin mount

// newHandler returns a diary behind a guard. The metadata of the guard is public.
func newHandler(opts resource.Options) (http.Handler, error) {
	guard, err := resource.New(opts)
	if err != nil {
		return nil, err
	}
	srv, err := mcpkit.New(&Diary{entries: map[owner][]string{}}, mcpkit.Authenticated(), mcpkit.StepUp())
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	guard.Mount(mux) // the metadata, which tells clients where to log in
	mux.Handle("/mcp", guard.Wrap(streamable.NewHandler(srv, nil)))
	return mux, nil
}

// docs:end mount

// start starts a diary for the tokens of an authorization server, and returns its URL.
func start(t *testing.T, as *oauthtest.Server, change func(*resource.Options)) string {
	server := httptest.NewUnstartedServer(nil)
	url := "http://" + server.Listener.Addr().String() + "/mcp"
	// docs:begin guard
	opts := resource.Options{
		Issuer:          as.Issuer,              // such as https://login.example.com
		Resource:        url,                    // such as https://diary.example.com/mcp
		Scopes:          []string{"diary:read"}, // required for every request
		ScopesSupported: []string{"diary:read", "diary:write"},
	}
	// docs:end guard
	opts.InsecureLoopback, opts.Client = true, as.Client()
	if change != nil {
		change(&opts)
	}
	handler, err := newHandler(opts)
	require.NoError(t, err)
	server.Config.Handler = handler
	server.Start()
	t.Cleanup(server.Close)
	return url
}

func TestTokensAreChecked(t *testing.T) {
	as := oauthtest.New(t, nil)
	url := start(t, as, nil)
	for name, test := range map[string]struct {
		token  oauthtest.Token
		status int
	}{
		"good":               {oauthtest.Token{Audience: []string{url}, Scopes: []string{"diary:read"}}, http.StatusOK},
		"for another server": {oauthtest.Token{Audience: []string{"https://other.example/mcp"}}, http.StatusUnauthorized},
		"without the scope":  {oauthtest.Token{Audience: []string{url}}, http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.status, status(t, url, as.Token(test.token)))
		})
	}
}

// status returns the HTTP status of a request with a token.
func status(t *testing.T, url, token string) int {
	_, err := client.Dial(t.Context(), url, client.Header("Authorization", "Bearer "+token))
	if refused, ok := errors.AsType[*client.StatusError](err); ok {
		return refused.Code
	}
	require.NoError(t, err)
	return http.StatusOK
}

func TestPoliciesRestrictAccess(t *testing.T) {
	as := oauthtest.New(t, nil)
	url := start(t, as, func(opts *resource.Options) {
		// docs:begin policies
		opts.Policies = []resource.Policy{
			resource.RequireClaim("tid", "acme"),
			resource.RequireClaim("groups", "diarists", "admins"),
			resource.RequireClaim("email_verified", true),
		}
		// docs:end policies
	})
	claims := map[string]any{"tid": "acme", "groups": []string{"diarists"}, "email_verified": true}
	token := oauthtest.Token{Audience: []string{url}, Scopes: []string{"diary:read"}, Claims: claims}
	require.Equal(t, http.StatusOK, status(t, url, as.Token(token)))
	claims["tid"] = "other"
	require.Equal(t, http.StatusForbidden, status(t, url, as.Token(token)))
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
	})
	token := as.Token(oauthtest.Token{Audience: []string{url}, Scopes: []string{"diary:read"}})
	require.Equal(t, http.StatusOK, status(t, url, token))
	as.Revoke(token)
	require.Equal(t, http.StatusUnauthorized, status(t, url, token))
}

// docs:begin login

// logIn logs the user in and returns a client. Tokens stay in a folder for the next run.
func logIn(ctx context.Context, url, dir string, opts oauthclient.Options) (*client.Client, *oauthclient.Transport, error) {
	store, err := oauthclient.NewFileStore(dir)
	if err != nil {
		return nil, nil, err
	}
	opts.Store = store
	grant := &oauthclient.AuthorizationCode{
		Name:    "Diary reader",
		Browser: oauthclient.Loopback(&oauthclient.LoopbackOptions{Open: open}), // nil opens the user's browser
	}
	t, err := oauthclient.New(url, grant, &opts)
	if err != nil {
		return nil, nil, err
	}
	// Log in before the first request, which would time out while the user types.
	if err := t.Login(ctx); err != nil {
		return nil, nil, errors.Join(err, t.Close())
	}
	c, err := client.Dial(ctx, url, client.HTTPClient(&http.Client{Transport: t}))
	return c, t, err
}

// docs:end login

// open takes the place of the user's browser.
var open = oauthtest.Open

func TestWritingNeedsAnotherScope(t *testing.T) {
	var asked []string
	as := oauthtest.New(t, &oauthtest.Options{Consent: func(a *oauthtest.Authorization) error {
		asked = append(asked, strings.Join(a.Scopes, " "))
		return nil
	}})
	url, dir := start(t, as, nil), t.TempDir()
	for range 2 {
		c, tokens, err := logIn(t.Context(), url, dir, oauthclient.Options{InsecureLoopback: true, Base: as.Client().Transport})
		require.NoError(t, err)
		_, err = c.CallTool(t.Context(), "write", map[string]any{"text": "It rained."})
		require.NoError(t, err)
		require.NoError(t, errors.Join(c.Close(), tokens.Close()))
		require.Equal(t, []string{"diary:read", "diary:read diary:write"}, asked, "the second run uses the token of the first")
	}
}

// write calls the diary with a grant, and returns what it says.
func write(t *testing.T, as *oauthtest.Server, url string, grant oauthclient.Grant, opts oauthclient.Options) string {
	opts.InsecureLoopback, opts.Base = true, as.Client().Transport
	tokens, err := oauthclient.New(url, grant, &opts)
	require.NoError(t, err)
	defer tokens.Close()
	c, err := client.Dial(t.Context(), url, client.HTTPClient(&http.Client{Transport: tokens}))
	require.NoError(t, err)
	defer c.Close()
	said, err := client.Call[string](t.Context(), c, "write", map[string]any{"text": "Hello."})
	require.NoError(t, err)
	return said
}

func TestTokensBoundToAKey(t *testing.T) {
	as := oauthtest.New(t, nil)
	url := start(t, as, func(opts *resource.Options) {
		opts.DPoP = &resource.DPoP{Required: true}
	})
	browser := oauthclient.Loopback(&oauthclient.LoopbackOptions{Open: open})
	prover, err := oauthclient.NewProver(nil) // a new key, kept in memory
	require.NoError(t, err)
	grant := &oauthclient.AuthorizationCode{Name: "Diary reader", Browser: browser}
	require.Equal(t, "Written, user.", write(t, as, url, grant, oauthclient.Options{DPoP: prover}))
	token := as.Token(oauthtest.Token{Audience: []string{url}, Scopes: []string{"diary:read"}})
	require.Equal(t, http.StatusUnauthorized, status(t, url, token))
}

func TestProgramsWithoutAUserLogIn(t *testing.T) {
	bearer := func(form url.Values) (*oauthtest.Token, error) {
		subject := map[string]string{"of the platform": "job-7", "of the provider": "ada"}[form.Get("assertion")]
		return &oauthtest.Token{Subject: subject, Audience: form["resource"], Scopes: strings.Fields(form.Get("scope"))}, nil
	}
	as := oauthtest.New(t, &oauthtest.Options{
		Clients: []oauthtest.Client{{ID: "robot", Secret: "secret"}, {ID: "app", Secret: "secret"}},
		Grants:  map[string]func(url.Values) (*oauthtest.Token, error){"urn:ietf:params:oauth:grant-type:jwt-bearer": bearer},
	})
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"access_token":"of the provider","issued_token_type":"urn:ietf:params:oauth:token-type:id-jag","token_type":"N_A"}`)
	}))
	defer provider.Close()
	diary := start(t, as, nil)

	// docs:begin itself
	robot := &oauthclient.ClientCredentials{Credentials: oauthclient.Credentials{
		Issuer: as.Issuer, ClientID: "robot", ClientSecret: "secret", // or a Key
	}}
	// docs:end itself
	require.Equal(t, "Written, robot.", write(t, as, diary, robot, oauthclient.Options{}))

	// A real platform writes the assertion into a file, for example.
	platformToken := func(string) string { return "of the platform" }
	workload := &oauthclient.WorkloadIdentity{
		Issuer: as.Issuer,
		Assertion: func(_ context.Context, to oauthclient.Audience) (string, error) {
			return platformToken(to.Issuer), nil
		},
	}
	require.Equal(t, "Written, job-7.", write(t, as, diary, workload, oauthclient.Options{}))

	const idToken = "of ada"
	enterprise := &oauthclient.EnterpriseManaged{
		Credentials:           oauthclient.Credentials{Issuer: as.Issuer, ClientID: "app", ClientSecret: "secret"},
		Provider:              oauthclient.Credentials{Issuer: provider.URL, ClientID: "app", ClientSecret: "secret"},
		ProviderTokenEndpoint: provider.URL + "/token",
		Subject: func(context.Context) (token, kind string, err error) {
			return idToken, oauthclient.TokenTypeID, nil // from the user's login at the provider
		},
	}
	require.Equal(t, "Written, ada.", write(t, as, diary, enterprise, oauthclient.Options{}))
}

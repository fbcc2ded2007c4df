package broker_test

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"os"
	"testing"

	"github.com/labstack/echo/v4"
	"github.com/stretchr/testify/require"
	"golang.org/x/oauth2"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/oauth/broker"
	"github.com/mcpkit/mcpkit-go/oauth/oauthclient"
	"github.com/mcpkit/mcpkit-go/transport/echomcp"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

// The code of docs/howto/log-in-with-your-provider.md.

// Notes keeps notes.
type Notes struct {
	_ mcpkit.Info `name:"notes" version:"1.0.0"`
	_ struct {
		Read mcpkit.Tool `hints:"readonly" scopes:"notes:read"`
		Sync mcpkit.Tool `scopes:"notes:write"`
	}
	broker *broker.Broker
	api    string // of the provider
}

// Read says who reads.
func (n *Notes) Read(p *oauth.Principal) string { return "read by " + p.Subject }

// docs:begin upstream

// Sync asks the provider's API in the name of the user.
func (n *Notes) Sync(ctx context.Context) (string, error) {
	api := oauth2.NewClient(ctx, n.broker.Upstream(ctx)) // with the user's token of the provider
	resp, err := api.Get(n.api + "/userinfo")
	if err != nil {
		return "", err
	}
	return resp.Status, resp.Body.Close()
}

// docs:end upstream

// docs:begin google

// newGoogle logs in the users of a Google Workspace.
func newGoogle(key []byte) (*broker.Broker, error) {
	return broker.New(broker.Options{
		Issuer:   "https://notes.example.com",
		Resource: "https://notes.example.com/mcp",
		Provider: broker.Google(os.Getenv("GOOGLE_ID"), os.Getenv("GOOGLE_SECRET")),
		Domains:  []string{"example.com"},
		Scopes:   map[string][]string{"notes:read": nil, "notes:write": nil},
		Keys:     [][]byte{key}, // 32 random bytes
	})
}

// docs:end google

// docs:begin keycloak

// newKeycloak logs in the staff of a realm. Only editors may write.
func newKeycloak(key []byte) (*broker.Broker, error) {
	return broker.New(broker.Options{
		Issuer:   "https://notes.example.com",
		Resource: "https://notes.example.com/mcp",
		Provider: broker.Keycloak("https://login.example.com/realms/acme", "notes", os.Getenv("KEYCLOAK_SECRET")),
		Groups:   []string{"/staff"},
		Scopes:   map[string][]string{"notes:read": nil, "notes:write": {"/editors"}},
		Keys:     [][]byte{key},
	})
}

// docs:end keycloak

// docs:begin protect

// protect serves the MCP endpoint and the login.
func protect(b *broker.Broker, notes *Notes) (http.Handler, error) {
	srv, err := mcpkit.New(notes, mcpkit.Authenticated(), mcpkit.StepUp())
	if err != nil {
		return nil, err
	}
	return b.Protect(streamable.NewHandler(srv, nil)), nil
}

// docs:end protect

// docs:begin echo

// mount mounts the same in an echo app.
func mount(app *echo.Echo, b *broker.Broker, srv *mcpkit.Server) {
	app.Use(echo.WrapMiddleware(b.Protect))
	echomcp.Mount(app, "/mcp", srv)
}

// docs:end echo

func TestOurClientLogsIn(t *testing.T) {
	p := newProvider(t)
	for router, bound := range map[string]bool{"net/http": false, "echo": true} {
		t.Run(router, func(t *testing.T) {
			s := newSite(t, p, nil)
			notes := &Notes{broker: s.Broker, api: p.Issuer}
			var err error
			s.handler, err = protect(s.Broker, notes)
			require.NoError(t, err)
			if router == "echo" {
				srv, err := mcpkit.New(notes, mcpkit.Authenticated(), mcpkit.StepUp())
				require.NoError(t, err)
				app := echo.New()
				mount(app, s.Broker, srv)
				s.handler = app
			}
			user := newBrowser(t, "ada")
			opts := &oauthclient.Options{InsecureLoopback: true, Base: user.http.Transport}
			if bound {
				opts.DPoP, err = oauthclient.NewProver(nil)
				require.NoError(t, err)
			}
			tokens, err := oauthclient.New(s.url+"/mcp", &oauthclient.AuthorizationCode{
				Name: "Editor",
				Browser: func(context.Context, oauthclient.LoginRequest) (*oauthclient.Login, error) {
					return &oauthclient.Login{RedirectURI: local, Visit: func(_ context.Context, page string) (url.Values, error) {
						return user.visit(page), nil
					}}, nil
				},
			}, opts)
			require.NoError(t, err)
			defer tokens.Close()
			require.NoError(t, tokens.Login(t.Context()))
			c, err := client.Dial(t.Context(), s.url+"/mcp", client.HTTPClient(&http.Client{Transport: tokens}))
			require.NoError(t, err)
			defer c.Close()
			for tool, want := range map[string]string{"read": "read by ada", "sync": "200 OK"} {
				got, err := client.Call[string](t.Context(), c, tool, object{})
				require.NoError(t, err)
				require.Equal(t, want, got)
			}
			require.NoError(t, tokens.Logout(t.Context()))
		})
	}
}

func TestTheGuideStarts(t *testing.T) {
	for _, name := range []string{"GOOGLE_ID", "GOOGLE_SECRET", "KEYCLOAK_SECRET"} {
		t.Setenv(name, "x")
	}
	require.Equal(t, "https://login.microsoftonline.com/t-1/v2.0", broker.Entra("t-1", "", "").Issuer)
	require.Equal(t, "groups", broker.Okta("https://acme.okta.com", "", "").GroupScope)
	for _, start := range []func([]byte) (*broker.Broker, error){newGoogle, newKeycloak} {
		b, err := start(bytes.Repeat([]byte("k"), 32))
		require.NoError(t, err)
		w := serve(b.Protect(nothing), "POST", "/mcp", "")
		require.Equal(t, http.StatusUnauthorized, w.Code)
		require.Contains(t, w.Header().Get("WWW-Authenticate"), "https://notes.example.com/.well-known/oauth-protected-resource/mcp")
	}
}

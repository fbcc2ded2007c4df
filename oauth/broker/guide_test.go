package broker_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/stretchr/testify/require"
	"golang.org/x/oauth2"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/config"
	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/oauth/broker"
	"github.com/mcpkit/mcpkit-go/oauth/oauthclient"
	"github.com/mcpkit/mcpkit-go/oauth/resource"
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

// logIn logs ada in, and returns the client's tokens.
func (s *site) logIn(opts *oauthclient.Options) *oauthclient.Transport {
	user := newBrowser(s.t, "ada")
	opts.InsecureLoopback, opts.Base = true, user.http.Transport
	tokens, err := oauthclient.New(s.url+"/mcp", &oauthclient.AuthorizationCode{
		Name: "Editor",
		Browser: func(context.Context, oauthclient.LoginRequest) (*oauthclient.Login, error) {
			return &oauthclient.Login{RedirectURI: local, Visit: func(_ context.Context, page string) (url.Values, error) {
				return user.visit(page), nil
			}}, nil
		},
	}, opts)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = tokens.Close() })
	require.NoError(s.t, tokens.Login(s.t.Context()))
	return tokens
}

func TestOurClientLogsIn(t *testing.T) {
	p := newProvider(t)
	for router, want := range map[string]map[string]string{
		"net/http": {"read": "read by ada", "sync": "200 OK"}, "echo": {"read": "read by ada", "sync": "200 OK"},
		"config": {"read": "read by ada"},
	} {
		t.Run(router, func(t *testing.T) {
			s := newSite(t, p, nil)
			notes := &Notes{broker: s.Broker, api: p.Issuer}
			opts := &oauthclient.Options{}
			var err error
			switch router {
			case "net/http":
				s.handler, err = protect(s.Broker, notes)
				require.NoError(t, err)
			case "echo":
				srv, err := mcpkit.New(notes, mcpkit.Authenticated(), mcpkit.StepUp())
				require.NoError(t, err)
				app := echo.New()
				mount(app, s.Broker, srv)
				s.handler = app
				opts.DPoP, err = oauthclient.NewProver(nil)
				require.NoError(t, err)
			case "config":
				s.handler = s.configured(p)
			}
			tokens := s.logIn(opts)
			c, err := client.Dial(t.Context(), s.url+"/mcp", client.HTTPClient(&http.Client{Transport: tokens}))
			require.NoError(t, err)
			defer c.Close()
			for tool, want := range want {
				got, err := client.Call[string](t.Context(), c, tool, object{})
				require.NoError(t, err)
				require.Equal(t, want, got)
			}
			require.NoError(t, tokens.Logout(t.Context()))
		})
	}
}

// shared is the engine of the replicas.
var shared = fleet.NewMemory(fleet.MemoryOptions{})

func init() {
	fleet.Register("shared", func(context.Context, *url.URL) (*fleet.Local, error) { return shared.Open(), nil })
}

// configured serves Notes on two replicas as a file says, until the test ends. The handler passes requests
// on to each in turn.
func (s *site) configured(p *provider) http.Handler {
	var replicas [2]http.Handler
	for i := range replicas {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(s.t, err)
		to := &url.URL{Scheme: "http", Host: l.Addr().String()}
		require.NoError(s.t, l.Close())
		replicas[i] = httputil.NewSingleHostReverseProxy(to)
		c, err := config.Parse("notes.yaml", fmt.Appendf(nil, `
transport: {http: {addr: %q, shutdownTimeout: 1s}}
server: {stateKeys: ["env:KEY"], stepUp: true}
fleet: shared:/
log: {level: error}
auth:
  issuer: %[2]s
  resource: %[2]s/mcp
  insecureLoopback: true
  login: {provider: oidc, at: %[3]q, clientID: broker, clientSecret: env:SECRET, groups: [staff], scopes: {notes:read: [], notes:write: [admins]}}
`, to.Host, s.url, p.Issuer), config.Environ([]string{"SECRET=upstream-secret", "KEY=" + strings.Repeat("k", 32)}))
		require.NoError(s.t, err)
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		// Ends with the test.
		go func() { ended <- c.Serve(ctx, &Notes{}) }()
		s.t.Cleanup(func() { stop(); require.NoError(s.t, <-ended) })
		require.Eventually(s.t, func() bool {
			resp, err := http.Get(to.String() + "/jwks.json")
			return err == nil && resp.Body.Close() == nil
		}, 10*time.Second, 10*time.Millisecond)
	}
	var turn atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { replicas[turn.Add(1)%2].ServeHTTP(w, r) })
}

func TestTheGuideStarts(t *testing.T) {
	for _, name := range []string{"GOOGLE_ID", "GOOGLE_SECRET"} {
		t.Setenv(name, "x")
	}
	key := bytes.Repeat([]byte("k"), 32)
	b, err := newGoogle(key)
	require.NoError(t, err)
	w := serve(b.Protect(nothing), "POST", "/mcp", "")
	require.Equal(t, http.StatusUnauthorized, w.Code)
	require.Contains(t, w.Header().Get("WWW-Authenticate"), "https://notes.example.com/.well-known/oauth-protected-resource/mcp")

	file := filepath.Join(t.TempDir(), "keycloak.yaml")
	text, err := os.ReadFile("testdata/keycloak.yaml")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, text, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(file), "state.key"), key, 0o600))
	c, err := config.Load(file, config.Environ([]string{"KEYCLOAK_SECRET=x"}))
	require.NoError(t, err)
	_, err = c.Transports()
	require.NoError(t, err)
}

func TestConfiguredProviders(t *testing.T) {
	enterprise := broker.GitHub("id", "secret")
	enterprise.Issuer = "https://github.example"
	for _, test := range []struct {
		name, at string
		want     broker.Provider
	}{
		{"google", "", broker.Google("id", "secret")},
		{"github", "", broker.GitHub("id", "secret")},
		{"github", "https://github.example", enterprise},
		{"entra", "t-1", broker.Provider{
			Name: "Microsoft", Issuer: "https://login.microsoftonline.com/t-1/v2.0", ClientID: "id", ClientSecret: "secret", Scopes: []string{"offline_access"},
		}},
		{"okta", "https://acme.okta.com", broker.Okta("https://acme.okta.com", "id", "secret")},
		{"keycloak", "https://id.example/realms/acme", broker.Keycloak("https://id.example/realms/acme", "id", "secret")},
		{"oidc", "https://id.example", broker.Provider{Issuer: "https://id.example", ClientID: "id", ClientSecret: "secret", UserInfo: true}},
	} {
		got := broker.ProviderOf(&resource.LoginOptions{Provider: test.name, At: test.at, ClientID: "id", ClientSecret: "secret"})
		require.Equal(t, test.want, got)
	}
}

package oauthclient_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/oauth/oauthclient"
	"github.com/mcpkit/mcpkit-go/oauth/oauthtest"
	"github.com/mcpkit/mcpkit-go/oauth/resource"
)

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

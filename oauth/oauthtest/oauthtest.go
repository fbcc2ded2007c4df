// Package oauthtest is an authorization server for tests, examples and development. By default its
// users approve every login.
//
// It implements what MCP requires of authorization servers and what clients use beyond that:
// metadata (RFC 8414, OpenID Connect Discovery), codes with PKCE S256, rotating refresh tokens,
// registration (RFC 7591), client ID metadata documents, client credentials, resource indicators (RFC
// 8707), iss in responses (RFC 9207), introspection (RFC 7662), revocation (RFC 7009) and DPoP (RFC
// 9449).
//
//	as := oauthtest.New(t, nil)
//	guard, err := resource.New(resource.Options{Issuer: as.Issuer, Resource: url, InsecureLoopback: true})
//	// A client logs in with oauthtest.Open instead of a browser. A test that only needs a token gets one:
//	token := as.Token(oauthtest.Token{Audience: []string{url}, Scopes: []string{"notes:read"}})
//
// Do not use it in production: it authenticates no users and keeps everything in memory.
package oauthtest

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/oauth/internal/dpop"
	"github.com/mcpkit/mcpkit-go/oauth/internal/metadata"
)

const (
	defaultLifetime = time.Hour
	codeLifetime    = time.Minute
	requestTimeout  = 30 * time.Second
)

// Options configures a [Server]. The zero value is ready to use.
type Options struct {
	// Addr is the address of [New] and [Start]. Empty means a free port of 127.0.0.1.
	Addr string

	// Clients are registered from the start.
	Clients []Client
	// ClientMetadata returns the JSON document at the URL that is a client's ID. Nil fetches it: over
	// https from public addresses, and over http from loopback addresses.
	ClientMetadata func(ctx context.Context, url string) ([]byte, error)

	// Consent is called for each authorization and may change it. An error denies it. Nil approves as
	// the subject "user".
	Consent func(a *Authorization) error

	// Scopes are the supported scopes. Nil allows any and publishes none.
	Scopes []string

	// Lifetime is the lifetime of access tokens. Zero means an hour.
	Lifetime time.Duration
	// NoRefresh issues no refresh tokens.
	NoRefresh bool
	// Opaque issues opaque access tokens, for introspection, instead of JWTs (RFC 9068).
	Opaque bool

	// RequireDPoP issues no token without a proof.
	RequireDPoP bool

	// Grants are further grants by grant_type, such as assertions of an identity provider or a
	// workload platform. Each checks the form of a request and returns the token, or an error.
	Grants map[string]func(form url.Values) (*Token, error)

	// Metadata may change the members of the server's metadata, for example to test wrong metadata.
	Metadata func(doc map[string]any)
	// Wrap wraps all endpoints, for example to count requests or to change responses.
	Wrap func(next http.Handler) http.Handler
}

// A Server is an authorization server and an [http.Handler]. It is safe for concurrent use.
// Create one with [New], [Start] or [NewHandler].
type Server struct {
	// Issuer is the identifier of the server. Do not change it.
	Issuer string

	opts    Options
	origin  string // of the issuer
	base    string // path of the issuer, without a slash at the end
	key     jose.JSONWebKey
	dpop    *dpop.Verifier
	handler http.Handler
	client  *http.Client
	fetcher *http.Client // for metadata documents of clients
	stop    func()

	mu      sync.Mutex
	clients map[string]*client       // by ID; guarded by mu
	codes   map[string]*code         // guarded by mu
	refresh map[string]*refreshToken // guarded by mu
	access  map[string]*accessToken  // guarded by mu
}

// TB is the part of *testing.T that [New] uses.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// New starts a server that is closed at the end of the test. Nil options are the zero value.
func New(t TB, opts *Options) *Server {
	t.Helper()
	s, err := Start(opts)
	if err != nil {
		t.Fatalf("%v", err)
		return nil
	}
	t.Cleanup(s.Close)
	return s
}

// Start starts a server for programs. Call [Server.Close] to stop it. Nil options are the zero
// value. It returns an error if the options are invalid or the address is in use.
func Start(opts *Options) (*Server, error) {
	opts = cmp.Or(opts, &Options{})
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", cmp.Or(opts.Addr, "127.0.0.1:0"))
	if err != nil {
		return nil, fmt.Errorf("oauthtest: %w", err)
	}
	s, err := NewHandler("http://"+l.Addr().String(), opts)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	server := &http.Server{Handler: s, ReadTimeout: requestTimeout, WriteTimeout: requestTimeout}
	ended := make(chan struct{})
	// Ends when Close closes the server.
	go func() {
		defer close(ended)
		_ = server.Serve(l)
	}()
	s.stop = sync.OnceFunc(func() {
		_ = server.Close()
		<-ended
	})
	return s, nil
}

// NewHandler returns a server that does not listen. Serve it at the origin of the issuer.
func NewHandler(issuer string, opts *Options) (*Server, error) {
	opts = cmp.Or(opts, &Options{})
	if _, err := metadata.AuthorizationServerURLs(issuer); err != nil {
		return nil, fmt.Errorf("oauthtest: %w", err)
	}
	u, err := url.Parse(issuer)
	if err != nil {
		return nil, fmt.Errorf("oauthtest: %w", err)
	}
	s := &Server{
		Issuer: issuer, opts: *opts, origin: u.Scheme + "://" + u.Host, base: strings.TrimSuffix(u.EscapedPath(), "/"),
		clients: make(map[string]*client), codes: make(map[string]*code), refresh: make(map[string]*refreshToken),
		access: make(map[string]*accessToken),
		client: &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()},
		stop:   func() {},
	}
	s.opts.Lifetime = cmp.Or(s.opts.Lifetime, defaultLifetime)
	policy := metadata.Policy{InsecureLoopback: true}
	s.fetcher = policy.Client()
	if s.opts.ClientMetadata == nil {
		s.opts.ClientMetadata = func(ctx context.Context, url string) (doc []byte, err error) {
			return doc, policy.Get(ctx, s.fetcher, url, (*json.RawMessage)(&doc))
		}
	}
	s.dpop = dpop.NewVerifier(dpop.NewReplays(dpop.MaxReplays))
	for _, c := range opts.Clients {
		known, err := c.known()
		if err != nil {
			return nil, fmt.Errorf("oauthtest: the client %q: %w", c.ID, err)
		}
		s.clients[c.ID] = known
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("oauthtest: %w", err)
	}
	s.key = jose.JSONWebKey{Key: private, KeyID: rand.Text(), Algorithm: string(signingAlgorithm), Use: "sig"}
	if err := s.routes(); err != nil {
		return nil, fmt.Errorf("oauthtest: %w", err)
	}
	return s, nil
}

// Close stops a started server and closes the connections of its client.
func (s *Server) Close() {
	s.stop()
	s.client.CloseIdleConnections()
	s.fetcher.CloseIdleConnections()
}

// Client returns an HTTP client whose connections close with the server.
func (s *Server) Client() *http.Client { return s.client }

// Endpoint returns the URL of an endpoint: "authorization", "token", "registration", "jwks",
// "introspection" or "revocation".
func (s *Server) Endpoint(name string) string { return s.origin + s.base + paths[name] }

var paths = map[string]string{
	"authorization": "/authorize",
	"token":         "/token",
	"registration":  "/register",
	"jwks":          "/jwks.json",
	"introspection": "/introspect",
	"revocation":    "/revoke",
}

// ServeHTTP serves all endpoints.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

func (s *Server) routes() error {
	doc, err := s.describe()
	if err != nil {
		return err
	}
	urls, err := metadata.AuthorizationServerURLs(s.Issuer)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	for _, raw := range urls {
		mux.Handle("GET "+strings.TrimPrefix(raw, s.origin), metadata.Document(doc))
	}
	serve := func(verb, endpoint string, h http.HandlerFunc) { mux.HandleFunc(verb+" "+s.base+paths[endpoint], h) }
	serve("GET", "authorization", s.authorize)
	serve("GET", "jwks", metadata.Document(s.JWKS()))
	serve("POST", "token", secret(http.StatusOK, s.token))
	serve("POST", "introspection", secret(http.StatusOK, s.introspect))
	serve("POST", "revocation", secret(http.StatusOK, s.revoke))
	serve("POST", "registration", secret(http.StatusCreated, s.register))
	s.handler = mux
	if s.opts.Wrap != nil {
		s.handler = s.opts.Wrap(s.handler)
	}
	return nil
}

// describe returns the metadata of the server as JSON.
func (s *Server) describe() ([]byte, error) {
	grants := slices.AppendSeq([]string{grantCode, grantRefresh, grantCredentials}, maps.Keys(s.opts.Grants))
	doc := map[string]any{
		"issuer":                                         s.Issuer,
		"authorization_endpoint":                         s.Endpoint("authorization"),
		"token_endpoint":                                 s.Endpoint("token"),
		"jwks_uri":                                       s.Endpoint("jwks"),
		"registration_endpoint":                          s.Endpoint("registration"),
		"introspection_endpoint":                         s.Endpoint("introspection"),
		"revocation_endpoint":                            s.Endpoint("revocation"),
		"response_types_supported":                       []string{"code"},
		"grant_types_supported":                          grants,
		"token_endpoint_auth_methods_supported":          []string{authNone, authBasic, authPost},
		"code_challenge_methods_supported":               []string{"S256"},
		"authorization_response_iss_parameter_supported": true,
		"client_id_metadata_document_supported":          true,
		"dpop_signing_alg_values_supported":              s.dpop.Algorithms(),
	}
	if s.opts.Scopes != nil {
		doc["scopes_supported"] = s.opts.Scopes
	}
	if s.opts.Metadata != nil {
		s.opts.Metadata(doc)
	}
	return jsonx.Marshal(doc)
}

var refuse = metadata.Refuse

// secret serves an endpoint whose responses must not be cached.
func secret(status int, serve func(r *http.Request) (any, error)) http.HandlerFunc {
	return metadata.Endpoint(status, serve, func(context.Context, error) {})
}

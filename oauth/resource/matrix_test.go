package resource_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/oauth/internal/metadata"
	"github.com/mcpkit/mcpkit-go/oauth/oauthclient"
	"github.com/mcpkit/mcpkit-go/oauth/resource"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

func TestMain(m *testing.M) { testkit.VerifyTestMain(m) }

var update = flag.Bool("update", false, "write testdata/refusals.golden anew")

// A matrix has the guards of the rows, and the tokens that clients send to them.
type matrix struct {
	*forge
	log    *testkit.Buffer
	logger *slog.Logger

	plain  http.Handler // accepts bearer tokens
	bound  http.Handler // accepts bearer and bound tokens
	strict http.Handler // accepts bound tokens

	prover, stranger *oauthclient.Prover
	good             string // a valid token
	parts            []string
	boundToken       string // bound to the key of prover
	replayed         string // a used proof
	session          *session
	extensions       *extensions
}

// newMatrix creates everything that the rows need.
func newMatrix(t *testing.T) *matrix {
	m := &matrix{forge: newForge(t), log: &testkit.Buffer{}}
	m.logger = slog.New(slog.NewJSONHandler(m.log, &slog.HandlerOptions{Level: slog.Level(-100), AddSource: true}))
	// Also capture the default loggers.
	before, writer, flags := slog.Default(), log.Writer(), log.Flags()
	slog.SetDefault(m.logger)
	t.Cleanup(func() {
		slog.SetDefault(before)
		log.SetOutput(writer)
		log.SetFlags(flags)
	})
	m.good = m.token(nil)
	m.parts = strings.Split(m.good, ".")
	var err error
	m.prover, err = oauthclient.NewProver(nil)
	require.NoError(t, err)
	m.stranger, err = oauthclient.NewProver(nil)
	require.NoError(t, err)
	m.boundToken = m.token(claims{"cnf": claims{"jkt": m.prover.Thumbprint()}})
	m.replayed = m.proof(m.prover, "POST", endpoint, m.boundToken, "")
	m.plain = m.guard(nil)
	m.bound = m.guard(func(o *resource.Options) { o.DPoP = &resource.DPoP{} })
	m.strict = m.guard(func(o *resource.Options) { o.DPoP = &resource.DPoP{Required: true} })
	m.session = m.newSession()
	m.extensions = m.newExtensions()
	return m
}

// serve starts a server that sends the same response to all requests, and returns its URL.
func (m *matrix) serve(status int, body string) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	m.t.Cleanup(s.Close)
	return s.URL
}

// guard returns a guarded handler that returns the caller, and demands scopes on request.
func (m *matrix) guard(change func(*resource.Options)) http.Handler {
	opts := resource.Options{Issuer: issuer, Resource: endpoint, JWKS: m.jwks, Scopes: []string{"notes:read"}, Logger: m.logger}
	if change != nil {
		change(&opts)
	}
	g, err := resource.New(opts)
	require.NoError(m.t, err)
	return g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		require.Empty(m.t, r.Header["Authorization"], "the token is not passed on")
		require.Empty(m.t, r.Header["Dpop"])
		m.logger.LogAttrs(r.Context(), slog.Level(-100), "behind the guard", slog.Any("header", r.Header), slog.Any("principal", oauth.FromContext(r.Context())))
		if r.Header.Get("Demand") != "" {
			require.True(m.t, oauth.DemandScopes(r.Context(), "x:one", "x:two"))
			w.WriteHeader(http.StatusForbidden)
			return
		}
		if p := oauth.FromContext(r.Context()); p != nil {
			_, _ = w.Write([]byte(p.Subject))
		}
	}))
}

func (m *matrix) policy(p resource.Policy) http.Handler {
	return m.guard(func(o *resource.Options) { o.Policies = []resource.Policy{p} })
}

func (m *matrix) verifiedBy(v oauth.Verifier) http.Handler {
	return m.guard(func(o *resource.Options) { o.Verifier = v })
}

func (m *matrix) failing(p *oauth.Principal, err error) http.Handler {
	return m.verifiedBy(verifierFunc(func(string) (*oauth.Principal, error) { return p, err }))
}

// asking returns an introspector for a server that always sends the same response.
func (m *matrix) asking(answer string) http.Handler {
	client := &http.Client{Transport: &http.Transport{}}
	m.t.Cleanup(client.CloseIdleConnections)
	return m.guard(func(o *resource.Options) {
		o.Introspection = &resource.Introspection{Endpoint: m.serve(http.StatusOK, answer) + "/introspect?api_key=hush", ClientID: "rs", ClientSecret: "hush"}
		o.InsecureLoopback, o.Client = true, client
	})
}

func (m *matrix) proof(p *oauthclient.Prover, verb, url, token, nonce string) string {
	text, err := p.Proof(verb, url, token, nonce)
	require.NoError(m.t, err)
	m.used = append(m.used, text)
	return text
}

// dpopAsk returns a request with the bound token and proofs.
func (m *matrix) dpopAsk(proofs ...string) *http.Request {
	return m.boundAsk(m.boundToken, proofs...)
}

func (m *matrix) boundAsk(token string, proofs ...string) *http.Request {
	r := ask("Authorization", "DPoP "+token)
	for _, p := range proofs {
		r.Header.Add("DPoP", p)
	}
	return r
}

// lacking returns a request whose token has changed claims.
func (m *matrix) lacking(change claims) *http.Request {
	change["cnf"] = claims{"jkt": m.prover.Thumbprint()}
	token := m.token(change)
	return m.boundAsk(token, m.proof(m.prover, "POST", endpoint, token, ""))
}

// forgedProof returns a proof for the bound token with any header and claims.
func (m *matrix) forgedProof(header, change claims) string {
	h := resource.With(claims{"typ": "dpop+jwt", "jwk": jose.JSONWebKey{Key: m.ec.Public()}}, header)
	all := resource.With(claims{"jti": rand.Text(), "htm": "POST", "htu": endpoint, "iat": time.Now().Unix(), "ath": ath(m.boundToken)}, change)
	text, err := jsonx.Marshal(all)
	require.NoError(m.t, err)
	return m.sign(jose.ES256, m.ec, h, string(text))
}

// full returns a guard that cannot remember proofs.
func (m *matrix) full() http.Handler {
	return m.guard(func(o *resource.Options) { o.DPoP = resource.LimitedDPoP(0) })
}

// several returns a guard that accepts tokens of two issuers.
func (m *matrix) several() http.Handler {
	return m.guard(func(o *resource.Options) { o.OtherIssuers = []string{"https://other.example.com"} })
}

// keysAway returns a guard that cannot fetch the keys of the issuer.
func (m *matrix) keysAway() http.Handler {
	client := &http.Client{Transport: &http.Transport{}}
	m.t.Cleanup(client.CloseIdleConnections)
	return m.guard(func(o *resource.Options) {
		o.JWKS, o.JWKSURI = nil, m.serve(http.StatusBadGateway, "")+"/keys?api_key=hush"
		o.InsecureLoopback, o.Client = true, client
	})
}

// A session is a session of ann at an MCP server.
type session struct {
	m       *matrix
	handler http.Handler
	id      string
}

func (m *matrix) newSession() *session {
	srv, err := mcpkit.New(nil, mcpkit.Authenticated(), mcpkit.Logger(m.logger))
	require.NoError(m.t, err)
	transport := streamable.NewHandler(srv, &streamable.Options{Logger: m.logger})
	m.t.Cleanup(transport.Close)
	s := &session{m: m, handler: m.realGuard().Wrap(transport)}
	s.id = m.open(s.handler, claims{"sub": "ann", "client_id": "app"})
	return s
}

// open opens a session for a token with changed claims, and returns its ID.
func (m *matrix) open(handler http.Handler, token claims) (id string) {
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, m.post(token, "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`))
	require.Equal(m.t, http.StatusOK, w.Code, w.Body.String())
	require.NotEmpty(m.t, w.Header().Get("Mcp-Session-Id"))
	return w.Header().Get("Mcp-Session-Id")
}

// post returns a request with a token that has changed claims; nil means no token.
func (m *matrix) post(token claims, session, body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/api/mcp", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if token != nil {
		r.Header.Set("Authorization", "Bearer "+m.token(token))
	}
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	return r
}

// ping returns a request in a session.
func (s *session) ping(token claims, id string) *http.Request {
	return s.m.post(token, id, `{"jsonrpc":"2.0","id":2,"method":"ping"}`)
}

// TestRefusals compares each response with its row, and with testdata/refusals.golden.
func TestRefusals(t *testing.T) {
	m := newMatrix(t)
	var golden bytes.Buffer
	var said strings.Builder // all responses
	refusals := 0
	rows := slices.Concat(m.taken(), m.places(), m.tokens(), m.said(), m.policies(), m.unknowns(), m.bindings(), m.sessions(), m.extended())
	for _, test := range rows {
		t.Run(test.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			test.handler.ServeHTTP(w, test.request)
			require.Equal(t, test.status, w.Code, w.Body.String())
			_ = w.Header().Write(&said)
			said.WriteString(w.Body.String())
			challenges, err := metadata.ParseChallenges(w.Header()["Www-Authenticate"])
			require.NoError(t, err)
			if test.status == http.StatusOK && test.code == "" {
				require.Empty(t, challenges)
				return
			}
			refusals++
			test.check(t, w, challenges)
			write(&golden, test.name, w)
		})
	}
	require.Greater(t, refusals, 150)
	m.findNoSecrets(t, m.log.String())
	m.findNoSecrets(t, said.String())
	require.Contains(t, m.log.String(), "behind the guard")
	require.Contains(t, m.log.String(), "request rejected")

	path := filepath.Join("testdata", "refusals.golden")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, golden.Bytes(), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), golden.String())
}

// check compares a response with its row.
func (test *row) check(t *testing.T, w *httptest.ResponseRecorder, challenges []metadata.Challenge) {
	if test.code == unowned {
		require.Equal(t, `{"jsonrpc":"2.0","id":2,"error":{"code":`+test.code+`,"message":"`+test.reason+`"}}`, w.Body.String())
		require.Empty(t, challenges, "a token would not help")
		return
	}
	if strings.HasPrefix(test.code, "-") {
		var body struct {
			Error struct {
				Code    int    `json:"code"`
				Message string `json:"message"`
			} `json:"error"`
		}
		require.NoError(t, jsonx.Unmarshal(w.Body.Bytes(), &body))
		require.Equal(t, test.code, strconv.Itoa(body.Error.Code))
		require.Equal(t, test.reason, body.Error.Message)
		require.Empty(t, challenges, "a token would not help")
		return
	}
	var body struct {
		Error            string `json:"error"`
		ErrorDescription string `json:"error_description"`
	}
	require.NoError(t, jsonx.Unmarshal(w.Body.Bytes(), &body))
	require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
	require.Equal(t, "application/json", w.Header().Get("Content-Type"))
	if test.code == denied || test.code == unknown {
		require.Equal(t, test.code, body.Error)
		require.Equal(t, test.reason, body.ErrorDescription)
		require.Empty(t, challenges, "a token would not help")
		require.Equal(t, test.code == unknown, w.Header().Get("Retry-After") != "")
		return
	}
	require.NotEmpty(t, challenges)
	if test.code != "" {
		require.Equal(t, test.code, body.Error)
	}
	said := 0
	for _, c := range challenges {
		require.Equal(t, "https://mcp.example.com/.well-known/oauth-protected-resource/api/mcp", c.Param("resource_metadata"))
		if c.Param("error") == "" {
			continue
		}
		said++
		require.Equal(t, test.code, c.Param("error"))
		require.Equal(t, test.reason, c.Param("error_description"))
	}
	require.Equal(t, test.code != "", said == 1, "only one challenge contains the error")
}

// taskID is an ID of a task in a response.
var taskID = regexp.MustCompile(`[0-9a-f]{32}`)

// write formats a response. It replaces IDs, which differ each time.
func write(b *bytes.Buffer, name string, w *httptest.ResponseRecorder) {
	fmt.Fprintf(b, "== %s\n%d\n", name, w.Code)
	var fields bytes.Buffer
	_ = w.Header().Write(&fields) // sorted
	b.WriteString(strings.ReplaceAll(fields.String(), "\r\n", "\n"))
	b.WriteString(taskID.ReplaceAllString(w.Body.String(), "(an ID)") + "\n\n")
}

// findNoSecrets searches a text for used tokens and proofs and for other secrets.
func (m *matrix) findNoSecrets(t *testing.T, text string) {
	t.Helper()
	require.NotEmpty(t, text)
	for _, secret := range m.used {
		require.NotContains(t, text, secret)
		for _, part := range strings.Split(secret, ".")[1:] {
			if len(part) > 8 {
				require.NotContains(t, text, part)
			}
		}
	}
	for _, secret := range []string{"access_token=", "hush", "Bearer ey", "DPoP ey"} {
		require.NotContains(t, text, secret)
	}
}

func TestScopesDemandedByTheHandlerCauseAChallenge(t *testing.T) {
	m := newMatrix(t)
	demanded := func(h http.Handler, r *http.Request, status int) []string {
		r.Header.Set("Demand", "1")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		require.Equal(t, status, w.Code)
		return w.Header()["Www-Authenticate"]
	}
	demand := func(h http.Handler, r *http.Request) []string { return demanded(h, r, http.StatusForbidden) }
	const more = `error="insufficient_scope", error_description="the token lacks scopes that this request needs", scope="notes:read x:one x:two", ` +
		`resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/api/mcp"`
	const scopes = `scope="notes:read x:one x:two", resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/api/mcp"`
	const algs = `, algs="ES256 ES384 ES512 EdDSA PS256 PS384 PS512 RS256 RS384 RS512"`
	require.Equal(t, []string{"Bearer " + more}, demand(m.plain, bearer(m.good)))
	require.Equal(t, []string{"Bearer " + more, "DPoP " + scopes + algs}, demand(m.bound, bearer(m.good)))
	require.Equal(t, []string{"Bearer " + scopes, "DPoP " + more + algs}, demand(m.bound, m.dpopAsk(m.replayed)))
	stray := bearer(m.good)
	stray.Header.Set("DPoP", "x")
	require.Equal(t, []string{"Bearer " + more, "DPoP " + scopes + algs}, demand(m.bound, stray), "the challenge has the scheme of the request")

	// Clients log in after 401 (RFC 6750, section 3).
	anonymous := m.guard(func(o *resource.Options) { o.Anonymous = true })
	require.Equal(t, []string{"Bearer " + scopes}, demanded(anonymous, ask(), http.StatusUnauthorized))
	require.Equal(t, []string{"Bearer " + more}, demand(anonymous, bearer(m.good)))
}

const (
	endpoint = "https://mcp.example.com/api/mcp"
	issuer   = "https://login.example.com"
)

type claims = map[string]any

// forge has the keys of an issuer and of an attacker.
type forge struct {
	t          testing.TB
	rsa, other *rsa.PrivateKey
	ec         *ecdsa.PrivateKey
	jwks       []byte
	used       []string // every token and proof of the test
}

func newForge(t testing.TB) *forge {
	t.Helper()
	f := &forge{t: t, rsa: resource.RSAKeys()[0], other: resource.RSAKeys()[1]}
	var err error
	f.ec, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	f.jwks, err = jsonx.Marshal(map[string]any{"keys": []any{
		claims{"kty": "nonsense"},
		jose.JSONWebKey{Key: f.rsa.Public(), KeyID: "r", Algorithm: "RS256", Use: "sig"},
		jose.JSONWebKey{Key: f.ec.Public(), KeyID: "e"},
		jose.JSONWebKey{Key: f.other.Public(), KeyID: "enc", Use: "enc"},
		jose.JSONWebKey{Key: []byte("0123456789abcdef0123456789abcdef"), KeyID: "sym"},
	}})
	require.NoError(t, err)
	return f
}

// sign returns a JWT of the type at+jwt, unless header has another type.
func (f *forge) sign(alg jose.SignatureAlgorithm, key any, header claims, payload string) string {
	text := resource.Sign(f.t, alg, key, header, payload)
	f.used = append(f.used, text)
	return text
}

// payload returns the claims of a valid token with changes. A nil value removes a claim.
func payload(change claims) string {
	all := claims{"iss": issuer, "aud": endpoint, "sub": "ann", "client_id": "app", "scope": "notes:read", "exp": time.Now().Add(time.Hour).Unix()}
	text, _ := jsonx.Marshal(resource.With(all, change))
	return string(text)
}

func (f *forge) token(change claims) string {
	return f.sign(jose.RS256, f.rsa, claims{"kid": "r", "typ": "at+jwt"}, payload(change))
}

func (f *forge) headed(alg jose.SignatureAlgorithm, key any, header claims) string {
	return f.sign(alg, key, header, payload(nil))
}

func (f *forge) publicPEM() []byte {
	der, err := x509.MarshalPKIXPublicKey(f.rsa.Public())
	require.NoError(f.t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

// symmetricProof returns a proof with a public symmetric key.
func (f *forge) symmetricProof() string {
	header := claims{"typ": "dpop+jwt", "jwk": jose.JSONWebKey{Key: f.ec.Public()}}
	return f.sign(jose.HS256, []byte("0123456789abcdef0123456789abcdef"), header, `{}`)
}

// headOf returns the first part of a token.
func headOf(header string) string { return base64.RawURLEncoding.EncodeToString([]byte(header)) }

func unsigned(text string) string {
	enc := base64.RawURLEncoding.EncodeToString
	return enc([]byte(`{"alg":"none","typ":"at+jwt"}`)) + "." + enc([]byte(text)) + "."
}

func ath(token string) string {
	sum := sha256.Sum256([]byte(token))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

func ask(fields ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/api/mcp", nil)
	for i := 0; i < len(fields); i += 2 {
		r.Header.Add(fields[i], fields[i+1])
	}
	return r
}

func bearer(token string) *http.Request { return ask("Authorization", "Bearer "+token) }

// form returns a request with a form.
func form(body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/api/mcp", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return r
}

func withQuery(r *http.Request, query string) *http.Request {
	r.URL.RawQuery = query
	return r
}

// verifierFunc is a function as a verifier.
type verifierFunc func(string) (*oauth.Principal, error)

func (f verifierFunc) Verify(_ context.Context, token string) (*oauth.Principal, error) {
	return f(token)
}

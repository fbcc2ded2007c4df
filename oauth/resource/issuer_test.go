package resource

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/oauth"
)

const resource = "https://mcp.example.com/mcp"

var start = time.Unix(1_790_000_000, 0)

type object = map[string]any

// rsaKeys are generated once, since this takes long.
var rsaKeys = sync.OnceValue(func() []*rsa.PrivateKey {
	var keys []*rsa.PrivateKey
	for range 2 {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			panic(err)
		}
		keys = append(keys, key)
	}
	return keys
})

func newEC(t testing.TB, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	require.NoError(t, err)
	return key
}

func newEd(t testing.TB) ed25519.PrivateKey {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	return key
}

// sign returns a token of the type at+jwt with changes of the header. A nil value removes a member.
func sign(t testing.TB, alg jose.SignatureAlgorithm, key any, header object, payload string) string {
	t.Helper()
	opts := &jose.SignerOptions{ExtraHeaders: map[jose.HeaderKey]any{jose.HeaderType: "at+jwt"}}
	for name, v := range header {
		if opts.ExtraHeaders[jose.HeaderKey(name)] = v; v == nil {
			delete(opts.ExtraHeaders, jose.HeaderKey(name))
		}
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, opts)
	require.NoError(t, err)
	jws, err := signer.Sign([]byte(payload))
	require.NoError(t, err)
	text, err := jws.CompactSerialize()
	require.NoError(t, err)
	return text
}

// payload returns the claims of a valid token with changes. A nil value removes a claim.
func payload(t testing.TB, issuer string, change object) string {
	t.Helper()
	all := object{"iss": issuer, "aud": resource, "sub": "ann", "exp": start.Add(time.Hour).Unix()}
	for name, v := range change {
		if all[name] = v; v == nil {
			delete(all, name)
		}
	}
	text, err := jsonx.Marshal(all)
	require.NoError(t, err)
	return string(text)
}

// handmade returns a token with any header and payload and an invalid signature.
func handmade(header, payload string) string {
	enc := base64.RawURLEncoding.EncodeToString
	return enc([]byte(header)) + "." + enc([]byte(payload)) + "." + enc([]byte("signature"))
}

func jwk(key crypto.Signer, kid string) jose.JSONWebKey {
	return jose.JSONWebKey{Key: key.Public(), KeyID: kid}
}

func jwks(t testing.TB, keys ...any) []byte {
	t.Helper()
	text, err := jsonx.Marshal(object{"keys": append([]any{}, keys...)})
	require.NoError(t, err)
	return text
}

// An issuer is an authorization server as far as verifiers need it, with a clock for both.
type issuer struct {
	t   *testing.T
	url string

	mu       sync.Mutex
	now      time.Time
	keys     []any
	metadata map[string]object // by path
	asked    []string          // paths
	hold     chan struct{}     // if set, requests for the key set wait until it is closed
	status   int               // status of the key set; 0 means 200
	arrived  chan struct{}     // receives a value when the key set is requested
}

func newIssuer(t *testing.T, keys ...any) *issuer {
	t.Helper()
	s := &issuer{t: t, now: start, keys: keys, metadata: map[string]object{}, arrived: make(chan struct{}, 1)}
	server := httptest.NewUnstartedServer(s)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Start()
	t.Cleanup(server.Close)
	s.url = server.URL
	s.metadata["/.well-known/oauth-authorization-server"] = object{"issuer": s.url, "jwks_uri": s.url + "/keys"}
	return s
}

func (s *issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked = append(s.asked, r.URL.Path)
	doc, ok := s.metadata[r.URL.Path]
	hold, status, keys := s.hold, s.status, append([]any{}, s.keys...)
	s.mu.Unlock()
	if r.URL.Path == "/keys" {
		select {
		case s.arrived <- struct{}{}:
		default:
		}
		if hold != nil {
			<-hold
		}
		doc, ok = object{"keys": keys}, true
	}
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path == "/keys" && status != 0 {
		w.WriteHeader(status)
	}
	text, _ := jsonx.Marshal(doc)
	_, _ = w.Write(text)
}

// takeAsked returns the paths requested since the last call.
func (s *issuer) takeAsked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.asked
	s.asked = nil
	return asked
}

func (s *issuer) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *issuer) pass(d time.Duration) { s.change(func() { s.now = s.now.Add(d) }) }

func (s *issuer) clock() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// verifier returns a verifier with the clock of s. The function change may change its options.
func (s *issuer) verifier(change func(*Options)) *jwtVerifier {
	s.t.Helper()
	opts := &Options{Issuer: s.url, Resource: resource, JWKSURI: s.url + "/keys", InsecureLoopback: true, Logger: slog.New(slog.DiscardHandler), now: s.clock}
	if change != nil {
		change(opts)
	}
	v, err := newJWTVerifier(opts)
	require.NoError(s.t, err)
	s.t.Cleanup(func() {
		v.wait()
		for _, set := range v.keys {
			set.client.CloseIdleConnections()
		}
	})
	return v
}

// wait waits until no fetch is in progress.
func (v *jwtVerifier) wait() {
	for _, s := range v.keys {
		s.mu.Lock()
		flight := s.flight
		s.mu.Unlock()
		if flight != nil {
			<-flight
		}
	}
}

// fixed returns a verifier of the issuer https://as with fixed keys.
func fixed(t testing.TB, keys []byte, change func(*Options)) *jwtVerifier {
	t.Helper()
	opts := &Options{Issuer: "https://as", Resource: resource, JWKS: keys, Logger: slog.New(slog.DiscardHandler), now: func() time.Time { return start }}
	if change != nil {
		change(opts)
	}
	v, err := newJWTVerifier(opts)
	require.NoError(t, err)
	return v
}

func refused(reason string) error { return &oauth.TokenError{Reason: reason} }

// token returns a valid token of s.
func (s *issuer) token(alg jose.SignatureAlgorithm, key any, kid string) string {
	s.t.Helper()
	header := object{"typ": "at+jwt"}
	if kid != "" {
		header["kid"] = kid
	}
	return sign(s.t, alg, key, header, payload(s.t, s.url, nil))
}

// lines is a log that is safe for concurrent use.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// logTo returns a logger for all levels.
func logTo(w io.Writer) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: slog.Level(-100), AddSource: true}))
}

package resource

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
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

const (
	resource  = "https://mcp.example.com/mcp"
	issuerURL = "https://as.example"
)

type object = map[string]any

// rsaKeys are generated once, since this takes long. It panics since no test is there that could fail.
var rsaKeys = sync.OnceValue(func() (keys [2]*rsa.PrivateKey) {
	for i := range keys {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			panic(err)
		}
		keys[i] = key
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

// with returns all with changes. A nil value removes a member.
func with(all, change object) object {
	for name, v := range change {
		if all[name] = v; v == nil {
			delete(all, name)
		}
	}
	return all
}

// changed returns a JSON object with changes.
func changed(t testing.TB, all, change object) string {
	t.Helper()
	text, err := jsonx.Marshal(with(all, change))
	require.NoError(t, err)
	return string(text)
}

// payload returns the claims of a valid token with changes.
func payload(t testing.TB, change object) string {
	t.Helper()
	now := time.Now()
	return changed(t, object{"iss": issuerURL, "aud": resource, "sub": "ann", "iat": now.Unix(), "exp": now.Add(48 * time.Hour).Unix()}, change)
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

// token returns a token with changed claims that is signed by a key. A kid of "" means none.
func token(t testing.TB, key *ecdsa.PrivateKey, kid string, change object) string {
	t.Helper()
	header := object{}
	if kid != "" {
		header["kid"] = kid
	}
	return sign(t, jose.ES256, key, header, payload(t, change))
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

// fixed returns a verifier of the issuer with fixed keys.
func fixed(t testing.TB, keys []byte, change func(*Options)) *jwtVerifier {
	t.Helper()
	opts := &Options{Issuer: issuerURL, Resource: resource, JWKS: keys, Logger: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(opts)
	}
	v, err := newJWTVerifier(opts)
	require.NoError(t, err)
	return v
}

func refused(reason string) error { return &oauth.TokenError{Reason: reason} }

// An issuer publishes its metadata and its keys, without a network.
type issuer struct {
	mu       sync.Mutex
	keys     []any
	metadata map[string]object // by path
	asked    []string          // paths
	hold     chan struct{}     // if set, requests for the key set wait until it is closed
	status   int               // status of the key set; 0 means 200
}

func newIssuer(keys ...any) *issuer {
	return &issuer{keys: keys, metadata: map[string]object{
		"/.well-known/oauth-authorization-server": {"issuer": issuerURL, "jwks_uri": issuerURL + "/keys"},
	}}
}

// RoundTrip implements http.RoundTripper.
func (s *issuer) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.asked = append(s.asked, r.URL.Path)
	doc, ok := s.metadata[r.URL.Path]
	hold, status := s.hold, s.status
	if r.URL.Path == "/keys" {
		doc, ok = object{"keys": append([]any{}, s.keys...)}, true
	}
	s.mu.Unlock()
	if r.URL.Path == "/keys" && hold != nil {
		<-hold
	}
	w := httptest.NewRecorder()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case !ok:
		w.WriteHeader(http.StatusNotFound)
	case r.URL.Path == "/keys" && status != 0:
		w.WriteHeader(status)
	}
	text, err := jsonx.Marshal(doc)
	_, _ = w.Write(text)
	return w.Result(), err
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

// verifier returns a verifier that fetches the keys of s.
func (s *issuer) verifier(t testing.TB, change func(*Options)) *jwtVerifier {
	t.Helper()
	return fixed(t, nil, func(o *Options) {
		o.JWKSURI, o.Client = issuerURL+"/keys", &http.Client{Transport: s}
		if change != nil {
			change(o)
		}
	})
}

package resource

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/oauth"
)

const issuerURL = "https://as.example"

// A rotating issuer publishes its keys by kid, without a network.
type rotating struct {
	mu    sync.Mutex
	keys  map[string]*ecdsa.PrivateKey
	asked int
}

func (r *rotating) RoundTrip(*http.Request) (*http.Response, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	var set jose.JSONWebKeySet
	for kid, key := range r.keys {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: key.Public(), KeyID: kid})
	}
	doc, err := json.Marshal(set)
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(string(doc)))}, err
}

func (r *rotating) add(kid string, key *ecdsa.PrivateKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keys[kid] = key
}

func (r *rotating) verifier(t *testing.T, log io.Writer, change func(*Options)) *jwtVerifier {
	return fixed(t, nil, func(o *Options) {
		o.Issuer, o.JWKSURI, o.Client, o.Logger, o.now = issuerURL, issuerURL+"/keys", &http.Client{Transport: r}, slog.New(slog.NewTextHandler(log, nil)), time.Now
		if change != nil {
			change(o)
		}
	})
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return key
}

// tokenBy returns an access token issued now.
func tokenBy(t *testing.T, key *ecdsa.PrivateKey, kid, typ string, change map[string]any) string {
	opts := (&jose.SignerOptions{}).WithHeader("kid", kid)
	if typ != "" {
		opts = opts.WithType(jose.ContentType(typ))
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, opts)
	require.NoError(t, err)
	claims := map[string]any{"iss": issuerURL, "aud": resource, "sub": "ann", "iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix()}
	for name, value := range change {
		if claims[name] = value; value == nil {
			delete(claims, name)
		}
	}
	payload, err := json.Marshal(claims)
	require.NoError(t, err)
	jws, err := signer.Sign(payload)
	require.NoError(t, err)
	text, err := jws.CompactSerialize()
	require.NoError(t, err)
	return text
}

// Anyone can send tokens with a made-up kid, even with the kid of the next key. Clients discard
// rejected tokens, so a valid token must not be rejected because of them.
func TestForgedKidsDoNotRejectValidTokens(t *testing.T) {
	for _, test := range []struct {
		name   string
		kid    func(i int) string
		change map[string]any // claims of the forged tokens
	}{
		{"the next kid", func(int) string { return "next" }, nil},
		{"any kid", func(i int) string { return fmt.Sprint("made-up-", i) }, nil},
		{"without a time", func(i int) string { return fmt.Sprint("made-up-", i) }, map[string]any{"iat": nil}},
		{"of the future", func(i int) string { return fmt.Sprint("made-up-", i) }, map[string]any{"iat": int64(1) << 39}},
	} {
		for _, good := range []map[string]any{nil, {"iat": nil}} {
			t.Run(fmt.Sprint(test.name, good), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					old, next, strangers := newKey(t), newKey(t), newKey(t)
					as := &rotating{keys: map[string]*ecdsa.PrivateKey{"old": old}}
					v := as.verifier(t, io.Discard, nil)
					verify := func(token string) error {
						_, err := v.Verify(t.Context(), token)
						synctest.Wait()
						return err
					}
					sent := 0
					stranger := func() {
						require.Error(t, verify(tokenBy(t, strangers, test.kid(sent), "at+jwt", test.change)))
						sent++
					}
					require.NoError(t, verify(tokenBy(t, old, "old", "at+jwt", nil)))
					for range 60 {
						time.Sleep(time.Second)
						stranger()
					}
					as.add("next", next)
					token := tokenBy(t, next, "next", "at+jwt", good)
					for waited := 0; ; waited++ {
						require.Less(t, waited, 30, "the token is accepted after the next fetch")
						stranger()
						err := verify(token)
						if err == nil {
							break
						}
						require.False(t, errors.As(err, new(*oauth.TokenError)), "%v", err)
						time.Sleep(time.Second)
					}
					require.LessOrEqual(t, as.asked, 12, "the tokens cause few requests")
				})
			})
		}
	}
}

func TestTokensOfRemovedKeysAreRejectedWithoutAFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key, old := newKey(t), newKey(t)
		as := &rotating{keys: map[string]*ecdsa.PrivateKey{"key": key}}
		stale := tokenBy(t, old, "old", "at+jwt", nil)
		time.Sleep(time.Minute)
		v := as.verifier(t, io.Discard, nil)
		_, err := v.Verify(t.Context(), tokenBy(t, key, "key", "at+jwt", nil))
		require.NoError(t, err)
		for range 10 {
			_, err = v.Verify(t.Context(), stale)
			require.EqualError(t, err, "oauth: the token is rejected: its key is not known")
		}
		require.Equal(t, 1, as.asked)
	})
}

func TestOtherTokenTypesAreRejectedByDefault(t *testing.T) {
	key := newKey(t)
	as := &rotating{keys: map[string]*ecdsa.PrivateKey{"key": key}}
	var log strings.Builder
	v := as.verifier(t, &log, nil)
	for _, typ := range []string{"JWT", "", "jwt", "application/jwt", "id+jwt"} {
		_, err := v.Verify(t.Context(), tokenBy(t, key, "key", typ, nil))
		require.EqualError(t, err, "oauth: the token is rejected: its typ is not that of an access token", "%q", typ)
	}
	require.Equal(t, 1, strings.Count(log.String(), "\n"), "the hint is logged once")
	require.Contains(t, log.String(), `set Options.AllowUntyped" issuer=`+issuerURL)
	for _, typ := range []string{"at+jwt", "AT+JWT", "application/at+jwt"} {
		_, err := v.Verify(t.Context(), tokenBy(t, key, "key", typ, nil))
		require.NoError(t, err, "%q", typ)
	}
	log.Reset()
	v = as.verifier(t, &log, nil)
	_, err := v.Verify(t.Context(), tokenBy(t, newKey(t), "key", "JWT", nil))
	require.EqualError(t, err, "oauth: the token is rejected: its signature is wrong")
	require.Empty(t, log.String(), "forged tokens cause no hint")

	v = as.verifier(t, &log, func(o *Options) { o.AllowUntyped = true })
	for _, typ := range []string{"JWT", "", "jwt", "application/jwt", "at+jwt"} {
		_, err := v.Verify(t.Context(), tokenBy(t, key, "key", typ, nil))
		require.NoError(t, err, "%q", typ)
	}
	_, err = v.Verify(t.Context(), tokenBy(t, key, "key", "id+jwt", nil))
	require.EqualError(t, err, "oauth: the token is rejected: its typ is not that of an access token")
}

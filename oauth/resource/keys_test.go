package resource

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/oauth"
)

const (
	of     = "the keys of https://as.example: "
	notYet = of + "the key of the token is not among them, and they are not fetched again within 10s"
)

// verify returns the error of a verifier, once no fetch is in progress.
func verify(t *testing.T, v oauth.Verifier, token string) error {
	_, err := v.Verify(t.Context(), token)
	synctest.Wait()
	return err
}

func TestConcurrentTokensShareAKeyFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key := newEC(t, elliptic.P256())
		s := newIssuer(jwk(key, "1"))
		s.hold = make(chan struct{})
		v := s.verifier(t, nil)
		good := token(t, key, "1", nil)
		first, giveUp := context.WithCancelCause(t.Context())
		gone, errs := make(chan error, 1), make(chan error, 19)
		// Ends when its context does. The fetch continues for the others.
		go func() {
			_, err := v.Verify(first, good)
			gone <- err
		}()
		synctest.Wait()
		for range cap(errs) {
			// Ends when the key set was fetched.
			go func() {
				_, err := v.Verify(t.Context(), good)
				errs <- err
			}()
		}
		synctest.Wait()
		giveUp(errors.New("the client is gone"))
		require.EqualError(t, <-gone, of+"the client is gone")
		close(s.hold)
		for range cap(errs) {
			require.NoError(t, <-errs)
		}
		require.Equal(t, []string{"/keys"}, s.takeAsked())
	})
}

func TestOldKeysAreRefreshedInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key := newEC(t, elliptic.P256())
		s := newIssuer(jwk(key, "1"))
		v := s.verifier(t, nil)
		good := token(t, key, "1", nil)
		require.NoError(t, verify(t, v, good))
		require.Len(t, s.takeAsked(), 1)
		time.Sleep(maxKeyAge - time.Second)
		require.NoError(t, verify(t, v, good))
		require.Empty(t, s.takeAsked(), "still fresh")

		time.Sleep(time.Second)
		s.change(func() { s.hold = make(chan struct{}) })
		require.NoError(t, verify(t, v, good), "old keys are used while new ones are fetched")
		close(s.hold)
		synctest.Wait()
		require.Len(t, s.takeAsked(), 1)

		s.change(func() { s.keys, s.hold = []any{jwk(newEC(t, elliptic.P256()), "2")}, nil })
		time.Sleep(maxKeyAge)
		require.NoError(t, verify(t, v, good), "the last moment for the old keys")
		time.Sleep(minRefresh)
		require.Equal(t, refused("its key is not known"), verify(t, v, good), "the issuer has removed the key")
	})
}

func TestOldKeysAreUsedForADayIfTheIssuerIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const down = "https://as.example/keys: answered by status 500"
		key := newEC(t, elliptic.P256())
		s := newIssuer(jwk(key, "1"))
		var log testkit.Buffer
		v := s.verifier(t, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		good := token(t, key, "1", nil)
		require.NoError(t, verify(t, v, good))
		require.Len(t, s.takeAsked(), 1)
		s.change(func() { s.status = http.StatusInternalServerError })
		time.Sleep(time.Hour)
		for range 5 {
			require.NoError(t, verify(t, v, good))
		}
		require.Len(t, s.takeAsked(), 1, "no more often than minRefresh allows")
		require.Equal(t, 1, strings.Count(log.String(), "\n"))
		require.Contains(t, log.String(), `level=WARN msg="resource: keys could not be fetched" issuer=https://as.example error="`+down+`"`)
		time.Sleep(minRefresh)
		require.NoError(t, verify(t, v, good))
		require.Len(t, s.takeAsked(), 1, "after minRefresh")

		time.Sleep(23 * time.Hour)
		require.EqualError(t, verify(t, v, good), of+down)
		s.change(func() { s.status = 0 })
		require.EqualError(t, verify(t, v, good), of+down, "before minRefresh")
		time.Sleep(minRefresh)
		require.NoError(t, verify(t, v, good), "it is back")
	})
}

func TestRotatedKeyIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before, after := newEC(t, elliptic.P256()), newEC(t, elliptic.P256())
		s := newIssuer(jwk(before, "1"))
		v := s.verifier(t, nil)
		old := token(t, before, "1", nil)
		require.NoError(t, verify(t, v, old))
		require.Len(t, s.takeAsked(), 1)
		s.change(func() { s.keys = []any{jwk(before, "1"), jwk(after, "2")} })

		fresh := token(t, after, "2", nil)
		require.EqualError(t, verify(t, v, fresh), notYet, "no further request before minRefresh")
		require.Empty(t, s.takeAsked())
		time.Sleep(minRefresh)
		require.NoError(t, verify(t, v, fresh), "the rejection is not cached")
		require.NoError(t, verify(t, v, old))
		require.Len(t, s.takeAsked(), 1)
	})
}

// A set of one key often has no kid.
func TestRotatedKeyWithoutAKidIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before, after := newEC(t, elliptic.P256()), newEC(t, elliptic.P256())
		s := newIssuer(jwk(before, ""))
		v := s.verifier(t, nil)
		by := func(key *ecdsa.PrivateKey) error { return verify(t, v, token(t, key, "", object{"iat": nil})) }
		require.NoError(t, by(before))
		s.change(func() { s.keys = []any{jwk(after, "")} })
		require.EqualError(t, by(after), notYet)
		time.Sleep(minRefresh)
		require.NoError(t, by(after))
		require.Len(t, s.takeAsked(), 2)
		time.Sleep(minRefresh)
		require.Equal(t, refused("its signature is wrong"), by(before))
		require.Len(t, s.takeAsked(), 1)
		require.NoError(t, by(after))
	})
}

func TestTokenIssuedDuringAFetchIsNotRejected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before, after := newEC(t, elliptic.P256()), newEC(t, elliptic.P256())
		s := newIssuer(jwk(before, "1"))
		s.hold = make(chan struct{})
		v := s.verifier(t, nil)
		done := make(chan error, 2)
		// Both end with the fetch, whose response has the old key set.
		go func() {
			_, err := v.Verify(t.Context(), token(t, before, "1", nil))
			done <- err
		}()
		synctest.Wait()
		s.change(func() { s.keys = []any{jwk(after, "2")} })
		fresh := token(t, after, "2", nil)
		go func() {
			_, err := v.Verify(t.Context(), fresh)
			done <- err
		}()
		synctest.Wait()
		close(s.hold)
		errs := []error{<-done, <-done}
		require.Contains(t, errs, error(nil))
		require.ErrorContains(t, errors.Join(errs...), notYet)
		time.Sleep(minRefresh)
		require.NoError(t, verify(t, v, fresh))
	})
}

func TestUnknownKeyIsNotRejectedWhileTheIssuerIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key, next := newEC(t, elliptic.P256()), newEC(t, elliptic.P256())
		s := newIssuer(jwk(key, "1"))
		v := s.verifier(t, nil)
		require.NoError(t, verify(t, v, token(t, key, "1", nil)))
		s.change(func() { s.status, s.keys = http.StatusBadGateway, []any{jwk(next, "2")} })
		time.Sleep(minRefresh)
		fresh := token(t, next, "2", nil)
		for range 2 {
			require.EqualError(t, verify(t, v, fresh), of+"https://as.example/keys: answered by status 502")
		}
		s.change(func() { s.status = 0 })
		time.Sleep(minRefresh)
		require.NoError(t, verify(t, v, fresh))
	})
}

// Anyone can send tokens with a made-up kid, even with the kid of the next key. Clients discard
// rejected tokens, so a valid token must not be rejected because of them.
func TestForgedKidsDoNotRejectValidTokens(t *testing.T) {
	for _, test := range []struct {
		name string
		kid  func(i int) string
	}{
		{"the next kid", func(int) string { return "next" }},
		{"any kid", func(i int) string { return fmt.Sprint("made-up-", i) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				old, next, strangers := newEC(t, elliptic.P256()), newEC(t, elliptic.P256()), newEC(t, elliptic.P256())
				s := newIssuer(jwk(old, "old"))
				v := s.verifier(t, nil)
				sent := 0
				stranger := func() {
					require.Error(t, verify(t, v, token(t, strangers, test.kid(sent), nil)))
					sent++
				}
				require.NoError(t, verify(t, v, token(t, old, "old", nil)))
				for range 60 {
					time.Sleep(time.Second)
					stranger()
				}
				s.change(func() { s.keys = append(s.keys, jwk(next, "next")) })
				fresh := token(t, next, "next", nil)
				for waited := 0; ; waited++ {
					require.Less(t, waited, 30, "the token is accepted after the next fetch")
					stranger()
					err := verify(t, v, fresh)
					if err == nil {
						break
					}
					require.False(t, errors.As(err, new(*oauth.TokenError)), "%v", err)
					time.Sleep(time.Second)
				}
				require.LessOrEqual(t, len(s.takeAsked()), 12, "the tokens cause few requests")
			})
		})
	}
}

func TestKeySetsAreFoundInTheMetadataOfTheIssuer(t *testing.T) {
	key := newEC(t, elliptic.P256())
	const (
		tenant     = issuerURL + "/tenant"
		oauthPath  = "/.well-known/oauth-authorization-server/tenant"
		openID     = "/.well-known/openid-configuration/tenant"
		openIDLate = "/tenant/.well-known/openid-configuration"
	)
	doc := func(path, issuer, uri string) map[string]object {
		return map[string]object{path: {"issuer": issuer, "jwks_uri": uri}}
	}
	for _, test := range []struct {
		name  string
		docs  map[string]object
		asked []string
		err   string
	}{
		{"OAuth", doc(oauthPath, tenant, issuerURL+"/keys"), []string{oauthPath, "/keys"}, ""},
		{"OpenID Connect", doc(openID, tenant, issuerURL+"/keys"), []string{oauthPath, openID, "/keys"}, ""},
		{"OpenID Connect, with its path before", doc(openIDLate, tenant, issuerURL+"/keys"), []string{oauthPath, openID, openIDLate, "/keys"}, ""},
		{"nothing", nil, []string{oauthPath, openID, openIDLate}, `metadata of the authorization server "https://as.example/tenant": ` +
			"https://as.example" + oauthPath + ": answered by status 404\nhttps://as.example" + openID + ": answered by status 404\n" +
			"https://as.example" + openIDLate + ": answered by status 404"},
		{"of another issuer", doc(oauthPath, tenant+"/", issuerURL+"/keys"), []string{oauthPath},
			`the metadata of the authorization server "https://as.example/tenant" names the issuer "https://as.example/tenant/"`},
		{"without keys", doc(oauthPath, tenant, ""), []string{oauthPath},
			`the metadata of the authorization server "https://as.example/tenant" has no jwks_uri`},
		{"keys at a place that may not be asked", doc(oauthPath, tenant, "https://169.254.169.254/keys?hush"), []string{oauthPath},
			"the address 169.254.169.254 is not public"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newIssuer(jwk(key, "1"))
			s.metadata = test.docs
			v := s.verifier(t, func(o *Options) { o.JWKSURI, o.Issuer = "", tenant })
			_, err := v.Verify(t.Context(), token(t, key, "1", object{"iss": tenant}))
			require.Equal(t, test.asked, s.takeAsked())
			if test.err == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, "the keys of https://as.example/tenant: "+test.err)
		})
	}
}

func TestKeySetsWithoutAGoodKeyAreRefused(t *testing.T) {
	key := newEC(t, elliptic.P256())
	for name, keys := range map[string][]any{
		"none":            nil,
		"private":         {jose.JSONWebKey{Key: key, KeyID: "1"}},
		"symmetric":       {jose.JSONWebKey{Key: []byte("0123456789abcdef0123456789abcdef"), KeyID: "1"}},
		"for encryption":  {jose.JSONWebKey{Key: key.Public(), KeyID: "1", Use: "enc"}},
		"not understood":  {object{"kty": "future"}, "x", 1, nil, []any{}},
		"off its curve":   {object{"kty": "EC", "crv": "P-256", "x": "AAAA", "y": "AAAA"}},
		"of a wrong kind": {object{"kty": 5}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newIssuer(keys...).verifier(t, nil).Verify(t.Context(), token(t, key, "1", nil))
			require.EqualError(t, err, of+"https://as.example/keys has no public key to check signatures with")
			_, err = newJWTVerifier(&Options{Issuer: issuerURL, JWKS: jwks(t, keys...)})
			require.EqualError(t, err, "JWKS has no public key to check signatures with")
		})
	}
}

func TestKeySetSizeIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key, beyond := newEC(t, elliptic.P256()), newEC(t, elliptic.P256())
		keys := []any{object{"kty": "future"}}
		for i := range maxKeys {
			keys = append(keys, jwk(key, fmt.Sprint(i)))
		}
		v := newIssuer(append(keys, jwk(beyond, "beyond"))...).verifier(t, nil)
		late := token(t, beyond, "beyond", nil)
		require.NoError(t, verify(t, v, token(t, key, fmt.Sprint(maxKeys-1), nil)))
		time.Sleep(time.Minute)
		require.Equal(t, refused("its key is not known"), verify(t, v, late))
		require.Len(t, match(v.keys[issuerURL].keys, "", "ES256"), maxTried, "a token without a kid is tried with some keys only")
	})
}

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
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"
)

const notYet = "the key of the token is not among them, and they are not fetched again within 10s"

func TestConcurrentTokensShareAKeyFetch(t *testing.T) {
	key := newEC(t, elliptic.P256())
	s := newIssuer(t, jwk(key, "1"))
	s.hold = make(chan struct{})
	v := s.verifier(nil)
	token := s.token(jose.ES256, key, "1")
	first, giveUp := context.WithCancelCause(t.Context())
	errs := make(chan error, 20)
	var wg sync.WaitGroup
	// Ends when its context does. The fetch continues for the others.
	go func() {
		_, err := v.Verify(first, token)
		errs <- err
	}()
	<-s.arrived
	for range 19 {
		// Ends when the key set was fetched.
		wg.Go(func() {
			_, err := v.Verify(t.Context(), token)
			errs <- err
		})
	}
	giveUp(errors.New("the client is gone"))
	require.EqualError(t, <-errs, "the keys of "+s.url+": the client is gone")
	close(s.hold)
	wg.Wait()
	for range 19 {
		require.NoError(t, <-errs)
	}
	require.Equal(t, []string{"/keys"}, s.takeAsked())
}

func TestOldKeysAreRefreshedInTheBackground(t *testing.T) {
	key := newEC(t, elliptic.P256())
	s := newIssuer(t, jwk(key, "1"))
	v := s.verifier(nil)
	token := sign(t, jose.ES256, key, object{"kid": "1"}, payload(t, s.url, object{"exp": start.Add(48 * time.Hour).Unix()}))
	verify := func() error {
		_, err := v.Verify(t.Context(), token)
		return err
	}
	require.NoError(t, verify())
	require.Len(t, s.takeAsked(), 1)
	s.pass(maxKeyAge - time.Second)
	require.NoError(t, verify())
	require.Empty(t, s.takeAsked(), "still fresh")

	s.pass(time.Second)
	s.change(func() { s.hold = make(chan struct{}) })
	require.NoError(t, verify(), "old keys are used while new ones are fetched")
	close(s.hold)
	v.wait()
	require.Len(t, s.takeAsked(), 1)

	t.Run("a key that is there no more is taken no more", func(t *testing.T) {
		s.change(func() { s.keys, s.hold = []any{jwk(newEC(t, elliptic.P256()), "2")}, nil })
		s.pass(maxKeyAge)
		require.NoError(t, verify(), "the last moment for the old keys")
		v.wait()
		s.pass(minRefresh)
		require.Equal(t, refused("its key is not known"), verify())
	})
}

func TestOldKeysAreUsedForADayIfTheIssuerIsDown(t *testing.T) {
	key := newEC(t, elliptic.P256())
	s := newIssuer(t, jwk(key, "1"))
	var log lines
	v := s.verifier(func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	token := s.token(jose.ES256, key, "1")
	verify := func() error {
		_, err := v.Verify(t.Context(), token)
		v.wait()
		return err
	}
	require.NoError(t, verify())
	require.Len(t, s.takeAsked(), 1)
	s.change(func() { s.status = http.StatusInternalServerError })
	s.pass(time.Hour)
	token = sign(t, jose.ES256, key, object{"kid": "1"}, payload(t, s.url, object{"exp": start.Add(48 * time.Hour).Unix()}))
	for range 5 {
		require.NoError(t, verify())
	}
	require.Len(t, s.takeAsked(), 1, "no more often than MinRefresh allows")
	require.Equal(t, 1, strings.Count(log.String(), "\n"))
	require.Contains(t, log.String(), `level=WARN msg="resource: keys could not be fetched" issuer=`+s.url+` error="`+s.url+`/keys: answered by status 500"`)
	s.pass(minRefresh)
	require.NoError(t, verify())
	require.Len(t, s.takeAsked(), 1, "after MinRefresh")

	s.pass(23 * time.Hour)
	require.EqualError(t, verify(), "the keys of "+s.url+": "+s.url+"/keys: answered by status 500")
	s.change(func() { s.status = 0 })
	require.EqualError(t, verify(), "the keys of "+s.url+": "+s.url+"/keys: answered by status 500", "before MinRefresh")
	s.pass(minRefresh)
	require.NoError(t, verify(), "it is back")
}

func TestRotatedKeyIsFound(t *testing.T) {
	before, after := newEC(t, elliptic.P256()), newEC(t, elliptic.P256())
	s := newIssuer(t, jwk(before, "1"))
	v := s.verifier(nil)
	verify := func(token string) error {
		_, err := v.Verify(t.Context(), token)
		return err
	}
	old, fresh := s.token(jose.ES256, before, "1"), s.token(jose.ES256, after, "2")
	require.NoError(t, verify(old))
	require.Len(t, s.takeAsked(), 1)
	s.change(func() { s.keys = []any{jwk(before, "1"), jwk(after, "2")} })

	require.EqualError(t, verify(fresh), "the keys of "+s.url+": "+notYet, "no further request before MinRefresh")
	require.Empty(t, s.takeAsked())
	s.pass(minRefresh)
	require.NoError(t, verify(fresh), "the rejection is not cached")
	require.NoError(t, verify(old))
	require.Len(t, s.takeAsked(), 1)
}

// A set of one key often has no kid.
func TestRotatedKeyWithoutAKidIsFound(t *testing.T) {
	before, after := newEC(t, elliptic.P256()), newEC(t, elliptic.P256())
	s := newIssuer(t, jwk(before, ""))
	v := s.verifier(nil)
	verify := func(key *ecdsa.PrivateKey) error {
		_, err := v.Verify(t.Context(), sign(t, jose.ES256, key, nil, payload(t, s.url, nil)))
		return err
	}
	require.NoError(t, verify(before))
	s.change(func() { s.keys = []any{jwk(after, "")} })
	require.EqualError(t, verify(after), "the keys of "+s.url+": "+notYet)
	s.pass(minRefresh)
	require.NoError(t, verify(after))
	require.Len(t, s.takeAsked(), 2)
	s.pass(minRefresh)
	require.Equal(t, refused("its signature is wrong"), verify(before))
	require.Len(t, s.takeAsked(), 1)
	require.NoError(t, verify(after))
}

func TestTokenIssuedDuringAFetchIsNotRejected(t *testing.T) {
	before, after := newEC(t, elliptic.P256()), newEC(t, elliptic.P256())
	s := newIssuer(t, jwk(before, "1"))
	s.hold = make(chan struct{})
	v := s.verifier(nil)
	done := make(chan error, 2)
	// Both end with the fetch.
	go func() {
		_, err := v.Verify(t.Context(), s.token(jose.ES256, before, "1"))
		done <- err
	}()
	<-s.arrived // the response has the old key set
	s.change(func() { s.keys = []any{jwk(after, "2")} })
	joined := make(chan struct{})
	go func() {
		close(joined)
		_, err := v.Verify(t.Context(), s.token(jose.ES256, after, "2"))
		done <- err
	}()
	<-joined
	close(s.hold)
	errs := []error{<-done, <-done}
	require.Contains(t, errs, error(nil))
	require.ErrorContains(t, errors.Join(errs...), notYet)
	s.pass(minRefresh)
	_, err := v.Verify(t.Context(), s.token(jose.ES256, after, "2"))
	require.NoError(t, err)
}

func TestUnknownKeyIsNotRejectedWhileTheIssuerIsDown(t *testing.T) {
	key, next := newEC(t, elliptic.P256()), newEC(t, elliptic.P256())
	s := newIssuer(t, jwk(key, "1"))
	v := s.verifier(nil)
	_, err := v.Verify(t.Context(), s.token(jose.ES256, key, "1"))
	require.NoError(t, err)
	s.change(func() { s.status, s.keys = http.StatusBadGateway, []any{jwk(next, "2")} })
	s.pass(minRefresh)
	for range 2 {
		_, err = v.Verify(t.Context(), s.token(jose.ES256, next, "2"))
		require.EqualError(t, err, "the keys of "+s.url+": "+s.url+"/keys: answered by status 502")
	}
	s.change(func() { s.status = 0 })
	s.pass(minRefresh)
	_, err = v.Verify(t.Context(), s.token(jose.ES256, next, "2"))
	require.NoError(t, err)
}

func TestKeySetsAreFoundInTheMetadataOfTheIssuer(t *testing.T) {
	key := newEC(t, elliptic.P256())
	const (
		oauthPath  = "/.well-known/oauth-authorization-server/tenant"
		openID     = "/.well-known/openid-configuration/tenant"
		openIDLate = "/tenant/.well-known/openid-configuration"
	)
	for _, test := range []struct {
		name  string
		docs  func(s *issuer) map[string]object
		asked []string
		err   string // %s is the URL of the server
	}{
		{"OAuth", func(s *issuer) map[string]object {
			return map[string]object{oauthPath: {"issuer": s.url + "/tenant", "jwks_uri": s.url + "/keys"}}
		}, []string{oauthPath, "/keys"}, ""},
		{"OpenID Connect", func(s *issuer) map[string]object {
			return map[string]object{openID: {"issuer": s.url + "/tenant", "jwks_uri": s.url + "/keys"}}
		}, []string{oauthPath, openID, "/keys"}, ""},
		{"OpenID Connect, with its path before", func(s *issuer) map[string]object {
			return map[string]object{openIDLate: {"issuer": s.url + "/tenant", "jwks_uri": s.url + "/keys"}}
		}, []string{oauthPath, openID, openIDLate, "/keys"}, ""},
		{"nothing", func(*issuer) map[string]object { return nil }, []string{oauthPath, openID, openIDLate},
			`metadata of the authorization server "%s/tenant": ` + "%s" + oauthPath + ": answered by status 404\n%s" + openID + ": answered by status 404\n%s" + openIDLate + ": answered by status 404"},
		{"of another issuer", func(s *issuer) map[string]object {
			return map[string]object{oauthPath: {"issuer": s.url + "/tenant/", "jwks_uri": s.url + "/keys"}}
		}, []string{oauthPath}, `the metadata of the authorization server "%s/tenant" names the issuer "%s/tenant/"`},
		{"without keys", func(s *issuer) map[string]object {
			return map[string]object{oauthPath: {"issuer": s.url + "/tenant"}}
		}, []string{oauthPath}, `the metadata of the authorization server "%s/tenant" has no jwks_uri`},
		{"keys at a place that may not be asked", func(s *issuer) map[string]object {
			return map[string]object{oauthPath: {"issuer": s.url + "/tenant", "jwks_uri": "https://169.254.169.254/keys?hush"}}
		}, []string{oauthPath}, "the address 169.254.169.254 is not public"},
		{"keys in a file", func(s *issuer) map[string]object {
			return map[string]object{oauthPath: {"issuer": s.url + "/tenant", "jwks_uri": "file:///etc/keys"}}
		}, []string{oauthPath}, `"file:///etc/keys" is not an absolute https URL`},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newIssuer(t, jwk(key, "1"))
			s.metadata = test.docs(s)
			v := s.verifier(func(o *Options) { o.JWKSURI, o.Issuer = "", s.url+"/tenant" })
			token := sign(t, jose.ES256, key, object{"kid": "1"}, payload(t, s.url+"/tenant", nil))
			_, err := v.Verify(t.Context(), token)
			require.Equal(t, test.asked, s.takeAsked())
			if test.err == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, "the keys of "+s.url+"/tenant: "+strings.ReplaceAll(test.err, "%s", s.url))
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
			s := newIssuer(t, keys...)
			v := s.verifier(nil)
			_, err := v.Verify(t.Context(), s.token(jose.ES256, key, "1"))
			require.EqualError(t, err, "the keys of "+s.url+": "+s.url+"/keys has no public key to check signatures with")
			_, err = newJWTVerifier(&Options{Issuer: "https://as", JWKS: jwks(t, keys...)})
			require.EqualError(t, err, "JWKS has no public key to check signatures with")
		})
	}
}

func TestKeySetSizeIsLimited(t *testing.T) {
	key, beyond := newEC(t, elliptic.P256()), newEC(t, elliptic.P256())
	keys := []any{object{"kty": "future"}}
	for i := range maxKeys {
		keys = append(keys, jwk(key, fmt.Sprint(i)))
	}
	s := newIssuer(t, append(keys, jwk(beyond, "beyond"))...)
	v := s.verifier(nil)
	_, err := v.Verify(t.Context(), s.token(jose.ES256, key, fmt.Sprint(maxKeys-1)))
	require.NoError(t, err)
	s.pass(minRefresh)
	_, err = v.Verify(t.Context(), s.token(jose.ES256, beyond, "beyond"))
	require.Equal(t, refused("its key is not known"), err)
	require.Len(t, match(v.keys[s.url].keys, "", "ES256"), maxTried, "a token without a kid is tried with some keys only")
}

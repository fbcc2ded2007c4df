package oauthclient_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/oauth/internal/dpop"
	"github.com/mcpkit/mcpkit-go/oauth/oauthclient"
	"github.com/mcpkit/mcpkit-go/oauth/oauthtest"
	"github.com/mcpkit/mcpkit-go/oauth/resource"
)

func TestProofsOfEveryKindOfKey(t *testing.T) {
	ec := func(curve elliptic.Curve) crypto.Signer {
		key, err := ecdsa.GenerateKey(curve, rand.Reader)
		require.NoError(t, err)
		return key
	}
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	rs, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	v := dpop.NewVerifier(dpop.NewReplays(dpop.MaxReplays))
	for alg, key := range map[string]crypto.Signer{
		"ES256": ec(elliptic.P256()), "ES384": ec(elliptic.P384()), "ES512": ec(elliptic.P521()), "EdDSA": ed, "PS256": rs, "a new key": nil,
	} {
		t.Run(alg, func(t *testing.T) {
			p, err := oauthclient.NewProver(key)
			require.NoError(t, err)
			if key != nil {
				want, err := (&jose.JSONWebKey{Key: key.Public()}).Thumbprint(crypto.SHA256)
				require.NoError(t, err)
				require.Equal(t, base64.RawURLEncoding.EncodeToString(want), p.Thumbprint())
			}
			for range 2 { // each proof is for one request
				text, err := p.Proof("POST", "https://mcp.example.com/mcp?q=1#f", "token", "")
				require.NoError(t, err)
				_, err = v.Verify(t.Context(), text, dpop.Request{Verb: "POST", URL: "https://mcp.example.com/mcp", Token: "token", Thumbprint: p.Thumbprint()})
				require.NoError(t, err)
			}
		})
	}
	_, err = oauthclient.NewProver(ec(elliptic.P224()))
	require.EqualError(t, err, "oauthclient: the key must be an *ecdsa.PrivateKey on P-256, P-384 or P-521, an ed25519.PrivateKey, or an *rsa.PrivateKey of at least 2048 bits, not a *ecdsa.PrivateKey")
}

func TestProofContainsNoPrivateKeyAndNoQuery(t *testing.T) {
	text, err := prover(t).Proof("POST", "https://u:hush@mcp.example.com/mcp?hush#hush", "very-secret-token", "n")
	require.NoError(t, err)
	parts := strings.Split(text, ".")
	header, err := base64.RawURLEncoding.DecodeString(parts[0])
	require.NoError(t, err)
	require.NotContains(t, string(header), `"d"`)
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	require.NoError(t, err)
	require.NotContains(t, string(payload), "hush")
	require.NotContains(t, string(payload), "very-secret-token")
	require.Contains(t, string(payload), `"htu":"https://mcp.example.com/mcp"`)
	require.Contains(t, string(payload), `"nonce":"n"`)
}

// A resource that accepts both schemes sends a challenge for each. A fresh nonce is all that the
// second asks for.
func TestNoncesOfResourcesThatAcceptBothSchemesNeedNoNewToken(t *testing.T) {
	var b book
	as := oauthtest.New(t, &oauthtest.Options{Wrap: func(next http.Handler) http.Handler { return b.wrap(demandNonces(next)) }})
	s := protect(t, as, func(o *resource.Options) { o.DPoP = &resource.DPoP{} })
	s.Config.Handler = s.wrap(demandNonces(s.mux))
	u := new(user)
	tr := connect(t, s.url, u.grant(), oauthclient.Options{DPoP: prover(t)})
	tok, err := tr.Token(t.Context())
	require.NoError(t, err)
	require.Equal(t, "user may read", says(t, tr, s.url))
	again, err := tr.Token(t.Context())
	require.NoError(t, err)
	require.Equal(t, tok.AccessToken, again.AccessToken)
	require.Len(t, u.logins(), 1)
}

// No token helps a client whose proofs are refused, for example since its clock is wrong.
func TestRefusedProofsCauseNoLogin(t *testing.T) {
	as := oauthtest.New(t, nil)
	s := protect(t, as, func(o *resource.Options) { o.DPoP = &resource.DPoP{} })
	u := new(user)
	tr := connect(t, s.url, u.grant(), oauthclient.Options{DPoP: prover(t)})
	require.Equal(t, "user may read", says(t, tr, s.url))
	inner := s.Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Method = http.MethodPatch // the proof is for another method
		inner.ServeHTTP(w, r)
	})
	status, _, err := post(t, tr, s.url)
	require.NoError(t, err)
	require.Equal(t, http.StatusUnauthorized, status)
	require.Len(t, u.logins(), 1)
}

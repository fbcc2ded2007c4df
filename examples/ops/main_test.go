package main

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
)

func TestMain(m *testing.M) { testkit.VerifyTestMain(m) }

var key = []byte("0123456789abcdef0123456789abcdef")

// running is the running program.
type running struct {
	*testing.T
	url   string
	audit bytes.Buffer // read it only after the end
	app   *app
	end   func()
}

func run(t *testing.T) *running {
	r := &running{T: t}
	var err error
	r.app, err = newApp(key, slog.New(slog.DiscardHandler), slog.NewJSONHandler(&r.audit, nil))
	require.NoError(t, err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r.url = "http://" + ln.Addr().String()
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	// Ends with ctx.
	go func() { stopped <- r.app.serve(ctx, ln, 0) }()
	r.end = func() {
		http.DefaultClient.CloseIdleConnections()
		stop()
		require.NoError(t, <-stopped)
	}
	return r
}

// dial connects with a token.
func (r *running) dial(token string) (*client.Client, error) {
	c, err := client.Dial(r.Context(), r.url+"/mcp", client.Header("Authorization", "Bearer "+token))
	if err == nil {
		r.Cleanup(func() { _ = c.Close() })
	}
	return c, err
}

func (r *running) as(subject, scope string) *client.Client {
	token, err := newToken(key, subject, scope)
	require.NoError(r, err)
	c, err := r.dial(token)
	require.NoError(r, err)
	return c
}

type object = map[string]any

func TestTokensAreChecked(t *testing.T) {
	r := run(t)
	defer r.end()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: key}, nil)
	require.NoError(t, err)
	sign := func(c jwt.Claims) string {
		token, err := jwt.Signed(signer).Claims(c).Serialize()
		require.NoError(t, err)
		return token
	}
	expires := jwt.NewNumericDate(time.Now().Add(time.Hour))
	endless := sign(jwt.Claims{Issuer: issuer, Audience: jwt.Audience{audience}, Subject: "ann"})
	foreign := sign(jwt.Claims{Issuer: "https://other.example", Audience: jwt.Audience{audience}, Subject: "ann", Expiry: expires})
	elsewhere := sign(jwt.Claims{Issuer: issuer, Audience: jwt.Audience{"https://other.example/mcp"}, Subject: "ann", Expiry: expires})
	other, err := newToken([]byte(strings.Repeat("x", 32)), "ann", "")
	require.NoError(t, err)
	nobody, err := newToken(key, "", "")
	require.NoError(t, err)
	for name, token := range map[string]string{
		"none": "", "another key": other, "nobody's": nobody, "endless": endless, "another issuer": foreign, "for another server": elsewhere,
	} {
		_, err := r.dial(token)
		var refused *client.StatusError
		require.ErrorAs(t, err, &refused, name)
		require.Equal(t, http.StatusUnauthorized, refused.Code, name)
	}
}

func TestRefundsNeedAScopeAndAreAudited(t *testing.T) {
	r := run(t)
	cents, err := client.Call[int](t.Context(), r.as("ann", ""), "find", object{"id": "A1"})
	require.NoError(t, err)
	require.Equal(t, 1999, cents)
	refund := object{"id": "A1", "card": "4111222233334444"}
	_, err = r.as("ann", "").CallTool(t.Context(), "refund", refund)
	require.ErrorContains(t, err, `unknown tool "refund"`)
	bob := r.as("bob", "orders:refund")
	done, err := client.Call[string](t.Context(), bob, "refund", refund)
	require.NoError(t, err)
	require.Equal(t, "refunded A1", done)
	for range 2 {
		_, err = bob.CallTool(t.Context(), "refund", refund)
	}
	require.ErrorContains(t, err, "too many calls; try again in")
	r.end()
	require.Contains(t, r.audit.String(), "bob")
	require.NotContains(t, r.audit.String(), "4111222233334444")
}

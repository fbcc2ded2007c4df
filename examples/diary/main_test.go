package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/internal/leaktest"
	"github.com/mcpkit/mcpkit-go/oauth/oauthclient"
	"github.com/mcpkit/mcpkit-go/oauth/oauthtest"
	"github.com/mcpkit/mcpkit-go/oauth/resource"
)

func TestMain(m *testing.M) { leaktest.VerifyTestMain(m) }

// docs:begin test

// start starts a server that accepts tokens of as, and returns its URL.
func start(t *testing.T, as *oauthtest.Server, change func(*resource.Options)) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	url := "http://" + ln.Addr().String() + "/mcp"
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	// Ends with ctx.
	go func() {
		ended <- serve(ctx, config{resource: url, issuer: as.Issuer, insecure: true, logger: slog.New(slog.DiscardHandler), change: change}, ln)
	}()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})
	return url
}

func TestTokensAreChecked(t *testing.T) {
	as := oauthtest.New(t, nil)
	url := start(t, as, nil)
	for _, test := range []struct {
		name   string
		token  oauthtest.Token
		status int
	}{
		{"good", oauthtest.Token{Audience: []string{url}, Scopes: []string{"diary:read"}}, http.StatusOK},
		{"for another server", oauthtest.Token{Audience: []string{"https://other.example/mcp"}, Scopes: []string{"diary:read"}}, http.StatusUnauthorized},
		{"without the scope", oauthtest.Token{Audience: []string{url}}, http.StatusForbidden},
	} {
		t.Run(test.name, func(t *testing.T) {
			require.Equal(t, test.status, status(t, as, url, as.Token(test.token)))
		})
	}
}

// docs:end test

// status returns the HTTP status of a request with a token.
func status(t *testing.T, as *oauthtest.Server, url, token string) int {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(initialize))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := as.Client().Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

// keep calls use with a client whose tokens are stored in dir.
func keep(t *testing.T, as *oauthtest.Server, url, dir string, use func(*client.Client) error) {
	opts := oauthclient.Options{InsecureLoopback: true, Base: as.Client().Transport}
	require.NoError(t, connect(t.Context(), url, dir, opts, oauthtest.Open, use))
}

func TestWritingNeedsAnotherScope(t *testing.T) {
	var asked []string
	as := oauthtest.New(t, &oauthtest.Options{Consent: func(a *oauthtest.Authorization) error {
		asked = append(asked, strings.Join(a.Scopes, " "))
		return nil
	}})
	url, dir := start(t, as, nil), t.TempDir()
	var out bytes.Buffer
	keep(t, as, url, dir, func(c *client.Client) error { return write(t.Context(), c, "It rained.", &out) })
	require.Equal(t, []string{"diary:read", "diary:read diary:write"}, asked)
	require.Regexp(t, `^\d{4}-\d\d-\d\d \d\d:\d\d  It rained\.\n$`, out.String())

	keep(t, as, url, dir, func(c *client.Client) error { return write(t.Context(), c, "The sun.", &out) })
	require.Len(t, asked, 2, "the second run uses the token of the first")
	require.Equal(t, 3, strings.Count(out.String(), "\n"))
}

func TestEachUserHasADiary(t *testing.T) {
	user := "ada"
	as := oauthtest.New(t, &oauthtest.Options{Consent: func(a *oauthtest.Authorization) error { a.Subject = user; return nil }})
	url := start(t, as, nil)
	keep(t, as, url, t.TempDir(), func(c *client.Client) error { return write(t.Context(), c, "Mine.", io.Discard) })
	user = "bob"
	keep(t, as, url, t.TempDir(), func(c *client.Client) error {
		entries, err := client.Call[[]Entry](t.Context(), c, "read", nil)
		require.Empty(t, entries)
		return err
	})
}

func TestPagesCanReadTheMetadata(t *testing.T) {
	as := oauthtest.New(t, nil)
	url := start(t, as, nil)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodOptions, strings.TrimSuffix(url, "/mcp")+"/.well-known/oauth-protected-resource/mcp", nil)
	require.NoError(t, err)
	req.Header.Set("Origin", "https://app.example.com")
	req.Header.Set("Access-Control-Request-Method", http.MethodGet)
	req.Header.Set("Access-Control-Request-Headers", "mcp-protocol-version")
	resp, err := as.Client().Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusNoContent, resp.StatusCode)
	require.Equal(t, "*", resp.Header.Get("Access-Control-Allow-Origin"))
	require.Equal(t, "MCP-Protocol-Version", resp.Header.Get("Access-Control-Allow-Headers"))
}

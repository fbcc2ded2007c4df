package resource_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/oauth/oauthclient"
	"github.com/mcpkit/mcpkit-go/oauth/resource"
	"github.com/mcpkit/mcpkit-go/transport/sse"
	mcpws "github.com/mcpkit/mcpkit-go/transport/websocket"
)

const (
	hello  = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
	whoAmI = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"who"}}`
)

// whoServer returns a server with a tool that returns the caller.
func (m *matrix) whoServer() *mcpkit.Server {
	srv, err := mcpkit.New(nil, mcpkit.Authenticated(), mcpkit.Logger(m.logger))
	require.NoError(m.t, err)
	require.NoError(m.t, srv.Add(mcpkit.NewTool("who", func(ctx context.Context) string { return "it is " + oauth.FromContext(ctx).Subject }).Scopes("notes:read")))
	return srv
}

// realGuard returns a guard for MCP servers.
func (m *matrix) realGuard() *resource.Guard {
	g, err := resource.New(resource.Options{Issuer: issuer, Resource: endpoint, JWKS: m.jwks, Logger: m.logger})
	require.NoError(m.t, err)
	return g
}

func TestWebSocketsNeedAToken(t *testing.T) {
	m := newMatrix(t)
	h := mcpws.NewHandler(m.whoServer(), nil)
	s := httptest.NewServer(m.realGuard().Wrap(h))
	defer s.Close()
	defer h.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	dial := func(auth string) (*websocket.Conn, *http.Response, error) {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		return websocket.Dial(ctx, s.URL, &websocket.DialOptions{HTTPClient: client, Subprotocols: []string{"mcp"}, HTTPHeader: http.Header{"Authorization": {auth}}})
	}
	_, resp, err := dial("")
	require.Error(t, err)
	require.Equal(t, http.StatusUnauthorized, resp.StatusCode)
	require.NotEmpty(t, resp.Header.Get("WWW-Authenticate"))

	conn, _, err := dial("Bearer " + m.good)
	require.NoError(t, err)
	for _, say := range [][2]string{{hello, `"protocolVersion":"2024-11-05"`}, {whoAmI, "it is ann"}} {
		require.NoError(t, conn.Write(ctx, websocket.MessageText, []byte(say[0])))
		_, answer, err := conn.Read(ctx)
		require.NoError(t, err)
		require.Contains(t, string(answer), say[1])
	}
	require.NoError(t, conn.Close(websocket.StatusNormalClosure, ""))
	m.findNoSecrets(t, m.log.String()+" ")
}

func TestEventStreamsOf20241105NeedAToken(t *testing.T) {
	m := newMatrix(t)
	h := sse.NewHandler(m.whoServer(), nil)
	s := httptest.NewServer(m.realGuard().Wrap(h))
	defer s.Close()
	defer h.Close()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	send := func(verb, path, body, auth string) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), verb, s.URL+path, strings.NewReader(body))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/json")
		if auth != "" {
			r.Header.Set("Authorization", "Bearer "+auth)
		}
		resp, err := client.Do(r)
		require.NoError(t, err)
		t.Cleanup(func() { _ = resp.Body.Close() })
		return resp
	}
	require.Equal(t, http.StatusUnauthorized, send(http.MethodGet, "/", "", "").StatusCode)
	stream := send(http.MethodGet, "/", "", m.good)
	require.Equal(t, http.StatusOK, stream.StatusCode)
	r := bufio.NewReader(stream.Body)
	data := func() string {
		for {
			line, err := r.ReadString('\n')
			require.NoError(t, err)
			if text, ok := strings.CutPrefix(strings.TrimSpace(line), "data: "); ok {
				return text
			}
		}
	}
	endpoint := data()
	require.Equal(t, http.StatusAccepted, send(http.MethodPost, endpoint, hello, m.good).StatusCode)
	require.Contains(t, data(), `"protocolVersion":"2024-11-05"`)
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	require.Equal(t, http.StatusUnauthorized, send(http.MethodPost, endpoint, ping, "").StatusCode, "a session ID is not a token")
	require.Equal(t, http.StatusNotFound, send(http.MethodPost, endpoint, ping, m.token(claims{"sub": "eve"})).StatusCode)
	require.Equal(t, http.StatusAccepted, send(http.MethodPost, endpoint, ping, m.good).StatusCode)
	require.JSONEq(t, `{"jsonrpc":"2.0","id":1,"result":{}}`, data())
	// Each request is authenticated. Another token of ann may have fewer scopes.
	require.Equal(t, http.StatusAccepted, send(http.MethodPost, endpoint,
		strings.Replace(whoAmI, `"id":1`, `"id":2`, 1), m.token(claims{"scope": "x"})).StatusCode)
	require.Contains(t, data(), `unknown tool \"who\"`)
	require.Equal(t, http.StatusAccepted, send(http.MethodPost, endpoint, strings.Replace(whoAmI, `"id":1`, `"id":3`, 1), m.good).StatusCode)
	require.Contains(t, data(), "it is ann")
}

func TestPagesOfAllowedOriginsCanReadErrors(t *testing.T) {
	m := newMatrix(t)
	const page = "https://app.example.com"
	entered := false
	g, err := resource.New(resource.Options{Issuer: issuer, Resource: endpoint, JWKS: m.jwks, Logger: m.logger, AllowedOrigins: []string{page}})
	require.NoError(t, err)
	h := g.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { entered = true }))
	send := func(verb string, fields ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(verb, "https://mcp.example.com/api/mcp", nil)
		for i := 0; i < len(fields); i += 2 {
			r.Header.Set(fields[i], fields[i+1])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	w := send(http.MethodPost, "Origin", page)
	require.Equal(t, http.StatusUnauthorized, w.Code)
	require.Equal(t, page, w.Header().Get("Access-Control-Allow-Origin"))
	require.Contains(t, w.Header().Get("Access-Control-Expose-Headers"), "WWW-Authenticate, DPoP-Nonce")
	require.Empty(t, w.Header().Get("Access-Control-Allow-Credentials"))

	w = send(http.MethodOptions, "Origin", page, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization, dpop")
	require.Equal(t, http.StatusNoContent, w.Code)
	require.Equal(t, "POST, GET, DELETE", w.Header().Get("Access-Control-Allow-Methods"))
	require.Equal(t, "authorization, dpop", w.Header().Get("Access-Control-Allow-Headers"))

	for name, fields := range map[string][]string{
		"another page":     {"Origin", "https://evil.example", "Access-Control-Request-Method", "POST"},
		"a page without":   {"Origin", "null", "Access-Control-Request-Method", "POST"},
		"no page":          {"Access-Control-Request-Method", "POST"},
		"no preflight":     {"Origin", page},
		"a page that ends": {"Origin", page + ".evil.example", "Access-Control-Request-Method", "POST"},
	} {
		w = send(http.MethodOptions, fields...)
		require.Equal(t, http.StatusUnauthorized, w.Code, name)
		require.Equal(t, name == "no preflight", w.Header().Get("Access-Control-Allow-Origin") != "", name)
	}
	require.False(t, entered)
}

// A client that writes its whole body before it reads must get the challenge, not a broken
// connection.
func TestRefusedBodiesAreReadToTheirEnd(t *testing.T) {
	m := newMatrix(t)
	s := httptest.NewServer(m.plain)
	defer s.Close()
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	const size = 12 << 20
	_, err = fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", size)
	require.NoError(t, err)
	_, err = conn.Write(make([]byte, size))
	require.NoError(t, err, "the server closed the connection before the body was written")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusUnauthorized, resp.StatusCode)
	require.NotEmpty(t, resp.Header.Get("WWW-Authenticate"))
}

// The thief of a bound token can sign any number of proofs with another key.
func TestProofsByAnotherKeyAreNotRemembered(t *testing.T) {
	m := newMatrix(t)
	guard := m.guard(func(o *resource.Options) { o.DPoP = resource.LimitedDPoP(4) })
	send := func(p *oauthclient.Prover) (status int, body string) {
		w := httptest.NewRecorder()
		guard.ServeHTTP(w, m.dpopAsk(m.proof(p, "POST", endpoint, m.boundToken, "")))
		return w.Code, w.Body.String()
	}
	for range 8 {
		status, body := send(m.stranger)
		require.Equal(t, http.StatusUnauthorized, status, body)
		require.Contains(t, body, "the token is bound to another key")
	}
	status, body := send(m.prover)
	require.Equal(t, http.StatusOK, status, body)
}

package resource_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/oauth/internal/metadata"
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

func TestMetadataIsAtBothWellKnownPaths(t *testing.T) {
	guard, err := resource.New(resource.Options{Issuer: issuer, Resource: endpoint,
		Verifier: verifierFunc(func(string) (*oauth.Principal, error) { return nil, nil }), Scopes: []string{"a"}, Name: "Notes",
		DPoP: &resource.DPoP{Required: true}})
	require.NoError(t, err)
	mux := http.NewServeMux()
	guard.Mount(mux)
	for _, path := range []string{"/.well-known/oauth-protected-resource/api/mcp", "/.well-known/oauth-protected-resource"} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		require.Equal(t, http.StatusOK, w.Code)
		require.Equal(t, "application/json", w.Header().Get("Content-Type"))
		require.JSONEq(t, `{"resource":"https://mcp.example.com/api/mcp","authorization_servers":["https://login.example.com"],
			"scopes_supported":["a"],"bearer_methods_supported":["header"],"resource_name":"Notes","dpop_bound_access_tokens_required":true,
			"dpop_signing_alg_values_supported":["ES256","ES384","ES512","EdDSA","PS256","PS384","PS512","RS256","RS384","RS512"]}`, w.Body.String())
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/.well-known/oauth-protected-resource", nil))
	require.Equal(t, http.StatusMethodNotAllowed, w.Code)
}

func TestNewReportsEveryMistakeInOptions(t *testing.T) {
	_, err := resource.New(resource.Options{Resource: "/mcp", OtherIssuers: []string{"as"}, Scopes: []string{`a"b`, "offline_access"},
		Algorithms: []string{"HS256", "none", "es256"}})
	require.EqualError(t, err, `resource: issuer "" is not an absolute https URL
resource: issuer "as" is not an absolute https URL
resource: "a\"b" is not a scope: a scope is one word without quotes
resource: "offline_access" is not a scope of a resource: clients request it from the authorization server themselves; leave it out
resource: resource "/mcp" is not an absolute https URL
resource: algorithms ["HS256" "none" "es256"] cannot be used; known are ES256, ES384, ES512, EdDSA, PS256, PS384, PS512, RS256, RS384, RS512`)
}

func TestMetadataIsPublicAndReadOnly(t *testing.T) {
	guard, err := resource.New(resource.Options{Issuer: issuer, Resource: "https://mcp.example.com",
		Verifier: verifierFunc(func(string) (*oauth.Principal, error) { return nil, nil }), ScopesSupported: []string{"a", "b"}, Scopes: []string{"a"}})
	require.NoError(t, err)
	require.Equal(t, []string{"/.well-known/oauth-protected-resource"}, guard.MetadataPaths())
	for verb, status := range map[string]int{http.MethodGet: 200, http.MethodHead: 200, http.MethodOptions: 204, http.MethodPost: 405, http.MethodPut: 405, http.MethodDelete: 405} {
		w := httptest.NewRecorder()
		guard.Metadata().ServeHTTP(w, httptest.NewRequest(verb, "/", nil))
		require.Equal(t, status, w.Code, verb)
		require.Equal(t, "*", w.Header().Get("Access-Control-Allow-Origin"))
		require.Equal(t, status == 405, w.Header().Get("Allow") == "GET, HEAD, OPTIONS", verb)
		if verb == http.MethodGet {
			require.JSONEq(t, `{"resource":"https://mcp.example.com","authorization_servers":["https://login.example.com"],"scopes_supported":["a","b"],
				"bearer_methods_supported":["header"]}`, w.Body.String())
			require.Equal(t, "public, max-age=300", w.Header().Get("Cache-Control"))
		}
	}
}

func TestUnencryptedResourceIsLogged(t *testing.T) {
	for endpoint, warns := range map[string]bool{
		"https://mcp.example.com/mcp": false, "http://localhost:8080/mcp": false, "http://127.0.0.1/mcp": false, "http://[::1]:1/": false,
		"http://mcp.example.com/mcp": true, "http://localhost.example.com/": true, "http://192.168.1.5/mcp": true,
	} {
		var log testkit.Buffer
		_, err := resource.New(resource.Options{Issuer: issuer, Resource: endpoint, Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Verifier: verifierFunc(func(string) (*oauth.Principal, error) { return nil, nil })})
		require.NoError(t, err)
		require.Equal(t, warns, strings.Contains(log.String(), "tokens for this resource travel without protection"), endpoint)
	}
}

func TestPolicies(t *testing.T) {
	for _, test := range []struct {
		name   string
		policy resource.Policy
		p      oauth.Principal
		err    string // the error text, or empty
	}{
		{"a claim", resource.RequireClaim("c"), oauth.Principal{Claims: claims{"c": nil}}, ""},
		{"no claim", resource.RequireClaim("c"), oauth.Principal{Claims: claims{"C": 1}}, `the claim "c" is missing`},
		{"one of its values", resource.RequireClaim("c", "a", 2.0, true), oauth.Principal{Claims: claims{"c": 2.0}}, ""},
		{"one of its values in a list", resource.RequireClaim("c", "a"), oauth.Principal{Claims: claims{"c": []any{"b", "a"}}}, ""},
		{"none of its values", resource.RequireClaim("c", "a", true), oauth.Principal{Claims: claims{"c": "true"}}, `the claim "c" has none of the values [a true]`},
		{"values that cannot be compared", resource.RequireClaim("c", "a"), oauth.Principal{Claims: claims{"c": []any{[]any{"a"}, claims{}}}}, `the claim "c" has none of the values [a]`},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := test.policy(t.Context(), &test.p)
			if test.err == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, test.err)
			}
		})
	}
}

func TestPoliciesStopAtTheFirstRejection(t *testing.T) {
	m := newMatrix(t)
	var asked []string
	say := func(name string, err error) resource.Policy {
		return func(_ context.Context, p *oauth.Principal) error {
			require.Equal(t, "ann", p.Subject)
			asked = append(asked, name)
			return err
		}
	}
	h := m.guard(func(o *resource.Options) {
		o.Policies = []resource.Policy{say("first", nil), say("second", errors.New("the reason is for the log")), say("third", nil)}
	})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, bearer(m.good))
	require.Equal(t, http.StatusForbidden, w.Code)
	require.NotContains(t, w.Body.String(), "for the log")
	require.Contains(t, m.log.String(), "the reason is for the log")
	require.Equal(t, []string{"first", "second"}, asked)
}

// FuzzAuthorization checks that only the valid token is accepted, and that every response is valid.
func FuzzAuthorization(f *testing.F) {
	g, err := resource.New(resource.Options{Issuer: issuer, Resource: endpoint, Verifier: verifierFunc(func(token string) (*oauth.Principal, error) {
		if token != "good" {
			return nil, &oauth.TokenError{Reason: "it is not good"}
		}
		return &oauth.Principal{Subject: "ann"}, nil
	})})
	require.NoError(f, err)
	entered := false
	h := g.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { entered = true }))
	for _, seed := range []string{"Bearer good", "bearer good", "Bearer  good", "Bearer good ", "Bearer bad", "Bearer", "Bearer ", "good", "Basic good", "Bearer good,good", "DPoP good", "Bearer =", "Bearer \xff", "Bearer\tgood"} {
		f.Add(seed, "")
	}
	f.Add("Bearer good", "access_token=good")
	f.Add("Bearer good", "a=%zz&access%5ftoken")
	f.Add("Bearer good", "a;access_token=good")
	f.Fuzz(func(t *testing.T, field, query string) {
		entered = false
		w := httptest.NewRecorder()
		h.ServeHTTP(w, withQuery(ask("Authorization", field), query))
		if entered {
			require.Regexp(t, `^(?i:bearer) +good$`, field)
			return
		}
		require.Contains(t, []int{http.StatusBadRequest, http.StatusUnauthorized}, w.Code)
		list, err := metadata.ParseChallenges(w.Header()["Www-Authenticate"])
		require.NoError(t, err)
		require.Len(t, list, 1)
	})
}

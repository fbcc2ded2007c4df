package echomcp_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	mw "github.com/mcpkit/mcpkit-go/middleware"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/oauth/oauthclient"
	"github.com/mcpkit/mcpkit-go/oauth/resource"
	"github.com/mcpkit/mcpkit-go/transport/echomcp"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

// Ledger is a service with methods that need scopes.
type Ledger struct {
	_ struct {
		Who   mcpkit.Tool
		Book  mcpkit.Tool `scopes:"ledger:write ledger:audit"`
		Total mcpkit.Tool `scopes:"ledger:read"`
		Count mcpkit.Tool `hints:"readonly"`
		Pay   mcpkit.Tool `scopes:"ledger:read"`
	}
	goOn chan struct{} // Count waits for it
}

// Who returns the caller, from every place where a method can find it.
func (l *Ledger) Who(ctx context.Context, call *mcpkit.Call, p *oauth.Principal) string {
	c, _ := echomcp.FromContext(ctx)
	return fmt.Sprintf("call=%s param=%s ctx=%s authorization=%q echo=%q", call.Principal().Subject, p.Subject, oauth.FromContext(ctx).Subject,
		call.Header("Authorization")+call.Header("Dpop"), c.Request().Header.Get("Authorization"))
}

func (l *Ledger) Book() string  { return "booked" }
func (l *Ledger) Total() string { return "total" }

// Count reports progress and then waits.
func (l *Ledger) Count(ctx context.Context, call *mcpkit.Call) (string, error) {
	call.Progress(1, 2, "half")
	select {
	case <-l.goOn:
		return "counted", nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// Pay asks for a confirmation.
func (l *Ledger) Pay(ctx context.Context) (string, error) {
	if ok, err := mcpkit.Confirm(ctx, "Pay?"); err != nil || !ok {
		return "", err
	}
	return "paid", nil
}

// A house is an echo app with the server in a group, behind a resource server that checks tokens.
type house struct {
	t      *testing.T
	url    string // of the endpoint
	origin string
	key    *ecdsa.PrivateKey
	ledger *Ledger
	client *http.Client
}

const issuer = "https://login.example.com"

type settings struct {
	guard      func(*resource.Options)
	server     []mcpkit.Option
	middleware []mcpkit.Middleware
	app        []echo.MiddlewareFunc
	logger     *slog.Logger // nil discards all messages
}

// newHouse serves at /tenant/api/mcp.
func newHouse(t *testing.T, set settings) *house {
	t.Helper()
	h := &house{t: t, ledger: &Ledger{goOn: make(chan struct{})}, client: &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(h.client.CloseIdleConnections)
	var err error
	h.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	e := echo.New()
	server := httptest.NewUnstartedServer(e)
	h.origin = "http://" + server.Listener.Addr().String()
	h.url = h.origin + "/tenant/api/mcp"
	keys, err := json.Marshal(map[string]any{"keys": []any{jose.JSONWebKey{Key: h.key.Public(), KeyID: "1"}}})
	require.NoError(t, err)
	logger := set.logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	opts := resource.Options{Issuer: issuer, Resource: h.url, JWKS: keys, Logger: logger,
		ScopesSupported: []string{"ledger:read", "ledger:write", "ledger:audit"}}
	if set.guard != nil {
		set.guard(&opts)
	}
	guard, err := resource.New(opts)
	require.NoError(t, err)
	srv, err := mcpkit.New(h.ledger, append([]mcpkit.Option{mcpkit.Authenticated(), mcpkit.Logger(logger)}, set.server...)...)
	require.NoError(t, err)
	srv.Use(set.middleware...)

	e.Use(set.app...)
	for _, path := range guard.MetadataPaths() {
		e.Any(path, echo.WrapHandler(guard.Metadata()))
	}
	handler := echomcp.Mount(e.Group("/tenant/api"), "/mcp", srv, echomcp.Use(echo.WrapMiddleware(guard.Wrap)), echomcp.Streamable(&streamable.Options{Logger: logger}))
	server.Start()
	t.Cleanup(func() {
		handler.Close()
		server.CloseClientConnections()
		server.Close()
	})
	return h
}

// token returns a token of the subject with these scopes, bound to the key with the thumbprint
// more[0] if there is one.
func (h *house) token(subject, scopes string, more ...string) string {
	h.t.Helper()
	claims := map[string]any{"iss": issuer, "aud": h.url, "sub": subject, "client_id": "app", "scope": scopes, "exp": time.Now().Add(time.Hour).Unix()}
	if len(more) > 0 {
		claims["cnf"] = map[string]any{"jkt": more[0]}
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: h.key},
		(&jose.SignerOptions{}).WithType("at+jwt").WithHeader("kid", "1"))
	require.NoError(h.t, err)
	payload, err := json.Marshal(claims)
	require.NoError(h.t, err)
	jws, err := signer.Sign(payload)
	require.NoError(h.t, err)
	text, err := jws.CompactSerialize()
	require.NoError(h.t, err)
	return text
}

// send sends a request with header fields, given as names and values.
func (h *house) send(verb, body string, fields ...string) *http.Response {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), verb, h.url, strings.NewReader(body))
	require.NoError(h.t, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	resp, err := h.client.Do(r)
	require.NoError(h.t, err)
	h.t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

func read(t *testing.T, resp *http.Response) string {
	t.Helper()
	raw, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(raw)
}

// A family is a family of protocol versions, legacy or modern.
type family struct {
	name string
	// request returns the body and the header fields of a request.
	request func(h *house, auth, method, params string) (body string, fields []string)
}

const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}},"progressToken":"p"}`

func modern(_ *house, auth, method, params string) (string, []string) {
	fields := []string{"Authorization", auth, "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", method}
	var named struct{ Name, URI string }
	_ = json.Unmarshal([]byte(params), &named)
	if method == "tools/call" || method == "prompts/get" || method == "resources/read" {
		fields = append(fields, "Mcp-Name", named.Name+named.URI)
	}
	if params == "{}" {
		params = "{" + meta + "}"
	} else {
		params = params[:len(params)-1] + "," + meta + "}"
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params), fields
}

const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"x","version":"1"}}}`

// open begins a session and returns its ID.
func (h *house) open(auth string) string {
	h.t.Helper()
	resp := h.send(http.MethodPost, initialize, "Authorization", auth)
	require.Equal(h.t, http.StatusOK, resp.StatusCode)
	id := resp.Header.Get("Mcp-Session-Id")
	require.NotEmpty(h.t, id)
	return id
}

func legacy(h *house, auth, method, params string) (string, []string) {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params),
		[]string{"Authorization", auth, "Mcp-Session-Id", h.open(auth), "MCP-Protocol-Version", "2025-11-25"}
}

var families = []family{{"modern", modern}, {"legacy", legacy}}

// call sends one request as a client of the family does.
func (h *house) call(e family, auth, method, params string) *http.Response {
	h.t.Helper()
	body, fields := e.request(h, auth, method, params)
	return h.send(http.MethodPost, body, fields...)
}

// event reads the data of the next event that has any.
func event(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	for {
		line, err := r.ReadString('\n')
		require.NoError(t, err)
		if data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: "); ok {
			return data
		}
	}
}

func TestStepUpNamesAllScopesInOneChallenge(t *testing.T) {
	h := newHouse(t, settings{server: []mcpkit.Option{mcpkit.StepUp()}, guard: func(o *resource.Options) { o.Scopes = []string{"ledger:read"} }})
	for _, e := range families {
		t.Run(e.name, func(t *testing.T) {
			for _, have := range []string{"ledger:read", "ledger:read ledger:write"} {
				auth := "Bearer " + h.token("ann", have)
				require.Contains(t, read(t, h.call(e, auth, "tools/list", "{}")), `"name":"book"`, "the tool is listed, so that the client can get the scopes")
				resp := h.call(e, auth, "tools/call", `{"name":"book"}`)
				require.Equal(t, http.StatusForbidden, resp.StatusCode)
				require.Equal(t, []string{`Bearer error="insufficient_scope", error_description="the token lacks scopes that this request needs", ` +
					`scope="ledger:read ledger:write ledger:audit", resource_metadata="` + h.origin + `/.well-known/oauth-protected-resource/tenant/api/mcp"`}, resp.Header["Www-Authenticate"])
				require.Equal(t, `{"jsonrpc":"2.0","id":1,"error":{"code":-31001,"message":"insufficient scope: this needs \"ledger:write ledger:audit\"","data":{"scopes":["ledger:write","ledger:audit"]}}}`, read(t, resp))
			}
			resp := h.call(e, "Bearer "+h.token("ann", "ledger:audit ledger:read ledger:write"), "tools/call", `{"name":"book"}`)
			require.Equal(t, http.StatusOK, resp.StatusCode)
			require.Contains(t, read(t, resp), "booked")
		})
	}
	t.Run("in a batch it is one error", func(t *testing.T) {
		auth := "Bearer " + h.token("ann", "ledger:read")
		id := h.send(http.MethodPost, strings.Replace(initialize, "2025-11-25", "2025-03-26", 1), "Authorization", auth).Header.Get("Mcp-Session-Id")
		resp := h.send(http.MethodPost, `[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"book"}},{"jsonrpc":"2.0","id":2,"method":"ping"}]`,
			"Authorization", auth, "Mcp-Session-Id", id)
		require.Equal(t, http.StatusOK, resp.StatusCode)
		require.Equal(t, `[{"jsonrpc":"2.0","id":1,"error":{"code":-31001,"message":"insufficient scope: this needs \"ledger:write ledger:audit\"",`+
			`"data":{"scopes":["ledger:write","ledger:audit"]}}},{"jsonrpc":"2.0","id":2,"result":{}}]`, read(t, resp))
	})
}

func TestProgressIsNotHeldBackByTheGuard(t *testing.T) {
	h := newHouse(t, settings{app: []echo.MiddlewareFunc{middleware.Recover(), middleware.RequestID()}})
	auth := "Bearer " + h.token("ann", "")
	for _, e := range families {
		t.Run(e.name, func(t *testing.T) {
			resp := h.call(e, auth, "tools/call", map[string]string{"modern": `{"name":"count"}`, "legacy": `{"name":"count","_meta":{"progressToken":"p"}}`}[e.name])
			require.Equal(t, http.StatusOK, resp.StatusCode)
			r := bufio.NewReader(resp.Body)
			require.Contains(t, event(t, r), `"progress":1`, "while the method waits")
			h.ledger.goOn <- struct{}{}
			require.Contains(t, event(t, r), "counted")
		})
	}
}

func TestASessionBelongsToItsPrincipal(t *testing.T) {
	h := newHouse(t, settings{})
	ann, eve := "Bearer "+h.token("ann", "ledger:read"), "Bearer "+h.token("eve", "ledger:read")
	id := h.open(ann)
	const ping = `{"jsonrpc":"2.0","id":2,"method":"ping"}`
	for _, verb := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
		body := map[string]string{http.MethodPost: ping}[verb]
		resp := h.send(verb, body, "Authorization", eve, "Mcp-Session-Id", id)
		require.Equal(t, http.StatusNotFound, resp.StatusCode, verb)
		unknown := h.send(verb, body, "Authorization", eve, "Mcp-Session-Id", strings.Repeat("A", len(id)))
		require.Equal(t, read(t, unknown), read(t, resp), "the response is that of an unknown session")
		require.Equal(t, http.StatusUnauthorized, h.send(verb, body, "Mcp-Session-Id", id).StatusCode, "a session ID is not a token")
	}
	renewed := "Bearer " + h.token("ann", "")
	require.Equal(t, http.StatusOK, h.send(http.MethodPost, ping, "Authorization", renewed, "Mcp-Session-Id", id).StatusCode, "another token of the same principal")
	require.Equal(t, http.StatusNoContent, h.send(http.MethodDelete, "", "Authorization", ann, "Mcp-Session-Id", id).StatusCode)
}

func TestMethodsAndMiddlewareGetThePrincipalButNotTheToken(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	h := newHouse(t, settings{middleware: []mcpkit.Middleware{func(next mcpkit.Handler) mcpkit.Handler {
		return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, call.Method()+" "+call.Principal().Subject+" "+call.Principal().ClientID+" "+call.Header("Authorization"))
			return next(ctx, call)
		}
	}}})
	for _, e := range families {
		got := read(t, h.call(e, "Bearer "+h.token("ann", ""), "tools/call", `{"name":"who"}`))
		require.Contains(t, got, `call=ann param=ann ctx=ann authorization=\"\" echo=\"\"`)
	}
	require.Equal(t, []string{"tools/call ann app ", "initialize ann app ", "tools/call ann app "}, seen)
}

func TestTheStateOfAQuestionBelongsToItsPrincipal(t *testing.T) {
	h := newHouse(t, settings{})
	ann, eve := "Bearer "+h.token("ann", "ledger:read"), "Bearer "+h.token("eve", "ledger:read")
	var asked struct {
		Result struct {
			ResultType    string                     `json:"resultType"`
			RequestState  string                     `json:"requestState"`
			InputRequests map[string]json.RawMessage `json:"inputRequests"`
		} `json:"result"`
	}
	require.NoError(t, json.Unmarshal([]byte(read(t, h.call(families[0], ann, "tools/call", `{"name":"pay"}`))), &asked))
	require.Equal(t, "input_required", asked.Result.ResultType)
	require.Len(t, asked.Result.InputRequests, 1)
	answers := map[string]any{}
	for id := range asked.Result.InputRequests {
		answers[id] = map[string]any{"action": "accept", "content": map[string]any{"confirm": true}}
	}
	params, err := json.Marshal(map[string]any{"name": "pay", "requestState": asked.Result.RequestState, "inputResponses": answers})
	require.NoError(t, err)
	foreign := read(t, h.call(families[0], eve, "tools/call", string(params)))
	require.NotContains(t, foreign, "paid")
	require.Contains(t, foreign, `"code":-32602`)
	require.NotContains(t, foreign, asked.Result.RequestState)
	require.Contains(t, read(t, h.call(families[0], "Bearer "+h.token("ann", "ledger:read"), "tools/call", string(params))), "paid", "another token of the same principal")
	lacking := read(t, h.call(families[0], "Bearer "+h.token("ann", ""), "tools/call", string(params)))
	require.Contains(t, lacking, `unknown tool \"pay\"`, "a token without the scope cannot continue the call")
}

func TestBoundTokensNeedAProof(t *testing.T) {
	h := newHouse(t, settings{guard: func(o *resource.Options) { o.DPoP = &resource.DPoP{Required: true} }})
	prover, err := oauthclient.NewProver(nil)
	require.NoError(t, err)
	token := h.token("ann", "", prover.Thumbprint())
	body, fields := modern(h, "DPoP "+token, "tools/call", `{"name":"who"}`)
	ask := func(url string) (*http.Response, string) {
		proof, err := prover.Proof(http.MethodPost, url, token, "")
		require.NoError(t, err)
		return h.send(http.MethodPost, body, append(fields, "DPoP", proof)...), proof
	}
	first, proof := ask(h.url)
	require.Equal(t, http.StatusOK, first.StatusCode)
	require.Contains(t, read(t, first), `call=ann param=ann ctx=ann authorization=\"\" echo=\"\"`, "methods get neither token nor proof")

	again := h.send(http.MethodPost, body, append(fields, "DPoP", proof)...)
	require.Equal(t, http.StatusUnauthorized, again.StatusCode)
	require.Contains(t, again.Header.Get("WWW-Authenticate"), "the proof was used before")
	inner, _ := ask(h.origin + "/mcp")
	require.Contains(t, inner.Header.Get("WWW-Authenticate"), "the proof is for another URL", "the URL of a proof includes the prefix")
	free := h.send(http.MethodPost, body, append(fields[2:], "Authorization", "Bearer "+token)...)
	require.Equal(t, http.StatusUnauthorized, free.StatusCode)

	var doc map[string]any
	resp, err := h.client.Get(h.origin + "/.well-known/oauth-protected-resource")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal([]byte(read(t, resp)), &doc))
	_ = resp.Body.Close()
	require.Equal(t, true, doc["dpop_bound_access_tokens_required"])
}

func TestATokenInTheURLIsRefusedAndNotRepeated(t *testing.T) {
	h := newHouse(t, settings{})
	token := h.token("ann", "")
	h.url += "?access_token=" + url.QueryEscape(token)
	resp := h.send(http.MethodPost, initialize)
	require.Equal(t, http.StatusBadRequest, resp.StatusCode)
	require.NotContains(t, read(t, resp), token)
	for _, values := range resp.Header {
		require.NotContains(t, strings.Join(values, "\n"), token)
	}
}

// This test logs everything, from the guard to the method, and looks for the tokens in it.
func TestTokensAreNotLogged(t *testing.T) {
	var mu sync.Mutex
	var log strings.Builder
	logger := slog.New(slog.NewJSONHandler(writerFunc(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return log.Write(p)
	}), &slog.HandlerOptions{Level: slog.Level(-100), AddSource: true}))
	h := newHouse(t, settings{
		logger:     logger,
		guard:      func(o *resource.Options) { o.DPoP = &resource.DPoP{} },
		server:     []mcpkit.Option{mcpkit.StepUp()},
		middleware: []mcpkit.Middleware{mw.Logging(logger, mw.LogArguments(0))},
		app:        []echo.MiddlewareFunc{middleware.Recover(), middleware.RequestID()},
	})
	prover, err := oauthclient.NewProver(nil)
	require.NoError(t, err)
	bound := h.token("ann", "ledger:read", prover.Thumbprint())
	proof, err := prover.Proof(http.MethodPost, h.url, bound, "")
	require.NoError(t, err)
	bearer := h.token("ben", "ledger:read")
	var said strings.Builder
	hear := func(resp *http.Response) {
		_ = resp.Header.Write(&said)
		said.WriteString(read(t, resp))
	}
	body, fields := modern(h, "DPoP "+bound, "tools/call", `{"name":"who"}`)
	for range 2 { // the second one is a replay
		hear(h.send(http.MethodPost, body, append(fields, "DPoP", proof)...))
	}
	for _, e := range families {
		hear(h.call(e, "Bearer "+bearer, "tools/call", `{"name":"total"}`))
		hear(h.call(e, "Bearer "+bearer, "tools/call", `{"name":"book"}`))
		hear(h.call(e, "Bearer "+bearer, "resources/read", `{"uri":"ledger://none"}`))
	}
	hear(h.send(http.MethodPost, body, "Authorization", "Bearer "+bearer+"x"))
	hear(h.send(http.MethodGet, "", "Authorization", "Bearer "+bearer, "Mcp-Session-Id", "unknown"))
	require.Contains(t, log.String(), "ben")
	for _, text := range []string{log.String(), said.String()} {
		for _, secret := range []string{bound, bearer, proof} {
			for _, part := range strings.Split(secret, ".")[1:] {
				require.NotContains(t, text, part)
			}
		}
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

package echomcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/oauth/oauthtest"
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

// A house is an echo app with the server in a group, behind a resource server that checks tokens.
type house struct {
	t      *testing.T
	url    string // of the endpoint
	origin string
	as     *oauthtest.Server
	ledger *Ledger
	client *http.Client
}

const issuer = "https://login.example.com"

type settings struct {
	guard      func(*resource.Options)
	server     []mcpkit.Option
	middleware []mcpkit.Middleware
	app        []echo.MiddlewareFunc
}

// newHouse serves at /tenant/api/mcp.
func newHouse(t *testing.T, set settings) *house {
	t.Helper()
	h := &house{t: t, ledger: &Ledger{goOn: make(chan struct{})}, client: &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(h.client.CloseIdleConnections)
	var err error
	h.as, err = oauthtest.NewHandler(issuer, nil)
	require.NoError(t, err)
	t.Cleanup(h.as.Close)
	e := echo.New()
	server := httptest.NewUnstartedServer(e)
	h.origin = "http://" + server.Listener.Addr().String()
	h.url = h.origin + "/tenant/api/mcp"
	logger := slog.New(slog.DiscardHandler)
	opts := resource.Options{Issuer: issuer, Resource: h.url, JWKS: h.as.JWKS(), Logger: logger,
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

// token returns a token of the subject with these scopes.
func (h *house) token(subject, scopes string) string {
	return h.as.Token(oauthtest.Token{Subject: subject, ClientID: "app", Audience: []string{h.url}, Scopes: strings.Fields(scopes)})
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

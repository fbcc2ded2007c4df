package routers

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	echojwt "github.com/labstack/echo-jwt/v4"
	"github.com/labstack/echo/v4"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/transport/echomcp"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

type desk struct {
	_ struct {
		Read mcpkit.Tool `scopes:"desk:read"`
	}
}

func (desk) Read(p *oauth.Principal) string { return "read by " + p.Subject + " with " + p.ClientID }

// ownClaims are claims of a type of the app's, as echo-jwt's NewClaimsFunc has them.
type ownClaims struct {
	Scope  string `json:"scope"`
	Client string `json:"azp"`
	jwt.RegisteredClaims
}

var secret = []byte("the app's own secret")

func token(t *testing.T, claims jwt.Claims) string {
	t.Helper()
	text, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString(secret)
	require.NoError(t, err)
	return text
}

func TestTheUserOfEchosJWTMiddlewareIsThePrincipal(t *testing.T) {
	for name, config := range map[string]echojwt.Config{
		"map claims": {SigningKey: secret},
		"own claims": {SigningKey: secret, NewClaimsFunc: func(echo.Context) jwt.Claims { return new(ownClaims) }},
	} {
		t.Run(name, func(t *testing.T) {
			quiet := slog.New(slog.DiscardHandler)
			srv, err := mcpkit.New(&desk{}, mcpkit.Authenticated(), mcpkit.Logger(quiet))
			require.NoError(t, err)
			e := echo.New()
			e.Use(echojwt.WithConfig(config))
			e.GET("/hello", func(c echo.Context) error {
				sub, err := c.Get("user").(*jwt.Token).Claims.GetSubject()
				if err != nil {
					return err
				}
				return c.String(http.StatusOK, "hello "+sub)
			})
			handler := echomcp.Mount(e, "/mcp", srv, echomcp.Streamable(&streamable.Options{Logger: quiet}))
			defer handler.Close()
			ask := func(verb, path, token string) (int, string) {
				body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
				r := httptest.NewRequest(verb, path, strings.NewReader(body))
				for name, value := range map[string]string{"Authorization": "Bearer " + token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
					"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "read"} {
					r.Header.Set(name, value)
				}
				w := httptest.NewRecorder()
				e.ServeHTTP(w, r)
				text, err := io.ReadAll(w.Body)
				require.NoError(t, err)
				return w.Code, string(text)
			}
			later := jwt.NewNumericDate(time.Now().Add(time.Hour))
			ann := token(t, ownClaims{"desk:read", "app", jwt.RegisteredClaims{Subject: "ann", ExpiresAt: later}})
			ben := token(t, ownClaims{"", "app", jwt.RegisteredClaims{Subject: "ben", ExpiresAt: later}})
			old := token(t, ownClaims{"desk:read", "app", jwt.RegisteredClaims{Subject: "ann", ExpiresAt: jwt.NewNumericDate(time.Now().Add(-time.Hour))}})

			status, text := ask(http.MethodPost, "/mcp", ann)
			require.Equal(t, http.StatusOK, status)
			require.Contains(t, text, "read by ann with app")
			_, text = ask(http.MethodPost, "/mcp", ben)
			require.Contains(t, text, `unknown tool \"read\"`)
			status, _ = ask(http.MethodPost, "/mcp", old)
			require.Equal(t, http.StatusUnauthorized, status)
			status, text = ask(http.MethodGet, "/hello", ben)
			require.Equal(t, http.StatusOK, status)
			require.Equal(t, "hello ben", text, "as before")
		})
	}
}

func TestCallsCarryTheUsersToken(t *testing.T) {
	srv, err := mcpkit.New(&desk{}, mcpkit.Authenticated())
	require.NoError(t, err)
	app := echo.New()
	handler := echomcp.Mount(app, "/mcp", srv, echomcp.Use(echojwt.JWT(secret)))
	server := httptest.NewServer(app)
	defer server.Close()
	defer handler.Close()

	claims := jwt.MapClaims{"sub": "ann", "azp": "app", "scope": "desk:read"}
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString(secret)
	require.NoError(t, err)
	c, err := client.Dial(t.Context(), server.URL+"/mcp", client.Header("Authorization", "Bearer "+token))
	require.NoError(t, err)
	defer c.Close()
	text, err := client.Call[string](t.Context(), c, "read", nil)
	require.NoError(t, err)
	require.Equal(t, "read by ann with app", text)
}

func TestAnAppHasMiddlewareOfBothKinds(t *testing.T) {
	srv, err := mcpkit.New(&desk{}, mcpkit.Authenticated())
	require.NoError(t, err)
	app := echo.New()
	defer mount(app, srv, secret).Close()
	server := httptest.NewServer(app)
	defer server.Close()

	resp, err := http.Post(server.URL+"/mcp", "application/json", strings.NewReader("{}"))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusUnauthorized, resp.StatusCode, "echo-jwt refuses requests without a token")
	require.NotEmpty(t, resp.Header.Get(echo.HeaderXRequestID))

	c, err := client.Dial(t.Context(), server.URL+"/mcp", client.Header("Authorization", "Bearer "+token(t, jwt.MapClaims{"sub": "ann", "scope": "desk:read"})))
	require.NoError(t, err)
	defer c.Close()
	text, err := client.Call[string](t.Context(), c, "read", nil)
	require.NoError(t, err)
	require.Equal(t, "read by ann with ", text)
}

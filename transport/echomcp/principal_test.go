package echomcp_test

import (
	"context"
	"crypto/subtle"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/transport/echomcp"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

// docs:begin key

// requireKey admits callers that send the key as a bearer token. They become the principal p.
func requireKey(key string, p *oauth.Principal) func(http.Handler) http.Handler {
	want := []byte("Bearer " + key)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got := []byte(r.Header.Get("Authorization"))
			if subtle.ConstantTimeCompare(got, want) != 1 {
				w.Header().Set("WWW-Authenticate", "Bearer")
				http.Error(w, "a valid key is required", http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r.WithContext(oauth.NewContext(r.Context(), p)))
		})
	}
}

// docs:end key

// mountWithKey mounts a server in an app, for callers that have the key.
func mountWithKey(app *echo.Echo, srv *mcpkit.Server, key string) *streamable.Handler {
	robot := &oauth.Principal{Subject: "robot", Scopes: []string{"ledger:read"}}
	return echomcp.Mount(app, "/mcp", srv, echomcp.Use(echo.WrapMiddleware(requireKey(key, robot))))
}

func TestCallersWithTheKeyAreThePrincipal(t *testing.T) {
	srv, err := mcpkit.New(&Ledger{}, mcpkit.Authenticated(), mcpkit.Logger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	app := echo.New()
	handler := mountWithKey(app, srv, "a key for tests")
	server := httptest.NewServer(app)
	defer server.Close()
	defer handler.Close()
	card := httptest.NewRecorder() // which needs no key
	app.ServeHTTP(card, httptest.NewRequest(http.MethodGet, "/mcp/server-card", nil))
	require.Contains(t, card.Body.String(), `no server card: the name "ledger" is not like com.example/notes`)
	_, err = client.Dial(t.Context(), server.URL+"/mcp", client.Header("Authorization", "Bearer another key"))
	var status *client.StatusError
	require.ErrorAs(t, err, &status)
	require.Equal(t, http.StatusUnauthorized, status.Code)
	c, err := client.Dial(t.Context(), server.URL+"/mcp", client.Header("Authorization", "Bearer a key for tests"))
	require.NoError(t, err)
	defer c.Close()
	text, err := client.Call[string](t.Context(), c, "total", nil)
	require.NoError(t, err)
	require.Equal(t, "total", text)
	_, err = client.Call[string](t.Context(), c, "book", nil)
	require.ErrorContains(t, err, "unknown tool", "the principal lacks the scopes")
}

func TestTheOptionPrincipalReplacesThePrincipalOfTheContext(t *testing.T) {
	before := func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			c.SetRequest(c.Request().WithContext(oauth.NewContext(c.Request().Context(), &oauth.Principal{Subject: "before"})))
			return next(c)
		}
	}
	for _, test := range []struct {
		name string
		opts []echomcp.Option
		want string
	}{
		{"without the option", nil, "before"},
		{"a principal", []echomcp.Option{echomcp.Principal(func(echo.Context) *oauth.Principal { return &oauth.Principal{Subject: "after"} })}, "after"},
		{"nil", []echomcp.Option{echomcp.Principal(func(echo.Context) *oauth.Principal { return nil })}, "nobody"},
	} {
		t.Run(test.name, func(t *testing.T) {
			quiet := slog.New(slog.DiscardHandler)
			srv, err := mcpkit.New(nil, mcpkit.Logger(quiet))
			require.NoError(t, err)
			require.NoError(t, srv.Add(mcpkit.NewTool("who", func(ctx context.Context) string {
				if p := oauth.FromContext(ctx); p != nil {
					return p.Subject
				}
				return "nobody"
			})))
			e := echo.New()
			e.Use(before)
			handler := echomcp.Mount(e, "/mcp", srv, append(test.opts, echomcp.Streamable(&streamable.Options{Logger: quiet}))...)
			defer handler.Close()
			body, fields := modern(nil, "", "tools/call", `{"name":"who"}`)
			r := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			for i := 0; i < len(fields); i += 2 {
				r.Header.Set(fields[i], fields[i+1])
			}
			w := httptest.NewRecorder()
			e.ServeHTTP(w, r)
			require.Contains(t, w.Body.String(), `"text":"`+test.want+`"`)
		})
	}
}

package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/config"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

func TestMain(m *testing.M) { testkit.VerifyTestMain(m) }

// forecast is the service of the remote server.
type forecast struct {
	_ struct {
		Tomorrow mcpkit.Tool `params:"city" hints:"readonly"`
	}
}

func (*forecast) Tomorrow(city string) string { return "sun in " + city }

// newWeather serves a forecast to clients with the token, and records other requests.
func newWeather(t *testing.T) string {
	handler := streamable.NewHandler(mcpkit.MustNew(&forecast{}), nil)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer of-the-gateway" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL
}

// load reads the configuration file, with its paths in a folder of the test.
func load(t *testing.T, env ...string) *config.Config {
	t.Helper()
	text, err := os.ReadFile("gateway.yaml")
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "state.key"), []byte(strings.Repeat("k", 32)), 0o600))
	env = append(env, "MCPKIT_MIDDLEWARE_AUDIT_FILE="+filepath.Join(dir, "audit.jsonl"), "MCPKIT_LOG_LEVEL=error")
	c, err := config.Parse(filepath.Join(dir, "gateway.yaml"), text, config.Environ(env))
	require.NoError(t, err)
	return c
}

type user struct{}

func (user) Elicit(_ context.Context, p *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	return &protocol.ElicitResult{Action: protocol.ElicitAccept, Content: json.RawMessage(`{"confirm":true}`)}, nil
}

func TestGatewayHasTheToolsOfThreeServers(t *testing.T) {
	srv, err := newGateway(load(t), newWeather(t), "of-the-gateway")
	require.NoError(t, err)
	defer srv.Close()
	for _, v := range []protocol.Version{protocol.V20251125, protocol.V20260728} {
		c, err := client.Dial(t.Context(), srv, client.Version(v), client.Handlers(user{}))
		require.NoError(t, err)
		var names []string
		for tool, err := range c.Tools(t.Context()) {
			require.NoError(t, err)
			names = append(names, tool.Name)
		}
		require.Equal(t, []string{"billing_charge", "hours", "weather_tomorrow"}, names)
		for tool, call := range map[string]struct {
			in   any
			want string
		}{
			"hours":            {nil, "Monday to Friday, 9 to 17"},
			"billing_charge":   {ChargeInput{"ann", 5}, "ann paid 5 cents"},
			"weather_tomorrow": {map[string]string{"city": "Oslo"}, "sun in Oslo"},
		} {
			got, err := client.Call[string](t.Context(), c, tool, call.in)
			require.NoError(t, err)
			require.Equal(t, call.want, got)
		}
		require.NoError(t, c.Close())
	}
}

func TestGatewayWorksWithoutTheRemoteServer(t *testing.T) {
	srv, err := newGateway(load(t), newWeather(t), "wrong")
	require.NoError(t, err)
	defer srv.Close()
	c, err := client.Dial(t.Context(), srv)
	require.NoError(t, err)
	defer c.Close()
	got, err := client.Call[string](t.Context(), c, "hours", nil)
	require.NoError(t, err)
	require.Equal(t, "Monday to Friday, 9 to 17", got)
	_, err = c.CallTool(t.Context(), "weather_tomorrow", nil)
	require.ErrorContains(t, err, `unknown tool "weather_tomorrow"`)
}

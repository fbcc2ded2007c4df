package config_test

import (
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/config"
	"github.com/mcpkit/mcpkit-go/transport/echomcp"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

// mount mounts a server in an echo app, with the path, origins and limits of the file.
func mount(app *echo.Echo, c *config.Config, service any) (close func(), err error) {
	path, opts, err := c.Mounted()
	if err != nil {
		return nil, err
	}
	srv, err := c.New(service)
	if err != nil {
		return nil, err
	}
	return echomcp.Mount(app, path, srv, echomcp.Streamable(opts)).Close, nil
}

func TestMountedServersHavePathOriginsAndLimitsOfTheFile(t *testing.T) {
	c := parsed(t, `
transport:
  http: {addr: "127.0.0.1:0", path: /v1, origins: ["https://app.example.com"], maxBody: 1KiB}
`)
	app := echo.New()
	closeServer, err := mount(app, c, &clock{})
	require.NoError(t, err)
	server := httptest.NewServer(app)
	defer server.Close()
	defer closeServer()

	require.NoError(t, call(t, server.URL+"/v1"))
	for _, test := range []struct {
		origin, body string
		want         int
	}{
		{"https://app.example.com", initialize, http.StatusOK},
		{"https://other.example.com", initialize, http.StatusForbidden},
		{"https://app.example.com", initialize + strings.Repeat(" ", 1024), http.StatusRequestEntityTooLarge},
	} {
		status, _, _ := send(t, "POST", server.URL+"/v1", test.body, "Origin", test.origin)
		require.Equal(t, test.want, status)
	}
}

func TestMountedServersRefuseWhatTheAppDecides(t *testing.T) {
	c := parsed(t, `
transport:
  stdio: {enabled: true}
  unix: {path: notes.sock}
  http: {addr: "127.0.0.1:0", sse: /sse, websocket: /ws, tls: {certificate: a, key: b}, health: true, drain: 5s,
    shutdownTimeout: 20s}
auth: {issuer: "https://id.example", resource: "https://mcp.example/mcp"}
`)
	_, _, err := c.Mounted()
	require.EqualError(t, err, `config: transport.stdio: it does not apply to a mounted server; serve it with Config.Transports
config: transport.unix: it does not apply to a mounted server; serve it with Config.Transports
config: transport.http.sse: it does not apply to a mounted server; use echomcp.Wrap
config: transport.http.websocket: it does not apply to a mounted server; use echomcp.Wrap
config: transport.http.tls: it does not apply to a mounted server; give the certificate to the app
config: transport.http.health: it does not apply to a mounted server; add healthz.Live and healthz.New to the app
config: transport.http.drain: it does not apply to a mounted server; wait before echomcp.Shutdown
config: transport.http.shutdownTimeout: it does not apply to a mounted server; give echomcp.Shutdown a deadline
config: auth: it does not apply to a mounted server; the app authenticates callers: use its middleware, or a resource.Guard`)

	_, _, err = parsed(t, "").Mounted()
	require.EqualError(t, err, "config: transport.http.addr: it is missing, and an app is reached over HTTP")
}

// Each key of transport.http changes the path or the options of a mounted server, or is refused.
// Only addr does neither: it is for the app.
func TestEachKeyOfHTTPReachesMountedServersOrIsRefused(t *testing.T) {
	values := map[string]string{
		"path": "/v1", "sse": "/sse", "websocket": "/ws", "tls": "{certificate: a, key: b}",
		"origins": `["https://a.example"]`, "hosts": "[a.example]", "trustedProxies": "[10.0.0.0/8]",
	}
	mounted := func(key string) (string, *streamable.Options, error) {
		field := ""
		if key != "" {
			field = ", " + key + ": " + values[key]
		}
		return parsed(t, `transport: {http: {addr: ":0"`+field+`}}`).Mounted()
	}
	path, opts, err := mounted("")
	require.NoError(t, err)
	fields := reflect.TypeFor[config.HTTP]()
	for i := range fields.NumField() {
		f := fields.Field(i)
		key := f.Tag.Get("yaml")
		switch f.Type {
		case reflect.TypeFor[bool]():
			values[key] = "true"
		case reflect.TypeFor[int](), reflect.TypeFor[config.Size]():
			values[key] = "7"
		case reflect.TypeFor[time.Duration](), reflect.TypeFor[*time.Duration]():
			values[key] = "7s"
		}
		if key == "addr" {
			continue
		}
		require.NotEmpty(t, values[key], "write a value for %s", key)
		gotPath, gotOpts, err := mounted(key)
		if err != nil {
			require.ErrorContains(t, err, "config: transport.http."+key+": it does not apply to a mounted server; ")
			continue
		}
		require.False(t, path == gotPath && reflect.DeepEqual(opts, gotOpts), "%s has no effect on a mounted server, and is not refused", key)
	}
}

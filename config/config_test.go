package config_test

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/config"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/mcptest"
	"github.com/mcpkit/mcpkit-go/middleware"
	"github.com/mcpkit/mcpkit-go/oauth"
)

func TestMain(m *testing.M) {
	if text := os.Getenv("CONFIG_TEST_SERVE"); text != "" {
		serveStdio(text)
	}
	testkit.VerifyTestMain(m)
}

var none = config.Environ(nil)

// write creates a file in its own folder.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// everything sets each key.
//
//go:embed testdata/everything.yaml
var everything string

var keys = config.Environ([]string{"STATE=" + strings.Repeat("s", 32), "OLD=" + strings.Repeat("old", 11)})

// loginKeys set each key of auth.login.
var loginKeys = []string{
	"X_SERVER_STATE_KEYS=env:STATE", "X_TRANSPORT_HTTP_ADDR=:0", "X_AUTH_ISSUER=https://id.example", "X_AUTH_RESOURCE=https://r.example",
	"X_AUTH_LOGIN_PROVIDER=keycloak", "X_AUTH_LOGIN_AT=https://login.example/realms/acme", "X_AUTH_LOGIN_CLIENT_ID=notes",
	"X_AUTH_LOGIN_CLIENT_SECRET=env:STATE", "X_AUTH_LOGIN_DOMAINS=a.example", "X_AUTH_LOGIN_GROUPS=/staff", "X_AUTH_LOGIN_ANYONE=true",
	`X_AUTH_LOGIN_SCOPES={"notes:read":null,"notes:write":["/editors"]}`,
}

func TestYAMLJSONAndEnvironmentAreEquivalent(t *testing.T) {
	fromYAML, err := config.Parse("all.yaml", []byte(everything), keys)
	require.NoError(t, err)
	const checked, asked = "  jwksURI: https://id.example/keys\n  algorithms: [ES256]\n  allowUntyped: true\n",
		"  introspection: {endpoint: \"https://id.example/about\", clientID: notes, clientSecret: env:STATE, cacheTime: 0s}\n"
	asking, err := config.Parse("all.yaml", []byte(strings.Replace(everything, checked, asked, 1)), keys)
	require.NoError(t, err)
	login, err := config.Parse("", nil, config.Prefix("X_"), config.Environ(append(loginKeys, "STATE="+strings.Repeat("s", 32))))
	require.NoError(t, err)
	requireAllSet(t, "", reflect.ValueOf(*fromYAML), reflect.ValueOf(*asking), reflect.ValueOf(*login))
	require.Equal(t, map[string][]string{"notes:read": nil, "notes:write": {"/editors"}}, login.Auth.Login.Scopes)
	inFile, err := config.Parse("login.yaml", []byte("transport: {http: {addr: :1}}\nserver: {stateKeys: [env:STATE]}\n"+
		"auth: {issuer: 'https://a.example', resource: 'https://a.example/mcp', login: {provider: google, clientID: a, clientSecret: env:STATE, "+
		"anyone: true, scopes: {notes:read: , notes:write: [/editors]}}}"), keys)
	require.NoError(t, err)
	require.Equal(t, login.Auth.Login.Scopes, inFile.Auth.Login.Scopes)
	require.Equal(t, "1.10", fromYAML.Server.Version, "a version is a string, whatever YAML takes it for")
	require.Equal(t, "Search first.\nThen read.\n", fromYAML.Server.Instructions)
	require.EqualValues(t, 64<<10, fromYAML.Transport.HTTP.MaxBody)
	require.Equal(t, slog.LevelWarn, *fromYAML.Log.Level)
	require.Equal(t, strings.Repeat("old", 11), string(fromYAML.Server.StateKeys[1].Bytes()))

	var values map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(everything), &values))
	asJSON, err := json.MarshalIndent(values, "", "\t")
	require.NoError(t, err)
	asJSON = bytes.Replace(asJSON, []byte(`"version": 1.1`), []byte(`"version": "1.10"`), 1)
	fromJSON, err := config.Parse("all.json", asJSON, keys)
	require.NoError(t, err)
	env := []string{"STATE=" + strings.Repeat("s", 32), "OLD=" + strings.Repeat("old", 11), "X_SERVER_VERSION=1.10", "X_LOG_FORMAT=", "PATH=/bin"}
	for path, value := range leaves("", values) {
		if path != "server.version" && path != "log.format" {
			env = append(env, config.VariableOf("X_", path)+"="+value)
		}
	}
	fromEnv, err := config.Load("", config.Prefix("X_"), config.Environ(env))
	require.NoError(t, err)
	config.WithoutTexts(fromYAML, fromJSON, fromEnv)
	require.Equal(t, fromYAML, fromJSON)
	fromYAML.Log.Format = "" // an empty variable is not set
	require.Equal(t, fromYAML, fromEnv)
}

// leaves returns the values by their paths, as texts.
func leaves(at string, value any) map[string]string {
	all := map[string]string{}
	switch v := value.(type) {
	case map[string]any:
		for key, below := range v {
			maps.Copy(all, leaves(strings.TrimPrefix(at+"."+key, "."), below))
		}
	case []any:
		var items []string
		for _, item := range v {
			items = append(items, fmt.Sprint(item))
		}
		all[at] = strings.Join(items, ",")
	default:
		all[at] = fmt.Sprint(v)
	}
	return all
}

// requireAllSet requires that each field is set in one of the configurations.
func requireAllSet(t *testing.T, at string, all ...reflect.Value) {
	t.Helper()
	for i := range all[0].NumField() {
		if !all[0].Type().Field(i).IsExported() {
			continue
		}
		var set []reflect.Value
		for _, one := range all {
			if f := one.Field(i); !f.IsZero() {
				set = append(set, reflect.Indirect(f))
			}
		}
		path := at + "." + all[0].Type().Field(i).Name
		require.NotEmpty(t, set, path)
		if set[0].Kind() == reflect.Struct {
			requireAllSet(t, path, set...)
		}
	}
}

func TestEmptyConfigurationIsValid(t *testing.T) {
	for _, text := range []string{"", "# only a comment\n", "{}", "server: {}\n"} {
		c, err := config.Parse("c.yaml", []byte(text), none)
		require.NoError(t, err, text)
		require.Equal(t, new(config.Config), c)
		require.Empty(t, c.Options())
	}
}

// Command mcpkit reads it, and passes its environment to the server.
func TestTheClientSecretOfTheCommandLineIsNotASetting(t *testing.T) {
	_, err := config.Load("", config.Environ([]string{"MCPKIT_CLIENT_SECRET=hunter2"}))
	require.NoError(t, err)
	_, err = config.Load("", config.Environ([]string{"MCPKIT_CLIENT_ID=notes"}))
	require.ErrorContains(t, err, "MCPKIT_CLIENT_ID: unknown variable")
}

// TestErrorsNameTheKey compares the whole text of errors.
func TestErrorsNameTheKey(t *testing.T) {
	const (
		auth    = "transport: {http: {addr: \":0\"}}\nauth:\n  issuer: https://i.example\n  resource: https://r.example\n"
		login   = auth + "  login:\n    clientID: c\n    clientSecret: env:KEY\n"
		address = `want an address such as "127.0.0.1:8080", or ":8080" for all of this machine`
		secret  = "this is a text; want a reference, env:NAME or file:PATH, since a file must not contain secrets"
		short   = "the key has 7 bytes; want at least 32 random bytes"
	)
	t.Setenv("UNSET", "")
	for name, test := range map[string]struct {
		text string
		env  []string
		want []string
	}{
		"several at once": {"server:\n  nmae: x\n  toolTimeout: many\ntransport:\n  http:\n    addr: [1]\nmiddelware: 1\n", nil, []string{
			`c.yaml:2:3: server.nmae: unknown key; did you mean "server.name"?`,
			`c.yaml:3:16: server.toolTimeout: this is not valid; want a duration such as "30s" or "1h30m"`,
			"c.yaml:6:11: transport.http.addr: this is not valid; want a text",
			`c.yaml:7:1: middelware: unknown key; did you mean "middleware"?`}},
		"what is missing": {"transport:\n  http:\n    stateless: true\nmiddleware:\n  rateLimit:\n    burst: 2\n", nil, []string{
			"c.yaml: transport.http.addr: it is missing", "c.yaml: middleware.rateLimit.perSecond: it is missing"}},
		"variables": {"", []string{"MCPKIT_SERVER_STEPUP=true", "MCPKIT_SERVER_STEP_UP=perhaps", "MCPKIT_TRANSPORT_HTTP_MAX_BODY=4MB"}, []string{
			`environment: MCPKIT_SERVER_STEP_UP: strconv.ParseBool: parsing "perhaps": invalid syntax`,
			`environment: MCPKIT_TRANSPORT_HTTP_MAX_BODY: "4MB" is not valid; want a number of bytes such as 4096 or "4MiB"`,
			`environment: MCPKIT_SERVER_STEPUP: unknown variable; did you mean "MCPKIT_SERVER_STEP_UP"?`}},
		"bad and missing": {"transport:\n  http:\n    adr: \":1\"\n    stateless: true\nmiddleware:\n  rateLimit: {burst: many}\n", nil, []string{
			`c.yaml:3:5: transport.http.adr: unknown key; did you mean "transport.http.addr"?`,
			"c.yaml:6:22: middleware.rateLimit.burst: this is not valid; want a whole number",
			"c.yaml: transport.http.addr: it is missing"}},
		"variables of select": {"select: {tols: [a]}", []string{"MCPKIT_READONLY=perhaps", "MCPKIT_EXCLUDE_TOOL=a"}, []string{
			`c.yaml:1:10: select.tols: unknown key; did you mean "select.tools"?`,
			`environment: MCPKIT_READONLY: strconv.ParseBool: parsing "perhaps": invalid syntax`,
			`environment: MCPKIT_EXCLUDE_TOOL: unknown variable; did you mean "MCPKIT_EXCLUDE_TOOLS"?`}},
		"no overrides": {"overrides: none.json", nil, []string{"c.yaml: overrides: open none.json: no such file or directory"}},
		"other overrides": {"overrides: go.yaml", []string{"MCPKIT_OVERRIDES=config_test.go"}, []string{
			"environment: MCPKIT_OVERRIDES: catalog: Overrides: invalid character 'p' looking for beginning of value"}},
		"secrets in variables": {"", []string{"MCPKIT_SERVER_STATE_KEYS=env:LONG,env:SHORT", "LONG=" + strings.Repeat("x", 32), "SHORT=hunter2"},
			[]string{"environment: MCPKIT_SERVER_STATE_KEYS: " + short}},
		"a secret as a variable": {"", []string{"MCPKIT_SERVER_STATE_KEYS=hunter2"}, []string{"environment: MCPKIT_SERVER_STATE_KEYS: " + secret}},
		"no address":             {"transport:\n  http: {addr: 8080}\n", nil, []string{"c.yaml: transport.http.addr: " + address}},
		"durations":              {"server:\n  toolTimeout: 30\n", nil, []string{`c.yaml:2:16: server.toolTimeout: this is not valid; want a duration such as "30s" or "1h30m"`}},
		"negative durations":     {"server:\n  toolTimeout: -1s\n", nil, []string{"c.yaml: server.toolTimeout: want at least 0"}},
		"levels":                 {"log:\n  level: loud\n", nil, []string{`c.yaml:2:10: log.level: slog: level string "loud": write debug, info, warn or error`}},
		"words":                  {"log:\n  format: xml\n", nil, []string{"c.yaml: log.format: want one of text, json"}},
		"texts for numbers":      {"middleware:\n  concurrency: \"7\"\n", nil, []string{"c.yaml:2:16: middleware.concurrency: this is not valid; want a whole number"}},
		"texts for bools":        {"server:\n  stepUp: perhaps\n", nil, []string{"c.yaml:2:11: server.stepUp: this is not valid; want true or false"}},
		"too little":             {"middleware:\n  rateLimit: {perSecond: -1, burst: 1}\n", nil, []string{"c.yaml: middleware.rateLimit.perSecond: want more than 0"}},
		"a value for a map":      {"server: x\n", nil, []string{"c.yaml:1:9: server: this is not valid; want keys with values"}},
		"a value for a list":     {"server:\n  stateKeys: hunter2\n", nil, []string{"c.yaml:2:14: server.stateKeys: this is not valid; want a list"}},
		"items":                  {"server:\n  trustLocal: [a, [b]]\n", nil, []string{"c.yaml:2:19: server.trustLocal[1]: this is not valid; want a text"}},
		"half a name":            {"server: {name: x}\n", nil, []string{"c.yaml: server.version: it is missing; set both name and version, or neither"}},
		"tokens without HTTP":    {"auth: {issuer: \"https://i.example\", resource: \"https://r.example\"}\n", nil, []string{"c.yaml: auth: auth needs HTTP; set transport.http.addr"}},
		"an issuer without URL":  {"transport: {http: {addr: \":0\"}}\nauth: {issuer: i.example, resource: \"https://r.example\"}\n", nil, []string{`c.yaml: auth.issuer: want a URL such as "https://login.example.com"`}},
		"a secret in the file":   {"server:\n  stateKeys: [hunter2hunter2]\n", nil, []string{"c.yaml:2:15: server.stateKeys[0]: " + secret}},
		"a secret not there":     {"server:\n  stateKeys: [env:UNSET]\n", nil, []string{"c.yaml: server.stateKeys[0]: env:UNSET, which should contain the secret, is empty or not set"}},
		"a short secret":         {"server:\n  stateKeys: [env:SHORT]\n", []string{"SHORT=hunter2"}, []string{"c.yaml: server.stateKeys[0]: " + short}},
		"a path twice":           {"transport:\n  http: {addr: \":0\", path: /x, sse: /x}\n", nil, []string{"c.yaml: transport.http.sse: another endpoint has this path"}},
		"the usual path":         {"transport:\n  http: {addr: \":0\", websocket: /mcp}\n", nil, []string{"c.yaml: transport.http.websocket: another endpoint has this path"}},
		"a path of health":       {"transport:\n  http: {addr: \":0\", websocket: /readyz}\n", nil, []string{"c.yaml: transport.http.websocket: want a path other than /readyz"}},
		"paths of no request": {"transport:\n  http: {addr: \":0\", path: mcp, sse: /a/../sse, websocket: \"/{all}\"}\n", nil, []string{
			`c.yaml: transport.http.path: want a path such as "/v1"`, `c.yaml: transport.http.sse: want a path such as "/v1"`, `c.yaml: transport.http.websocket: want a path such as "/v1"`}},
		"origins and networks": {"transport:\n  http: {addr: \":0\", origins: [\"https://a.example/\", a.example], trustedProxies: [10.0.0.1]}\n", nil, []string{
			`c.yaml:2:83: transport.http.trustedProxies[0]: netip.ParsePrefix("10.0.0.1"): no '/'`,
			`c.yaml: transport.http.origins[1]: want an origin such as "https://app.example.com"`}},
		"half of TLS":       {"transport:\n  http:\n    addr: :0\n    tls: {certificate: c.pem}\n", nil, []string{"c.yaml: transport.http.tls.key: it is missing"}},
		"framing":           {"transport:\n  unix: {path: s, framing: frames}\n", nil, []string{"c.yaml: transport.unix.framing: want one of lines, headers, any"}},
		"two ways to check": {auth + "  allowUntyped: true\n  introspection: {endpoint: \"https://i.example/i\"}\n", nil, []string{"c.yaml: auth.introspection: remove it, or jwksURI, algorithms and allowUntyped"}},
		"half a client":     {auth + "  introspection: {endpoint: \"https://i.example/i\", clientID: c}\n", nil, []string{"c.yaml: auth.introspection: set both clientID and clientSecret"}},
		"a login nowhere": {login + "    provider: oidc\n", []string{longKey}, []string{
			"c.yaml: auth.login.at: it is missing; want the tenant or the URL of the provider",
			"c.yaml: auth.login: it needs server.stateKeys, the same for all replicas"}},
		"nobody's login": {"server: {stateKeys: [\"env:KEY\"]}\n" + login + "    provider: google\n", []string{longKey}, []string{
			"c.yaml: auth.login: set domains, groups or anyone"}},
		"another's tokens": {"server: {stateKeys: [\"env:KEY\"]}\n" + login + "    provider: google\n    at: x\n    anyone: true\n  audience: [a]\n", []string{longKey}, []string{
			"c.yaml: auth.login.at: remove it: the provider has one address",
			"c.yaml: auth.login: the tokens are the server's own; remove audience, jwksURI, algorithms, allowUntyped, introspection, scopesSupported and privateNetworks"}},
		"a key twice":   {"server: {instructions: a, instructions: b}\n", nil, []string{`c.yaml:1:27: server.instructions: mapping key "instructions" already defined at line 1`}},
		"two documents": {"server: {}\n---\nserver: {}\n", nil, []string{"c.yaml: it has several documents; one is read"}},
		"no YAML":       {"server: [\n", nil, []string{"c.yaml:2:1: it is not valid YAML: did not find expected node content"}},
		"too deep":      {strings.Repeat("[", 200_000), nil, []string{"c.yaml:1:10001: it is not valid YAML: exceeded max depth of 10000"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := config.Parse("c.yaml", []byte(test.text), config.Environ(test.env))
			require.EqualError(t, err, "config: "+strings.Join(test.want, "\nconfig: "))
			require.NotContains(t, err.Error(), "hunter2")
		})
	}
}

func TestTheEnvironmentOverridesTheFileAndTheFileOverridesCode(t *testing.T) {
	path := write(t, "c.yaml", "server: {name: file, version: 1.0.0}\n")
	name := func(env []string) string {
		c, err := config.Load(path, config.Environ(env))
		require.NoError(t, err)
		srv, err := c.New(nil, mcpkit.Name("code", "1.0.0"), mcpkit.Instructions("of code"))
		require.NoError(t, err)
		require.NoError(t, srv.Add(mcpkit.NewTool("a", func() {})))
		cl, err := client.Dial(t.Context(), srv)
		require.NoError(t, err)
		defer cl.Close()
		require.Equal(t, "of code", cl.Instructions(), "what the file does not set is as code sets it")
		return cl.Server().Name
	}
	require.Equal(t, "file", name(nil))
	require.Equal(t, "env", name([]string{"MCPKIT_SERVER_NAME=env"}))
}

func TestSecretsAreReadFromFilesAndNeverPrinted(t *testing.T) {
	const secret = "0123456789-secret-0123456789-secret"
	path := write(t, "c.yaml", "server:\n  stateKeys: [file:key, env:MCPKIT_OLD_KEY]\n")
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "key"), []byte(secret+"\n"), 0o600))
	c, err := config.Load(path, config.Environ([]string{"MCPKIT_OLD_KEY=" + secret}))
	require.NoError(t, err, "a variable that a secret refers to is known")
	require.Equal(t, secret, string(c.Server.StateKeys[0].Bytes()))
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("c", "key", c.Server.StateKeys[0], "all", c.Server.StateKeys)
	asJSON, err := json.Marshal(c)
	require.NoError(t, err)
	for _, text := range []string{log.String(), string(asJSON), fmt.Sprintf("%v %+v %#v %s", c.Server, c.Server, c.Server.StateKeys, c.Server.StateKeys)} {
		require.NotContains(t, text, secret)
		require.Contains(t, text, "file:key")
	}
}

func TestUnreadableFilesAreReported(t *testing.T) {
	_, err := config.Load(filepath.Join(t.TempDir(), "none.yaml"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

type clock struct {
	_ struct {
		Now mcpkit.Tool `hints:"readonly"`
	}
	calls int
}

func (c *clock) Now() int { c.calls++; return c.calls }

func TestMiddlewareOfTheFileIsApplied(t *testing.T) {
	audit := filepath.Join(t.TempDir(), "audit.jsonl")
	c := parsed(t, `
middleware:
  logging: true
  audit: {file: `+audit+`}
  rateLimit: {perSecond: 0.001, burst: 2}
  concurrency: 1
  cache: 1h
  maxResult: 1MiB
`)
	s := &clock{}
	srv, err := c.New(s)
	require.NoError(t, err)
	ann := mcptest.New(t, srv).As(&oauth.Principal{Subject: "ann"})
	for range 2 {
		ann.Call("now", nil).OK().JSON("1") // from the cache
	}
	ann.Call("now", nil).ErrorContains("too many")
	require.NoError(t, srv.Close())
	records, err := os.ReadFile(audit)
	require.NoError(t, err)
	var last struct{ Outcome middleware.Outcome }
	lines := bytes.Split(bytes.TrimSpace(records), []byte("\n"))
	require.NoError(t, json.Unmarshal(lines[len(lines)-1], &last))
	require.Equal(t, middleware.Limited, last.Outcome, "what is refused is written down, too")
}

func TestTheFileSelectsToolsAndReplacesTheirTexts(t *testing.T) {
	c, err := config.Parse("c.yaml", []byte("select: {readOnly: true, except: [wipe]}\noverrides: testdata/overrides.json\n"), config.Prefix("X_"),
		config.Environ([]string{"X_TOOL_NOW_DESCRIPTION=The count.", "X_TOOL_NOW_TITLE=", "X_TOOL_ERASE_NAME=wipe", "MCPKIT_TOOL_NOW_NAME=later"}))
	require.NoError(t, err)
	srv, err := c.New(&clock{})
	require.NoError(t, err)
	require.NoError(t, srv.Add(mcpkit.NewTool("reset", func() {}), mcpkit.NewTool("erase", func() {}).Hints("readonly")))
	s := mcptest.New(t, srv)
	require.Equal(t, []string{"now"}, s.List())
	for tool, err := range s.Client().Tools(t.Context()) {
		require.NoError(t, err)
		require.Equal(t, []string{"The time", "The count."}, []string{tool.Title, tool.Description})
	}
}

// Services run in a folder of their own, such as /.
func TestTheAuditFileIsBesideTheConfiguration(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(t.TempDir())
	c, err := config.Parse(filepath.Join(dir, "c.yaml"), []byte("middleware:\n  audit: {file: audit.jsonl}\n"), none)
	require.NoError(t, err)
	_, err = c.Middlewares()
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(dir, "audit.jsonl"))
}

func TestUnwritableAuditFileIsReported(t *testing.T) {
	c, err := config.Parse("c.yaml", []byte("middleware:\n  audit: {file: "+filepath.Join(t.TempDir(), "no", "where")+"}\n"), none)
	require.NoError(t, err)
	_, err = c.New(nil)
	require.ErrorContains(t, err, "config: middleware.audit.file: ")
}

// serve serves until stop is called, which waits for the end.
func serve(t *testing.T, c *config.Config) (base string, stop func()) {
	t.Helper()
	return serveService(t, c, &clock{})
}

func serveService(t *testing.T, c *config.Config, service any) (base string, stop func()) {
	t.Helper()
	addrs := make(chan net.Addr, 1)
	config.OnListen(c, func(a net.Addr) { addrs <- a })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	// Ends with ctx.
	go func() { ended <- c.Serve(ctx, service) }()
	select {
	case a := <-addrs:
		return "http://" + a.String(), func() { cancel(); require.NoError(t, <-ended) }
	case err := <-ended:
		cancel()
		require.NoError(t, err)
	case <-time.After(time.Minute):
		t.Error("the server does not serve")
	}
	return "", cancel
}

// send sends a message with header fields, one of which may be Host, and returns the response.
func send(t *testing.T, method, url, message string, fields ...string) (status int, body string, header http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(message))
	require.NoError(t, err)
	r.Close = true
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
		if fields[i] == "Host" {
			r.Host = fields[i+1]
		}
	}
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(text), resp.Header
}

func FuzzParse(f *testing.F) {
	f.Add(everything)
	for _, text := range []string{"", "{}", "a: [b, {c: d}]", "server:\n\tname: x", "? x\n: y", "- - - x", "server: *a", "{\"server\":{\"name\":1e400}}", "\xff", "server: !!binary x", "a: |\n  b\n c: d", "{a: {b: {c: "} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := config.Parse("f.yaml", []byte(text), none)
		if err != nil {
			require.Nil(t, c)
			require.True(t, strings.HasPrefix(err.Error(), "config: f.yaml"), err.Error())
			return
		}
		again, err := config.Parse("f.yaml", []byte(text), none)
		require.NoError(t, err)
		require.Equal(t, c, again)
	})
}

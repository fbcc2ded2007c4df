package config_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/config"
	"github.com/mcpkit/mcpkit-go/internal/leaktest"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/middleware"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

func TestMain(m *testing.M) {
	if text := os.Getenv("CONFIG_TEST_SERVE"); text != "" {
		serveStdio(text)
	}
	leaktest.VerifyTestMain(m)
}

var none = config.Environ(nil)

// write creates a file in its own folder.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

const everything = `# What a file can say.
server:
  name: notes
  version: 1.10
  instructions: |
    Search first.
    Then read.
  pageSize: 7
  listTTL: 1m
  toolTimeout: 0s
  maxResultBytes: 1MiB
  exposeErrors: true
  repair: false
  stepUp: true
  trustLocal: [notes:read, "notes:write"]
  stateKeys:
    - env:STATE
    - base64:env:OLD
log:
  level: warn
  format: json
transport:
  stdio: {enabled: false, maxMessage: 1MiB, maxInFlight: 9, maxInFlightBytes: 2MiB, maxUnsent: 3MiB, writeTimeout: 4s, framing: headers, shutdownTimeout: 1s}
  unix: {path: notes.sock, maxConnections: 3, maxMessage: 1MiB, maxInFlight: 9, maxInFlightBytes: 2MiB, maxUnsent: 3MiB, writeTimeout: 0s, framing: any, shutdownTimeout: 1s}
  http:
    addr: 127.0.0.1:0
    path: /v1
    sse: /sse
    websocket: /ws
    tls: {certificate: cert.pem, key: key.pem}
    origins: ["https://a.example"]
    hosts: []
    stateless: true
    jsonOnly: true
    maxBody: 64KiB
    maxSessions: 5
    trustedProxies: [10.0.0.0/8]
    maxInFlight: 6
    maxInFlightTotal: 7
    maxInFlightBytes: 1MiB
    maxInFlightBytesTotal: 2MiB
    maxSubscriptions: 8
    maxSubscriptionsTotal: 9
    messageTimeout: 0s
    writeTimeout: 5s
    sessionIdle: 0s
    keepAlive: 5s
    retry: 2s
    shutdownTimeout: 3s
    health: true
    drain: 0s
auth:
  issuer: https://id.example
  resource: https://mcp.example/v1
  audience: [notes]
  jwksURI: https://id.example/keys
  algorithms: [ES256]
  allowUntyped: true
  dpop: {required: true, nonceKey: env:STATE}
  name: Notes
  documentation: https://mcp.example/docs
  policy: https://mcp.example/policy
  terms: https://mcp.example/terms
  scopes: [a]
  scopesSupported: [a, b]
  anonymous: true
  privateNetworks: [10.0.0.0/8]
  insecureLoopback: true
middleware:
  logging: {arguments: true, maxArgumentBytes: 100}
  audit: {file: audit.jsonl, begin: true, arguments: true}
  errorCodes: true
  rateLimit: {perSecond: 2.5, burst: 5}
  concurrency: {limit: 4}
  timeout: 10s
  resultLimit: {maxBytes: 32KiB, noTruncation: true}
  cache: {ttl: 1m, entries: 3, maxBytes: 10}
`

var keys = config.Environ([]string{"STATE=" + strings.Repeat("s", 32), "OLD=" + "b2xkb2xkb2xkb2xkb2xkb2xkb2xkb2xkb2xkb2xkb2xk"})

func TestYAMLJSONAndEnvironmentAreEquivalent(t *testing.T) {
	fromYAML, err := config.Parse("all.yaml", []byte(everything), keys)
	require.NoError(t, err)
	const checked, asked = "  jwksURI: https://id.example/keys\n  algorithms: [ES256]\n  allowUntyped: true\n",
		"  introspection: {endpoint: \"https://id.example/about\", clientID: notes, clientSecret: env:STATE, cacheTime: 0s}\n"
	asking, err := config.Parse("all.yaml", []byte(strings.Replace(everything, checked, asked, 1)), keys)
	require.NoError(t, err)
	requireAllSet(t, reflect.ValueOf(*fromYAML), reflect.ValueOf(*asking), "")
	require.Equal(t, "1.10", fromYAML.Server.Version, "a version is a string, whatever YAML takes it for")
	require.Equal(t, "Search first.\nThen read.\n", fromYAML.Server.Instructions)
	require.EqualValues(t, 1<<20, *fromYAML.Server.MaxResultBytes)
	require.Equal(t, slog.LevelWarn, *fromYAML.Log.Level)
	require.Equal(t, strings.Repeat("old", 11), string(fromYAML.Server.StateKeys[1].Bytes()))

	const asJSON = "{\n\t\"server\": {\"name\": \"notes\", \"version\": \"1.10\", \"pageSize\": 7},\n\t\"middleware\": {\n\t\t\"rateLimit\": {\"perSecond\": 2.5, \"burst\": 5}\n\t}\n}\n"
	fromJSON, err := config.Parse("c.json", []byte(asJSON), none)
	require.NoError(t, err)
	require.Equal(t, 7, *fromJSON.Server.PageSize)
	require.Equal(t, config.RateLimit{PerSecond: 2.5, Burst: 5}, *fromJSON.Middleware.RateLimit)

	env := []string{"X_SERVER_NAME=notes", "X_SERVER_VERSION=1.10", "X_SERVER_PAGE_SIZE=7", "X_MIDDLEWARE_RATE_LIMIT_PER_SECOND=2.5",
		"X_MIDDLEWARE_RATE_LIMIT_BURST=5", "X_SERVER_LIST_TTL=", "PATH=/bin"}
	fromEnv, err := config.Load("", config.Prefix("X_"), config.Environ(env))
	require.NoError(t, err)
	require.Equal(t, fromJSON, fromEnv)
}

// requireAllSet requires that each field is set in one of the two files.
func requireAllSet(t *testing.T, a, b reflect.Value, at string) {
	t.Helper()
	for i := range a.NumField() {
		if !a.Type().Field(i).IsExported() {
			continue
		}
		f, other, path := a.Field(i), b.Field(i), at+"."+a.Type().Field(i).Name
		switch f.Kind() {
		case reflect.Pointer, reflect.Slice:
			require.False(t, f.IsNil() && other.IsNil(), path)
			if f.IsNil() {
				f = other
			} else if other.IsNil() {
				other = f
			}
		case reflect.Struct:
		default:
			require.False(t, f.IsZero() && other.IsZero(), path)
		}
		if f, other = reflect.Indirect(f), reflect.Indirect(other); f.Kind() == reflect.Struct {
			requireAllSet(t, f, other, path)
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

// Encoders of other languages write characters beyond U+FFFF as two escapes, which YAML does not have.
func TestAnyJSONIsRead(t *testing.T) {
	for text, want := range map[string]string{
		`\ud83d\ude00 \uD83D\uDE00\/\b`: "😀 😀/\b",
		`\\ud83d\ude00`:                 `\ud83d` + "\ufffd",
		`\\ud83d\\ude00 \u00e9\u007f`:   `\ud83d\ude00 é` + "\x7f",
	} {
		var js string
		require.NoError(t, json.Unmarshal([]byte(`"`+text+`"`), &js))
		require.Equal(t, want, js)
		c, err := config.Parse("c.json", []byte("{\n\t\"server\":{\"instructions\":\""+text+"\"}}"), config.Prefix(""))
		if strings.Contains(want, "\ufffd") {
			require.Error(t, err, "half of a character")
			continue
		}
		require.NoError(t, err, text)
		require.Equal(t, want, c.Server.Instructions)
	}
}

// Command mcpkit reads it, and passes its environment to the server.
func TestTheClientSecretOfTheCommandLineIsNotASetting(t *testing.T) {
	_, err := config.Load("", config.Environ([]string{"MCPKIT_CLIENT_SECRET=hunter2"}))
	require.NoError(t, err)
	_, err = config.Load("", config.Environ([]string{"MCPKIT_CLIENT_ID=notes"}))
	require.ErrorContains(t, err, "MCPKIT_CLIENT_ID: unknown variable")
}

// TestErrorsNameTheirPlace compares the whole text of errors.
func TestErrorsNameTheirPlace(t *testing.T) {
	const auth = "transport: {http: {addr: \":0\"}}\nauth:\n  issuer: https://i.example\n  resource: https://r.example\n"
	t.Setenv("UNSET", "")
	for name, test := range map[string]struct {
		text string
		env  []string
		want string
	}{
		"several at once": {"server:\n  nmae: x\n  pageSize: many\ntransport:\n  http:\n    addr: [1]\nmiddelware: 1\n", nil,
			"config: c.yaml:2:3: server.nmae: unknown key; did you mean \"name\"?\n" +
				"config: c.yaml:3:13: server.pageSize: \"many\" is not valid; want a whole number\n" +
				"config: c.yaml:6:11: transport.http.addr: this is a list; want an address such as \"127.0.0.1:8080\", or \":8080\" for all of this machine\n" +
				"config: c.yaml:7:1: middelware: unknown key; did you mean \"middleware\"?"},
		"keys that are no words": {"? [server]\n: {}\n? {transport: 1}\n: {}\n", nil,
			"config: c.yaml:1:3: \"\": unknown key"},
		"what is missing": {"transport:\n  http:\n    path: /x\nmiddleware:\n  rateLimit:\n    burst: 2\n", nil,
			"config: c.yaml:2:3: transport.http.addr: it is missing; want an address such as \"127.0.0.1:8080\", or \":8080\" for all of this machine\n" +
				"config: c.yaml:5:3: middleware.rateLimit.perSecond: it is missing; want a number"},
		"variables": {"", []string{"MCPKIT_SERVER_PAGESIZE=3", "MCPKIT_SERVER_STEP_UP=yes", "MCPKIT_TRANSPORT_HTTP_MAX_BODY=4MB"},
			"config: environment: MCPKIT_SERVER_STEP_UP: \"yes\" is not valid; want true or false\n" +
				"config: environment: MCPKIT_TRANSPORT_HTTP_MAX_BODY: \"4MB\" is not valid; want a number of bytes such as 4096 or \"4MiB\"\n" +
				"config: environment: MCPKIT_SERVER_PAGESIZE: unknown variable; did you mean \"MCPKIT_SERVER_PAGE_SIZE\"?\n" +
				"config: c.yaml: transport.http.addr: it is missing; want an address such as \"127.0.0.1:8080\", or \":8080\" for all of this machine"},
		"no address": {"transport:\n  http: {addr: 8080}\n", []string{"MCPKIT_TRANSPORT_HTTP_PATH=/x"},
			"config: c.yaml:2:16: transport.http.addr: \"8080\" is not valid; want an address such as \"127.0.0.1:8080\", or \":8080\" for all of this machine"},
		"bad and missing": {"transport:\n  http:\n    adr: \":1\"\nmiddleware:\n  rateLimit: {burst: many}\n", nil,
			"config: c.yaml:3:5: transport.http.adr: unknown key; did you mean \"addr\"?\n" +
				"config: c.yaml:5:22: middleware.rateLimit.burst: \"many\" is not valid; want a whole number\n" +
				"config: c.yaml:2:3: transport.http.addr: it is missing; want an address such as \"127.0.0.1:8080\", or \":8080\" for all of this machine\n" +
				"config: c.yaml:5:3: middleware.rateLimit.perSecond: it is missing; want a number"},
		"values of variables": {"server:\n  stateKeys: [env:LONG]\n", []string{"LONG=" + strings.Repeat("x", 32), "MCPKIT_SERVER_STATE_KEYS=env:LONG,env:SHORT", "SHORT=hunter2"},
			"config: environment: MCPKIT_SERVER_STATE_KEYS: the key has 7 bytes; want at least 32 random bytes"},
		"durations":              {"server:\n  toolTimeout: 30\n", nil, `config: c.yaml:2:16: server.toolTimeout: "30" is not valid; want a duration such as "30s" or "1h30m"`},
		"negative durations":     {"server:\n  toolTimeout: -1s\n", nil, `config: c.yaml:2:16: server.toolTimeout: "-1s" is not valid; want a duration such as "30s" or "1h30m"`},
		"levels":                 {"log:\n  level: loud\n", nil, `config: c.yaml:2:10: log.level: "loud" is not valid; want one of debug, info, warn, error`},
		"words":                  {"log:\n  format: xml\n", nil, `config: c.yaml:2:11: log.format: "xml" is not valid; want one of text, json`},
		"texts for numbers":      {"server:\n  pageSize: \"7\"\n", nil, `config: c.yaml:2:13: server.pageSize: "7" is not valid; want a whole number`},
		"texts for bools":        {"server:\n  stepUp: yes\n", nil, `config: c.yaml:2:11: server.stepUp: "yes" is not valid; want true or false`},
		"no number":              {"middleware:\n  rateLimit: {perSecond: .inf, burst: 1}\n", nil, `config: c.yaml:2:26: middleware.rateLimit.perSecond: ".inf" is not valid; want a number`},
		"too little":             {"server:\n  pageSize: 0\n", nil, `config: c.yaml:2:13: server.pageSize: 0 is too small; want at least 1`},
		"no time":                {"middleware:\n  timeout: 0s\n", nil, `config: c.yaml:2:12: middleware.timeout: it must be more than 0`},
		"nothing":                {"server:\n  name:\n", nil, `config: c.yaml:2:3: server.name: this is empty; want a string`},
		"a value for a map":      {"server: x\n", nil, `config: c.yaml:1:1: server: this is a single value; want a map`},
		"a list for all":         {"- a\n", nil, `config: c.yaml:1:1: this is a list; want a map`},
		"items":                  {"server:\n  trustLocal: [a, [b]]\n", nil, `config: c.yaml:2:19: server.trustLocal[1]: this is a list; want a string`},
		"half a name":            {"server: {name: x}\n", nil, `config: c.yaml:1:16: server.name: set both name and version, or neither`},
		"tokens without HTTP":    {"auth: {issuer: \"https://i.example\", resource: \"https://r.example\"}\n", nil, `config: c.yaml:1:1: auth: auth needs HTTP; set transport.http.addr`},
		"a secret in the file":   {"server:\n  stateKeys: [hunter2hunter2]\n", nil, `config: c.yaml:2:15: server.stateKeys[0]: this is a string; want a reference, env:NAME or file:PATH, since a file must not contain secrets`},
		"a secret not there":     {"server:\n  stateKeys: [env:UNSET]\n", nil, `config: c.yaml:2:15: server.stateKeys[0]: the variable UNSET, which should contain the secret, is not set`},
		"a short secret":         {"server:\n  stateKeys: [env:SHORT]\n", []string{"SHORT=hunter2"}, `config: c.yaml:2:15: server.stateKeys[0]: the key has 7 bytes; want at least 32 random bytes`},
		"a path twice":           {"transport:\n  http: {addr: \":0\", path: /x, sse: /x}\n", nil, `config: c.yaml:2:37: transport.http.sse: "/x" is already the path of transport.http.path`},
		"the usual path":         {"transport:\n  http: {addr: \":0\", websocket: /mcp}\n", nil, `config: c.yaml:2:33: transport.http.websocket: "/mcp" is already the path of transport.http.path`},
		"a path of health":       {"transport:\n  http: {addr: \":0\", websocket: /readyz, health: true}\n", nil, `config: c.yaml:2:33: transport.http.websocket: "/readyz" is already the path of transport.http.health`},
		"path of no request":     {"transport:\n  http: {addr: \":0\", path: //mcp, sse: /a/../sse, websocket: /ws/}\n", nil, "config: c.yaml:2:28: transport.http.path: \"//mcp\" is not a path; write for example \"/v1\"\nconfig: c.yaml:2:40: transport.http.sse: \"/a/../sse\" is not a path; write for example \"/v1\""},
		"no path":                {"transport:\n  http: {addr: \":0\", path: mcp, sse: \"/{all}\"}\n", nil, "config: c.yaml:2:28: transport.http.path: \"mcp\" is not a path; write for example \"/v1\"\nconfig: c.yaml:2:38: transport.http.sse: \"/{all}\" is not a path; write for example \"/v1\""},
		"half of TLS":            {"transport:\n  http:\n    addr: :0\n    tls: {certificate: c.pem}\n", nil, `config: c.yaml:4:5: transport.http.tls.key: it is missing; want the path of a file`},
		"framing":                {"transport:\n  unix: {path: s, framing: frames}\n", nil, `config: c.yaml:2:28: transport.unix.framing: "frames" is not valid; want one of lines, headers, any`},
		"two ways to check":      {auth + "  allowUntyped: false\n  introspection: {endpoint: \"https://i.example/i\"}\n", nil, `config: c.yaml:5:17: auth.allowUntyped: it applies only without auth.introspection; remove one of the two`},
		"half a client":          {auth + "  introspection: {endpoint: \"https://i.example/i\", clientID: c}\n", nil, `config: c.yaml:5:3: auth.introspection: set both clientID and clientSecret, or neither`},
		"a short nonce key":      {auth + "  dpop: {nonceKey: env:SHORT}\n", []string{"SHORT=hunter2"}, `config: c.yaml:5:20: auth.dpop.nonceKey: the key has 7 bytes; want at least 32 random bytes`},
		"no base64":              {"server:\n  stateKeys: [base64:env:SHORT]\n", []string{"SHORT=hunter2!"}, `config: c.yaml:2:15: server.stateKeys[0]: the referenced value is not base64`},
		"a key twice":            {"server: {name: a, name: b}\n", nil, `config: c.yaml:1:19: server.name: the key is in line 1 already`},
		"two documents":          {"server: {}\n---\nserver: {}\n", nil, `config: c.yaml:2:1: there are several documents; one is read`},
		"aliases":                {"server: &a {}\n", nil, `config: c.yaml:1:9: server: anchors and aliases are not supported; write the value itself`},
		"an alias of an item":    {"server:\n  trustLocal: [&a x, *a]\n", nil, "config: c.yaml:2:16: server.trustLocal[0]: anchors and aliases are not supported; write the value itself\nconfig: c.yaml:2:22: server.trustLocal[1]: anchors and aliases are not supported; write the value itself"},
		"numbers in other bases": {"server:\n  pageSize: 0x10\n", nil, `config: c.yaml:2:13: server.pageSize: "0x10" is not valid; want a whole number`},
		"tags":                   {"server: !x {}\n", nil, `config: c.yaml:1:9: server: YAML tags are not supported; write only the value`},
		"no YAML":                {"server: [\n", nil, `config: c.yaml:2:1: it is not valid YAML: did not find expected node content`},
		"too deep":               {strings.Repeat("[", 200_000), nil, `config: c.yaml:1:10001: it is not valid YAML: exceeded max depth of 10000`},
		"too large":              {strings.Repeat(" ", 300_000), nil, `config: c.yaml: it has 300000 bytes; the limit is 262144 bytes`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := config.Parse("c.yaml", []byte(test.text), config.Environ(test.env))
			require.EqualError(t, err, test.want)
			require.NotContains(t, err.Error(), "hunter2")
		})
	}
}

func TestTheEnvironmentOverridesTheFileAndTheFileOverridesCode(t *testing.T) {
	path := write(t, "c.yaml", "server: {name: file, version: 1.0.0, pageSize: 2}\n")
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
	_, err = config.Load(write(t, "large.yaml", strings.Repeat(" ", 300_000)))
	require.ErrorContains(t, err, "has 300000 bytes; the limit is 262144 bytes")
}

type clock struct {
	_ struct {
		Now mcpkit.Tool `hints:"readonly"`
	}
	calls int
}

func (c *clock) Now() int { c.calls++; return c.calls }

// asAnn is a server all of whose callers are ann.
type asAnn struct{ *mcpkit.Server }

func (s asAnn) ServeRPC(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) *jsonrpc.Response {
	return s.Server.ServeRPC(oauth.NewContext(ctx, &oauth.Principal{Subject: "ann"}), req, peer)
}

func TestMiddlewareOfTheFileIsApplied(t *testing.T) {
	audit := filepath.Join(t.TempDir(), "audit.jsonl")
	c, err := config.Parse("c.yaml", []byte(`
log: {level: error}
middleware:
  logging: {}
  audit: {file: `+audit+`}
  rateLimit: {perSecond: 0.001, burst: 2}
  concurrency: {limit: 1}
  cache: {ttl: 1h}
  resultLimit: {maxBytes: 1MiB}
`), none)
	require.NoError(t, err)
	s := &clock{}
	srv, err := c.New(s)
	require.NoError(t, err)
	cl, err := client.Dial(t.Context(), client.InMemory(asAnn{srv}), client.Version(protocol.V20260728))
	require.NoError(t, err)
	for range 2 {
		got, err := client.Call[int](t.Context(), cl, "now", nil)
		require.NoError(t, err)
		require.Equal(t, 1, got, "from the cache")
	}
	_, err = client.Call[int](t.Context(), cl, "now", nil)
	require.ErrorContains(t, err, "too many")
	require.NoError(t, cl.Close())
	require.NoError(t, srv.Close())
	records, err := os.ReadFile(audit)
	require.NoError(t, err)
	var last struct{ Outcome middleware.Outcome }
	lines := bytes.Split(bytes.TrimSpace(records), []byte("\n"))
	require.NoError(t, json.Unmarshal(lines[len(lines)-1], &last))
	require.Equal(t, middleware.Limited, last.Outcome, "what is refused is written down, too")
}

func TestHTTPIsServedAsConfigured(t *testing.T) {
	c, err := config.Parse("c.yaml", []byte(`
log: {level: error}
transport:
  http: {addr: "127.0.0.1:0", path: /v1, health: true, maxBody: 1KiB, shutdownTimeout: 5s}
`), none)
	require.NoError(t, err)
	base, stop := serve(t, c)
	defer stop()
	get := func(path string) int {
		resp, err := http.Get(base + path)
		require.NoError(t, err)
		defer resp.Body.Close()
		return resp.StatusCode
	}
	require.Equal(t, http.StatusOK, get("/livez"))
	require.Equal(t, http.StatusOK, get("/readyz"))
	require.Equal(t, http.StatusNotFound, get("/mcp"))
	cl, err := client.Dial(t.Context(), base+"/v1")
	require.NoError(t, err)
	got, err := client.Call[int](t.Context(), cl, "now", nil)
	require.NoError(t, err)
	require.Equal(t, 1, got)
	require.NoError(t, cl.Close())
	resp, err := http.Post(base+"/v1", "application/json", strings.NewReader(strings.Repeat(" ", 2000)))
	require.NoError(t, err)
	resp.Body.Close()
	require.Equal(t, http.StatusRequestEntityTooLarge, resp.StatusCode)
	http.DefaultClient.CloseIdleConnections()
}

func TestTokensAreRequiredAsConfigured(t *testing.T) {
	c, err := config.Parse("c.yaml", []byte(`
log: {level: error}
transport: {http: {addr: "127.0.0.1:0", health: true}}
auth:
  issuer: https://id.example
  resource: https://mcp.example/mcp
  jwksURI: https://id.example/keys
  scopes: [notes:read]
`), none)
	require.NoError(t, err)
	base, stop := serve(t, c)
	defer stop()
	resp, err := http.Post(base+"/mcp", "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	require.NoError(t, err)
	resp.Body.Close()
	require.Equal(t, http.StatusUnauthorized, resp.StatusCode)
	require.Contains(t, resp.Header.Get("WWW-Authenticate"), `resource_metadata="https://mcp.example/.well-known/oauth-protected-resource/mcp"`)
	resp, err = http.Get(base + "/.well-known/oauth-protected-resource/mcp")
	require.NoError(t, err)
	document, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	require.NoError(t, err)
	require.Contains(t, string(document), `"https://id.example"`)
	resp, err = http.Get(base + "/livez")
	require.NoError(t, err)
	resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode, "health checks have no token")
	http.DefaultClient.CloseIdleConnections()
}

func TestMistakesOfAuthAreFoundAtStartup(t *testing.T) {
	for text, want := range map[string]string{
		`{issuer: "http://id.example", resource: "https://mcp.example/mcp"}`:                      "config: auth: ",
		`{issuer: "https://id.example", resource: "https://mcp.example/mcp", algorithms: [none]}`: "config: auth: ",
	} {
		c, err := config.Parse("c.yaml", []byte("transport: {http: {addr: \":0\"}}\nauth: "+text+"\n"), none)
		require.NoError(t, err)
		require.ErrorContains(t, c.Serve(t.Context(), &clock{}), want, text)
	}
}

// Services run in a folder of their own, such as /.
func TestTheAuditFileIsBesideTheConfiguration(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(t.TempDir())
	c, err := config.Parse(filepath.Join(dir, "c.yaml"), []byte("middleware:\n  audit: {file: audit.jsonl}\n"), none)
	require.NoError(t, err)
	_, end, err := c.Middlewares()
	require.NoError(t, err)
	require.NoError(t, end())
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

package config_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/config"
	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/oauth/oauthclient"
	"github.com/mcpkit/mcpkit-go/oauth/oauthtest"
)

// call calls a tool of the server at target.
func call(t *testing.T, target any, opts ...client.DialOption) error {
	t.Helper()
	c, err := client.Dial(t.Context(), target, append(opts, client.Logger(slog.New(slog.DiscardHandler)))...)
	if err != nil {
		return err
	}
	_, err = client.Call[int](t.Context(), c, "now", nil)
	require.NoError(t, c.Close())
	return err
}

func parsed(t *testing.T, text string, env ...string) *config.Config {
	t.Helper()
	c, err := config.Parse("c.yaml", []byte("log: {level: error}\n"+text), config.Environ(env))
	require.NoError(t, err)
	return c
}

func TestEveryHTTPTransportIsServedAtItsPath(t *testing.T) {
	base, stop := serve(t, parsed(t, `transport: {http: {addr: "127.0.0.1:0", path: /v1, sse: /v1/sse, websocket: /v1/ws}}`))
	defer stop()
	ws := strings.Replace(base, "http", "ws", 1)
	require.NoError(t, call(t, base+"/v1"))
	require.NoError(t, call(t, client.HTTPSSE(base+"/v1/sse")))
	require.NoError(t, call(t, ws+"/v1/ws"))
	require.ErrorContains(t, call(t, ws+"/v1"), "406")
}

func TestLimitsApplyToEveryHTTPTransport(t *testing.T) {
	base, stop := serve(t, parsed(t, `transport: {http: {addr: "127.0.0.1:0", sse: /v1/sse, websocket: /v1/ws, maxSessions: 1}}`))
	defer stop()
	for _, target := range []any{strings.Replace(base, "http", "ws", 1) + "/v1/ws", client.HTTPSSE(base + "/v1/sse")} {
		first, err := client.Dial(t.Context(), target, client.Logger(slog.New(slog.DiscardHandler)))
		require.NoError(t, err)
		var second *client.Client
		require.Eventually(t, func() bool { // the first is idle once its last notification is handled
			second, err = client.Dial(t.Context(), target)
			return err == nil
		}, time.Minute, 10*time.Millisecond)
		require.NoError(t, second.Ping(t.Context()))
		_ = first.Close()
		require.NoError(t, second.Close())
	}
}

func TestHealthChecksMayNameAnyHost(t *testing.T) {
	base, stop := serve(t, parsed(t, `transport: {http: {addr: "127.0.0.1:0", hosts: [mcp.example.com], health: true}}`))
	defer stop()
	for path, want := range map[string]int{"/livez": http.StatusOK, "/readyz": http.StatusOK, "/mcp": http.StatusForbidden} {
		status, _, _ := send(t, "GET", base+path, "", "Host", "10.0.0.7:8080")
		require.Equal(t, want, status, path)
	}
}

func TestIdleWebSocketsAreClosed(t *testing.T) {
	base, stop := serve(t, parsed(t, `transport: {http: {addr: "127.0.0.1:0", websocket: /ws, sessionIdle: 1ms}}`))
	defer stop()
	c, err := client.Dial(t.Context(), strings.Replace(base, "http", "ws", 1)+"/ws", client.Logger(slog.New(slog.DiscardHandler)))
	if err == nil {
		defer c.Close()
	}
	require.Eventually(t, func() bool { return err != nil || c.Ping(t.Context()) != nil }, time.Minute, 10*time.Millisecond)
}

// TestFileOfTheGuideWorks applies the file of docs/howto/configure.md.
func TestFileOfTheGuideWorks(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "reachable.yaml"))
	require.NoError(t, err)
	path := write(t, "server.yaml", string(text))
	dir := filepath.Dir(path)
	keyPair(t, 1, filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	c, err := config.Load(path, config.Environ([]string{"NOTES_SECRET=hunter2"}))
	require.NoError(t, err)
	require.EqualValues(t, filepath.Join(dir, "notes.sock"), c.Transport.Unix.Path)
	transports, err := c.Transports()
	require.NoError(t, err)
	require.Len(t, transports, 2)
}

func TestPathsThatAreNotConfiguredAreNotServed(t *testing.T) {
	base, stop := serve(t, parsed(t, `transport: {http: {addr: "127.0.0.1:0", path: /v1, maxBody: 1KiB}}`))
	defer stop()
	for _, path := range []string{"/sse", "/ws", "/mcp", "/livez"} {
		status, _, _ := send(t, "GET", base+path, "")
		require.Equal(t, http.StatusNotFound, status)
	}
	status, _, _ := send(t, "POST", base+"/v1", strings.Repeat(" ", 2000))
	require.Equal(t, http.StatusRequestEntityTooLarge, status)
}

func TestSocketsAreServedAsConfigured(t *testing.T) {
	dir, err := os.MkdirTemp("", "mcp") // that of the test may be longer than the path of a socket can be
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	for framing, opts := range map[string][]client.DialOption{"lines": nil, "headers": {client.ContentLength()}, "any": {client.ContentLength()}} {
		_, stop := serve(t, parsed(t, "transport: {unix: {path: "+filepath.Join(dir, "clock.sock")+", framing: "+framing+"}}"))
		require.NoError(t, call(t, "unix:"+filepath.Join(dir, "clock.sock"), opts...), framing)
		stop()
	}
}

func TestUnixSocketsArePrivateToTheirUser(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	_, stop := serve(t, parsed(t, "transport: {unix: {path: "+path+"}}"))
	info, err := os.Lstat(path)
	require.NoError(t, err)
	require.Equal(t, os.ModeSocket|0o600, info.Mode())
	stop()
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestOnlySocketsWithoutAServerAreReplaced(t *testing.T) {
	dir := t.TempDir()
	old, file := filepath.Join(dir, "old"), filepath.Join(dir, "file")
	l, err := net.Listen("unix", old)
	require.NoError(t, err)
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	require.NoError(t, l.Close())
	_, stop := serve(t, parsed(t, "transport: {unix: {path: "+old+"}}"))
	require.NoError(t, call(t, "unix:"+old))
	require.EqualError(t, parsed(t, "transport: {unix: {path: "+old+"}}").Serve(t.Context(), &clock{}),
		`unix: a server already listens on "`+old+`"`)
	require.NoError(t, call(t, "unix:"+old))
	stop()

	require.NoError(t, os.WriteFile(file, []byte("precious"), 0o600))
	require.EqualError(t, parsed(t, "transport: {unix: {path: "+file+"}}").Serve(t.Context(), &clock{}),
		`unix: "`+file+`" exists and is not a socket`)
	require.FileExists(t, file)
	require.ErrorIs(t, parsed(t, "transport: {unix: {path: "+file+"/none/s}}").Serve(t.Context(), &clock{}), syscall.ENOTDIR)
}

// keyPair writes a certificate for 127.0.0.1 with a serial number, and its key; "" leaves one out.
func keyPair(t *testing.T, serial int64, certPath, keyPath string) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	for path, block := range map[string]*pem.Block{certPath: {Type: "CERTIFICATE", Bytes: der}, keyPath: {Type: "PRIVATE KEY", Bytes: secret}} {
		if path == "" {
			continue
		}
		require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(block), 0o600))
		// The file system may have a coarse clock.
		require.NoError(t, os.Chtimes(path, time.Time{}, time.Unix(1_700_000_000+serial, 0)))
	}
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return cert
}

func TestRenewedCertificatesAreUsed(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	text := "transport:\n  http: {addr: \"127.0.0.1:0\", sse: /sse, websocket: /ws, tls: {certificate: cert.pem, key: key.pem}}\n"
	load := func() *config.Config {
		c, err := config.Parse(filepath.Join(dir, "c.yaml"), []byte(text), none)
		require.NoError(t, err)
		return c
	}
	require.EqualError(t, load().Serve(t.Context(), &clock{}), "config: transport.http.tls: open "+cert+": no such file or directory")

	known := x509.NewCertPool()
	known.AddCert(keyPair(t, 1, cert, key))
	var log testkit.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)
	base, stop := serve(t, load())
	defer stop()
	addr := strings.TrimPrefix(base, "http://")
	web := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: known}, ForceAttemptHTTP2: true}}
	defer web.CloseIdleConnections()
	for _, target := range []client.Target{client.URL("https://" + addr + "/mcp"), client.HTTPSSE("https://" + addr + "/sse"), client.URL("wss://" + addr + "/ws")} {
		require.NoError(t, call(t, target, client.HTTPClient(web)))
	}

	serial := func() int64 {
		conn, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: known})
		require.NoError(t, err)
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	require.EqualValues(t, 1, serial())
	keyPair(t, 2, cert, "") // of which the key is not written yet
	require.EqualValues(t, 1, serial())
	require.EqualValues(t, 1, serial())
	known.AddCert(keyPair(t, 3, cert, key))
	require.EqualValues(t, 3, serial())
	require.NoError(t, os.Remove(key))
	require.EqualValues(t, 3, serial())
	require.EqualValues(t, 3, serial())
	require.Equal(t, 2, strings.Count(log.String(), "config: the certificate cannot be read; the previous one stays in use"), log.String())
	known.AddCert(keyPair(t, 4, cert, key))
	require.EqualValues(t, 4, serial())

	_, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: known, MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10})
	require.Error(t, err)
}

func TestTokensAreIntrospectedAsConfigured(t *testing.T) {
	const resource = "https://mcp.example"
	as := oauthtest.New(t, &oauthtest.Options{Opaque: true, Clients: []oauthtest.Client{{ID: "clock", Secret: "hunter2hunter2"}}})
	base, stop := serve(t, parsed(t, fmt.Sprintf(`
transport: {http: {addr: "127.0.0.1:0", sse: /sse, websocket: /ws, health: true}}
auth:
  issuer: %s
  resource: %s
  insecureLoopback: true
  name: A clock
  introspection: {endpoint: %q, clientID: clock, clientSecret: env:SECRET, cacheTime: 0s}
`, as.Issuer, resource, as.Endpoint("introspection")), "SECRET=hunter2hunter2"))
	defer stop()
	targets := []client.Target{client.URL(base + "/mcp"), client.HTTPSSE(base + "/sse"), client.URL(strings.Replace(base, "http", "ws", 1) + "/ws")}
	token := as.Token(oauthtest.Token{Audience: []string{resource}})
	other := as.Token(oauthtest.Token{Audience: []string{"https://other.example"}})
	for _, target := range targets {
		require.ErrorContains(t, call(t, target), "401")
		require.ErrorContains(t, call(t, target, client.Header("Authorization", "Bearer "+other)), "401")
		require.NoError(t, call(t, target, client.Header("Authorization", "Bearer "+token)))
	}
	require.True(t, as.Revoke(token))
	for _, target := range targets {
		require.ErrorContains(t, call(t, target, client.Header("Authorization", "Bearer "+token)), "401", "no answer is remembered")
	}
	_, card, _ := send(t, "GET", base+"/mcp/server-card", "") // needs no token
	require.Contains(t, card, "no server card: the name ")
	_, document, _ := send(t, "GET", base+"/.well-known/oauth-protected-resource", "")
	require.Contains(t, document, `"A clock"`)
	require.Contains(t, document, as.Issuer)
	status, _, _ := send(t, "GET", base+"/livez", "")
	require.Equal(t, http.StatusOK, status, "health checks have no token")
}

func TestDPoPProofsAreRequiredAsConfigured(t *testing.T) {
	const resource = "https://mcp.example/mcp"
	as := oauthtest.New(t, nil)
	prover, err := oauthclient.NewProver(nil)
	require.NoError(t, err)
	free, bound := oauthtest.Token{Audience: []string{resource}}, oauthtest.Token{Audience: []string{resource}, Thumbprint: prover.Thumbprint()}
	for name, test := range map[string]struct {
		dpop          string
		bearer, proof int // the status of a free token, and of a bound one with a proof
	}{
		"not set":  {"", 200, 401},
		"accepted": {"dpop: accept", 200, 200},
		"required": {"dpop: require", 401, 200},
	} {
		t.Run(name, func(t *testing.T) {
			base, stop := serve(t, parsed(t, fmt.Sprintf(`
transport: {http: {addr: "127.0.0.1:0"}}
auth:
  issuer: %s
  resource: %s
  insecureLoopback: true
  %s
`, as.Issuer, resource, test.dpop)))
			defer stop()
			call := func(scheme string, token oauthtest.Token) int {
				text := as.Token(token)
				fields := []string{"Authorization", scheme + " " + text}
				if scheme == "DPoP" {
					proof, err := prover.Proof(http.MethodPost, resource, text, "")
					require.NoError(t, err)
					fields = append(fields, "DPoP", proof)
				}
				status, _, _ := send(t, "POST", base+"/mcp", initialize, fields...)
				return status
			}
			require.Equal(t, test.bearer, call("Bearer", free))
			require.Equal(t, http.StatusUnauthorized, call("Bearer", bound), "a bound token without its proof")
			require.Equal(t, test.proof, call("DPoP", bound))
		})
	}

	for text, want := range map[string]string{
		`issuer: "http://id.example"`:                                                                                "config: auth: resource: the metadata of the issuer cannot be looked up",
		`issuer: "https://id.example", algorithms: [none]`:                                                           "config: auth: resource: algorithms ",
		`issuer: "https://id.example", introspection: {endpoint: "http://x.example"}`:                                "config: auth: resource: Introspection.Endpoint: ",
		`issuer: "https://a.example", login: {provider: google, clientID: a, clientSecret: "env:KEY", anyone: true}`: `config: auth.login: the program has no login: import _ "github.com/mcpkit/mcpkit-go/oauth/broker"`,
	} {
		c := parsed(t, "server: {stateKeys: [\"env:KEY\"]}\ntransport: {http: {addr: \":0\"}}\nauth: {resource: \""+resource+"\", "+text+"}\n", longKey)
		require.ErrorContains(t, c.Serve(context.Background(), &clock{}), want)
	}
}

// serveStdio serves standard input and output for TestStdioHasLimits.
func serveStdio(text string) {
	c, err := config.Parse("test.yaml", []byte(text))
	if err == nil {
		err = c.Serve(context.Background(), &clock{})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func TestStdioHasLimits(t *testing.T) {
	for _, test := range []struct{ name, config, want string }{
		{"a small limit", "transport: {stdio: {maxMessage: 1KiB}}", "request is larger than 1024 bytes"},
		{"the defaults", "transport: {stdio: {enabled: true}}", `unknown tool \"missing\"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), "CONFIG_TEST_SERVE="+test.config)
			cmd.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"missing","arguments":{"pad":"` + strings.Repeat("x", 2000) + `"},"_meta":{` +
				`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}` + "\n")
			out, err := cmd.Output()
			require.NoError(t, err)
			require.Contains(t, string(out), test.want)
		})
	}
}

package docsnippets

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
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

type till struct{ replica string }

type amount struct {
	Cents int `json:"cents"`
}

// Pay asks the user how much, and says which replica asked.
func (s *till) Pay(ctx context.Context) (string, error) {
	a, err := mcpkit.Elicit[amount](ctx, "How much?")
	return fmt.Sprint(s.replica, " ", a.Cents), err
}

// A payer answers the question.
type payer struct{}

// Elicit answers the question.
func (payer) Elicit(context.Context, *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	return &protocol.ElicitResult{Action: "accept", Content: []byte(`{"cents":1999}`)}, nil
}

// TestFleetBehindProxies runs three replicas behind nginx and Caddy with the configurations of the
// guide. Each request of a client may reach another replica, and so may each answer of its user.
func TestFleetBehindProxies(t *testing.T) {
	for name, start := range map[string]func(t *testing.T, file string, addrs []string) (url string, authority *x509.CertPool){"fleet-nginx.conf": startNginx, "fleet-Caddyfile": startCaddy} {
		t.Run(name, func(t *testing.T) {
			engine := fleet.NewMemory(fleet.MemoryOptions{})
			defer engine.Close()
			var addrs []string
			for i := range 3 {
				srv := mcpkit.MustNew(&till{fmt.Sprint("r", i)}, mcpkit.StateKeys([]byte(strings.Repeat("k", 32))), mcpkit.Fleet(engine.Open()), mcpkit.Logger(slog.New(slog.DiscardHandler)))
				require.NoError(t, srv.Start(t.Context()))
				h := streamable.NewHandler(srv, &streamable.Options{AllowedHosts: []string{"orders.example.com"}})
				mux := http.NewServeMux()
				mux.Handle("/mcp", h)
				mux.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
				web := httptest.NewServer(mux)
				t.Cleanup(func() {
					h.Close()
					web.Close()
					require.NoError(t, srv.Close())
				})
				addrs = append(addrs, web.Listener.Addr().String())
			}
			url, authority := start(t, name, addrs)
			transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authority, ServerName: "orders.example.com"}}
			defer transport.CloseIdleConnections()
			for _, v := range []protocol.Version{protocol.V20250618, protocol.V20251125, protocol.V20260728} {
				c, err := client.Dial(t.Context(), url, client.Version(v), client.HTTPClient(&http.Client{Transport: named{transport}}), client.Handlers(payer{}))
				require.NoError(t, err, v)
				seen := map[string]bool{}
				for range 9 {
					text, err := client.Call[string](t.Context(), c, "pay", nil)
					require.NoError(t, err, v)
					replica, cents, _ := strings.Cut(text, " ")
					require.Equal(t, "1999", cents)
					seen[replica] = true
				}
				require.Greater(t, len(seen), 1, "the proxy uses several replicas")
				require.NoError(t, c.Close())
			}
		})
	}
}

// named sends requests with the name of the site.
type named struct{ http.RoundTripper }

func (n named) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Host = "orders.example.com"
	return n.RoundTripper.RoundTrip(r)
}

// freePort returns an address where nobody listens.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}

// site returns a configuration for this test: with its replicas and its certificate.
func site(t *testing.T, file, folder string, addrs []string) (text string) {
	t.Helper()
	text = strings.ReplaceAll(deployFile(t, file), "/etc/ssl", folder)
	for i, addr := range addrs {
		old := fmt.Sprintf("10.0.0.1%d:8080", i+1)
		if len(addrs) == 1 {
			old = "127.0.0.1:8080"
		}
		require.Contains(t, text, old)
		text = strings.ReplaceAll(text, old, addr)
	}
	return text
}

func startNginx(t *testing.T, file string, addrs []string) (string, *x509.CertPool) {
	nginx, err := exec.LookPath("nginx")
	if err != nil {
		t.Skip("nginx is not installed")
	}
	folder := t.TempDir()
	authority := certificate(t, folder)
	addr := freePort(t)
	text := strings.Replace(site(t, file, folder, addrs), "listen 443", "listen "+addr, 1)
	saveNginx(t, folder, text)
	background(t, exec.Command(nginx, "-p", folder, "-c", filepath.Join(folder, "nginx.conf")), folder)
	await(t, addr)
	return "https://" + addr + "/mcp", authority
}

// certificate saves a certificate for orders.example.com and its key.
func certificate(t *testing.T, folder string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"orders.example.com"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(raw)
	require.NoError(t, err)
	save(t, folder, "orders.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})))
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	save(t, folder, "orders.key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return pool
}

func startCaddy(t *testing.T, file string, addrs []string) (string, *x509.CertPool) {
	caddy, err := exec.LookPath("caddy")
	if err != nil {
		t.Skip("Caddy is not installed")
	}
	folder := t.TempDir()
	authority := certificate(t, folder)
	addr := freePort(t)
	_, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	text := strings.Replace(site(t, file, folder, addrs), "orders.example.com {",
		"{\n\tadmin off\n\tauto_https disable_redirects\n\tskip_install_trust\n}\nhttps://orders.example.com:"+port+" {\n\tbind 127.0.0.1\n\ttls "+folder+"/orders.crt "+folder+"/orders.key\n", 1)
	save(t, folder, "Caddyfile", text)
	background(t, exec.Command(caddy, "run", "--config", filepath.Join(folder, "Caddyfile"), "--adapter", "caddyfile"), folder)
	await(t, addr)
	return "https://" + addr + "/mcp", authority
}

// background runs a program until the end of the test.
func background(t *testing.T, cmd *exec.Cmd, folder string) {
	t.Helper()
	out := &strings.Builder{}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Env = append(cmd.Environ(), "HOME="+folder, "XDG_DATA_HOME="+folder, "XDG_CONFIG_HOME="+folder)
	cmd.WaitDelay = 5 * time.Second
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(out.String())
		}
	})
}

// await waits until a program listens.
func await(t *testing.T, addr string) {
	t.Helper()
	require.Eventually(t, func() bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}, time.Minute, 50*time.Millisecond)
}

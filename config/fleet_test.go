package config_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/config"
	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/oauth/oauthclient"
	"github.com/mcpkit/mcpkit-go/oauth/oauthtest"
)

// engines are those of the URLs of these tests: shared:NAME.
var engines struct {
	mu  sync.Mutex
	all map[string]*stubborn // guarded by mu
}

// A stubborn engine can be made to refuse everything.
type stubborn struct {
	fleet.Engine
	store *fleet.Local
	away  atomic.Bool
}

func (s *stubborn) Update(ctx context.Context, set string, r fleet.Record) (uint64, error) {
	if s.away.Load() {
		return 0, fmt.Errorf("connection refused by hunter2")
	}
	return s.Engine.Update(ctx, set, r)
}

func init() {
	fleet.Register("shared", func(_ context.Context, u *url.URL) (fleet.Engine, error) {
		engines.mu.Lock()
		defer engines.mu.Unlock()
		first := engines.all[u.String()]
		if first == nil {
			store := fleet.NewMemory(fleet.MemoryOptions{})
			first = &stubborn{Engine: store, store: store}
			if engines.all == nil {
				engines.all = map[string]*stubborn{}
			}
			engines.all[u.String()] = first
			return first, nil
		}
		return &stubborn{Engine: first.store.Open()}, nil
	})
}

var longKey = "KEY=" + strings.Repeat("k", 32)

func TestFleetsNeedAURLAndKeys(t *testing.T) {
	const keys = "server: {stateKeys: [\"env:KEY\"]}\n"
	for text, want := range map[string]string{
		"fleet: shared://x\n":                                "config: c.yaml: fleet: it needs server.stateKeys, the same for all replicas",
		keys + "fleet: redis\n":                              "config: c.yaml:3:8: fleet: this is not a URL; write for example redis://localhost:6379",
		keys + "fleet: redis://:hunter2@localhost:6379\n":    "config: c.yaml:3:8: fleet: this URL has a password; put it into a variable or a file, and write env:NAME or file:PATH",
		keys + "fleet: redis://hunter2@localhost\n":          "config: c.yaml:3:8: fleet: this URL has a password; put it into a variable or a file, and write env:NAME or file:PATH",
		keys + "fleet: \"redis://x:hunter2%zz@localhost\"\n": "config: c.yaml:3:8: fleet: this is not a URL; write for example redis://localhost:6379",
		keys + "fleet: env:NONE\n":                           "config: c.yaml: fleet: env:NONE, which should contain the secret, is empty or not set",
		keys + "fleet: [redis://localhost]\n":                "config: c.yaml:3:8: fleet: this is not valid; want keys with values",
	} {
		_, err := config.Parse("c.yaml", []byte("log: {level: error}\n"+text), config.Environ([]string{longKey}))
		require.EqualError(t, err, want, text)
	}
}

func TestEnginesThatAreNotImportedAreNamed(t *testing.T) {
	for text, want := range map[string]string{
		"redis://localhost": `fleet: the program has no engine for redis: import _ "github.com/mcpkit/mcpkit-go/fleet/redisfleet"`,
		"bolt:///tmp/x":     `fleet/boltfleet"`,
		"etcd://localhost":  `fleet: the program has no engine for "etcd"; it has those for shared`,
	} {
		_, err := parsed(t, "server: {stateKeys: [\"env:KEY\"]}\nfleet: "+text+"\n", longKey).New(&clock{})
		require.ErrorContains(t, err, want)
	}
}

func TestURLsOfEnginesAreNotPrinted(t *testing.T) {
	const secret = "hunter2"
	for text, shown := range map[string]string{
		"env:REDIS":                        "env:REDIS",
		"redis://h:1/0?password=" + secret: "redis://h:1/0",
	} {
		c := parsed(t, "server: {stateKeys: [\"env:KEY\"]}\nfleet: \""+text+"\"\n", longKey, "REDIS=redis://:"+secret+"@h:1")
		require.Contains(t, c.Fleet.URL(), secret)
		var log bytes.Buffer
		slog.New(slog.NewJSONHandler(&log, nil)).Info("c", "fleet", c.Fleet)
		asJSON, err := json.Marshal(c)
		require.NoError(t, err)
		_, err = c.New(&clock{})
		require.Error(t, err)
		require.NotContains(t, err.Error(), secret)
		for _, printed := range []string{log.String(), string(asJSON), fmt.Sprintf("%v %+v", *c, *c), fmt.Sprintf("%#v", c.Fleet)} {
			require.NotContains(t, printed, secret)
			require.Contains(t, printed, shown)
		}
	}
}

func TestNoEngineIsOpenedForAServerWithFaults(t *testing.T) {
	c := parsed(t, "server: {stateKeys: [\"env:KEY\"]}\nfleet: shared://none\n", longKey)
	_, err := c.New(&clock{}, mcpkit.PageSize(-1))
	require.Error(t, err)
	engines.mu.Lock()
	defer engines.mu.Unlock()
	require.NotContains(t, engines.all, "shared://none")
}

// A till is a service.
type till struct{}

func (*till) Ring() string { return "kling" }

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`

// TestOneKeyMakesReplicas serves two replicas that have nothing in common but their configuration.
func TestOneKeyMakesReplicas(t *testing.T) {
	t.Parallel()
	bases := make([]string, 2)
	for i := range bases {
		var stop func()
		bases[i], stop = serveService(t, parsed(t, `
server: {name: till, version: "1", stateKeys: ["env:KEY"]}
fleet: shared://one
transport: {http: {addr: "127.0.0.1:0", health: true}}
`, longKey), &till{})
		defer stop()
	}
	_, _, header := send(t, "POST", bases[0]+"/mcp", initialize)
	session := []string{"Mcp-Session-Id", header.Get("Mcp-Session-Id"), "MCP-Protocol-Version", "2025-11-25"}
	send(t, "POST", bases[0]+"/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, session...)
	call := func(base, tool string) string {
		status, body, _ := send(t, "POST", base+"/mcp", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"`+tool+`","arguments":{}}}`, session...)
		require.Equal(t, http.StatusOK, status, body)
		return body
	}
	require.Contains(t, call(bases[1], "ring"), "kling", "the session goes on at the other replica")
	require.Contains(t, call(bases[0], "ring"), "kling")

	status, body, _ := send(t, "GET", bases[0]+"/readyz", "")
	require.Equal(t, http.StatusOK, status)
	require.JSONEq(t, `{"status":"ok"}`, body)
	engines.mu.Lock()
	engine := engines.all["shared://one"]
	delete(engines.all, "shared://one") // the test may run again
	engines.mu.Unlock()
	engine.away.Store(true)
	require.Eventually(t, func() bool {
		status, body, _ = send(t, "GET", bases[0]+"/readyz", "")
		return strings.Contains(body, "degraded")
	}, time.Minute, 10*time.Millisecond)
	require.Equal(t, http.StatusOK, status)
	require.JSONEq(t, `{"status":"ok","degraded":["fleet"]}`, body)
	status, _, _ = send(t, "GET", bases[0]+"/livez", "")
	require.Equal(t, http.StatusOK, status)
	engine.away.Store(false)
}

func TestProofsAreUsedAtOneReplicaOnly(t *testing.T) {
	const resource = "https://mcp.example/mcp"
	as := oauthtest.New(t, nil)
	prover, err := oauthclient.NewProver(nil)
	require.NoError(t, err)
	bases := make([]string, 2)
	for i := range bases {
		var stop func()
		bases[i], stop = serve(t, parsed(t, fmt.Sprintf(`
server: {name: clock, version: "1", stateKeys: ["env:KEY"]}
fleet: env:FLEET
transport: {http: {addr: "127.0.0.1:0"}}
auth: {issuer: %q, resource: %q, insecureLoopback: true, dpop: require}
`, as.Issuer, resource), longKey, "FLEET=shared://proofs"))
		defer stop()
	}
	token := as.Token(oauthtest.Token{Audience: []string{resource}, Thumbprint: prover.Thumbprint()})
	call := func(base, proof string) int {
		status, _, _ := send(t, "POST", base+"/mcp", initialize, "Authorization", "DPoP "+token, "DPoP", proof)
		return status
	}
	proof, err := prover.Proof(http.MethodPost, resource, token, "")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, call(bases[0], proof))
	require.Equal(t, http.StatusUnauthorized, call(bases[1], proof), "it was used at the other replica")
	another, err := prover.Proof(http.MethodPost, resource, token, "")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, call(bases[1], another))
}

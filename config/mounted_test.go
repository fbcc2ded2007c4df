package config_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/config"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// TestMiddlewareOfTheFileCoversServersMountedLater mounts a server in one that has all configured
// middleware.
func TestMiddlewareOfTheFileCoversServersMountedLater(t *testing.T) {
	for _, v := range protocol.Supported {
		dir := t.TempDir()
		server := func(name string) (*mcpkit.Server, string) {
			audit := filepath.Join(dir, name)
			c, err := config.Parse("c.yaml", []byte(`
log: {level: error}
middleware:
  logging: true
  audit: {file: `+audit+`}
  errorCodes: false
  rateLimit: {perSecond: 1000, burst: 1000}
  concurrency: 4
  timeout: 1m
  maxResult: 64KiB
  cache: 1h
`), none)
			require.NoError(t, err)
			srv, err := c.New(nil)
			require.NoError(t, err)
			return srv, audit
		}
		srv, outer := server("outer")
		other, inner := server("inner")
		require.NoError(t, srv.Mount("m", other))
		s := &clock{}
		require.NoError(t, other.Register(s))
		require.NoError(t, other.Add(mcpkit.NewTool("late", func() error { return mcpkit.Errorf("too late") })))
		cl, err := client.Dial(t.Context(), client.InMemory(asAnn{srv}), client.Version(v))
		require.NoError(t, err)
		for range 2 {
			got, err := client.Call[int](t.Context(), cl, "m_now", nil)
			require.NoError(t, err)
			require.Equal(t, 1, got, "from a cache")
		}
		_, err = cl.CallTool(t.Context(), "m_late", nil)
		require.ErrorContains(t, err, "too late")
		require.NoError(t, cl.Close())
		require.NoError(t, srv.Close())
		require.Equal(t, 1, s.calls)
		require.Equal(t, []string{"end m_now ok", "end m_now ok", "end m_late error"}, calls(t, outer), v)
		require.Equal(t, []string{"end m_now ok", "end m_late error"}, calls(t, inner), "the outer cache answered once")
	}
}

// calls are the records of tool calls in an audit file.
func calls(t *testing.T, path string) (lines []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for record := range bytes.Lines(text) {
		var r struct{ Event, Name, Method, Outcome string }
		require.NoError(t, json.Unmarshal(record, &r))
		if r.Method != protocol.MethodToolsCall {
			continue
		}
		line := r.Event + " " + r.Name
		if r.Outcome != "" {
			line += " " + r.Outcome
		}
		lines = append(lines, line)
	}
	return lines
}

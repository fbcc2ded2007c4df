package resource_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/oauth/resource"
)

// BenchmarkGuard measures the guard without the handler behind it, for a cached token.
func BenchmarkGuard(b *testing.B) {
	f := newForge(b)
	g, err := resource.New(resource.Options{Issuer: issuer, Resource: endpoint, JWKS: f.jwks})
	require.NoError(b, err)
	h := g.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	r := bearer(f.token(nil))
	for _, n := range []string{"Accept", "Content-Type", "User-Agent", "Mcp-Method", "Mcp-Name", "Mcp-Protocol-Version"} {
		r.Header.Set(n, "x")
	}
	w := httptest.NewRecorder()
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(w, r)
	}
}

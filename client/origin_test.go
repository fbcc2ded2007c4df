package client

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOriginsAreComparedAfterNormalization(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{"http://localhost/a", "http://localhost/b?c", true},
		{"http://localhost", "http://LocalHost:80", true},
		{"HTTPS://mcp.example.com:443", "https://mcp.example.com", true},
		{"http://[::1]:8080", "http://[::1]:8080/", true},
		{"http://[::1]", "http://[::1]:80/", true},
		{"http://localhost", "https://localhost", false},
		{"http://localhost", "http://localhost:443", false},
		{"https://localhost", "https://localhost:80", false},
		{"http://localhost:80", "http://localhost:8080", false},
		{"http://localhost", "http://localhost.", false},
		{"http://localhost", "http://localhost.evil.example", false},
		{"http://localhost", "http://evil.example/@localhost", false},
		{"http://127.0.0.1", "http://127.0.0.1.nip.io", false},
	} {
		t.Run(test.a+" "+test.b, func(t *testing.T) {
			a, err := url.Parse(test.a)
			require.NoError(t, err)
			b, err := url.Parse(test.b)
			require.NoError(t, err)
			require.Equal(t, test.want, sameOrigin(a, b))
			require.Equal(t, test.want, sameOrigin(b, a))
		})
	}
}

package httpguard

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A name with something behind it that only looks like a port is not that name.
func TestHostnamesHavePortsOfDigits(t *testing.T) {
	for host, want := range map[string]string{
		"localhost":                 "localhost",
		"localhost:":                "localhost",
		"localhost:8080":            "localhost",
		"[::1]:8080":                "::1",
		"[::1]":                     "::1",
		"localhost.":                "localhost.",
		"localhost:80@evil.example": "",
		"localhost:http":            "",
		"localhost:80/evil.example": "",
		"localhost:-1":              "",
		"user@localhost":            "",
		"localhost:80:80":           "",
		"[::1":                      "",
		"[::1]evil.example":         "",
		"":                          "",
	} {
		require.Equal(t, want, hostname(host), "%q", host)
	}
	for _, host := range []string{"localhost:80@evil.example", "localhost.", "localhost..", "127.0.0.1.", "127.1", "::1", "0.0.0.0", "[::]", "LOCALHOST.evil.example", "localhost%00.evil.example"} {
		require.NotEmpty(t, new(Rules).Refuse(request("127.0.0.1", host)), "%q", host)
	}
}

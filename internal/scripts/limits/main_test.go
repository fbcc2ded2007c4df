package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// repository creates a repository with two files of transport/sse, one with the code.
func repository(t *testing.T, code string) string {
	t.Helper()
	dir := t.TempDir()
	for _, file := range []struct{ name, text string }{
		{"transport/sse/sse.go", "package sse\n\ntype Options struct{ MaxSessions int }\n\n" + code},
		{"transport/sse/refuse.go", "package sse\n\nfunc refuse() string { return \"busy: %d streams\" }\n"},
	} {
		path := filepath.Join(dir, filepath.FromSlash(file.name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(file.text), 0o644))
	}
	return dir
}

func TestLimitsAreReadFromTheCode(t *testing.T) {
	page, err := write(repository(t, "const (\n\t//limit:server streams | 503: `busy: `\n\tDefaultMaxSessions = 2 * 1024\n\n\t"+
		"// MaxHeadBytes is fixed.\n\t//\n\t//limit:message bytes of the head | nothing\n\tMaxHeadBytes = 3 << 10\n\t"+
		"//limit:session idle | the end\n\tidle = 90 * time.Minute\n\tDefaultPath = \"/x\"\n)\n"))
	require.NoError(t, err)
	require.Contains(t, page, "## For each message\n\n| limit | default | option | beyond it | constant |\n|---|---|---|---|---|\n"+
		"| bytes of the head | 3 KiB | none | nothing | `transport/sse.MaxHeadBytes` |\n")
	require.Contains(t, page, "| idle | 1h30m | none | the end | `transport/sse.idle` |\n")
	require.Contains(t, page, "## For the whole server\n")
	require.Contains(t, page, "| streams | 2,048 | `sse.Options.MaxSessions` | 503: `busy:…` | `transport/sse.DefaultMaxSessions` |\n")
}

func TestMarksThatDoNotMatchTheCodeAreErrors(t *testing.T) {
	for code, want := range map[string]string{
		"const DefaultMaxSessions = 1000\n": "transport/sse.DefaultMaxSessions has no line //limit:SCOPE what | what the peer sees",
		"const maxRooms = 9\n":              "transport/sse.maxRooms has no line //limit:SCOPE what | what the peer sees",
		"//limit:server streams | 503: `not said`\nconst DefaultMaxSessions = 1000\n":      `no string of the code has "not said"`,
		"//limit:planet streams | 503\nconst DefaultMaxSessions = 1000\n":                  "with one of the scopes message, call, peer",
		"//limit:server streams\nconst DefaultMaxSessions = 1000\n":                        "write //limit:SCOPE what | what the peer sees",
		"//limit:server streams | 503\nconst DefaultMaxSessions = other.DefaultSessions\n": "the value cannot be computed",
	} {
		_, err := write(repository(t, code))
		require.ErrorContains(t, err, want, code)
	}
}

func TestUnmarkedLimitsExist(t *testing.T) {
	for key, reason := range unmarked {
		require.NotEmpty(t, reason, key)
		pkg, name := key[:strings.LastIndexByte(key, '.')], key[strings.LastIndexByte(key, '.')+1:]
		s := &source{limits: map[string]*limit{}, options: map[string]bool{}}
		require.NoError(t, s.read(filepath.Join("..", ".."), pkg))
		require.Contains(t, s.limits, key, "%s has no constant %s", pkg, name)
		require.Empty(t, s.limits[key].mark, "%s is marked; delete it from unmarked", key)
	}
}

func TestPageIsFresh(t *testing.T) {
	root := filepath.Join("..", "..")
	want, err := write(root)
	require.NoError(t, err)
	have, err := os.ReadFile(filepath.Join(root, "docs", "reference", "limits.md"))
	require.NoError(t, err)
	require.Equal(t, want, string(have), "run go generate ./internal/scripts/limits")
}

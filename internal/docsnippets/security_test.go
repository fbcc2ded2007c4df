package docsnippets

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var namedTest = regexp.MustCompile("`([a-z0-9_/]+)\\.((?:Test|Fuzz)\\w+)`")

// TestTheThreatModelNamesTestsThatExist holds docs/design/security.md to the code: each row of its tables names a test, and
// each of them is there.
func TestTheThreatModelNamesTestsThatExist(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "design", "security.md"))
	require.NoError(t, err)
	rows := 0
	for line := range strings.Lines(string(page)) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| threat |") {
			continue
		}
		rows++
		named := namedTest.FindAllStringSubmatch(line, -1)
		require.NotEmpty(t, named, line)
		for _, m := range named {
			require.True(t, declares(t, m[1], m[2]), "%s has no test %s", m[1], m[2])
		}
	}
	require.Greater(t, rows, 40)
}

// declares reports whether the tests of a folder have a function.
func declares(t *testing.T, folder, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(folder), "*_test.go"))
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		if strings.Contains(string(text), "\nfunc "+name+"(") {
			return true
		}
	}
	return false
}

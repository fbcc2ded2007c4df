package housetest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	namedTest  = regexp.MustCompile("`([a-z0-9_/]+)\\.((?:Test|Fuzz)\\w+)`")
	claimStart = regexp.MustCompile(`(?m)^(?:\| |- )`)
)

// TestSecurityPageNamesItsTests checks that each claim of docs/design/security.md names a test, and
// that each of these tests exists. Claims are the rows of its tables and the items of its lists, up
// to the section that lists what the module does not do.
func TestSecurityPageNamesItsTests(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "design", "security.md"))
	require.NoError(t, err)
	promises, _, found := strings.Cut(string(page), "\n## What is left to you\n")
	require.True(t, found)
	claims := claimStart.FindAllStringIndex(promises, -1)
	require.Greater(t, len(claims), 70)
	for i, at := range claims {
		end := len(promises)
		if i+1 < len(claims) {
			end = claims[i+1][0]
		}
		claim, _, _ := strings.Cut(promises[at[0]:end], "\n\n")
		if strings.HasPrefix(claim, "| threat |") {
			continue
		}
		named := namedTest.FindAllStringSubmatch(claim, -1)
		require.NotEmpty(t, named, claim)
		for _, m := range named {
			require.True(t, declares(t, m[1], m[2]), "%s has no test %s", m[1], m[2])
		}
	}
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

package docsnippets

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	decisionTitle = regexp.MustCompile(`^# (\d+)\. (.+)\n`)
	superseded    = regexp.MustCompile(`(?m)^Superseded by \[(\d+)\]\((\S+)\)\.$`)
)

// TestIndexListsEachDecision checks that docs/README.md lists each decision with its number and
// title, and marks those that are superseded, by a decision that exists.
func TestIndexListsEachDecision(t *testing.T) {
	index, err := os.ReadFile(filepath.Join(root, "docs", "README.md"))
	require.NoError(t, err)
	list := strings.Join(strings.Fields(string(index)), " ")
	files, err := filepath.Glob(filepath.Join(root, "docs", "adr", "*.md"))
	require.NoError(t, err)
	require.Greater(t, len(files), 25)
	var entries []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		m := decisionTitle.FindStringSubmatch(string(text))
		require.NotNil(t, m, "%s does not begin with its number and title", file)
		name := filepath.Base(file)
		require.True(t, strings.HasPrefix(strings.TrimLeft(name, "0"), m[1]+"-"), "%s has the number %s", name, m[1])
		entry := fmt.Sprintf("- [%s. %s](adr/%s)", m[1], m[2], name)
		if by := superseded.FindStringSubmatch(string(text)); by != nil {
			require.FileExists(t, filepath.Join(filepath.Dir(file), by[2]))
			entry += fmt.Sprintf(" (superseded by %s)", by[1])
		}
		entries = append(entries, entry)
	}
	_, decisions, found := strings.Cut(list, "## Decisions ")
	require.True(t, found)
	require.True(t, strings.HasSuffix(decisions, strings.Join(entries, " ")), "the list should be:\n%s", strings.Join(entries, "\n"))
}

package docsnippets

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	firstCell = regexp.MustCompile("(?m)^\\| (`[^|]*?)\\|")
	fromGo    = regexp.MustCompile("`[^`]*` \\(from Go\\)")
)

// TestTroubleshootingQuotesTheCode checks that each message in the first column of the page is one of
// the code. The pieces between "…" have to be in one file that is not a test.
func TestTroubleshootingQuotesTheCode(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "howto", "troubleshoot.md"))
	require.NoError(t, err)
	sources := librarySources(t)
	var messages []string
	for _, m := range firstCell.FindAllStringSubmatch(string(page), -1) {
		for _, span := range codeSpan.FindAllString(fromGo.ReplaceAllString(m[1], ""), -1) {
			messages = append(messages, strings.Trim(span, "`"))
		}
	}
	require.Greater(t, len(messages), 35)
	for _, message := range messages {
		assert.True(t, quoted(message, sources), "the code has no message %q", message)
	}
}

// quoted reports whether one of the sources has all pieces of a message.
func quoted(message string, sources []string) bool {
	for _, source := range sources {
		all := true
		for piece := range strings.SplitSeq(message, "…") {
			all = all && strings.Contains(source, piece)
		}
		if all {
			return true
		}
	}
	return false
}

func TestMessagesAreFoundInSources(t *testing.T) {
	sources := []string{`fmt.Errorf("got %q, want %s", got, want)`, `errors.New("other")`}
	require.True(t, quoted("got …, want …", sources))
	require.False(t, quoted("got …, other", sources), "pieces of two files")
	require.False(t, quoted("gone", sources))
}

// librarySources returns the text of all Go files but tests, with quotes in strings as they print.
func librarySources(t *testing.T) []string {
	t.Helper()
	var sources []string
	for _, folder := range []string{"client", "cmd", "config", "internal", "protocol", "mcpkit", "middleware", "oauth", "proxy", "reflectx", "transport"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.Name() == "oauthtest" { // what only tests say
				return fs.SkipDir
			}
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			sources = append(sources, strings.ReplaceAll(string(text), `\"`, `"`))
			return err
		})
		require.NoError(t, err)
	}
	require.NotEmpty(t, sources)
	return sources
}

package archtest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// giveaways are phrases that plain English does without, and what to write instead. The list is no
// style checker.
var giveaways = []struct {
	phrase  *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`(?i)nothing is said|when nothing is (set|given|configured)|when none is given`), "by default; if it is not set"},
	{regexp.MustCompile(`(?i)\bnot any ?more\b`), "no longer"},
	{regexp.MustCompile(`(?i)\bwhoever\b|\bwhomever\b`), "the client, the caller, a program that"},
	{regexp.MustCompile(`(?i)\bhears? of\b|\bheard of\b|\bnews of\b`), "is notified of; list-changed notifications"},
	{regexp.MustCompile(`(?i)\b(one|two|three) at least\b`), "at least one"},
	{regexp.MustCompile(`(?i)\bdual-era\b|\beras?\b`), "legacy and modern; version"},
	{regexp.MustCompile(`(?i)\b(protocol|MCP|legacy|modern|newest|latest|older|every|negotiated) revisions?\b|\brevisions? of (the protocol|MCP)\b`), "version"},
	{regexp.MustCompile(`\b(is|are) no (tool|JSON|URL|URI|number|duration|error|address|argument|version|template|token|object|pointer|struct|directory|method|function|interface|client|server|session|request|response|fault|mistake|match|method name)s?\b`), "is not a"},
	{regexp.MustCompile(`\bRegisterWords|\bSourceWords|\bEmbeddedWords|\bCollectWords|\bParamWords`), "Descriptions"},
}

// stems are parts of the giveaways, at least one for each phrase. A line without any of them is not
// searched further.
var stems = []string{"nothing", "none", "more", "whoever", "whomever", "hear", "news", "at least", "era", "revision", " no ", "words"}

func hasStem(line string) bool {
	line = strings.ToLower(line)
	return slices.ContainsFunc(stems, func(stem string) bool { return strings.Contains(line, stem) })
}

func TestProseIsPlainEnglish(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", "*.go", "*.md", "*.txtar")
	cmd.Dir = root(t)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("git does not list the files of this source tree: %v %s", err, stderr.String())
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(root(t), filepath.FromSlash(name)))
		if os.IsNotExist(err) || name == "internal/archtest/phrases_test.go" {
			continue
		}
		require.NoError(t, err)
		if name == "docs/api-review.md" { // whose tables quote the former names
			text = regexp.MustCompile(`(?m)^\|.*$`).ReplaceAll(text, nil)
		}
		for _, at := range giveawaysIn(string(text)) {
			t.Errorf("%s:%s", name, at)
		}
	}
}

// giveawaysIn returns the lines that have a giveaway: their number, the phrase, and what to write
// instead. Prose may wrap within a phrase. "There is no tool" is plain English, and a flag of the
// Inspector is called --protocol-era.
func giveawaysIn(text string) []string {
	var found []string
	for number, line := range slices.Collect(strings.Lines(text)) {
		if !hasStem(line) {
			continue
		}
		for _, g := range giveaways {
			for _, at := range g.phrase.FindAllStringIndex(line, -1) {
				before := strings.ToLower(strings.TrimSpace(line[:at[0]]))
				if strings.HasSuffix(before, "there") || strings.HasSuffix(before, "--protocol-") {
					continue
				}
				found = append(found, strconv.Itoa(number+1)+": "+line[at[0]:at[1]]+": write "+g.instead)
			}
		}
	}
	return found
}

func TestGiveawaysAreFound(t *testing.T) {
	for text, want := range map[string]int{
		"None are when nothing is said.":                   1,
		"It is no tool, and there is no tool of this name": 1,
		"fine\nWhoever hears of it":                        2,
		"It is no longer used.":                            0,
		"git revision HEAD~1":                              0,
		"every revision of the protocol":                   1,
	} {
		require.GreaterOrEqual(t, len(giveawaysIn(text)), want, text)
		require.Equal(t, want == 0, len(giveawaysIn(text)) == 0, text)
	}
}

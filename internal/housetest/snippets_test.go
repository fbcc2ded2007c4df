package housetest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/testkit"
)

var update = flag.Bool("update", false, "write the snippets of the documentation anew")

const root = "../.."

// pages are those at the root and everything in docs.
func pages(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(root, "*.md"))
	require.NoError(t, err)
	err = filepath.WalkDir(filepath.Join(root, "docs"), func(path string, e os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".md") {
			found = append(found, path)
		}
		return err
	})
	require.NoError(t, err)
	return found
}

var (
	snippet = regexp.MustCompile("(?m)^<!-- from ([^ #]+)(?:#(\\S+))? -->\n```(\\w*)\n((?s:.*?))^```$")
	marker  = regexp.MustCompile(`(?m)^<!-- from .*$`)
	command = regexp.MustCompile("(?m)^<!-- run, prints (\".*\") -->\n```\\w*\n((?s:.*?))^```$")
	running = regexp.MustCompile(`(?m)^<!-- run.*$`)
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	code    = regexp.MustCompile("(?ms)^```.*?^```$|`[^`\n]*`")
)

func TestSnippetsAreCutFromCode(t *testing.T) {
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		want, err := renew(string(text), func(file string) (string, error) {
			source, err := os.ReadFile(filepath.Join(root, file))
			return string(source), err
		})
		require.NoError(t, err, page)
		switch {
		case want == string(text):
		case *update:
			require.NoError(t, os.WriteFile(page, []byte(want), 0o644))
		default:
			t.Errorf("the snippets of %s are stale; run go test ./internal/housetest -update", page)
		}
	}
}

// Go on the pages is cut from code that a test compiles, not written into the page.
func TestGoOnPagesIsCutFromCode(t *testing.T) {
	block := regexp.MustCompile("(?m)^(.*)\n```go\n")
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, m := range block.FindAllStringSubmatch(string(text), -1) {
			require.Regexp(t, `^<!-- from `, m[1], "%s: write <!-- from FILE#REGION --> before the block", page)
		}
	}
}

// renew returns a page with its snippets as the code has them now.
func renew(page string, read func(file string) (string, error)) (string, error) {
	var errs []error
	if markers, blocks := len(marker.FindAllString(page, -1)), len(snippet.FindAllString(page, -1)); markers != blocks {
		errs = append(errs, fmt.Errorf("%d comments say where a snippet is from, but %d stand right before a block; write <!-- from FILE#REGION --> and the block below it", markers, blocks))
	}
	page = snippet.ReplaceAllStringFunc(page, func(block string) string {
		m := snippet.FindStringSubmatch(block)
		source, err := read(m[1])
		if err == nil && m[2] != "" {
			source, err = region(source, m[2])
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s#%s: %w", m[1], m[2], err))
			return block
		}
		name := m[1]
		if m[2] != "" {
			name += "#" + m[2]
		}
		return "<!-- from " + name + " -->\n```" + m[3] + "\n" + source + "```"
	})
	return page, errors.Join(errs...)
}

// region returns what stands between the marks of a region, without the blank lines around it and the
// indentation that all of its lines have.
func region(source, name string) (string, error) {
	var lines []string
	within, found := false, false
	for line := range strings.Lines(source) {
		switch strings.TrimSpace(line) {
		case "// docs:begin " + name:
			if found {
				return "", fmt.Errorf("the region begins twice")
			}
			within, found = true, true
			continue
		case "// docs:end " + name:
			within = false
			continue
		}
		if within && !strings.HasPrefix(strings.TrimSpace(line), "// docs:") {
			lines = append(lines, line)
		}
	}
	if !found || within {
		return "", fmt.Errorf("there is no region between // docs:begin %[1]s and // docs:end %[1]s", name)
	}
	return dedent(strings.Trim(strings.Join(lines, ""), "\n") + "\n"), nil
}

func dedent(text string) string {
	for strings.HasPrefix(text, "\t") {
		for line := range strings.Lines(text) {
			if line != "\n" && !strings.HasPrefix(line, "\t") {
				return text
			}
		}
		text = strings.ReplaceAll(strings.TrimPrefix(text, "\t"), "\n\t", "\n")
	}
	return text
}

func TestRegionsAreCutOut(t *testing.T) {
	source := "package x\n\nfunc f() {\n\t// docs:begin body\n\n\tif a {\n\t\tb()\n\t}\n\n\tc()\n\t// docs:end body\n}\n"
	read := func(string) (string, error) { return source, nil }
	page := "# X\n\n<!-- from x.go#body -->\n```go\nold\n```\n\ntail\n"
	got, err := renew(page, read)
	require.NoError(t, err)
	require.Equal(t, "# X\n\n<!-- from x.go#body -->\n```go\nif a {\n\tb()\n}\n\nc()\n```\n\ntail\n", got)

	_, err = renew("<!-- from x.go#none -->\n```go\n```\n", read)
	require.EqualError(t, err, "x.go#none: there is no region between // docs:begin none and // docs:end none")
	_, err = renew("<!-- from x.go#body -->\ntext between\n```go\n```\n", read)
	require.EqualError(t, err, "1 comments say where a snippet is from, but 0 stand right before a block; write <!-- from FILE#REGION --> and the block below it")
}

// Commands that a page says to copy are run, from the root of the repository, as bash reads them.
func TestCommandsWork(t *testing.T) {
	testkit.MarkLong(t, "builds programs")
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		blocks := command.FindAllStringSubmatch(string(text), -1)
		require.Len(t, blocks, len(running.FindAll(text, -1)), "%s: write <!-- run, prints \"TEXT\" --> and the block below it", page)
		for _, m := range blocks {
			t.Run(filepath.Base(page), func(t *testing.T) {
				var want string
				_, err := fmt.Sscanf(m[1], "%q", &want)
				require.NoError(t, err)
				cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", m[2])
				cmd.Dir = root
				out, err := cmd.CombinedOutput()
				require.NoError(t, err, "%s\n%s", m[2], out)
				require.Contains(t, string(out), want, m[2])
			})
		}
	}
}

// Links within the repository lead to files that are there, and to headings in them.
func TestLinksLeadSomewhere(t *testing.T) {
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(string(text), ""), -1) {
			file, heading, _ := strings.Cut(m[1], "#")
			if strings.Contains(m[1], "://") {
				continue
			}
			target := page
			if file != "" {
				target = filepath.Join(filepath.Dir(page), file)
			}
			require.FileExists(t, target, "%s links to it", page)
			if heading != "" {
				require.Contains(t, headings(t, target), heading, "%s links to %s", page, m[1])
			}
		}
	}
}

// headings returns the headings of a page as links to them write them.
func headings(t *testing.T, page string) (slugs []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	for _, m := range regexp.MustCompile("(?m)^#+ (.+)$").FindAllStringSubmatch(string(text), -1) {
		kept := regexp.MustCompile(`[^\w -]`).ReplaceAllString(strings.ToLower(m[1]), "")
		slugs = append(slugs, strings.ReplaceAll(kept, " ", "-"))
	}
	return slugs
}

// step matches a file that the reader saves, or commands that the reader runs in the module.
var step = regexp.MustCompile("(?m)^<!-- (?:from (docs/tutorial/\\S+)|in the module, prints (\".*\")) -->\n```\\w*\n((?s:.*?))^```$")

// TestFirstServiceCanBeFollowed does what the page says, from top to bottom, in a new module: it saves
// each file as the page shows it, and runs each command. Only the files go.mod and go.sum are those
// of docs/tutorial, so that no command needs the network.
func TestFirstServiceCanBeFollowed(t *testing.T) {
	testkit.MarkLong(t, "builds programs")
	page, err := os.ReadFile(filepath.Join(root, "docs", "first-service.md"))
	require.NoError(t, err)
	clone, err := filepath.Abs(root)
	require.NoError(t, err)

	module := t.TempDir()
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(root, "docs", "tutorial", name))
		require.NoError(t, err)
		save(t, module, name, strings.Replace(string(text), "=> ../..", "=> "+clone, 1))
	}

	files, commands := map[string]bool{}, 0
	for _, m := range step.FindAllStringSubmatch(string(page), -1) {
		if m[1] != "" {
			name := filepath.Base(m[1])
			save(t, module, name, m[3])
			files[name] = true
			continue
		}
		var want string
		_, err := fmt.Sscanf(m[2], "%q", &want)
		require.NoError(t, err)
		out, err := inModule(t.Context(), module, m[3])
		require.NoError(t, err, "%s\n%s", m[3], out)
		require.Contains(t, out, want, m[3])
		commands++
	}
	require.Equal(t, 4, commands)

	// The page shows all files of the folder but main_test.go, which tests the echo app.
	sources, err := filepath.Glob(filepath.Join(root, "docs", "tutorial", "*.go"))
	require.NoError(t, err)
	require.Len(t, sources, len(files)+1)
	for _, file := range sources {
		name := filepath.Base(file)
		require.True(t, files[name] || name == "main_test.go", "docs/first-service.md does not show %s", file)
	}
}

func save(t *testing.T, folder, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644))
}

// inModule runs a script in a module outside of the repository, and returns its output.
func inModule(ctx context.Context, folder, script string) (string, error) {
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

package docsnippets

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A session is a reader who follows the pages: one shell, in which their commands run in order.
type session struct {
	name  string
	begin string // the folder to begin in, within the folder of all sessions
	steps []step
}

// A step is a command of a page, or without a page something that its reader has done before.
type step struct {
	page, line string // as the page has it
	as         string // what runs instead of line, for the reason in why
	why        string
	serves     string // the address where the command serves until the session ends
	prints     string // part of what the command prints
}

// An unrun command is one that no session runs: another test runs it, or there is a reason why none
// can.
type unrun struct {
	page, line string
	test       string // the test that runs it, as FOLDER.NAME
	why        string
}

var (
	shellBlock  = regexp.MustCompile("(?m)^```(\\w*)\n((?s:.*?))^```$")
	indented    = regexp.MustCompile(`(?m)^(?:    |\t)(\S.*)$`)
	span        = regexp.MustCompile("`([^`]+)`")
	columns     = regexp.MustCompile(`\s{2,}.*$|\s+# .*$`)
	startsShell = regexp.MustCompile(`^(?:\w+=\S* )*(?:go|mcpkit|make|git|npm|npx|docker|kubectl|curl|cd|mkdir|head|openssl|install|systemctl|systemd-analyze|journalctl|nginx|ops|source|export|token=\S+|[\w./]+/run\.sh|\./[\w-]+)(?: [^ :]+$| [^ :]+ | [^ :]+=)|^(?:\w+=\S* )+[\w.]+/[\w.]+`)
	// nameOnly is the name of a command without arguments, in a sentence about it.
	nameOnly = regexp.MustCompile(`^(?:go tool )?(?:go|mcpkit|git|docker|systemd-analyze|nginx) -?\w+$|^go tool mcpkit$|^internal/interop/run\.sh$|^\./?$`)
	// synopsis is a command with parts for which the reader puts in others.
	synopsis   = regexp.MustCompile(`\[|…| \.\.\.| [A-Z]{3,}\b`)
	subcommand = regexp.MustCompile(`^(?:go tool )?mcpkit ([a-z]+)\b`)
	loopback   = regexp.MustCompile(`127\.0\.0\.1:(\d+)`)
)

// A pasted command is one of a page, on one line.
type pasted struct{ page, line string }

// commands returns the commands of a page that no comment marks for another test, and the names of
// the commands of mcpkit that it mentions.
func commands(page, text string) (found []pasted, names []string) {
	add := func(line string) {
		line = columns.ReplaceAllString(strings.TrimPrefix(strings.TrimSpace(line), "$ "), "")
		if p := (pasted{page, line}); line != "" && !strings.HasPrefix(line, "#") && !slices.Contains(found, p) {
			found = append(found, p)
		}
	}
	name := func(line string) {
		if m := subcommand.FindStringSubmatch(line); m != nil {
			names = append(names, m[1])
		}
	}
	text = tutorialStep.ReplaceAllString(command.ReplaceAllString(text, ""), "")
	for _, m := range shellBlock.FindAllStringSubmatch(text, -1) {
		shell := slices.Contains([]string{"sh", "bash", "shell", "console", "zsh"}, m[1])
		for line := range strings.Lines(m[2]) {
			if shell || m[1] == "" && startsShell.MatchString(line) {
				add(line)
				name(line)
			}
		}
	}
	text = shellBlock.ReplaceAllString(text, "")
	for _, m := range indented.FindAllStringSubmatch(text, -1) {
		if line := strings.TrimPrefix(m[1], "$ "); startsShell.MatchString(line) {
			add(line)
			name(line)
		}
	}
	text = indented.ReplaceAllString(text, "")
	for _, m := range span.FindAllStringSubmatch(text, -1) {
		line := strings.Join(strings.Fields(m[1]), " ")
		if !startsShell.MatchString(line) {
			continue
		}
		if !strings.Contains(line, "...") {
			name(line)
		}
		if !nameOnly.MatchString(line) && !synopsis.MatchString(line) {
			add(line)
		}
	}
	return found, names
}

func TestCommandsAreFound(t *testing.T) {
	found, names := commands("x.md", "Run `make check`, `mcpkit list`, `go build` or `mcpkit new [flags] FOLDER`; `go vet\n./...` too.\n\n"+
		"    mcpkit dev: ready\n    $ mcpkit call a b     # calls\n    cd x\n    x := 1\n\n```sh\nls -l\n# not\n```\n\n"+
		"<!-- run, prints \"x\" -->\n```sh\ngo version\n```\n\n```\nmcpkit tasks SERVER ID   shows\ntool  x\n```\n\n```go\ngo f()\n```\n")
	var lines []string
	for _, p := range found {
		require.Equal(t, "x.md", p.page)
		lines = append(lines, p.line)
	}
	require.Equal(t, []string{"ls -l", "mcpkit tasks SERVER ID", "mcpkit call a b", "cd x", "make check", "go vet ./..."}, lines)
	require.Equal(t, []string{"tasks", "call", "list", "new"}, names)
}

// documents returns the text of all pages of the repository by their names.
func documents(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && path != root && (strings.HasPrefix(e.Name(), ".") || e.Name() == "node_modules" || e.Name() == "testdata") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".md") {
			return nil
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		found[filepath.ToSlash(name)] = string(text)
		return err
	})
	require.NoError(t, err)
	return found
}

// isHistory reports whether a page tells what was, not what to do.
func isHistory(page string) bool {
	return strings.HasPrefix(page, "docs/adr/") || slices.Contains([]string{"CHANGELOG.md", "docs/api-review.md", "docs/roadmap.md", "docs/rough-edges.md"}, page)
}

// Each command of a page is run by a session, or is listed with the test that runs it or with the
// reason why none does. Nothing is listed that no page has.
func TestCommandsAreRunOrListed(t *testing.T) {
	listed := map[pasted]bool{}
	for _, s := range sessions {
		for _, st := range s.steps {
			if st.page != "" {
				listed[pasted{st.page, st.line}] = true
				require.Equal(t, st.as == "", st.why == "", "%s: %s: write as and why, or neither", st.page, st.line)
			}
		}
	}
	for _, u := range unruns {
		require.False(t, listed[pasted{u.page, u.line}], "%s: %s is listed twice", u.page, u.line)
		require.True(t, (u.test == "") != (u.why == ""), "%s: %s: write the test or the reason", u.page, u.line)
		listed[pasted{u.page, u.line}] = true
		if u.test != "" {
			requireTest(t, u.test)
		}
	}
	all := map[pasted]bool{}
	for page, text := range documents(t) {
		if isHistory(page) {
			continue
		}
		found, _ := commands(page, text)
		for _, p := range found {
			all[p] = true
			assert.True(t, listed[p], "no test runs this command of %s; add it to a session, or to unruns with a reason:\n%s", p.page, p.line)
		}
	}
	for p := range listed {
		if p.page != moduleReadme {
			assert.True(t, all[p], "%s has no command that is listed for it:\n%s", p.page, p.line)
		}
	}
}

// requireTest checks that a folder has a test.
func requireTest(t *testing.T, name string) {
	t.Helper()
	folder, test, ok := strings.Cut(name, ".")
	require.True(t, ok, name)
	files, err := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		if bytes.Contains(text, []byte("func "+test+"(t *testing.T) {")) {
			return
		}
	}
	require.Fail(t, "there is no test "+name)
}

// Make has the targets that pages name.
func TestTargetsOfMakeExist(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	for page, text := range documents(t) {
		if isHistory(page) {
			continue
		}
		found, _ := commands(page, text)
		for _, p := range found {
			if target, ok := strings.CutPrefix(p.line, "make "); ok {
				target, _, _ = strings.Cut(target, " ")
				assert.Regexp(t, `(?m)^`+target+`:`, string(makefile), page)
			}
		}
	}
}

var runCommands = flag.Bool("commands", false, "run the commands of the pages, which takes some minutes")

// TestCommandsOfPagesRun does what the pages say, in a clean clone of the repository and in modules
// beside it.
func TestCommandsOfPagesRun(t *testing.T) {
	if !*runCommands {
		t.Skip("make pages runs them")
	}
	for _, name := range []string{"curl", "openssl"} {
		if _, err := exec.LookPath(name); err != nil {
			require.NotEqual(t, "true", os.Getenv("CI"), err)
			t.Skipf("THE COMMANDS OF THE PAGES WERE NOT RUN: %v", err)
		}
	}
	h := newHome(t)
	// The others use what the first one clones, installs and makes, and each has a folder of its own.
	t.Run(sessions[0].name, func(t *testing.T) { h.run(t, sessions[0]) })
	t.Run("then", func(t *testing.T) {
		for _, s := range sessions[1:] {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				h.run(t, s)
			})
		}
	})
	t.Run("names", func(t *testing.T) {
		help, err := h.command(t.Context(), "mcpkit", "help").CombinedOutput()
		require.NoError(t, err, string(help))
		for page, text := range documents(t) {
			_, names := commands(page, text)
			for _, name := range names {
				assert.Regexp(t, `(?m)^  `+name+` `, string(help), "%s names a command that mcpkit does not have", page)
			}
		}
	})
	t.Run("README of a new module", func(t *testing.T) {
		text, err := os.ReadFile(filepath.Join(h.dir, "shop", "README.md"))
		require.NoError(t, err)
		found, _ := commands(moduleReadme, string(text))
		var listed []pasted
		for _, s := range sessions {
			for _, st := range s.steps {
				if st.page == moduleReadme {
					listed = append(listed, pasted{st.page, st.line})
				}
			}
		}
		require.ElementsMatch(t, listed, found)
	})
}

// A home is the folder of all sessions: with an origin to clone, a home folder of the reader and the
// programs that the reader has installed. Its path is always the same, so that the go command finds
// in its cache what it has built before.
type home struct {
	dir string
	env []string

	mu    sync.Mutex
	taken map[string]bool // addresses of sessions; guarded by mu
}

// address returns a free address on this machine, a different one for each call.
func (h *home) address(t *testing.T) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		if addr := freePort(t); !h.taken[addr] {
			h.taken[addr] = true
			return addr
		}
	}
}

func newHome(t *testing.T) *home {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join(root, ".cache", "commands"))
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(dir))
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for _, folder := range []string{"home", "bin"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, folder), 0o755))
	}
	h := &home{dir: dir, taken: map[string]bool{}}
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH", "GOPROXY", "GOSUMDB", "GOTOOLCHAIN"} {
		value, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
		require.NoError(t, err)
		h.env = append(h.env, name+"="+strings.TrimSpace(string(value)))
	}
	origin := filepath.Join(dir, "origin")
	h.env = append(h.env,
		"PATH="+filepath.Join(dir, "bin")+string(filepath.ListSeparator)+os.Getenv("PATH"),
		"HOME="+filepath.Join(dir, "home"), "GOBIN="+filepath.Join(dir, "bin"), "W="+dir, "NO_COLOR=1",
		"GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_COUNT=1",
		"GIT_CONFIG_KEY_0=url.file://"+origin+".insteadOf", "GIT_CONFIG_VALUE_0=https://github.com/mcpkit/mcpkit-go")

	// The origin has the files of this tree as its only commit. Its time is always the same, and so is
	// the commit that the go command stamps into programs: it builds only those whose code has changed.
	checkout(t, origin)
	out, err := h.command(t.Context(), "bash", "-euc", `cd "$W/origin"
		git init -q -b main
		git add -A
		export GIT_AUTHOR_DATE='1700000000 +0000' GIT_COMMITTER_DATE='1700000000 +0000'
		git -c user.name=reader -c user.email=reader@example.com -c commit.gpgsign=false commit -qm all`).CombinedOutput()
	require.NoError(t, err, string(out))

	// The browser of the reader follows links.
	browser := filepath.Join(dir, "bin", "xdg-open")
	require.NoError(t, os.WriteFile(browser, []byte("#!/bin/sh\nexec curl -fsSL -o /dev/null \"$1\"\n"), 0o755))
	return h
}

// command returns a command in the environment of the reader, which has what the test needs only.
func (h *home) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	for _, folder := range filepath.SplitList(h.value("PATH")) {
		if path, err := exec.LookPath(filepath.Join(folder, name)); err == nil {
			name = path
			break
		}
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = h.dir, h.env, 10*time.Second
	return cmd
}

func (h *home) value(name string) string {
	for _, v := range h.env {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value
		}
	}
	return ""
}

// prelude begins the script of a session. Programs that serve are jobs of their own, so that they
// and what they start end with the session.
const prelude = `set -euo pipefail
set -m
served=()
finish() {
	for job in "${served[@]}"; do kill -INT -- "-$job" 2>/dev/null || true; done
	wait
}
trap finish EXIT
export HOME="$(mktemp -d "$W/home/XXXXXX")"
# The programs that mcpkit starts do not get these variables, and should use the caches, too.
go env -w GOCACHE="$GOCACHE" GOMODCACHE="$GOMODCACHE" GOPROXY="$GOPROXY" GOSUMDB="$GOSUMDB" GOTOOLCHAIN="$GOTOOLCHAIN" 2>"$W/warnings"
await() {
	until (exec 3<>"/dev/tcp/${1%:*}/${1#*:}") 2>/dev/null; do
		kill -0 "${served[-1]}" || { echo "the server has ended"; exit 1; }
		sleep 0.05
	done
}
`

// run runs the commands of a session. Addresses on this machine are free ones.
func (h *home) run(t *testing.T, s session) {
	script := prelude
	if s.begin != "" {
		script += "mkdir -p " + s.begin + "; cd " + s.begin + "\n"
	}
	for i, st := range s.steps {
		line := st.line
		if st.as != "" {
			line = st.as
		}
		script += fmt.Sprintf("echo '@@ %d'\n", i)
		if st.serves != "" {
			script += line + " &\nserved+=($!)\nawait " + st.serves + "\n"
		} else {
			script += line + "\n"
		}
	}
	script += "echo '@@ end'\n"
	free := map[string]string{}
	script = loopback.ReplaceAllStringFunc(script, func(addr string) string {
		if free[addr] == "" {
			free[addr] = h.address(t)
		}
		return free[addr]
	})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	out, err := h.command(ctx, "bash", "-c", script).CombinedOutput()
	require.NoError(t, err, "%s", out)
	printed := string(out)
	for i, st := range s.steps {
		_, rest, ok := strings.Cut(printed, fmt.Sprintf("@@ %d\n", i))
		require.True(t, ok, "%s", out)
		if st.prints != "" {
			text, _, _ := strings.Cut(rest, "@@ ")
			require.Contains(t, text, st.prints, "%s: %s\n%s", st.page, st.line, out)
		}
	}
	for _, addr := range free {
		_, err := net.Dial("tcp", addr)
		require.Error(t, err, "a program of the session still listens at %s", addr)
	}
}

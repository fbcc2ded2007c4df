package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/cmd/mcpkit/internal/hosts"
)

// home makes a new folder that is that of the user, with the folder for configurations in it, and
// the current one.
func home(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	for _, name := range []string{"HOME", "USERPROFILE"} {
		t.Setenv(name, dir)
	}
	for _, name := range []string{"XDG_CONFIG_HOME", "AppData"} {
		t.Setenv(name, filepath.Join(dir, ".config"))
	}
	t.Setenv("PATH", filepath.Join(dir, "bin")+string(filepath.ListSeparator)+os.Getenv("PATH"))
	t.Chdir(dir)
	return dir
}

// fakeHost writes a shell script into the PATH of home. It notes its arguments, one on each line, and
// exits with the code.
func fakeHost(t *testing.T, dir, name string, code int) (said func() string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the program is a shell script")
	}
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "bin"), 0o755))
	log := filepath.Join(dir, name+".log")
	script := fmt.Sprintf("#!/bin/sh\necho \"$#\" \"$@\" >>'%s'\necho hello from the host\n[ \"$2\" = get ] && exit 1\nexit %d\n", log, code)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bin", name), []byte(script), 0o755))
	return func() string {
		text, err := os.ReadFile(log)
		require.NoError(t, err)
		return string(text)
	}
}

// fileHosts are the hosts without a command of their own.
var fileHosts = []string{"claude-desktop", "cursor", "windsurf", "zed", "opencode"}

func TestServersAreInstalledInFilesOfHosts(t *testing.T) {
	dir := home(t)
	notes := strings.Replace(lab(t), asLab, asServer, 1)
	for _, host := range fileHosts {
		out, errs := said(t, exitOK, "install", host, notes, "--env", "A=b", "--name", "notes", "--no-check")
		require.Contains(t, out, "installed notes in "+dir)
		require.Contains(t, errs, "mcpkit install: the host keeps the values of --env and --header as plain text\n")
		require.Contains(t, errs, "mcpkit install: warning: there is no folder "+dir, "the host is not installed here")
		out, errs = said(t, exitOK, "install", host, notes, "--env", "A=b", "--name", "notes", "--no-check")
		require.Contains(t, out, " has notes already, in "+dir)
		require.NotContains(t, errs, "there is no folder")
		_, errs = said(t, exitFault, "install", host, notes, "--env", "A=c", "--name", "notes", "--no-check")
		require.Contains(t, errs, `has another server named "notes"; choose another name with --name, or replace it with --force`)
		out, _ = said(t, exitOK, "install", host, notes, "--env", "A=c", "--force", "--name", "notes", "--no-check")
		require.Contains(t, out, "the backup is "+dir)
	}

	for _, name := range fileHosts {
		file, err := hosts.Find(name).File(false)
		require.NoError(t, err)
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Contains(t, string(text), asServer)
		if runtime.GOOS != "windows" { // which has lists instead
			info, err := os.Stat(file)
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		}
	}

	for _, host := range fileHosts {
		out, _ := said(t, exitOK, "install", "--remove", host, "notes")
		require.Contains(t, out, "removed notes from "+dir)
		_, errs := said(t, exitFault, "install", "--remove", host, "notes")
		require.Contains(t, errs, `the server "notes" is not installed`)
	}
	leftover, err := filepath.Glob(filepath.Join(dir, ".cursor", "*.new-*"))
	require.NoError(t, err)
	require.Empty(t, leftover)
}

func TestInstallingKeepsTheFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("symbolic links need special rights there")
	}
	dir := home(t)
	file := filepath.Join(dir, "real.json")
	const before = "{\n  // mine\n  \"mcpServers\": {\n    \"other\": {\"url\": \"http://x\"}, // foreign\n  },\n}\n"
	require.NoError(t, os.WriteFile(file, []byte(before), 0o644))
	require.NoError(t, os.Symlink(file, filepath.Join(dir, "link.json")))

	out, _ := said(t, exitOK, "install", "cursor", lab(t), "--file", "link.json", "--dry-run", "--name", "my lab!")
	require.Contains(t, out, "would change at line 5:\n+     \"my-lab\": {\n")
	same, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, before, string(same))

	said(t, exitOK, "install", "cursor", lab(t), "--file", "link.json")
	after, err := os.ReadFile(file)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(after), strings.TrimSuffix(before, "  },\n}\n")), string(after))
	require.Contains(t, string(after), `"lab": {`)
	info, err := os.Lstat(filepath.Join(dir, "link.json"))
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&os.ModeSymlink)
	backups, err := filepath.Glob(file + ".*.bak")
	require.NoError(t, err)
	require.Len(t, backups, 1)
	kept, err := os.ReadFile(backups[0])
	require.NoError(t, err)
	require.Equal(t, before, string(kept))
}

func TestHostsWithACommandAreSetUpByIt(t *testing.T) {
	dir := home(t)
	claude, codex := fakeHost(t, dir, "claude", 0), fakeHost(t, dir, "codex", 0)
	const url = "https://orders.example.com/mcp"
	out, _ := said(t, exitOK, "install", "claude-code", url, "--name", "orders", "--no-check", "--header", "X-Team: a b")
	require.Equal(t, "hello from the host\ninstalled orders in Claude Code; start a new session of claude; /mcp shows its servers\n", out)
	require.Equal(t, "10 mcp add --scope user --transport http orders "+url+" --header X-Team: a b\n", claude())
	said(t, exitOK, "install", "codex", url, "--name", "orders", "--no-check")
	require.Equal(t, "3 mcp get orders\n5 mcp add orders --url "+url+"\n", codex())

	said(t, exitOK, "install", "--remove", "claude-code", "orders", "--project")
	require.Contains(t, claude(), "5 mcp remove --scope project orders\n")

	fakeHost(t, dir, "claude", 7)
	out, errs := said(t, exitFault, "install", "claude-code", url, "--name", "orders", "--no-check")
	require.Equal(t, "hello from the host\n", out)
	require.Equal(t, "mcpkit install: claude mcp add: exit status 7\n", errs)
}

// The commands of codex, gemini and code replace a server with the same name.
func TestAServerOfTheSameNameIsNotReplacedByACommand(t *testing.T) {
	dir := home(t)
	gemini := fakeHost(t, dir, "gemini", 0)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, ".gemini"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".gemini", "settings.json"), []byte(`{"mcpServers": {"orders": {}}}`), 0o600))
	args := []string{"install", "gemini", "https://orders.example.com/mcp", "--name", "orders", "--no-check"}
	_, errs := said(t, exitFault, args...)
	require.Equal(t, "mcpkit install: Gemini CLI has another server named \"orders\"; choose another name with --name, or replace it with --force\n", errs)
	said(t, exitOK, append(args, "--force")...)
	require.Equal(t, "8 mcp add --scope user --transport http orders https://orders.example.com/mcp\n", gemini())
}

// Values of variables may be secrets.
func TestCommandsOfHostsAreShownWithoutValues(t *testing.T) {
	home(t)
	t.Setenv("PATH", "")
	t.Setenv("SHOP_TOKEN", "hush")
	self, err := os.Executable()
	require.NoError(t, err)
	want := "claude mcp add --scope user lab --env SHOP_TOKEN=\"$SHOP_TOKEN\" --env 'A=b c' -- " + self + " " + asLab + "\n"
	args := []string{"install", "claude-code", lab(t), "--env", "SHOP_TOKEN", "--env", "A=b c", "--name", "lab", "--no-check"}
	_, errs := said(t, exitFault, args...)
	require.Equal(t, "mcpkit install: there is no program claude in PATH; where it is, run:\n"+want, errs)
	out, _ := said(t, exitOK, append(args, "--dry-run")...)
	require.Equal(t, want, out)
}

func TestProjectsHaveFilesOfTheirOwn(t *testing.T) {
	dir := home(t)
	for host, file := range map[string]string{"vscode": ".vscode/mcp.json", "zed": ".zed/settings.json", "opencode": "opencode.json"} {
		said(t, exitOK, "install", host, "https://orders.example.com/mcp", "--project", "--name", "orders", "--no-check", "--header", "X-Team: a")
		require.FileExists(t, filepath.Join(dir, filepath.FromSlash(file)))
	}
	for host, want := range map[string]string{
		"windsurf": "Windsurf has no configuration file for projects; leave out --project",
		"codex":    "only the command of Codex changes its configuration, for the user; leave out --file and --project",
	} {
		_, errs := said(t, exitUsage, "install", host, "https://orders.example.com/mcp", "--project", "--name", "orders", "--no-check")
		require.Contains(t, errs, want)
	}
}

func TestServersThatFailAreNotInstalled(t *testing.T) {
	dir := home(t)
	self, err := os.Executable()
	require.NoError(t, err)
	_, errs := said(t, exitConnection, "install", "cursor", self+" "+asFailure)
	require.Contains(t, errs, "mcpkit install: nothing was written; --no-check installs a server that does not respond\n")
	require.NoFileExists(t, filepath.Join(dir, ".cursor", "mcp.json"))
	_, errs = said(t, exitUsage, "install", "cursr", lab(t))
	require.Contains(t, errs, `mcpkit install: "cursr" is not a known host; did you mean "cursor"?; write one of claude-desktop, `)
	said(t, exitUsage, "install", "cursor")
	_, errs = said(t, exitUsage, "install", "cursor", "no-such-program-here")
	require.Contains(t, errs, "write the path of the server's program")
}

// Hosts start programs in another folder, with another PATH.
func TestPathsBecomeAbsolute(t *testing.T) {
	dir := home(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "notes"), []byte("#!/bin/sh\n"), 0o755))
	goTool, err := absolute([]string{"go", "run", "./server", "./data"})
	require.NoError(t, err)
	require.True(t, filepath.IsAbs(goTool[0]))
	require.Equal(t, []string{"run", "-C", dir, "./server", "./data"}, goTool[1:])
	for _, test := range []struct{ command, want string }{
		{"go tool mcpkit dev ./server", "tool -C " + dir + " mcpkit dev ./server"},
		{"go run -C ./server . ./data", "run -C " + filepath.Join(dir, "server") + " . ./data"},
		{"go -C server run .", "-C " + filepath.Join(dir, "server") + " run ."},
		{"go run -C " + dir + " .", "run -C " + dir + " ."},
	} {
		got, err := absolute(strings.Fields(test.command))
		require.NoError(t, err)
		require.Equal(t, test.want, strings.Join(got[1:], " "), test.command)
	}
	if runtime.GOOS == "windows" {
		return // where programs have other names
	}
	got, err := absolute([]string{"./notes", "-db", "./data", ".", "..", ".x"})
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(dir, "notes"), "-db", filepath.Join(dir, "data"), dir, filepath.Dir(dir), ".x"}, got)
}

// Zed on Linux and opencode everywhere follow the XDG specification.
func TestFilesAreWhereTheEnvironmentSays(t *testing.T) {
	dir := home(t)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, "settings"))
	files := map[string]string{"opencode": filepath.Join("settings", "opencode", "opencode.json")}
	if runtime.GOOS == "linux" {
		files["zed"] = filepath.Join("settings", "zed", "settings.json")
	}
	for host, file := range files {
		said(t, exitOK, "install", host, lab(t), "--name", "lab", "--no-check")
		require.FileExists(t, filepath.Join(dir, file))
	}
}

func TestInstallSaysThatHostsDoNotPassTheEnvironmentOn(t *testing.T) {
	home(t)
	_, errs := said(t, exitOK, "install", "cursor", lab(t), "--name", "lab", "--inherit-env", "--no-check")
	require.Contains(t, errs, "mcpkit install: --inherit-env has no effect on the host; write --env NAME for each variable that the server needs\n")
}

func TestAFileThatChangesMeanwhileIsKept(t *testing.T) {
	for _, isNew := range []bool{false, true} {
		file := filepath.Join(t.TempDir(), "f")
		if !isNew {
			require.NoError(t, os.WriteFile(file, []byte("before"), 0o600))
		}
		err := editFile(file, false, newScreen(io.Discard), func([]byte) ([]byte, error) {
			return []byte("ours"), os.WriteFile(file, []byte("theirs"), 0o600)
		})
		require.EqualError(t, err, file+" has changed meanwhile; try again")
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, "theirs", string(text))
	}
}

func TestALinkToAMissingFileStays(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("symbolic links need special rights there")
	}
	dir := home(t)
	require.NoError(t, os.Symlink(filepath.Join(dir, "gone", "real.json"), filepath.Join(dir, "link.json")))
	_, errs := said(t, exitFault, "install", "cursor", lab(t), "--file", "link.json", "--name", "lab", "--no-check")
	require.Contains(t, errs, "link.json is a link to a file that does not exist")
	info, err := os.Lstat(filepath.Join(dir, "link.json"))
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&os.ModeSymlink)
}

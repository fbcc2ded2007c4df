package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/examples/internal/rawclient"
)

func TestGitReturnsTheHistory(t *testing.T) {
	t.Parallel()
	everyWay(t, func(t *testing.T, c *rawclient.Client, root string) {
		var s Status
		c.CallInto(&s, "git_status", `{}`)
		require.Equal(t, "main", s.Branch)
		require.Equal(t, []Change{{Path: "doc/notes.txt", Code: " M"}, {Path: "leak", Code: "??"}, {Path: "up", Code: "??"}}, s.Changes)

		diff := c.CallTool("git_diff", `{}`).Text()
		require.Contains(t, diff, "-two\n+three\n")
		require.Empty(t, c.CallTool("git_diff", `{"staged":true}`).Text())
		require.Empty(t, c.CallTool("git_diff", `{"path":"sum.go"}`).Text())
		require.Contains(t, c.CallTool("git_diff", `{"revision":"HEAD~1..HEAD"}`).Text(), "+one\n+two\n")

		show := c.CallTool("git_show", `{}`).Text()
		require.Contains(t, show, "Take notes")
		require.Contains(t, show, "+two")
		require.Equal(t, "one\ntwo\n", c.CallTool("git_show", `{"path":"doc/notes.txt"}`).Text())

		log := c.CallTool("git_log", `{}`).Text()
		require.Less(t, strings.Index(log, "Take notes"), strings.Index(log, "Add numbers"))
		require.NotContains(t, c.CallTool("git_log", `{"path":"doc"}`).Text(), "Add numbers")
		require.NotContains(t, c.CallTool("git_log", `{"limit":1}`).Text(), "Add numbers")
	})
}

func TestGitListsCommits(t *testing.T) {
	t.Parallel()
	c := overHTTP(t, rawclient.Modern, workplace(t))
	var commits []Commit
	c.CallInto(&commits, "git_log", `{}`)
	require.Len(t, commits, 2)
	require.Equal(t, "Take notes", commits[0].Subject)
	require.Equal(t, "Ada", commits[0].Author)
	require.Len(t, commits[0].Hash, 40)
	require.False(t, commits[0].Date.IsZero())
}

func TestGitReportsRenames(t *testing.T) {
	t.Parallel()
	root := workplace(t)
	git(t, root, "mv", "sum.go", "add.go")
	var s Status
	overHTTP(t, rawclient.Modern, root).CallInto(&s, "git_status", `{}`)
	require.Contains(t, s.Changes, Change{Path: "add.go", Code: "R ", From: "sum.go"})
}

func TestBadGitArgumentsAreRefused(t *testing.T) {
	t.Parallel()
	root := workplace(t)
	c := overHTTP(t, rawclient.Modern, root)
	const (
		option  = `the revision "--output=stolen" begins with "-"; write for example HEAD~3, a branch, a tag or a hash`
		outside = `"../secret" is outside the root: a path must be relative to the root and stay below it, neither by ".." nor through a symbolic link`
	)
	for _, test := range []struct{ tool, args, want string }{
		{"git_log", `{"revision":"--output=stolen"}`, option},
		{"git_diff", `{"revision":"--output=stolen"}`, option},
		{"git_show", `{"revision":"--output=stolen"}`, option},
		{"git_log", `{"path":"../secret"}`, outside},
		{"git_diff", `{"path":"../secret"}`, outside},
		{"git_show", `{"path":"../secret"}`, outside},
		{"git_show", `{"revision":"nowhere"}`, "git ended with exit code 128: fatal: bad revision 'nowhere'"},
	} {
		require.Equal(t, test.want, refusal(t, c, test.tool, test.args), "%s %s", test.tool, test.args)
	}
	require.NoFileExists(t, root+"/stolen")
}

func TestGitStaysBelowTheRoot(t *testing.T) {
	t.Parallel()
	c := overHTTP(t, rawclient.Modern, workplace(t)+"/doc")
	require.Equal(t, "git ended with exit code 128: fatal: not a git repository (or any of the parent directories): .git", refusal(t, c, "git_status", `{}`))
}

// In a git hook, the environment names another repository.
func TestGitKeepsToItsDirectory(t *testing.T) {
	root, other := workplace(t), workplace(t)
	git(t, other, "checkout", "-q", "-b", "elsewhere")
	t.Setenv("GIT_DIR", other+"/.git")
	var s Status
	overHTTP(t, rawclient.Modern, root).CallInto(&s, "git_status", `{}`)
	require.Equal(t, "main", s.Branch)
}

// Without a repository, git could read the revision as the name of a file and compare two files.
func TestDiffReadsOnlyWhatTheRepositoryHas(t *testing.T) {
	t.Parallel()
	root := workplace(t)
	secret := filepath.Join(filepath.Dir(root), "secret")
	write(t, root, "--", "a file that git could read as the second one\n")
	write(t, root, "secret", "a file of the same name\n")
	bare := filepath.Join(filepath.Dir(root), "no-repository")
	write(t, bare, "--", "a file that git could read as the second one\n")
	write(t, bare, "secret", "a file of the same name\n")
	for _, dir := range []string{root, bare} {
		c := overHTTP(t, rawclient.Modern, dir)
		for _, rest := range []string{``, `,"staged":true`, `,"path":"--"`, `,"path":"secret"`, `,"path":"."`} {
			text := refusal(t, c, "git_diff", fmt.Sprintf(`{"revision":%q%s}`, secret, rest))
			require.NotContains(t, text, "not for you", "%s in %s", rest, dir)
			require.NotContains(t, text, "usage:", "%s in %s", rest, dir)
		}
	}
	require.Equal(t, "git ended with exit code 128: fatal: not a git repository (or any of the parent directories): .git",
		refusal(t, overHTTP(t, rawclient.Modern, bare), "git_diff", `{}`))
}

// The configuration of a repository may name programs. Tools that write files must not change it.
func TestNoFileMakesGitRunAProgram(t *testing.T) {
	t.Parallel()
	everyWay(t, func(t *testing.T, c *rawclient.Client, root string) {
		require.NoError(t, os.Symlink(".git", filepath.Join(root, "g")))
		require.NoError(t, os.Symlink("../g", filepath.Join(root, "doc", "up")))
		require.NoError(t, os.Symlink(".git/config", filepath.Join(root, "settings")))
		require.NoError(t, os.Symlink(".git/new", filepath.Join(root, "dangling")))
		require.NoError(t, os.Symlink("round", filepath.Join(root, "round")))
		require.NoError(t, os.Symlink("../doc", filepath.Join(root, "doc", "same")))
		ran := filepath.Join(root, "ran")
		config := fmt.Sprintf("[core]\n\trepositoryformatversion = 0\n[filter \"x\"]\n\tclean = \"touch %s; cat\"\n", ran)
		require.Equal(t, "wrote .gitattributes", c.CallTool("files_write", `{"path":".gitattributes","content":"* filter=x\n"}`).Text())
		for _, path := range []string{"g/config", "doc/up/config", "settings", "dangling", "doc/../g/config", "doc/same/up/config"} {
			text := refusal(t, c, "files_write", fmt.Sprintf(`{"path":%q,"content":%q}`, path, config))
			require.Equal(t, fmt.Sprintf(`%q belongs to git and cannot be written`, path), text)
		}
		require.Equal(t, `"round": too many symbolic links`, refusal(t, c, "files_write", `{"path":"round","content":""}`))
		require.False(t, c.CallTool("git_status", `{}`).IsError)
		require.NoFileExists(t, ran)
	})
}

// A file called .git names the directory with the configuration.
func TestGitDirectoriesOfOtherNamesAreNotWritten(t *testing.T) {
	t.Parallel()
	root := workplace(t)
	git(t, root, "init", "-q", "--separate-git-dir="+filepath.Join(root, "apart"))
	c := overHTTP(t, rawclient.Modern, root)
	for _, path := range []string{"apart/config", "apart/hooks/new"} {
		require.Equal(t, fmt.Sprintf(`%q belongs to git and cannot be written`, path), refusal(t, c, "files_write", fmt.Sprintf(`{"path":%q,"content":""}`, path)))
	}
	require.False(t, c.CallTool("git_status", `{}`).IsError)
}

func TestFilesDoNotMakeTheRootARepository(t *testing.T) {
	t.Parallel()
	everyWay(t, func(t *testing.T, c *rawclient.Client, root string) {
		require.NoError(t, os.RemoveAll(filepath.Join(root, ".git")))
		ran := filepath.Join(root, "ran")
		for name, content := range map[string]string{
			"HEAD":              "ref: refs/heads/main\n",
			"commondir":         "x\n",
			"x/objects/x":       "nothing",
			"x/refs/heads/main": strings.Repeat("1", 40) + "\n",
			// Git would run a program to fetch the missing commit.
			"x/config": fmt.Sprintf("[core]\n\trepositoryformatversion = 1\n[extensions]\n\tpartialClone = origin\n"+
				"[remote \"origin\"]\n\tpromisor = true\n\turl = %s\n\tuploadpack = touch %s;false\n", root, ran),
		} {
			require.Equal(t, "wrote "+name, c.CallTool("files_write", fmt.Sprintf(`{"path":%q,"content":%q}`, name, content)).Text())
		}
		for _, tool := range []string{"git_status", "git_log", "git_diff", "git_show"} {
			require.Contains(t, refusal(t, c, tool, `{}`), "git ended with exit code 128: fatal: ")
			require.NoFileExists(t, ran, tool)
		}
	})
}

func TestLongOutputIsCut(t *testing.T) {
	t.Parallel()
	root := workplace(t)
	write(t, root, "doc/notes.txt", strings.Repeat("é\n", maxOutputBytes))
	text := overHTTP(t, rawclient.Modern, root).CallTool("git_diff", `{}`).Text()
	require.True(t, strings.HasSuffix(text, "\n… the output is longer than 256 KiB and cut off here"), text[len(text)-80:])
	require.Less(t, len(text), maxOutputBytes+100)
}

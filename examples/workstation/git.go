package main

import (
	"context"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// Git reads the history of the repository in the directory. It changes nothing.
type Git struct {
	_ struct {
		Log  mcpkit.Tool `title:"Commits" hints:"readonly,closed-world"`
		Show mcpkit.Tool `title:"Show a commit" hints:"readonly,closed-world"`
	}
	dir string
}

// git runs git with options that stop it from running other programs, fetching, asking questions and
// searching above the root, and returns its output.
func (g *Git) git(ctx context.Context, args ...string) (string, error) {
	fixed := []string{"--no-pager", "--no-optional-locks", "--literal-pathspecs", "-c", "safe.bareRepository=explicit",
		"-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "color.ui=false"}
	out, err := command{
		dir: g.dir, name: "git", args: append(fixed, args...),
		env: []string{"GIT_CEILING_DIRECTORIES=" + filepath.Dir(g.dir), "GIT_TERMINAL_PROMPT=0", "LC_ALL=C",
			"GIT_ALLOW_PROTOCOL=none", "GIT_NO_LAZY_FETCH=1"},
	}.run(ctx)
	if err == nil && out.ExitCode != 0 {
		err = mcpkit.Errorf("git ended with exit code %d: %s", out.ExitCode, strings.TrimSpace(out.Output))
	}
	return out.Output, err
}

// LogInput is the input of Log.
type LogInput struct {
	// A branch, a tag, a hash or a range such as v1..main.
	Revision string `json:"revision,omitempty" default:"HEAD"`
	// Only commits that change this file or directory.
	Path string `json:"path,omitempty" default:"."`
	// How many commits to return.
	Limit int `json:"limit,omitempty" default:"20" validate:"min=1,max=200"`
}

// A Commit is one commit.
type Commit struct {
	Hash    string    `json:"hash"`
	Author  string    `json:"author"`
	Date    time.Time `json:"date"`
	Subject string    `json:"subject"`
}

// Log lists commits, the newest first.
func (g *Git) Log(ctx context.Context, in LogInput) ([]Commit, error) {
	text, err := g.git(ctx, "log", "-z", "--no-show-signature", "--format=%H%x1f%an%x1f%aI%x1f%s",
		"--max-count="+strconv.Itoa(in.Limit), "--end-of-options", in.Revision, "--", in.Path)
	if err != nil {
		return nil, err
	}
	var commits []Commit
	for record := range strings.SplitSeq(text, "\x00") {
		if fields := strings.SplitN(record, "\x1f", 4); len(fields) == 4 {
			date, _ := time.Parse(time.RFC3339, fields[2])
			commits = append(commits, Commit{Hash: fields[0], Author: fields[1], Date: date, Subject: fields[3]})
		}
	}
	return commits, nil
}

// ShowInput is the input of Show.
type ShowInput struct {
	// A commit, a tag or a branch. For a file as it was in a commit, write HEAD~3:README.md.
	Revision string `json:"revision,omitempty" default:"HEAD"`
}

// Show returns a commit with its patch, or a file as it was in that commit.
func (g *Git) Show(ctx context.Context, in ShowInput) (string, error) {
	// A repository cannot name programs that produce the patch.
	return g.git(ctx, "show", "--no-show-signature", "--no-ext-diff", "--no-textconv",
		"--end-of-options", in.Revision, "--")
}

package main

import (
	"cmp"
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
		Status mcpkit.Tool `title:"Status of the work tree" hints:"readonly,closed-world"`
		Log    mcpkit.Tool `title:"Commits" hints:"readonly,closed-world"`
		Diff   mcpkit.Tool `title:"Differences" hints:"readonly,closed-world"`
		Show   mcpkit.Tool `title:"Show a commit or a file of it" hints:"readonly,closed-world"`
	}
	dir string
}

// command runs git with options that stop it from running other programs, fetching, asking
// questions and searching above the root. The root is a repository only if it has a .git; it is
// never taken for a bare repository (git 2.38 or newer).
func (g *Git) command(args ...string) command {
	fixed := []string{"--no-pager", "--no-optional-locks", "--literal-pathspecs", "-c", "safe.bareRepository=explicit",
		"-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "color.ui=false"}
	return command{
		dir: g.dir,
		env: []string{"GIT_CEILING_DIRECTORIES=" + filepath.Dir(g.dir), "GIT_TERMINAL_PROMPT=0", "LC_ALL=C",
			"GIT_ALLOW_PROTOCOL=none", "GIT_NO_LAZY_FETCH=1"},
		name: "git",
		args: append(fixed, args...),
	}
}

// revision refuses values that git would read as an option.
func revision(rev string) error {
	if strings.HasPrefix(rev, "-") {
		return mcpkit.Errorf(`the revision %q begins with "-"; write for example HEAD~3, a branch, a tag or a hash`, rev)
	}
	return nil
}

// optionalPath returns the arguments that limit a command to a path; "" means no limit.
func optionalPath(path string) ([]string, error) {
	if path == "" {
		return []string{"--"}, nil
	}
	if err := inside(path); err != nil {
		return nil, err
	}
	return []string{"--", path}, nil
}

// A Status lists the differences between the work tree and the last commit.
type Status struct {
	// The branch and its upstream, as git prints them.
	Branch  string   `json:"branch"`
	Changes []Change `json:"changes"`
}

// A Change is a changed file.
type Change struct {
	Path string `json:"path"`
	// Git's two letters, for the index and for the work tree. ?? marks an untracked file.
	Code string `json:"code"`
	// The previous name of a renamed file.
	From string `json:"from,omitempty"`
}

// Status lists the changes since the last commit.
func (g *Git) Status(ctx context.Context) (Status, error) {
	text, err := g.command("status", "--porcelain=v1", "--branch", "-z").text(ctx)
	if err != nil {
		return Status{}, err
	}
	var s Status
	records := strings.Split(text, "\x00")
	for i := 0; i < len(records); i++ {
		r := records[i]
		if branch, ok := strings.CutPrefix(r, "## "); ok {
			s.Branch = branch
			continue
		}
		if len(r) < 4 {
			continue
		}
		change := Change{Code: r[:2], Path: r[3:]}
		if strings.ContainsAny(change.Code, "RC") && i+1 < len(records) {
			i++
			change.From = records[i]
		}
		s.Changes = append(s.Changes, change)
	}
	return s, nil
}

// LogInput is the input of Log.
type LogInput struct {
	// A branch, a tag, a hash or a range such as v1..main.
	Revision string `json:"revision,omitempty" default:"HEAD"`
	// Only commits that change this file or directory.
	Path string `json:"path,omitempty"`
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
	if err := revision(in.Revision); err != nil {
		return nil, err
	}
	paths, err := optionalPath(in.Path)
	if err != nil {
		return nil, err
	}
	args := []string{"log", "-z", "--no-show-signature", "--format=%H%x1f%an%x1f%aI%x1f%s", "--max-count=" + strconv.Itoa(in.Limit), "--end-of-options", in.Revision}
	text, err := g.command(append(args, paths...)...).text(ctx)
	if err != nil {
		return nil, err
	}
	var commits []Commit
	for record := range strings.SplitSeq(text, "\x00") {
		fields := strings.SplitN(record, "\x1f", 4)
		if len(fields) < 4 {
			continue
		}
		date, _ := time.Parse(time.RFC3339, fields[2])
		commits = append(commits, Commit{Hash: fields[0], Author: fields[1], Date: date, Subject: fields[3]})
	}
	return commits, nil
}

// DiffInput is the input of Diff.
type DiffInput struct {
	// Compare the index with the last commit, instead of the work tree with the index.
	Staged bool `json:"staged,omitempty"`
	// Compare with this revision, or the two revisions of a range such as v1..main.
	Revision string `json:"revision,omitempty"`
	// Only this file or directory.
	Path string `json:"path,omitempty"`
}

// noPrograms stops a repository from naming programs that produce the differences.
var noPrograms = []string{"--no-ext-diff", "--no-textconv"}

// Diff returns the differences as a patch. Without differences it is empty.
func (g *Git) Diff(ctx context.Context, in DiffInput) (string, error) {
	// Always pass a path. Without one, git could read the revision and "--" as names of files.
	paths, err := optionalPath(cmp.Or(in.Path, "."))
	if err != nil {
		return "", err
	}
	args := append([]string{"diff"}, noPrograms...)
	if in.Staged {
		args = append(args, "--cached")
	}
	check := []string{"rev-parse"}
	if in.Revision != "" {
		if err := revision(in.Revision); err != nil {
			return "", err
		}
		args = append(args, "--end-of-options", in.Revision)
		check = append(check, "--end-of-options", in.Revision)
	}
	// Outside a repository, git diff compares files. So check first that there is a repository with
	// this revision.
	if _, err := g.command(append(check, "--")...).text(ctx); err != nil {
		return "", err
	}
	return g.command(append(args, paths...)...).text(ctx)
}

// ShowInput is the input of Show.
type ShowInput struct {
	// A commit, a tag or a branch.
	Revision string `json:"revision,omitempty" default:"HEAD"`
	// A file to show as it was in that commit. Without it, the commit is shown with its patch.
	Path string `json:"path,omitempty"`
}

// Show returns a commit with its patch, or a file as it was in that commit.
func (g *Git) Show(ctx context.Context, in ShowInput) (string, error) {
	if err := revision(in.Revision); err != nil {
		return "", err
	}
	object := in.Revision
	if in.Path != "" {
		if err := inside(in.Path); err != nil {
			return "", err
		}
		object += ":" + filepath.ToSlash(filepath.Clean(in.Path))
	}
	args := append([]string{"show", "--no-show-signature"}, noPrograms...)
	return g.command(append(args, "--end-of-options", object, "--")...).text(ctx)
}

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// Limits for files to read and write.
const (
	maxFileBytes   = 1 << 20
	maxEntries     = 1000
	maxLineBytes   = 400 // a longer match of a search is cut
	maxSearchBytes = 4 << 20
	maxLinks       = 40 // symbolic links on a path
)

// Files reads, writes, lists and searches the files below one directory.
type Files struct {
	_ struct {
		List   mcpkit.Tool     `title:"List a directory" hints:"readonly,closed-world"`
		Read   mcpkit.Tool     `title:"Read a file" hints:"readonly,closed-world"`
		Write  mcpkit.Tool     `title:"Write a file" hints:"destructive,idempotent,closed-world"`
		Search mcpkit.Tool     `title:"Search in files" hints:"readonly,closed-world"`
		File   mcpkit.Resource `uri:"file:///{+path}" title:"A file of the directory"`
	}
	dir  string
	root *os.Root
}

// docs:begin lifecycle

// Start opens the directory as an os.Root. All file access uses it, so no path leads out of the
// directory.
func (f *Files) Start(context.Context) (err error) {
	f.root, err = os.OpenRoot(f.dir)
	return err
}

// Close closes the directory.
func (f *Files) Close() error { return f.root.Close() }

// docs:end lifecycle

// An Entry is one member of a directory.
type Entry struct {
	// Relative to the root, with slashes.
	Path string `json:"path"`
	Kind Kind   `json:"kind"`
	// The size of a file in bytes.
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
}

// Kind is the kind of an entry.
type Kind string

const (
	// A regular file.
	KindFile Kind = "file"
	// A directory.
	KindDirectory Kind = "directory"
	// A symbolic link. It can be read if it leads to a file below the root.
	KindLink Kind = "link"
	// A device, a socket or similar.
	KindOther Kind = "other"
)

// ListInput is the input of List.
type ListInput struct {
	// The directory, relative to the root.
	Path string `json:"path,omitempty" default:"."`
}

// A Listing lists the members of a directory.
type Listing struct {
	Entries []Entry `json:"entries"`
	// Whether there are more entries.
	Truncated bool `json:"truncated"`
}

// List lists the members of a directory, sorted by name.
func (f *Files) List(ctx context.Context, in ListInput) (Listing, error) {
	if err := inside(in.Path); err != nil {
		return Listing{}, err
	}
	entries, err := fs.ReadDir(f.root.FS(), path.Clean(filepath.ToSlash(in.Path)))
	if err != nil {
		return Listing{}, explain(in.Path, err)
	}
	var l Listing
	for _, e := range entries {
		if len(l.Entries) == maxEntries {
			l.Truncated = true
			break
		}
		info, err := e.Info()
		if err != nil {
			continue // deleted meanwhile
		}
		entry := Entry{Path: path.Join(filepath.ToSlash(in.Path), e.Name()), Kind: kindOf(e.Type()), Modified: info.ModTime()}
		if entry.Kind == KindFile {
			entry.Size = info.Size()
		}
		l.Entries = append(l.Entries, entry)
	}
	return l, nil
}

func kindOf(m fs.FileMode) Kind {
	switch {
	case m.IsRegular():
		return KindFile
	case m.IsDir():
		return KindDirectory
	case m&fs.ModeSymlink != 0:
		return KindLink
	}
	return KindOther
}

// ReadInput is the input of Read.
type ReadInput struct {
	// The file, relative to the root.
	Path string `json:"path" example:"README.md"`
}

// Read returns a file: text as text, anything else as a blob.
func (f *Files) Read(ctx context.Context, in ReadInput) (mcpkit.Blob, error) {
	data, err := f.read(in.Path)
	if err != nil {
		return mcpkit.Blob{}, err
	}
	if isText(data) {
		return mcpkit.Blob{Data: data, MIMEType: "text/plain"}, nil
	}
	return mcpkit.Blob{Data: data, URI: fileURI(in.Path)}, nil
}

// File returns a file by its path relative to the root.
func (f *Files) File(path string) (mcpkit.Blob, error) {
	data, err := f.read(path)
	return mcpkit.Blob{Data: data}, err
}

func fileURI(name string) string {
	return (&url.URL{Scheme: "file", Path: "/" + path.Clean(filepath.ToSlash(name))}).String()
}

// read returns the contents of a regular file of limited size.
func (f *Files) read(name string) ([]byte, error) {
	if err := inside(name); err != nil {
		return nil, err
	}
	// Check this before opening the file: opening a pipe blocks.
	info, err := f.root.Stat(name)
	if err != nil {
		return nil, explain(name, err)
	}
	if !info.Mode().IsRegular() {
		return nil, mcpkit.Errorf("%q is not a file but a %s", name, kindOf(info.Mode()))
	}
	file, err := f.root.Open(name)
	if err != nil {
		return nil, explain(name, err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFileBytes+1))
	if err != nil {
		return nil, explain(name, err)
	}
	if len(data) > maxFileBytes {
		return nil, mcpkit.Errorf("%q has %d bytes; the limit is %d", name, max(info.Size(), maxFileBytes+1), maxFileBytes)
	}
	return data, nil
}

func isText(data []byte) bool { return utf8.Valid(data) && bytes.IndexByte(data, 0) < 0 }

// WriteInput is the input of Write.
type WriteInput struct {
	// The file, relative to the root. Missing directories are created.
	Path string `json:"path" example:"notes/todo.txt"`
	// The complete new content.
	Content string `json:"content" validate:"max=1048576"`
}

// Write creates a file or replaces its content.
func (f *Files) Write(ctx context.Context, in WriteInput) (string, error) {
	if err := inside(in.Path); err != nil {
		return "", err
	}
	if len(in.Content) > maxFileBytes {
		return "", mcpkit.Errorf("the content has %d bytes; the limit is %d", len(in.Content), maxFileBytes)
	}
	name, err := f.resolve(in.Path)
	if err != nil {
		return "", err
	}
	if f.ofGit(name) {
		return "", mcpkit.Errorf("%q belongs to git and cannot be written", in.Path)
	}
	if info, err := f.root.Stat(name); err == nil && !info.Mode().IsRegular() {
		return "", mcpkit.Errorf("%q is not a file but a %s", in.Path, kindOf(info.Mode()))
	}
	if err := f.root.MkdirAll(path.Dir(name), 0o777); err != nil {
		return "", explain(in.Path, err)
	}
	if err := f.root.WriteFile(name, []byte(in.Content), 0o666); err != nil {
		return "", explain(in.Path, err)
	}
	return "wrote " + in.Path, nil
}

// resolve follows the symbolic links in a path. The last element need not exist.
func (f *Files) resolve(name string) (string, error) {
	resolved, rest := ".", strings.Split(filepath.ToSlash(name), "/")
	for links := 0; len(rest) > 0; {
		next := path.Join(resolved, rest[0])
		rest = rest[1:]
		if !filepath.IsLocal(next) {
			return "", outside(name)
		}
		target, err := f.root.Readlink(next)
		if err != nil { // not a link, or does not exist
			resolved = next
			continue
		}
		if links++; links > maxLinks {
			return "", mcpkit.Errorf("%q: too many symbolic links", name)
		}
		if filepath.IsAbs(target) {
			return "", outside(name)
		}
		rest = append(strings.Split(filepath.ToSlash(target), "/"), rest...)
	}
	return resolved, nil
}

// ofGit reports whether a path without symbolic links leads into a directory of git. Its
// configuration may name programs that git runs. Such a directory is called .git, in any spelling
// that the file system accepts, or it has the files of a repository, since a file called .git may
// name it.
func (f *Files) ofGit(name string) bool {
	parent := "."
	for part := range strings.SplitSeq(name, "/") {
		here := path.Join(parent, part)
		if strings.EqualFold(strings.TrimRight(part, " ."), ".git") || f.same(here, path.Join(parent, ".git")) ||
			f.exists(path.Join(here, "HEAD")) && (f.exists(path.Join(here, "objects")) || f.exists(path.Join(here, "commondir"))) {
			return true
		}
		parent = here
	}
	return false
}

func (f *Files) exists(name string) bool {
	_, err := f.root.Lstat(name)
	return err == nil
}

func (f *Files) same(a, b string) bool {
	one, err := f.root.Lstat(a)
	if err != nil {
		return false
	}
	other, err := f.root.Lstat(b)
	return err == nil && os.SameFile(one, other)
}

// inside refuses paths that lead out of the root by their text. os.Root refuses those that lead out
// through a symbolic link.
func inside(name string) error {
	if name == "" || !filepath.IsLocal(name) {
		return outside(name)
	}
	return nil
}

func outside(name string) error {
	return mcpkit.Errorf("%q is outside the root: a path must be relative to the root and stay below it, "+
		`neither by ".." nor through a symbolic link`, name)
}

// explain turns an error of the file system into one that the caller may see. It names the
// requested path, not its place on the disk.
func explain(name string, err error) error {
	reason := err
	for pathErr := (*fs.PathError)(nil); errors.As(reason, &pathErr); {
		reason = pathErr.Err
	}
	switch {
	// os.Root has no exported error for a path that escapes.
	case reason.Error() == "path escapes from parent":
		return outside(name)
	case errors.Is(err, fs.ErrNotExist):
		return mcpkit.Errorf("%q does not exist: %w", name, fs.ErrNotExist)
	case errors.Is(err, fs.ErrPermission):
		return mcpkit.Errorf("no permission to access %q", name)
	case reason != err:
		return mcpkit.Errorf("%q: %v", name, reason)
	}
	return err
}

// SearchInput is the input of Search.
type SearchInput struct {
	// A regular expression in Go's syntax (RE2), matched line by line.
	Pattern string `json:"pattern" validate:"max=1000" example:"func Test\\w+"`
	// The directory to search, relative to the root.
	Path string `json:"path,omitempty" default:"."`
	// Only files whose name matches this glob pattern.
	Glob string `json:"glob,omitempty" example:"*.go"`
	// How many lines to return.
	Limit int `json:"limit,omitempty" default:"50" validate:"min=1,max=500"`
}

// A Match is one matching line.
type Match struct {
	Path string `json:"path"`
	Line int    `json:"line"`
	Text string `json:"text"`
}

// Found is the result of a search.
type Found struct {
	Matches []Match `json:"matches"`
	// How many files were searched.
	Files int `json:"files"`
	// Whether the search ended at the limit; there may be more matches.
	Truncated bool `json:"truncated"`
}

// Search finds the lines that match a regular expression, in text files of up to 4 MiB. Directories
// named .git are left out.
func (f *Files) Search(ctx context.Context, in SearchInput) (Found, error) {
	var found Found
	if err := inside(in.Path); err != nil {
		return found, err
	}
	re, err := regexp.Compile(in.Pattern)
	if err != nil {
		return found, mcpkit.Errorf("pattern: %v", err)
	}
	if _, err := path.Match(in.Glob, ""); err != nil {
		return found, mcpkit.Errorf("glob %q: %v", in.Glob, err)
	}
	start := path.Clean(filepath.ToSlash(in.Path))
	err = fs.WalkDir(f.root.FS(), start, func(name string, e fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && name == start:
			return explain(in.Path, err)
		case err != nil:
			return nil // not readable, or deleted meanwhile
		case e.IsDir() && e.Name() == ".git" && name != start:
			return fs.SkipDir
		case !e.Type().IsRegular() || !fits(in.Glob, e.Name()):
			return nil
		}
		if f.searchFile(&found, name, re, in.Limit); found.Truncated {
			return fs.SkipAll
		}
		return nil
	})
	return found, err
}

func fits(glob, name string) bool {
	ok, _ := path.Match(glob, name) // checked before
	return ok || glob == ""
}

// searchFile adds the matching lines of one file. It skips files that cannot be read or are not
// text.
func (f *Files) searchFile(found *Found, name string, re *regexp.Regexp, limit int) {
	file, err := f.root.Open(name)
	if err != nil {
		return
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxSearchBytes+1))
	if err != nil || len(data) > maxSearchBytes || !isText(data) {
		return
	}
	found.Files++
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, maxSearchBytes+1)
	for n := 1; lines.Scan(); n++ {
		if !re.Match(lines.Bytes()) {
			continue
		}
		if len(found.Matches) == limit {
			found.Truncated = true
			return
		}
		found.Matches = append(found.Matches, Match{Path: name, Line: n, Text: shorten(lines.Text(), maxLineBytes)})
	}
}

// shorten cuts s after the last complete character within limit bytes.
func shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit] + "…"
}

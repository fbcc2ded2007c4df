package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/mcpkit/mcpkit-go/mcpkit"
)

const (
	maxFileBytes = 1 << 20
	maxLineBytes = 400 // a longer match of a search is cut
)

// Files reads, lists and searches the files below one directory.
type Files struct {
	_ struct {
		List   mcpkit.Tool     `title:"List a directory" hints:"readonly,closed-world"`
		Read   mcpkit.Tool     `title:"Read a file" hints:"readonly,closed-world" params:"path"`
		Search mcpkit.Tool     `title:"Search in files" hints:"readonly,closed-world"`
		File   mcpkit.Resource `uri:"file:///{+path}" title:"A file of the directory"`
	}
	dir  string
	root *os.Root
}

// Start opens the directory as an os.Root. All file access uses it, so no path leads out of the
// directory.
func (f *Files) Start(context.Context) (err error) {
	f.root, err = os.OpenRoot(f.dir)
	return err
}

// Close closes the directory.
func (f *Files) Close() error { return f.root.Close() }

// ListInput is the input of List.
type ListInput struct {
	// The directory, relative to the root.
	Path string `json:"path,omitempty" default:"."`
}

// An Entry is one member of a directory.
type Entry struct {
	Name string `json:"name"`
	// Whether it is a directory.
	Dir bool `json:"dir"`
}

// List lists the members of a directory, sorted by name.
func (f *Files) List(in ListInput) ([]Entry, error) {
	members, err := fs.ReadDir(f.root.FS(), path.Clean(in.Path))
	if err != nil {
		return nil, explain(in.Path, err)
	}
	var entries []Entry
	for _, m := range members {
		entries = append(entries, Entry{m.Name(), m.IsDir()})
	}
	return entries, nil
}

// Read returns a file: text as text, anything else as a blob.
func (f *Files) Read(path string) (mcpkit.Blob, error) {
	data, err := f.read(path)
	if err == nil && utf8.Valid(data) {
		return mcpkit.Blob{Data: data, MIMEType: "text/plain"}, nil
	}
	return mcpkit.Blob{Data: data, URI: "file:///" + path}, err
}

// File returns a file by its path relative to the root.
func (f *Files) File(path string) (mcpkit.Blob, error) {
	data, err := f.read(path)
	return mcpkit.Blob{Data: data}, err
}

// read returns the contents of a regular file of limited size.
func (f *Files) read(name string) ([]byte, error) {
	info, err := f.root.Stat(name)
	if err != nil {
		return nil, explain(name, err)
	}
	if !info.Mode().IsRegular() { // opening a pipe blocks
		return nil, mcpkit.Errorf("%q is not a file", name)
	}
	file, err := f.root.Open(name)
	if err != nil {
		return nil, explain(name, err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFileBytes+1))
	if len(data) > maxFileBytes {
		return nil, mcpkit.Errorf("%q is larger than %d bytes", name, maxFileBytes)
	}
	return data, err
}

// explain turns an error of the file system into one that the caller may see. It names the
// requested path, not its place on the disk.
func explain(name string, err error) error {
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return mcpkit.Errorf("%q: %w", name, failed.Err)
	}
	return err
}

// SearchInput is the input of Search.
type SearchInput struct {
	// A regular expression in Go's syntax (RE2), matched line by line.
	Pattern string `json:"pattern" validate:"max=1000" example:"func Test\\w+"`
	// Only files whose name matches this glob pattern.
	Glob string `json:"glob,omitempty" default:"*" example:"*.go"`
	// How many lines to return.
	Limit int `json:"limit,omitempty" default:"50" validate:"min=1,max=500"`
}

// A Match is one matching line.
type Match struct {
	Path string `json:"path"`
	Line int    `json:"line"`
	Text string `json:"text"`
}

// Search finds the lines that match a regular expression, in text files of up to 1 MiB. Directories
// named .git are left out.
func (f *Files) Search(ctx context.Context, in SearchInput) ([]Match, error) {
	re, err := regexp.Compile(in.Pattern)
	if err != nil {
		return nil, mcpkit.Errorf("pattern: %v", err)
	}
	var found []Match
	err = fs.WalkDir(f.root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return nil // not readable, or deleted meanwhile
		case e.IsDir() && e.Name() == ".git":
			return fs.SkipDir
		}
		if fits, err := path.Match(in.Glob, e.Name()); err != nil {
			return mcpkit.Errorf("glob %q: %v", in.Glob, err)
		} else if !fits || !e.Type().IsRegular() {
			return nil
		}
		if found = append(found, f.matches(name, re)...); len(found) >= in.Limit {
			return fs.SkipAll
		}
		return nil
	})
	return found[:min(len(found), in.Limit)], err
}

// shorten cuts a long line.
func shorten(line string) string {
	return strings.ToValidUTF8(line[:min(len(line), maxLineBytes)], "\uFFFD")
}

// matches returns the matching lines of one file, if it is text.
func (f *Files) matches(name string, re *regexp.Regexp) (found []Match) {
	data, err := f.read(name)
	if err != nil || !utf8.Valid(data) {
		return nil
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, maxFileBytes+1)
	for n := 1; lines.Scan(); n++ {
		if line := lines.Text(); re.MatchString(line) {
			found = append(found, Match{name, n, shorten(line)})
		}
	}
	return found
}

package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// DefaultPrefix is the prefix of the names of environment variables.
const DefaultPrefix = "MCPKIT_"

// maxFile is the largest size of a file, in bytes.
const maxFile = 256 << 10

// An Error is a mistake in a file or in the environment.
type Error struct {
	File string // or "environment"
	// Line and Column count from 1, columns in characters. They are 0 for the environment, and for
	// mistakes that have no place in the file.
	Line, Column int
	Key          string // "transport.http.addr", or the name of a variable
	Msg          string
}

// Error returns the place and the mistake.
func (e *Error) Error() string {
	at := e.File
	if e.Line > 0 {
		at += fmt.Sprintf(":%d", e.Line)
	}
	if e.Column > 0 {
		at += fmt.Sprintf(":%d", e.Column)
	}
	if e.Key == "" {
		return fmt.Sprintf("config: %s: %s", at, e.Msg)
	}
	return fmt.Sprintf("config: %s: %s: %s", at, e.Key, e.Msg)
}

// An Option changes how [Load] and [Parse] read the environment.
type Option func(*loader)

// Prefix replaces [DefaultPrefix]. With the prefix "", nothing is read from the environment.
func Prefix(p string) Option { return func(l *loader) { l.prefix = p } }

// Environ replaces os.Environ by a list of "KEY=value".
func Environ(env []string) Option { return func(l *loader) { l.environ = env } }

// A loader collects values and mistakes.
type loader struct {
	file    string // as shown in errors
	dir     string // relative paths start here
	prefix  string
	environ []string

	env    map[string]string
	used   map[string]bool  // variables that secrets refer to
	places map[string]place // of keys, values and items, by their paths
	faulty map[string]bool  // paths that have a fault
	faults []error
}

// Load reads the file at path, if path is not "", and the environment. The error joins all
// mistakes, each an [*Error].
func Load(path string, opts ...Option) (*Config, error) {
	var data []byte
	if path != "" {
		info, err := os.Stat(path)
		if err == nil && info.Size() > maxFile {
			err = fmt.Errorf("%s has %d bytes; the limit is %d bytes", path, info.Size(), maxFile)
		}
		if err == nil {
			data, err = os.ReadFile(path)
		}
		if err != nil {
			return nil, fmt.Errorf("config: %w", err)
		}
	}
	return Parse(path, data, opts...)
}

// Parse is like [Load], for the contents of a file. name is the path of the file: errors contain
// it, and relative paths in the file start at its folder.
func Parse(name string, data []byte, opts ...Option) (*Config, error) {
	l := &loader{file: name, dir: filepath.Dir(name), prefix: DefaultPrefix, environ: os.Environ(), env: map[string]string{}, used: map[string]bool{},
		places: map[string]place{}, faulty: map[string]bool{}}
	for _, o := range opts {
		o(l)
	}
	for _, entry := range l.environ {
		if key, value, ok := strings.Cut(entry, "="); ok {
			l.env[key] = value
		}
	}
	if len(data) > maxFile {
		return nil, &Error{File: name, Msg: fmt.Sprintf("it has %d bytes; the limit is %d bytes", len(data), maxFile)}
	}
	root, err := parse(name, data)
	if err != nil {
		return nil, err
	}
	c := new(Config)
	l.decode(c, root)
	if err := errors.Join(l.faults...); err != nil {
		return nil, err
	}
	return c, nil
}

// fault adds a mistake of the value or the key at path. If the path is not in the file, the mistake
// is reported at the map that should contain it. A value has only its first mistake: what is found
// later may follow from that.
func (l *loader) fault(path, format string, args ...any) {
	if l.faulty[path] {
		return
	}
	l.faulty[path] = true
	e := &Error{File: l.file, Key: path, Msg: fmt.Sprintf(format, args...)}
	if path == "" {
		e.Line, e.Column = l.places[""].line, l.places[""].column
	}
	for at := path; at != ""; at = at[:max(0, strings.LastIndexAny(at, ".["))] {
		if p, ok := l.places[at]; ok {
			e.Line, e.Column = p.line, p.column
			if p.variable != "" {
				e.File, e.Key = "environment", p.variable
			}
			break
		}
	}
	l.faults = append(l.faults, e)
}

package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// DefaultPrefix is what the names of variables begin with.
const DefaultPrefix = "MCPKIT_"

// maxFile bounds a file, in bytes.
const maxFile = 256 << 10

// An Error is something wrong with what was said.
type Error struct {
	File string // or "environment"
	// Line and Column count from 1, columns in characters. They are 0 for the environment, and
	// where no place of the file is meant.
	Line, Column int
	Key          string // "transport.http.addr", or the name of a variable
	Msg          string
}

// Error says where, and what is wrong.
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

// An Option says where to load from.
type Option func(*loader)

// Prefix replaces [DefaultPrefix]; "" takes nothing from the environment.
func Prefix(p string) Option { return func(l *loader) { l.prefix = p } }

// Environ gives the environment in place of os.Environ: "KEY=value".
func Environ(env []string) Option { return func(l *loader) { l.environ = env } }

// loader collects what was said and what was wrong with it.
type loader struct {
	file    string // as it is to be shown
	dir     string // what files are relative to
	prefix  string
	environ []string

	env    map[string]string
	used   map[string]bool  // variables that secrets refer to
	places map[string]place // of keys, values and items, by their paths
	faults []error
}

// Load reads the file at path, unless that is "", and the environment. The error joins everything
// that is wrong, each an [*Error].
func Load(path string, opts ...Option) (*Config, error) {
	var data []byte
	if path != "" {
		f, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("config: %w", err)
		}
		defer f.Close()
		info, err := f.Stat()
		if err == nil && info.Size() > maxFile {
			err = fmt.Errorf("%s has %d bytes; at most %d are read", path, info.Size(), maxFile)
		}
		if err != nil {
			return nil, fmt.Errorf("config: %w", err)
		}
		if data, err = os.ReadFile(path); err != nil {
			return nil, fmt.Errorf("config: %w", err)
		}
	}
	return Parse(path, data, opts...)
}

// Parse is Load of a file whose contents are at hand; name is what it is called in errors, and the
// folder of it is what files are relative to.
func Parse(name string, data []byte, opts ...Option) (*Config, error) {
	l := &loader{file: name, dir: filepath.Dir(name), prefix: DefaultPrefix, environ: os.Environ(), env: map[string]string{}, used: map[string]bool{},
		places: map[string]place{}}
	for _, o := range opts {
		o(l)
	}
	for _, entry := range l.environ {
		if key, value, ok := strings.Cut(entry, "="); ok {
			l.env[key] = value
		}
	}
	if len(data) > maxFile {
		return nil, &Error{File: name, Msg: fmt.Sprintf("it has %d bytes; at most %d are read", len(data), maxFile)}
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

// fault keeps what is wrong with the value at path, or with the key itself. What is not there is
// wrong where the map is that it should be in.
func (l *loader) fault(path, format string, args ...any) {
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

package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// DefaultPrefix is what the names of variables begin with.
const DefaultPrefix = "MCPKIT_"

// maxFile bounds a file, in bytes.
const maxFile = 256 << 10

// An Error is something wrong with what was said.
type Error struct {
	File string // or "environment"
	Line int    // 0 for the environment, and for what is missing altogether
	Key  string // "transport.http.addr", or the name of a variable
	Msg  string
}

// Error says where, and what is wrong.
func (e *Error) Error() string {
	at := e.File
	if e.Line > 0 {
		at = fmt.Sprintf("%s:%d", e.File, e.Line)
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
	used   map[string]bool // variables that secrets refer to
	faults []error
}

// Load reads the file at path, unless that is "", and the environment. The error joins everything that is wrong, each an
// [*Error].
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

// Parse is Load of a file whose contents are at hand; name is what it is called in errors, and the folder of it is what files
// are relative to.
func Parse(name string, data []byte, opts ...Option) (*Config, error) {
	l := &loader{file: name, dir: filepath.Dir(name), prefix: DefaultPrefix, environ: os.Environ(), env: map[string]string{}, used: map[string]bool{}}
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
	l.decodeRoot(c, root)
	if err := errors.Join(l.faults...); err != nil {
		return nil, err
	}
	return c, nil
}

func (l *loader) fault(line int, key, format string, args ...any) {
	l.faults = append(l.faults, &Error{File: l.file, Line: line, Key: key, Msg: fmt.Sprintf(format, args...)})
}

func (l *loader) envFault(name, format string, args ...any) {
	l.faults = append(l.faults, &Error{File: "environment", Key: name, Msg: fmt.Sprintf(format, args...)})
}

// variables are the names in the environment that begin with the prefix, sorted. A variable that is empty is none.
func (l *loader) variables() []string {
	if l.prefix == "" {
		return nil
	}
	var names []string
	for name, value := range l.env {
		if strings.HasPrefix(name, l.prefix) && value != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

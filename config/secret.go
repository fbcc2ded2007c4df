package config

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// maxSecret is the largest size of a file with a secret, in bytes.
const maxSecret = 64 << 10

// path returns the path of a named file.
func (l *loader) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(l.dir, name)
}

// secret reads the value that a reference names. Its errors do not contain the value.
func (l *loader) secret(ref string) (Secret, error) {
	s := Secret{source: source{ref}}
	rest, coded := strings.CutPrefix(ref, "base64:")
	scheme, name, ok := strings.Cut(rest, ":")
	switch {
	case ok && scheme == "env" && name != "":
		l.used[name] = true
		s.value = []byte(l.env[name])
		if len(s.value) == 0 {
			return s, fmt.Errorf("the variable %s, which should contain the secret, is not set", name)
		}
	case ok && scheme == "file" && name != "":
		name = l.path(name)
		f, err := os.Open(name)
		if err != nil {
			return s, fmt.Errorf("the secret cannot be read: %w", err)
		}
		defer f.Close()
		if s.value, err = io.ReadAll(io.LimitReader(f, maxSecret)); err != nil {
			return s, fmt.Errorf("the secret cannot be read: %w", err)
		}
		s.value = bytes.TrimRight(s.value, " \t\r\n")
		if len(s.value) == 0 {
			return s, fmt.Errorf("the file %s, which should contain the secret, is empty", name)
		}
	default:
		return Secret{}, errors.New("this is a string; want a reference, env:NAME or file:PATH, since a file must not contain secrets")
	}
	if coded {
		decoded, err := base64.StdEncoding.DecodeString(string(s.value))
		if err != nil {
			return s, errors.New("the referenced value is not base64")
		}
		s.value = decoded
	}
	return s, nil
}

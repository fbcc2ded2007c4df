package config

import (
	"bytes"
	"errors"
	"net/url"
	"os"
	"regexp"
)

// A Secret is a value that a reference names: env:NAME or file:PATH. It prints as the reference.
type Secret struct {
	from  string
	value []byte
}

// Bytes returns the value.
func (s Secret) Bytes() []byte { return s.value }

// String returns the reference, never the value.
func (s Secret) String() string { return s.from }

// GoString returns the reference, never the value.
func (s Secret) GoString() string { return s.from }

// MarshalText writes the reference, never the value.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.from), nil }

var reference = regexp.MustCompile(`^(env|file):(.+)$`)

// UnmarshalText reads a reference. Its errors do not contain the text.
func (s *Secret) UnmarshalText(text []byte) error {
	if !reference.Match(text) {
		return errors.New("this is a text; want a reference, env:NAME or file:PATH, since a file must not contain secrets")
	}
	s.from = string(text)
	return nil
}

// An EngineURL says where the engine of a fleet is. It is a URL without a user and a password, or
// refers to one as a [Secret] does. It prints as the reference, or without what may be secret.
type EngineURL struct{ Secret }

// URL returns the URL, which may have a password. It is "" if it is not set.
func (e EngineURL) URL() string { return string(e.value) }

// UnmarshalText reads a URL or a reference to one. Its errors do not contain the text.
func (e *EngineURL) UnmarshalText(text []byte) error {
	if reference.Match(text) {
		return e.Secret.UnmarshalText(text)
	}
	u, err := url.Parse(string(text))
	switch {
	case err != nil || u.Scheme == "":
		return errors.New("this is not a URL; write for example redis://localhost:6379")
	case u.User != nil:
		return errors.New("this URL has a password; put it into a variable or a file, and write env:NAME or file:PATH")
	}
	e.value = bytes.Clone(text)
	u.RawQuery, u.Fragment = "", ""
	e.from = u.String()
	return nil
}

// secret reads the value that s refers to. Its errors do not contain the value.
func (l *loader) secret(path string, s *Secret) {
	parts := reference.FindStringSubmatch(s.from)
	if parts == nil {
		return // not set, or a URL
	}
	if name := parts[2]; parts[1] == "env" {
		l.used[name] = true
		s.value = []byte(l.env[name])
	} else {
		text, err := os.ReadFile(l.path(name))
		if err != nil {
			l.fault(path, "the secret cannot be read: %w", err)
		}
		s.value = bytes.TrimRight(text, " \t\r\n")
	}
	if len(s.value) == 0 {
		l.fault(path, "%s, which should contain the secret, is empty or not set", s.from)
	}
}

// Package uritemplate matches URIs with the URI templates (RFC 6570) of resources.
//
// Of the RFC's forms it accepts {id}, {+path}, {/path*} and, at the end, {?a,b}. Values are strings.
// The RFC does not define matching. Here the template becomes a regular expression, which takes time
// linear in the length of the URI. Each value is decoded exactly once, and refused if it would be
// unsafe in a file path; see [Template.Match].
package uritemplate

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxTemplate is the length of the longest template, in bytes.
const maxTemplate = 4096

// MaxURI is the length of the longest URI that a template can match, in bytes.
const MaxURI = 8192

// A Template is a parsed URI template. It never changes and is safe for concurrent use.
type Template struct {
	text   string
	prefix string         // the literal text before the first variable
	vars   []string       // those of the path, then those of the query
	lists  []string       // the variables of {/path*}
	query  []string       // the variables of {?a,b}
	path   *regexp.Regexp // with one group for each variable of the path

	canonical *regexp.Regexp // like path, for canonical forms
}

// The patterns of variables. They are lazy, so that earlier variables get the shorter values.
const (
	patternOne  = `([^/?#]+?)`      // {id}
	patternPath = `([^?#]+?)`       // {+path}
	patternList = `(?:/([^?#]*?))?` // {/path*}
)

const forms = "a template may have {id}, {+path} for a value with slashes, {/path*} for segments, " +
	"and {?a,b} at its end"

// Parse parses a template. The error says where it is wrong and what to write.
func Parse(s string) (*Template, error) {
	t := &Template{text: s}
	if err := t.parse(); err != nil {
		return nil, fmt.Errorf("uri template %q: %w", s, err)
	}
	return t, nil
}

func (t *Template) parse() error {
	decoded, _ := url.PathUnescape(t.text) // escape says what is wrong
	switch {
	case len(t.text) > maxTemplate:
		return fmt.Errorf("it has %d bytes; at most %d are allowed", len(t.text), maxTemplate)
	case !utf8.ValidString(decoded):
		return errors.New("it is not valid UTF-8")
	case hasDotDot(decoded):
		return errors.New(`it has a ".." segment`)
	}
	pattern, canonical := "", ""
	for rest := t.text; rest != ""; {
		text, inside, opened := strings.Cut(rest, "{")
		literal, err := escape(text)
		if err != nil {
			return err
		}
		if len(t.vars) == 0 {
			t.prefix = literal
		}
		pattern += regexp.QuoteMeta(literal)
		if !opened || strings.IndexAny(inside, "?/") == 0 { // the path may end here
			canonical += regexp.QuoteMeta(Canonical(literal))
		} else {
			canonical += regexp.QuoteMeta(canonicalPart(literal))
		}
		if !opened {
			break
		}
		expression, after, closed := strings.Cut(inside, "}")
		if !closed || strings.Contains(expression, "{") {
			return fmt.Errorf(`the "{" before %q is not closed; add a "}"`, inside)
		}
		variable, err := t.expression(strings.TrimSuffix(t.text, "{"+inside), expression, after)
		if err != nil {
			return fmt.Errorf("{%s}: %w", expression, err)
		}
		pattern, canonical = pattern+variable, canonical+variable
		rest = after
	}
	t.path, t.canonical = regexp.MustCompile("^"+pattern+"$"), regexp.MustCompile("^"+canonical+"$")
	return nil
}

// escape returns text outside of expressions as it is in URIs.
func escape(s string) (string, error) {
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == '}':
			return "", errors.New(`there is a "}" without a "{"; write %7D for the character itself`)
		case r <= ' ' || r == 0x7f || strings.ContainsRune("\"<>\\^`|", r):
			return "", fmt.Errorf("%q cannot stand in a URI; write %%%02X for it", r, r)
		case r == '%':
			if _, err := url.PathUnescape(s[i:min(i+len("%xx"), len(s))]); err != nil {
				return "", fmt.Errorf("the %% before %q is not followed by two digits; write %%25 for a percent sign", s[i+1:])
			}
			b.WriteByte('%')
		case r >= utf8.RuneSelf:
			b.WriteString(url.PathEscape(string(r)))
		default:
			b.WriteRune(r)
		}
	}
	return b.String(), nil
}

// expression adds the variables of the text s between braces, and returns the pattern of its value.
// The rest of the template is before and after it.
func (t *Template) expression(before, s, after string) (pattern string, err error) {
	names, pattern := []string{s}, patternOne
	switch {
	case strings.HasPrefix(s, "?"):
		if names, pattern = strings.Split(s[1:], ","), ""; after != "" {
			return "", errors.New("a query may only stand at the end")
		}
		t.query = names
	case strings.HasPrefix(s, "+"):
		names[0], pattern = s[1:], patternPath
	case strings.HasPrefix(s, "/") && strings.HasSuffix(s, "*"):
		names[0], pattern = s[1:len(s)-1], patternList
		t.lists = append(t.lists, names[0])
	}
	for _, name := range names {
		switch {
		case !validName.MatchString(name):
			return "", errors.New("it is not accepted; " + forms + "; names have letters, digits, '_' and '.'")
		case slices.Contains(t.vars, name):
			return "", fmt.Errorf("the variable %q is there twice; give each its own name", name)
		}
		t.vars = append(t.vars, name)
	}
	if strings.ContainsAny(before, "?#") {
		return "", errors.New("variables cannot follow ? or #; write {?a,b} at the end")
	}
	if strings.HasSuffix(before, "}") && (pattern == patternOne || pattern == patternPath) {
		return "", fmt.Errorf("nothing divides the variables %q and %q; put a character between them",
			t.vars[len(t.vars)-2], names[0])
	}
	return pattern, nil
}

var validName = regexp.MustCompile(`^[0-9A-Za-z_]+(\.[0-9A-Za-z_]+)*$`)

// Vars returns the names of the variables in the order of the template. The caller may change the
// slice.
func (t *Template) Vars() []string { return slices.Clone(t.vars) }

// IsList reports whether the value of a variable is segments joined by slashes: {/name*}.
func (t *Template) IsList(name string) bool { return slices.Contains(t.lists, name) }

// Prefix returns the literal text that every URI of the template begins with.
func (t *Template) Prefix() string { return t.prefix }

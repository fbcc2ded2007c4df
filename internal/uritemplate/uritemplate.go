// Package uritemplate matches URIs with the URI templates (RFC 6570) of resources.
//
// Of the RFC's forms it accepts {id}, {+path}, {/path*} and, at the end, {?a,b}. Values are strings.
// The RFC does not define matching. Here it takes time linear in the length of the URI, decodes
// each value exactly once, and refuses values that would be unsafe in a file path; see
// [Template.Match].
package uritemplate

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of a template. They are generous, since templates are written by the program's author.
const (
	maxTemplate = 4096
	maxVars     = 64
)

// A Template is a parsed URI template. It never changes and is safe for concurrent use.
type Template struct {
	text  string
	vars  []string
	path  []element // all but the query
	query []string  // the variables of {?a,b}
}

// An element is a literal or a variable.
type element struct {
	literal string // as in a URI; "" for a variable
	name    string
	kind    byte // of a variable: 0 for {id}, '+' for {+path}, '/' for {/path*}
}

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
	switch {
	case len(t.text) > maxTemplate:
		return fmt.Errorf("it has %d bytes; at most %d are allowed", len(t.text), maxTemplate)
	case !utf8.ValidString(t.text):
		return errors.New("it is not valid UTF-8")
	case climbs(t.text):
		return errors.New(`it has a ".." segment`)
	}
	for rest := t.text; rest != ""; {
		text, after, opened := strings.Cut(rest, "{")
		if err := t.literal(text); err != nil {
			return err
		}
		if rest = after; !opened {
			break
		}
		expression, after, closed := strings.Cut(rest, "}")
		if !closed || strings.Contains(expression, "{") {
			return fmt.Errorf(`the "{" before %q is not closed; add a "}"`, rest)
		}
		if err := t.expression(expression, after); err != nil {
			return fmt.Errorf("{%s}: %w", expression, err)
		}
		rest = after
	}
	return nil
}

// literal adds text outside of expressions.
func (t *Template) literal(s string) error {
	if s == "" {
		return nil
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == '}':
			return errors.New(`there is a "}" without a "{"; write %7D for the character itself`)
		case r <= ' ' || r == 0x7f || strings.ContainsRune("\"<>\\^`|", r):
			return fmt.Errorf("%q cannot stand in a URI; write %%%02X for it", r, r)
		case r == '%':
			if _, err := url.PathUnescape(s[i:min(i+len("%xx"), len(s))]); err != nil {
				return fmt.Errorf("the %% before %q is not followed by two digits; write %%25 for a percent sign", s[i+1:])
			}
			b.WriteByte('%')
		case r >= utf8.RuneSelf:
			b.WriteString(url.PathEscape(string(r)))
		default:
			b.WriteRune(r)
		}
	}
	t.path = append(t.path, element{literal: b.String()})
	return nil
}

// expression adds the text between braces. after is the rest of the template.
func (t *Template) expression(s, after string) error {
	names := []string{s}
	e := element{}
	switch {
	case strings.HasPrefix(s, "?"):
		if names = strings.Split(s[1:], ","); after != "" {
			return errors.New("a query may only stand at the end")
		}
		t.query = names
	case strings.HasPrefix(s, "+"):
		names[0], e.kind = s[1:], '+'
	case strings.HasPrefix(s, "/") && strings.HasSuffix(s, "*"):
		names[0], e.kind = s[1:len(s)-1], '/'
	}
	for _, name := range names {
		switch {
		case !isName(name):
			return errors.New("it is not accepted; " + forms + "; names have letters, digits, '_' and '.'")
		case slices.Contains(t.vars, name):
			return fmt.Errorf("the variable %q is there twice; give each its own name", name)
		}
		t.vars = append(t.vars, name)
	}
	if len(t.vars) > maxVars {
		return fmt.Errorf("there are more than %d variables", maxVars)
	}
	for _, before := range t.path {
		if strings.ContainsAny(before.literal, "?#") {
			return errors.New("variables cannot follow ? or #; write {?a,b} at the end")
		}
	}
	if t.query != nil {
		return nil
	}
	if n := len(t.path); n > 0 && t.path[n-1].literal == "" && e.kind != '/' {
		return fmt.Errorf("nothing divides the variables %q and %q; put a character between them", t.path[n-1].name, names[0])
	}
	e.name = names[0]
	t.path = append(t.path, e)
	return nil
}

// isName reports whether s has only letters, digits, '_' and single dots between them.
func isName(s string) bool {
	for part := range strings.SplitSeq(s, ".") {
		if part == "" {
			return false
		}
		for _, r := range part {
			if !(r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
				return false
			}
		}
	}
	return true
}

// Vars returns the names of the variables in the order of the template. The caller may change the
// slice.
func (t *Template) Vars() []string { return slices.Clone(t.vars) }

// IsList reports whether the value of a variable is segments joined by slashes: {/name*}.
func (t *Template) IsList(name string) bool {
	return slices.Contains(t.path, element{name: name, kind: '/'})
}

// Prefix returns the literal text that every URI of the template begins with.
func (t *Template) Prefix() string {
	if len(t.path) == 0 {
		return ""
	}
	return t.path[0].literal
}

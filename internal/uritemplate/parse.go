package uritemplate

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// Limits of a template. They are generous, since templates are written by the program's author.
const (
	maxTemplate = 4096
	maxVars     = 64
	maxPrefix   = 9999 // RFC 6570, section 2.4.1
)

// Parse parses a template. The error says where it is wrong and what to write.
func Parse(s string) (*Template, error) {
	t := &Template{text: s}
	if err := t.parse(); err != nil {
		return nil, fmt.Errorf("uri template %q: %w", s, err)
	}
	t.compile()
	return t, nil
}

// parse divides the template into pieces.
func (t *Template) parse() error {
	s := t.text
	switch {
	case len(s) > maxTemplate:
		return fmt.Errorf("it has %d bytes; at most %d are allowed", len(s), maxTemplate)
	case !utf8.ValidString(s):
		return fmt.Errorf("it is not valid UTF-8")
	}
	for i := 0; i < len(s); {
		open := strings.IndexAny(s[i:], "{}")
		if open < 0 {
			open = len(s) - i
		}
		if open > 0 {
			if err := t.literal(s[i : i+open]); err != nil {
				return err
			}
			i += open
			continue
		}
		if s[i] == '}' {
			return fmt.Errorf(`there is a "}" without a "{" at character %d; write %%7D for the character itself`, at(s, i))
		}
		end := strings.IndexAny(s[i+1:], "{}")
		if end < 0 || s[i+1+end] == '{' {
			return fmt.Errorf(`the "{" at character %d is not closed; add a "}"`, at(s, i))
		}
		if err := t.expression(s[i+1 : i+1+end]); err != nil {
			return err
		}
		i += 1 + end + 1
	}
	return nil
}

// at returns the position of s[i] in characters from 1.
func at(s string, i int) int { return utf8.RuneCountInString(s[:i]) + 1 }

// literal adds text outside of expressions, percent-encoded as section 3.1 requires.
func (t *Template) literal(s string) error {
	var b strings.Builder
	for i, r := range s {
		switch {
		case r <= ' ' || r == 0x7f || strings.ContainsRune("\"'<>\\^`|", r):
			// The RFC's grammar does not allow the apostrophe (erratum 6937 allows it), but URIs
			// contain it.
			if r != '\'' {
				return fmt.Errorf("%q cannot stand in a URI; write %%%02X for it", r, r)
			}
			b.WriteByte('\'')
		case r == '%' && !isTriplet(s[i:]):
			return fmt.Errorf("%q is not a percent-encoded character; write %%25 for a percent sign", s[i:min(i+3, len(s))])
		case r >= utf8.RuneSelf:
			encode(&b, string(r))
		default:
			b.WriteRune(r)
		}
	}
	t.pieces = append(t.pieces, piece{literal: b.String()})
	return nil
}

// expression parses the text between braces.
func (t *Template) expression(s string) error {
	if s == "" {
		return fmt.Errorf(`"{}" names no variable; write {name}`)
	}
	op, rest := &operators[0], s
	for i := range operators {
		if operators[i].char == s[0] {
			op, rest = &operators[i], s[1:]
		}
	}
	if op.char == 0 && strings.IndexByte("=,!@|$*", s[0]) >= 0 {
		return fmt.Errorf(`{%s}: %q is not an operator; the operators are + # . / ; ? &`, s, s[0])
	}
	piece := piece{op: op}
	for part := range strings.SplitSeq(rest, ",") {
		v, err := t.variable(s, op, part)
		if err != nil {
			return fmt.Errorf("{%s}: %w", s, err)
		}
		piece.specs = append(piece.specs, v)
	}
	t.pieces = append(t.pieces, piece)
	return nil
}

// variable parses a variable with its modifier.
func (t *Template) variable(expr string, op *operator, s string) (spec, error) {
	name, modifier := s, ""
	if i := strings.IndexAny(s, ":*"); i >= 0 {
		name, modifier = s[:i], s[i:]
	}
	v := spec{name: name, index: len(t.vars)}
	switch {
	case name == "":
		return v, fmt.Errorf("a variable has no name; write one, without spaces, and commas only between names")
	case !varName().MatchString(name):
		return v, fmt.Errorf("%q is not a name of a variable; write letters, digits, '_' and '.'", name)
	case slices.Contains(t.vars, name):
		return v, fmt.Errorf("the variable %q is there twice; give each its own name", name)
	case len(t.vars) == maxVars:
		return v, fmt.Errorf("there are more than %d variables", maxVars)
	case modifier == "*" && op.char == '/' && strings.Count(expr, ",") == 0:
		v.explode = true
	case modifier == "*":
		return v, fmt.Errorf("of the explode modifier only {/name*} is supported; write {+%s} for a value with slashes", name)
	case modifier != "":
		n, err := strconv.Atoi(modifier[1:])
		if modifier[0] != ':' || err != nil || n < 1 || n > maxPrefix || modifier[1] == '+' || modifier[1] == '0' {
			return v, fmt.Errorf("the modifier %q is none; write :n for the first n characters, n from 1 to %d", modifier, maxPrefix)
		}
		v.prefix = n
	}
	t.vars = append(t.vars, name)
	return v, nil
}

// varName is the grammar of section 2.3.
var varName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(\w|%[0-9A-Fa-f]{2})+(\.(\w|%[0-9A-Fa-f]{2})+)*$`) })

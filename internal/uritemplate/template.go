// Package uritemplate expands and matches URI templates (RFC 6570), those that name resources.
//
// It knows levels 1 to 3 (every operator, several variables in an expression), the prefix modifier
// {var:3}, and of the explode modifier the one form {/path*}, whose value is the segments with
// slashes between. Values are strings.
//
// Matching is not a part of the RFC. Here it takes time linear in the length of the URI, decodes
// each value exactly once, and refuses values that would surprise whoever makes a path of them; see
// [Template.Match].
package uritemplate

import "strings"

// A Template is a parsed URI template. It never changes and is safe for concurrent use.
type Template struct {
	text   string
	vars   []string
	pieces []piece // in order, for Expand

	prefix   string
	path     []element // for Match: what comes before the query and the fragment
	query    []param
	fragment []element
	hasQuery bool // the query is one in any order
	dotdot   bool // the template's own text has a ".." segment
}

// A piece is a literal, as it stands in a URI, or an expression.
type piece struct {
	literal string
	op      *operator // nil for a literal
	specs   []spec
}

// A spec is a variable in an expression.
type spec struct {
	name    string
	index   int // in Template.vars
	prefix  int // 0 means the whole value
	explode bool
}

// An operator says how the variables of an expression are written: RFC 6570, appendix A.
type operator struct {
	char     byte // 0 for none
	first    string
	sep      string
	named    bool
	ifEmpty  string
	reserved bool // reserved characters and %xx stay as they are
}

var operators = []operator{
	{char: 0, sep: ","},
	{char: '+', sep: ",", reserved: true},
	{char: '#', first: "#", sep: ",", reserved: true},
	{char: '.', first: ".", sep: "."},
	{char: '/', first: "/", sep: "/"},
	{char: ';', first: ";", sep: ";", named: true},
	{char: '?', first: "?", sep: "&", named: true, ifEmpty: "="},
	{char: '&', first: "&", sep: "&", named: true, ifEmpty: "="},
}

// String returns the template as it was parsed.
func (t *Template) String() string { return t.text }

// Vars returns the names of the variables in the order of the template. The slice is the caller's.
func (t *Template) Vars() []string { return append([]string(nil), t.vars...) }

// Prefix returns the literal text that every URI of the template begins with: what matches can be
// looked for among the templates whose Prefix the URI has. The order of a query is free, so that it
// is no part of it.
func (t *Template) Prefix() string { return t.prefix }

// Expand returns the URI in which the variables have the values. A variable without a value is left
// out as the RFC says (section 3.2.1), with the separator that would have been before it. The value
// of {/path*} is divided at its slashes.
func (t *Template) Expand(values map[string]string) string {
	var b strings.Builder
	for _, p := range t.pieces {
		if p.op == nil {
			b.WriteString(p.literal)
			continue
		}
		lead := p.op.first
		for _, s := range p.specs {
			value, ok := values[s.name]
			if !ok {
				continue
			}
			b.WriteString(lead)
			lead = p.op.sep
			s.expand(&b, p.op, value)
		}
	}
	return b.String()
}

func (s spec) expand(b *strings.Builder, op *operator, value string) {
	if op.named {
		b.WriteString(s.name)
		if value == "" {
			b.WriteString(op.ifEmpty)
			return
		}
		b.WriteByte('=')
	}
	if s.prefix > 0 {
		value = prefix(value, s.prefix)
	}
	if !s.explode {
		encode(b, value, op.reserved)
		return
	}
	for i, segment := range strings.Split(value, "/") {
		if i > 0 {
			b.WriteByte('/')
		}
		encode(b, segment, false)
	}
}

// prefix is the first n characters of s.
func prefix(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

const upperHex = "0123456789ABCDEF"

// encode writes s with %xx for what may not stand in a URI: all but unreserved characters or, where
// reserved, all but those, the reserved ones and %xx.
func encode(b *strings.Builder, s string, reserved bool) {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if isUnreserved(c) || reserved && (isReserved(c) || isTriplet(s[i:])) {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(upperHex[c>>4])
		b.WriteByte(upperHex[c&15])
	}
}

func isUnreserved(c byte) bool {
	return isAlpha(c) || isDigit(c) || c == '-' || c == '.' || c == '_' || c == '~'
}

func isReserved(c byte) bool { return strings.IndexByte(":/?#[]@!$&'()*+,;=", c) >= 0 }

func isAlpha(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// isTriplet reports whether s begins with a '%' and two hexadecimal digits.
func isTriplet(s string) bool {
	return len(s) > 2 && s[0] == '%' && unhex(s[1]) >= 0 && unhex(s[2]) >= 0
}

// unhex is the value of a hexadecimal digit, -1 for anything else.
func unhex(c byte) int {
	switch {
	case isDigit(c):
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

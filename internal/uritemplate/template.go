// Package uritemplate expands and matches URI templates (RFC 6570) that name resources.
//
// It supports levels 1 to 3 (every operator, several variables in an expression), the prefix
// modifier {var:3}, and one form of the explode modifier: {/path*}, whose value is the segments
// joined by slashes. Values are strings.
//
// The RFC does not define matching. Here it takes time linear in the length of the URI, decodes
// each value exactly once, and refuses values that would be unsafe in a file path; see
// [Template.Match].
package uritemplate

import "strings"

// A Template is a parsed URI template. It never changes and is safe for concurrent use.
type Template struct {
	text   string
	vars   []string
	pieces []piece // in order, for Expand

	prefix   string
	path     []element // for Match: the part before the query and the fragment
	query    []param
	fragment []element
	hasQuery bool // the query may be in any order
	dotdot   bool // the template's own text has a ".." segment
}

// A piece is a literal, encoded as in a URI, or an expression.
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

// An operator defines how the variables of an expression are written: RFC 6570, appendix A.
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

// Vars returns the names of the variables in the order of the template. The caller may change the
// slice.
func (t *Template) Vars() []string { return append([]string(nil), t.vars...) }

// Prefix returns the literal text that every URI of the template begins with, so that a URI only
// has to be matched with the templates whose Prefix it has. Prefix does not include the query,
// whose order is free.
func (t *Template) Prefix() string { return t.prefix }

// Expand returns the URI for the values of the variables. A variable without a value is left out
// together with its separator (section 3.2.1). The value of {/path*} is split at its slashes.
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

// prefix returns the first n characters of s.
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

// encode writes s and percent-encodes all but unreserved characters. If reserved is true, it also
// leaves reserved characters and %xx as they are.
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
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0
}

func isReserved(c byte) bool { return strings.IndexByte(":/?#[]@!$&'()*+,;=", c) >= 0 }

// isTriplet reports whether s begins with a '%' and two hexadecimal digits.
func isTriplet(s string) bool {
	const hex = "0123456789ABCDEFabcdef"
	return len(s) > 2 && s[0] == '%' && strings.IndexByte(hex, s[1]) >= 0 && strings.IndexByte(hex, s[2]) >= 0
}

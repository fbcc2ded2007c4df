// Package uritemplate matches URIs with the URI templates (RFC 6570) of resources.
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
	pieces []piece // in order

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
	char  byte // 0 for none
	first string
	sep   string
	named bool
}

var operators = []operator{
	{char: 0, sep: ","},
	{char: '+', sep: ","},
	{char: '#', first: "#", sep: ","},
	{char: '.', first: ".", sep: "."},
	{char: '/', first: "/", sep: "/"},
	{char: ';', first: ";", sep: ";", named: true},
	{char: '?', first: "?", sep: "&", named: true},
	{char: '&', first: "&", sep: "&", named: true},
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

const upperHex = "0123456789ABCDEF"

// encode writes s and percent-encodes all but unreserved characters.
func encode(b *strings.Builder, s string) {
	for i := range len(s) {
		c := s[i]
		if isUnreserved(c) {
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

// isTriplet reports whether s begins with a '%' and two hexadecimal digits.
func isTriplet(s string) bool {
	const hex = "0123456789ABCDEFabcdef"
	return len(s) > 2 && s[0] == '%' && strings.IndexByte(hex, s[1]) >= 0 && strings.IndexByte(hex, s[2]) >= 0
}

package uritemplate

import (
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// MaxURI is the length of the longest URI that a template can match, in bytes.
const MaxURI = 8192

// Values are the decoded values of the variables that a URI has, by name.
type Values map[string]string

// Get returns the value of the variable and whether the URI has one.
func (v Values) Get(name string) (value string, ok bool) {
	value, ok = v[name]
	return value, ok
}

// Match returns the values with which the template expands to the URI.
//
// {id} matches one or more bytes other than / ? and #. {+path} also matches slashes, and {/path*}
// nothing or a slash and any number of segments joined by slashes, which are its value. If there
// are several ways to divide the URI, earlier variables get shorter values. Query parameters may be
// in any order and may be absent; those that the template does not have are ignored, and a URI that
// has one of its own twice does not match. A template without a query does not match a URI with
// one. Literal text is compared byte by byte.
//
// Values are decoded exactly once. A URI does not match if a decoded value is not valid UTF-8,
// contains a NUL, or has a ".." path segment (separated by slashes or backslashes). An encoded slash
// is a part of the value of {id}; in {/path*} it would be a segment more, so it does not match. A
// URI with a ".." segment elsewhere does not match, nor does one of more than MaxURI bytes.
//
// The time is linear in the length of the URI.
func (t *Template) Match(uri string) (Values, bool) {
	if len(uri) > MaxURI || !strings.HasPrefix(uri, t.Prefix()) {
		return nil, false
	}
	path, query := uri, ""
	if t.query != nil {
		path, query, _ = strings.Cut(uri, "?")
	}
	values := Values{}
	if climbs(path) || !t.matchPath(path, values) || !t.matchQuery(query, values) {
		return nil, false
	}
	return values, true
}

// matchPath matches all of s with the path.
func (t *Template) matchPath(s string, values Values) bool {
	rest := t.places(s)
	if !rest[0][0] {
		return false
	}
	pos := 0
	for i, e := range t.path {
		start, end := pos, pos
		switch {
		case e.literal != "":
			pos += len(e.literal)
			continue
		case e.kind == '/':
			if pos == len(s) || s[pos] != '/' {
				continue
			}
			start, end = pos+1, pos+1
		default:
			end++
		}
		for end < len(s) && !rest[i+1][end] && e.allows(s[end]) {
			end++
		}
		if !rest[i+1][end] {
			continue // of {/path*}, whose slash belongs to what follows
		}
		value, ok := safe(s[start:end])
		if !ok || e.kind == '/' && strings.Count(value, "/") != strings.Count(s[start:end], "/") {
			return false
		}
		values[e.name] = value
		pos = end
	}
	return true
}

// places returns, for each element and place in s, whether the elements from there on match the
// rest of s.
func (t *Template) places(s string) [][]bool {
	width := len(s) + 1
	table := make([]bool, (len(t.path)+1)*width)
	rows := slices.Collect(slices.Chunk(table, width))
	rows[len(t.path)][len(s)] = true
	for i := len(t.path) - 1; i >= 0; i-- {
		e, row, next := t.path[i], rows[i], rows[i+1]
		ends := false // the value may end at pos or later
		for pos := len(s); pos >= 0; pos-- {
			if e.literal != "" {
				row[pos] = strings.HasPrefix(s[pos:], e.literal) && next[pos+len(e.literal)]
				continue
			}
			atLater := ends // a value that has begun may go on at pos+1
			ends = next[pos] || pos < len(s) && e.allows(s[pos]) && atLater
			if e.kind == '/' {
				row[pos] = next[pos] || pos < len(s) && s[pos] == '/' && atLater
			} else {
				row[pos] = pos < len(s) && e.allows(s[pos]) && atLater
			}
		}
	}
	return rows
}

// allows reports whether the value of e may contain c.
func (e element) allows(c byte) bool { return c != '?' && c != '#' && (c != '/' || e.kind != 0) }

// matchQuery reads the parameters of the query.
func (t *Template) matchQuery(query string, values Values) bool {
	if strings.Contains(query, "#") {
		return false
	}
	for part := range strings.SplitSeq(query, "&") {
		name, raw, _ := strings.Cut(part, "=")
		name, ok := decode(name)
		if !ok {
			return false
		}
		if !slices.Contains(t.query, name) {
			continue
		}
		value, ok := safe(raw)
		if _, twice := values[name]; twice || !ok {
			return false
		}
		values[name] = value
	}
	return true
}

// safe decodes a value, once, and checks it.
func safe(raw string) (value string, ok bool) {
	value, ok = decode(raw)
	return value, ok && !strings.Contains(value, "\x00") && !hasDotDot(value)
}

// decode decodes %xx. It returns false for a '%' without two digits, and if the result is not valid
// UTF-8.
func decode(s string) (string, bool) {
	value, err := url.PathUnescape(s)
	return value, err == nil && utf8.ValidString(value)
}

// hasDotDot reports whether a decoded value has a ".." segment on any operating system.
func hasDotDot(value string) bool {
	separator := func(r rune) bool { return r == '/' || r == '\\' }
	return strings.Contains(value, "..") && slices.Contains(strings.FieldsFunc(value, separator), "..")
}

// climbs reports whether a path has a ".." segment, encoded or not. A value may be a part of one.
func climbs(path string) bool {
	for segment := range strings.SplitSeq(path, "/") {
		if decoded, _ := decode(segment); decoded == ".." {
			return true
		}
	}
	return false
}

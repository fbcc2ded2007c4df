package uritemplate

import (
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// Values are the decoded values of the variables that a URI has, by name.
type Values map[string]string

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
// contains a NUL or, outside of the query, a backslash, or has a ".." path segment (separated by
// slashes or backslashes). An encoded slash is a part of the value of {id}; in {/path*} it would be a
// segment more, so it does not match. A URI with a ".." segment elsewhere does not match, nor does
// one of more than MaxURI bytes.
func (t *Template) Match(uri string) (Values, bool) {
	if len(uri) > MaxURI || !strings.HasPrefix(uri, t.Prefix()) {
		return nil, false
	}
	path, query := uri, ""
	if t.query != nil {
		path, query, _ = strings.Cut(uri, "?")
	}
	values := Values{}
	decoded, _ := decode(path)
	if hasDotDot(decoded) || !t.matchPath(path, values) || !t.matchQuery(query, values) {
		return nil, false
	}
	return values, true
}

// matchPath reads the values of the path, which is all of s.
func (t *Template) matchPath(s string, values Values) bool {
	places := t.path.FindStringSubmatchIndex(s)
	for i := 2; i < len(places); i += 2 {
		if places[i] < 0 {
			continue // {/path*} matched nothing
		}
		name, raw := t.vars[i/2-1], s[places[i]:places[i+1]]
		value, ok := safe(raw)
		segments := strings.Count(raw, "/")
		if !ok || strings.Contains(value, `\`) || t.IsList(name) && strings.Count(value, "/") != segments {
			return false
		}
		values[name] = value
	}
	return places != nil
}

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

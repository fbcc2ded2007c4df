package uritemplate

import (
	"net/url"
	"regexp"
	"strings"
)

var (
	encoded    = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)
	separators = regexp.MustCompile(`/(?:\.?/)+`)
	endings    = regexp.MustCompile(`(?:/\.?)+$`)
)

// Canonical returns the form that all spellings of a URI share whose values are the same path to most
// programs: decoded once, with single slashes, without "." segments and a slash at the end. It is for
// comparisons: it is no URI, and the canonical form of itself.
func Canonical(uri string) string {
	path, query, hasQuery := strings.Cut(uri, "?")
	path = endings.ReplaceAllString(canonicalPart(path), "")
	if hasQuery {
		path += "?" + decodeExcept(query, "%&=#")
	}
	return path
}

// canonicalPart is like Canonical for a part of a path that another part follows.
func canonicalPart(path string) string {
	return separators.ReplaceAllString(decodeExcept(path, "%?#"), "/")
}

// decodeExcept decodes %xx, except for the characters in keep.
func decodeExcept(s, keep string) string {
	s = encoded.ReplaceAllStringFunc(s, func(code string) string {
		if c, _ := url.PathUnescape(code); !strings.Contains(keep, c) {
			return c
		}
		return strings.ToUpper(code)
	})
	return strings.ToValidUTF8(s, "\uFFFD")
}

// MatchCanonical reports whether the template matches a URI with the canonical form. It does not read
// a query of its own.
func (t *Template) MatchCanonical(form string) bool {
	if t.query != nil {
		form, _, _ = strings.Cut(form, "?")
	}
	return t.canonical.MatchString(form)
}

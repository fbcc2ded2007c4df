package uritemplate

import (
	"regexp"
	"strings"
)

var (
	separators = regexp.MustCompile(`/(?:\.?/)+`)
	endings    = regexp.MustCompile(`(?:/\.?)+$`)
	queries    = strings.NewReplacer("?", "%3F", "#", "%23")
)

// Canonical returns the form that all spellings of a URI share whose values are the same path to most
// programs: decoded, with single slashes, without "." segments, a slash at the end, and the query. It
// is for comparisons and not a URI.
func Canonical(uri string) string {
	path, _, _ := strings.Cut(uri, "?")
	return endings.ReplaceAllString(canonicalPart(path), "")
}

// canonicalPart is like Canonical for a part of a path that another part follows.
func canonicalPart(path string) string {
	decoded, _ := decode(path)
	return separators.ReplaceAllString(queries.Replace(decoded), "/")
}

// MatchCanonical reports whether the template matches a URI with the canonical form, but for queries.
func (t *Template) MatchCanonical(form string) bool { return t.canonical.MatchString(form) }

package uritemplate

import (
	"math/bits"
	"net/url"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// MaxURI is the length of the longest URI that a template can match, in bytes.
const MaxURI = 8192

// Values are the decoded values of a template's variables in a URI.
type Values struct {
	t      *Template
	values []string // by spec.index
	found  uint64   // bit by spec.index
}

// Get returns the value of the variable and whether the URI has one.
func (v Values) Get(name string) (value string, ok bool) {
	if v.t == nil {
		return "", false
	}
	for i, n := range v.t.vars {
		if n == name && v.found&(1<<i) != 0 {
			return v.values[i], true
		}
	}
	return "", false
}

// Len returns the number of variables that have a value.
func (v Values) Len() int { return bits.OnesCount64(v.found) }

// Match returns the values with which the template expands to the URI.
//
// {id} matches one or more bytes other than / ? and #. {+path} also matches slashes, {/path*} any
// number of segments joined by slashes, and {#frag} the whole fragment. If there are several ways
// to divide the URI, earlier variables get shorter values. Expressions with one of the operators .
// / ; # may be absent. Query parameters may be in any order, may be absent if they are in {?a,b} or
// {&c}, and other parameters are ignored; a URI with a variable that occurs twice does not match. A
// template without a query does not match a URI with one. Literal text is compared byte by byte.
//
// Values are decoded exactly once. A URI does not match if a decoded value is not valid UTF-8,
// contains a NUL, or has a ".." path segment (separated by slashes or backslashes). Only the values
// of {+path}, {/path*}, {#frag} and query parameters may contain a slash. A URI with a ".." segment
// elsewhere does not match, nor does one of more than MaxURI bytes.
//
// The time is linear in the length of the URI.
func (t *Template) Match(uri string) (Values, bool) {
	if len(uri) > MaxURI || !strings.HasPrefix(uri, t.prefix) || !t.dotdot && climbs(uri) {
		return Values{}, false
	}
	v := Values{t: t, values: make([]string, len(t.vars))}
	if !t.hasQuery {
		return v, v.match(t.path, uri)
	}
	fragment := ""
	if i := strings.IndexByte(uri, '#'); i >= 0 {
		uri, fragment = uri[:i], uri[i:]
	}
	path, query, _ := strings.Cut(uri, "?")
	return v, v.match(t.path, path) && v.match(t.fragment, fragment) && v.matchQuery(query)
}

// match matches all of s.
func (v *Values) match(list []element, s string) bool {
	m := matchers.Get().(*matcher)
	defer m.end()
	m.begin(list, s, len(v.values))
	if !m.run(0, 0) {
		return false
	}
	for i := range list {
		e := &list[i]
		if e.kind != varElement || m.found&(1<<e.index) == 0 {
			continue
		}
		span := m.spans[e.index]
		if !v.set(&e.spec, s[span[0]:span[1]], e.slash) {
			return false
		}
	}
	return true
}

// matchQuery matches the parameters in any order.
func (v *Values) matchQuery(query string) bool {
	var seen uint64 // bit by param: the required ones that were found
	required := 0
	for i := range v.t.query {
		if v.t.query[i].required {
			required++
		}
	}
	for query != "" {
		var part string
		part, query, _ = strings.Cut(query, "&")
		if part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		name, ok := decode(name)
		if !ok {
			return false
		}
		for i := range v.t.query {
			p := &v.t.query[i]
			switch {
			case !p.variable:
				if part != p.literal {
					continue
				}
			case p.name != name:
				continue
			case v.found&(1<<p.spec.index) != 0 || p.required && value == "" || !v.set(&p.spec, value, true):
				return false
			}
			if p.required && seen&(1<<i) == 0 {
				seen |= 1 << i
				required--
			}
		}
	}
	return required == 0
}

// set decodes and checks a value.
func (v *Values) set(s *spec, raw string, slash bool) bool {
	value, ok := decode(raw)
	switch {
	case !ok,
		!slash && strings.IndexByte(value, '/') >= 0,
		s.explode && strings.Count(value, "/") != strings.Count(raw, "/"),
		s.prefix > 0 && utf8.RuneCountInString(value) > s.prefix,
		strings.IndexByte(value, 0) >= 0,
		hasDotDot(value):
		return false
	}
	v.values[s.index] = value
	v.found |= 1 << s.index
	return true
}

// decode decodes %xx, once. It returns false for a '%' without two digits, and if the result is not
// valid UTF-8.
func decode(s string) (string, bool) {
	value, err := url.PathUnescape(s)
	return value, err == nil && utf8.ValidString(value)
}

// hasDotDot reports whether a decoded value has a ".." segment on any operating system.
func hasDotDot(value string) bool {
	return strings.Contains(value, "..") && slices.Contains(strings.FieldsFunc(value, func(r rune) bool { return r == '/' || r == '\\' }), "..")
}

// climbs reports whether the path of a URI has a ".." segment, encoded or not. A value may be a
// part of one.
func climbs(uri string) bool {
	if i := strings.IndexAny(uri, "?#"); i >= 0 {
		uri = uri[:i]
	}
	for segment := range strings.SplitSeq(uri, "/") {
		if len(segment) >= len("..") && len(segment) <= len("%2e%2e") {
			if decoded, _ := decode(segment); decoded == ".." {
				return true
			}
		}
	}
	return false
}

// A matcher finds the variables in s. It tries the ends of a variable from the shortest value on.
// failed records the states that have failed, so that no state is tried twice and the time stays
// linear.
type matcher struct {
	list   []element
	s      string
	spans  [][2]int // by spec.index
	found  uint64   // bit by spec.index
	steps  int      // number of steps, for tests
	failed []uint64 // bit by element * (len(s)+1) + position; empty until it is needed
}

var matchers = sync.Pool{New: func() any { return new(matcher) }}

// begin prepares the matcher for s.
func (m *matcher) begin(list []element, s string, vars int) {
	m.list, m.s, m.found = list, s, 0
	m.spans = slices.Grow(m.spans[:0], vars)[:vars]
	if m.failed = m.failed[:0]; cap(m.failed) > maxKept {
		m.failed = nil
	}
}

// end clears the matcher and returns it to the pool.
func (m *matcher) end() {
	m.list, m.s = nil, ""
	matchers.Put(m)
}

// maxKept is the most words of failed states that are kept for the next match; few URIs need more.
const maxKept = 1024

// run matches the elements from i on with s from pos to its end. Its recursion is as deep as there
// are elements.
func (m *matcher) run(i, pos int) bool {
	for ; i < len(m.list); i++ {
		m.steps++
		e := &m.list[i]
		switch e.kind {
		case literalElement:
			if !strings.HasPrefix(m.s[pos:], e.text) {
				return false
			}
			pos += len(e.text)
		case optionElement:
			if !m.first(i, pos) {
				return false
			}
			if m.run(i+1, pos) {
				return true
			}
			i += e.skip
		case varElement:
			return m.variable(i, pos)
		}
	}
	return pos == len(m.s)
}

// variable matches the variable at element i, and the rest.
func (m *matcher) variable(i, pos int) bool {
	e := &m.list[i]
	if e.afterE {
		if pos < len(m.s) && m.s[pos] == '=' {
			pos++
		} else {
			return m.capture(e, pos, pos, i)
		}
	}
	start := pos
	for range e.min {
		if pos == len(m.s) || classes[m.s[pos]]&e.class == 0 {
			return false
		}
		pos++
	}
	if e.sure {
		for pos < len(m.s) && classes[m.s[pos]]&e.class != 0 {
			pos++
			m.steps++
		}
		return m.capture(e, start, pos, i)
	}
	for m.first(i, pos) {
		m.steps++
		if m.capture(e, start, pos, i) {
			return true
		}
		if pos == len(m.s) || classes[m.s[pos]]&e.class == 0 {
			return false
		}
		pos++
	}
	return false
}

// capture tries the variable from start to end.
func (m *matcher) capture(e *element, start, end, i int) bool {
	if !m.run(i+1, end) {
		return false
	}
	m.spans[e.index] = [2]int{start, end}
	m.found |= 1 << e.index
	return true
}

// first reports whether the state is tried for the first time; otherwise it has failed before.
func (m *matcher) first(i, pos int) bool {
	bit := i*(len(m.s)+1) + pos
	if len(m.failed) == 0 {
		words := (len(m.list)*(len(m.s)+1) + 63) / 64
		m.failed = slices.Grow(m.failed, words)[:words]
		clear(m.failed)
	}
	if m.failed[bit/64]&(1<<(bit%64)) != 0 {
		return false
	}
	m.failed[bit/64] |= 1 << (bit % 64)
	return true
}

package apps

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	cssImport = regexp.MustCompile(`(?i)@import\s+(?:url\(\s*)?(?:"([^"]*)"|'([^']*)'|([^"')\s;]+))`)
	cssURL    = regexp.MustCompile(`(?i)url\(\s*(?:"([^"]*)"|'([^']*)'|([^"')\s]+))\s*\)`)
	cssSet    = regexp.MustCompile(`(?i)image-set\(`)
)

// A reference is a URL in a style sheet: the text between two indexes names it.
type reference struct {
	begin, end int
	target     string // without escapes
	function   string // that contains it
}

// references returns the URLs of a style sheet other than imports, in their order.
func references(text string) (all []reference) {
	imports := cssImport.FindAllStringIndex(text, -1)
	for _, m := range cssURL.FindAllStringSubmatchIndex(text, -1) {
		for g := 2; g < len(m); g += 2 {
			if m[g] >= 0 && !within(m[0], imports) {
				all = append(all, reference{m[0], m[1], unescapeCSS(text[m[g]:m[g+1]]), "url()"})
			}
		}
	}
	for _, m := range cssSet.FindAllStringIndex(text, -1) {
		all = append(all, imageSet(text, m[1])...)
	}
	slices.SortFunc(all, func(a, b reference) int { return a.begin - b.begin })
	return all
}

// imageSet returns the strings of an image-set() whose arguments begin at i. Those of functions in
// it, as type("image/png"), are not URLs.
func imageSet(text string, i int) (all []reference) {
	for depth := 1; i < len(text) && depth > 0; {
		switch text[i] {
		case '"', '\'':
			end := endOfString(text, i)
			if depth == 1 && end > i+1 {
				all = append(all, reference{i, end, unescapeCSS(text[i+1 : end-1]), "image-set()"})
			}
			i = end
			continue
		case '(':
			depth++
		case ')':
			depth--
		}
		i++
	}
	return all
}

var cssEscape = regexp.MustCompile(`\\(?:([0-9a-fA-F]{1,6})(?:\r\n|[ \t\r\n\f])?|(\r\n|[\n\r\f])|(.))`)

// unescapeCSS replaces the escapes of a style sheet by what they stand for.
func unescapeCSS(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	return cssEscape.ReplaceAllStringFunc(text, func(escape string) string {
		m := cssEscape.FindStringSubmatch(escape)
		if m[1] != "" {
			n, _ := strconv.ParseUint(m[1], 16, 32)
			return string(rune(n))
		}
		return m[3] // "" for an escaped line break
	})
}

// css checks the URLs of a style sheet, and returns it with files as data: URIs. dir is the directory
// of its file, below that of the page.
func (b *bundler) css(text, dir string) string {
	if !strings.ContainsAny(text, `(@\`) {
		return text
	}
	original := text
	text = withoutCSSComments(text)
	for _, m := range cssImport.FindAllStringSubmatch(text, -1) {
		b.load(useResource, "@import", unescapeCSS(m[1]+m[2]+m[3]), dir)
	}
	var out strings.Builder
	end := 0
	seen := map[string]bool{}
	for _, r := range references(text) {
		seen[r.target] = true
		file, local := b.load(useData, r.function, r.target, dir)
		if !local {
			continue
		}
		value := `"` + b.dataURI(file) + `"`
		if r.function == "url()" {
			value = "url(" + value + ")"
		}
		out.WriteString(text[end:r.begin] + value)
		end = r.end
	}
	b.escapedCSS(text, seen)
	if end == 0 {
		return original
	}
	return out.String() + text[end:]
}

// escapedCSS checks the URLs of a style sheet whose functions and rules are written with escapes.
func (b *bundler) escapedCSS(text string, seen map[string]bool) {
	plain := unescapeCSS(text)
	if plain == text {
		return
	}
	for _, m := range cssImport.FindAllStringSubmatch(plain, -1) {
		if target := m[1] + m[2] + m[3]; isRemote(target) {
			b.load(useResource, "@import", target, "")
		}
	}
	for _, r := range references(plain) {
		if isRemote(r.target) && !seen[r.target] {
			b.load(useResource, r.function, r.target, "")
		}
	}
}

// isRemote reports whether a URL names a host.
func isRemote(target string) bool {
	target = strings.TrimSpace(target)
	return strings.HasPrefix(target, "//") || strings.Contains(target, "://")
}

func within(at int, spans [][]int) bool {
	for _, s := range spans {
		if at >= s[0] && at < s[1] {
			return true
		}
	}
	return false
}

// withoutCSSComments removes the comments of a style sheet.
func withoutCSSComments(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); {
		switch {
		case strings.HasPrefix(text[i:], "/*"):
			_, after, ok := strings.Cut(text[i+2:], "*/")
			if !ok {
				return out.String()
			}
			i = len(text) - len(after)
			out.WriteByte(' ')
		case text[i] == '"' || text[i] == '\'':
			end := endOfString(text, i)
			out.WriteString(text[i:end])
			i = end
		default:
			out.WriteByte(text[i])
			i++
		}
	}
	return out.String()
}

// endOfString returns the index behind the string that begins at i. A line break ends it.
func endOfString(text string, i int) int {
	quote := text[i]
	for i++; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case quote:
			return i + 1
		case '\n':
			return i
		}
	}
	return len(text)
}

// importsOf returns the modules that a script imports by a literal name: import "x", import a from
// "x", export a from "x", import("x").
func importsOf(script string) []string {
	s := &scanner{text: script}
	s.scan(false)
	return s.imports
}

// A scanner reads JavaScript as far as it is needed to tell code from comments and strings.
type scanner struct {
	text    string
	at      int
	imports []string
	last    byte   // the last character of code that is not a blank
	word    string // the last word of code, if nothing but blanks and a ( came after it
}

// scan reads code up to its end or, within a template, up to the } that closes it.
func (s *scanner) scan(inTemplate bool) {
	depth := 0
	for s.at < len(s.text) {
		c := s.text[s.at]
		switch {
		case strings.HasPrefix(s.text[s.at:], "//"):
			s.skipTo("\n")
		case strings.HasPrefix(s.text[s.at:], "/*"):
			s.skipTo("*/")
		case c == '"' || c == '\'':
			s.string()
		case c == '`':
			s.template()
		case c == '/' && s.beginsRegexp():
			s.regexp()
		case isWordByte(c):
			begin := s.at
			for s.at < len(s.text) && isWordByte(s.text[s.at]) {
				s.at++
			}
			if s.last == '.' {
				s.word = ""
			} else {
				s.word = s.text[begin:s.at]
			}
			s.last = s.text[s.at-1]
		case c == '}' && inTemplate && depth == 0:
			return
		default:
			switch c {
			case '{':
				depth++
			case '}':
				depth--
			}
			s.at++
			if c == ' ' || c == '\t' || c == '\n' || c == '\r' {
				continue
			}
			s.last = c
			if !(c == '(' && s.word == "import") {
				s.word = ""
			}
		}
	}
}

// skipTo moves behind the next end.
func (s *scanner) skipTo(end string) {
	if i := strings.Index(s.text[s.at:], end); i >= 0 {
		s.at += i + len(end)
	} else {
		s.at = len(s.text)
	}
}

// string reads a string, which is an import behind the words import and from.
func (s *scanner) string() {
	end := endOfString(s.text, s.at)
	if s.word == "import" || s.word == "from" {
		s.imports = append(s.imports, strings.Trim(s.text[s.at:end], `"'`))
	}
	s.at, s.last, s.word = end, '"', ""
}

// template reads a template literal, with the code in it.
func (s *scanner) template() {
	begin, imported := s.at+1, s.word == "import"
	for s.at++; s.at < len(s.text); {
		switch {
		case s.text[s.at] == '\\':
			s.at += 2
		case s.text[s.at] == '`':
			if imported {
				s.imports = append(s.imports, s.text[begin:s.at])
			}
			s.at++
			s.last, s.word = '"', ""
			return
		case strings.HasPrefix(s.text[s.at:], "${"):
			s.at += 2
			s.last, s.word, imported = '{', "", false
			s.scan(true)
			s.at++
		default:
			s.at++
		}
	}
	s.at = len(s.text)
}

// beginsRegexp reports whether a / begins a regular expression, and is not a division.
func (s *scanner) beginsRegexp() bool {
	switch s.word {
	case "return", "typeof", "case", "in", "of", "delete", "void", "throw", "new", "else", "do", "await", "yield":
		return true
	}
	return !isWordByte(s.last) && s.last != ')' && s.last != ']' && s.last != '}' && s.last != '"'
}

// regexp reads a regular expression.
func (s *scanner) regexp() {
	class := false
	for s.at++; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; {
		case c == '\\':
			s.at++
		case c == '\n':
			return
		case c == '[':
			class = true
		case c == ']':
			class = false
		case c == '/' && !class:
			s.at++
			s.last, s.word = '"', ""
			return
		}
	}
	s.at = min(s.at, len(s.text))
}

func isWordByte(c byte) bool {
	return c == '_' || c == '$' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

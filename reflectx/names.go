package reflectx

import (
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"
)

// initialisms are recognized in a run of several (URLID) and in the plural (IDs). Any other run of
// capitals is one word.
var initialisms = wordSet(`ACL API ASCII CPU CSS CSV DB DNS EOF GPU GUID HTML HTTP HTTPS ID IP JSON JWT LLM MCP OS PDF QPS
	RAM RPC SDK SKU SLA SMTP SQL SSE SSH SVG TCP TLS TTL UDP UI UID URI URL UUID VM XML YAML`)

// mixed are the words with capitals inside.
var mixed = []string{"2D", "3D", "DevOps", "GitHub", "GitLab", "GraphQL", "IPv4", "IPv6", "JavaScript", "LinkedIn", "MySQL", "NoSQL",
	"OAuth", "OpenAPI", "OpenID", "PostgreSQL", "TypeScript", "YouTube"}

// small are the words that a title does not capitalize, except at the start.
var small = wordSet("a an and as at but by for from in into of on or per the to via with")

func wordSet(list string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(list) {
		set[w] = true
	}
	return set
}

// typeText returns the name of a type for messages. It abbreviates a struct without a name.
func typeText(t reflect.Type) string {
	switch {
	case t.Name() != "":
	case t.Kind() == reflect.Struct && t.NumField() > 0:
		return "struct{...}"
	case t.Kind() == reflect.Pointer:
		return "*" + typeText(t.Elem())
	case t.Kind() == reflect.Slice:
		return "[]" + typeText(t.Elem())
	case t.Kind() == reflect.Map:
		return "map[" + typeText(t.Key()) + "]" + typeText(t.Elem())
	}
	return t.String()
}

// SnakeCase converts a Go name to snake case: GetURLByID becomes get_url_by_id. Digits belong to
// the letters before them (OAuth2Token becomes oauth2_token), but a number of four digits or more
// is a word (List2024Reports becomes list_2024_reports).
func SnakeCase(name string) string {
	words := splitName(name)
	for i, w := range words {
		words[i] = strings.ToLower(w)
	}
	return strings.Join(words, "_")
}

// Title converts a Go name to a title: GetURLByID becomes "Get URL by ID".
func Title(name string) string {
	words := splitName(name)
	for i, w := range words {
		lower := strings.ToLower(w)
		switch inside := i > 0 && i < len(words)-1; {
		case inside && small[lower]:
			words[i] = lower
		default:
			r, size := utf8.DecodeRuneInString(w)
			words[i] = string(unicode.ToUpper(r)) + w[size:]
		}
	}
	return strings.Join(words, " ")
}

// splitName splits a Go name into its words.
func splitName(name string) []string {
	var words []string
	for name != "" {
		if name[0] == '_' {
			name = name[1:]
			continue
		}
		n := wordLen(name)
		words = append(words, name[:n])
		name = name[n:]
	}
	return words
}

// wordLen returns the length of the first word of name, which does not begin with an underscore.
func wordLen(name string) int {
	for _, w := range mixed {
		if strings.HasPrefix(name, w) && !startsLower(name[len(w):]) {
			return len(w) + digits(name[len(w):])
		}
	}
	if n := longNumber(name); n > 0 {
		return n
	}
	capitals := prefix(name, unicode.IsUpper)
	n := capitals
	switch rest := name[capitals:]; {
	case runes(name[:capitals]) > 1 && isPlural(name[:capitals], rest):
		return capitals + len("s")
	case runes(name[:capitals]) > 1 && startsLower(rest):
		// The last capital begins the next word: HTTPServer.
		_, last := utf8.DecodeLastRuneInString(name[:capitals])
		n -= last
		return firstInitialism(name[:n])
	case runes(name[:capitals]) > 1:
		if first := firstInitialism(name[:n]); first < n {
			return first
		}
	}
	// Letters and the digits among and after them, up to a capital, a long number or a word that
	// begins with a digit.
	for n < len(name) {
		rest := name[n:]
		if n > 0 && (longNumber(rest) > 0 || strings.HasPrefix(rest, "2D") || strings.HasPrefix(rest, "3D")) {
			break
		}
		r, size := utf8.DecodeRuneInString(rest)
		if r == '_' || unicode.IsUpper(r) {
			break
		}
		n += size
	}
	return n
}

// isPlural reports whether the s at the start of rest makes the capitals a plural: IDs, URLsByName.
func isPlural(capitals, rest string) bool {
	return strings.HasPrefix(rest, "s") && !startsLower(rest[1:]) && firstInitialism(capitals) == len(capitals) && initialisms[capitals]
}

// firstInitialism returns the length of the first of the initialisms in the capitals, or the length
// of all if they are one word.
func firstInitialism(capitals string) int {
	if initialisms[capitals] || !divides(capitals) {
		return len(capitals)
	}
	for n := len(capitals) - 1; n > 1; n-- {
		if initialisms[capitals[:n]] && divides(capitals[n:]) {
			return n
		}
	}
	return len(capitals)
}

// divides reports whether the capitals are a sequence of initialisms. Names are short, so trying
// all splits is cheap.
func divides(capitals string) bool {
	if capitals == "" {
		return true
	}
	if len(capitals) > 32 {
		return false
	}
	for n := 2; n <= min(5, len(capitals)); n++ {
		if initialisms[capitals[:n]] && divides(capitals[n:]) {
			return true
		}
	}
	return false
}

// longNumber returns the length of the number that name begins with, or 0 if it has fewer than four
// digits.
func longNumber(name string) int {
	if n := digits(name); n >= 4 {
		return n
	}
	return 0
}

func digits(s string) int { return prefix(s, unicode.IsDigit) }

func startsLower(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return unicode.IsLower(r)
}

func runes(s string) int { return utf8.RuneCountInString(s) }

// prefix returns the length of the longest prefix of s whose runes satisfy is.
func prefix(s string, is func(rune) bool) int {
	if i := strings.IndexFunc(s, func(r rune) bool { return !is(r) }); i >= 0 {
		return i
	}
	return len(s)
}

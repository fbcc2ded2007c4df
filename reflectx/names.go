package reflectx

import (
	"cmp"
	"reflect"
	"regexp"
	"strings"
)

// firstWord matches the first word of a Go name. Capitals are one word (HTTP in HTTPServer, IDs), and so
// are the names with capitals inside. Other words are letters up to a capital. Digits belong to the
// letters before them.
var firstWord = regexp.MustCompile(`_*(?:(` +
	`(?:DevOps|GitHub|GitLab|GraphQL|IPv4|IPv6|JavaScript|LinkedIn|MySQL|NoSQL|OAuth|OpenAPI|OpenID|PostgreSQL|TypeScript|YouTube|\p{Lu}{2,})` +
	`[0-9]*s?)(?:\P{Ll}|$)|(\p{Lu}?[^\p{Lu}_]*))`)

// splitName splits a Go name into its words.
func splitName(name string) (words []string) {
	for name = strings.TrimRight(name, "_"); name != ""; {
		groups := firstWord.FindStringSubmatch(name)
		word := cmp.Or(groups[1], groups[2])
		words = append(words, word)
		_, name, _ = strings.Cut(name, word)
	}
	return words
}

// SnakeCase converts a Go name to snake case: GetURLByID becomes get_url_by_id, and OAuth2Token
// becomes oauth2_token.
func SnakeCase(name string) string {
	return strings.ToLower(strings.Join(splitName(name), "_"))
}

// typeText returns the name of a type for messages. It abbreviates a struct without a name.
func typeText(t reflect.Type) string {
	before, _, abbreviated := strings.Cut(t.String(), "struct { ")
	if abbreviated {
		before += "struct{...}"
	}
	return before
}

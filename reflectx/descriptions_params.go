package reflectx

import (
	"regexp"
	"slices"
	"strings"
)

// paramDescriptions separates the descriptions of parameters, as in [FuncOptions], from the doc comment
// of a function. doc is the text of the comment, in which each item is on one line. Items that do not
// begin with one of the names stay in rest.
func paramDescriptions(doc string, names []string) (rest string, descriptions map[string]string) {
	descriptions = map[string]string{}
	rest = listItem.ReplaceAllStringFunc(doc, func(line string) string {
		item := listItem.FindStringSubmatch(line)
		if name := item[1]; slices.Contains(names, name) && descriptions[name] == "" {
			descriptions[name] = item[2]
			return ""
		}
		return line
	})
	return strings.TrimSpace(gap.ReplaceAllString(rest, "\n\n")), descriptions
}

var (
	listItem = regexp.MustCompile("(?m)^ *- `?([^:`]+)`?: *(.*)$")
	gap      = regexp.MustCompile("\n{3,}") // which a list leaves behind
)

package reflectx

import (
	"regexp"
	"slices"
	"strings"
)

// ParamDescriptions separates the descriptions of parameters from the doc comment of a function.
// They are a list with an item for each parameter: the name, a colon, and the text.
//
//	// Add adds two numbers.
//	//
//	//   - a: the first one
//	//   - b: the other one, which
//	//     may be negative
//
// doc is the text of the comment, in which each item is on one line, and names are the names that
// clients see. Items that do not begin with one of them stay in rest.
func ParamDescriptions(doc string, names []string) (rest string, descriptions map[string]string) {
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

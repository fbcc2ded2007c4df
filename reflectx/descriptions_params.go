package reflectx

import (
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
// names are the names that clients see. Items that do not begin with one of them stay in rest. If
// no item does, the doc comment is returned unchanged.
func ParamDescriptions(doc string, names []string) (rest string, descriptions map[string]string) {
	if len(names) == 0 || !strings.Contains(doc, ":") {
		return doc, nil
	}
	descriptions = map[string]string{}
	var kept []string
	name, indent := "", 0 // of the item that is being read
	for line := range strings.SplitSeq(doc, "\n") {
		in := len(line) - len(strings.TrimLeft(line, " \t"))
		text := strings.TrimSpace(line)
		key, says, ok := cutItem(text)
		switch {
		case ok && slices.Contains(names, key) && descriptions[key] == "":
			name, indent = key, in
			descriptions[key] = says
			continue
		case name != "" && !ok && text != "" && in > indent:
			descriptions[name] = strings.TrimSpace(descriptions[name] + " " + text)
			continue
		}
		name = ""
		kept = append(kept, line)
	}
	if len(descriptions) == 0 {
		return doc, nil
	}
	for i := 0; i+1 < len(kept); { // the list leaves one gap where there were two
		if strings.TrimSpace(kept[i]) == "" && strings.TrimSpace(kept[i+1]) == "" {
			kept = slices.Delete(kept, i, i+1)
			continue
		}
		i++
	}
	return strings.TrimSpace(strings.Join(kept, "\n")), descriptions
}

// cutItem divides an item of a list into its name and its text.
func cutItem(text string) (name, descriptions string, ok bool) {
	for _, bullet := range []string{"- ", "* ", "+ ", "• "} {
		if item, found := strings.CutPrefix(text, bullet); found {
			name, descriptions, ok = strings.Cut(item, ":")
			return strings.Trim(strings.TrimSpace(name), "`"), strings.TrimSpace(descriptions), ok
		}
	}
	return "", "", false
}

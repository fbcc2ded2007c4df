package reflectx

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A module is a parsed go.mod.
type module struct {
	path    string
	dir     string
	require map[string]string // module path to version
	replace map[string]replacement
}

// A replacement is another module, or a directory if version is empty.
type replacement struct{ path, version string }

// parseModule reads the go.mod in dir. It returns nil if that names no module. It only parses what
// is needed to find packages: lines, blocks, comments and quotes.
func parseModule(dir string) *module {
	m := &module{dir: dir, require: map[string]string{}, replace: map[string]replacement{}}
	for _, line := range directives(filepath.Join(dir, "go.mod")) {
		switch verb, args := line[0], line[1:]; {
		case verb == "module" && len(args) == 1:
			m.path = args[0]
		case verb == "require" && len(args) == 2:
			m.require[args[0]] = args[1]
		case verb == "replace":
			m.addReplace(args)
		}
	}
	if m.path == "" {
		return nil
	}
	return m
}

// addReplace adds "old [v1] => new [v2]".
func (m *module) addReplace(args []string) {
	for i, arg := range args {
		if arg != "=>" || i == 0 || i+1 >= len(args) {
			continue
		}
		to := replacement{path: args[i+1]}
		if i+2 < len(args) {
			to.version = args[i+2]
		}
		m.replace[args[0]] = to
		// A replaced module need not be required by name.
		if _, ok := m.require[args[0]]; !ok {
			m.require[args[0]] = to.version
		}
		return
	}
}

// parseWork returns the directories that a go.work uses.
func parseWork(file string) []string {
	var dirs []string
	for _, line := range directives(file) {
		if line[0] == "use" && len(line) == 2 {
			dirs = append(dirs, line[1])
		}
	}
	return dirs
}

// directives returns the lines of a go.mod or go.work as fields. Lines in a block start with the
// verb of the block.
func directives(file string) [][]string {
	data, err := os.ReadFile(file)
	if err != nil || len(data) > maxSourceFile {
		return nil
	}
	return directivesOf(string(data))
}

func directivesOf(text string) [][]string {
	var lines [][]string
	block := ""
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "//")
		words := strings.Fields(line)
		for i, w := range words {
			if s, err := strconv.Unquote(w); err == nil {
				words[i] = s
			}
		}
		switch {
		case len(words) == 0:
		case block != "" && words[0] == ")":
			block = ""
		case block != "":
			lines = append(lines, append([]string{block}, words...))
		case len(words) == 2 && words[1] == "(":
			block = words[0]
		default:
			lines = append(lines, words)
		}
	}
	return lines
}

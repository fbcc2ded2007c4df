package hosts

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// tomlFile edits files of TOML, in which each server has a table.
type tomlFile struct{}

func (tomlFile) decode(src []byte) (map[string]any, error) {
	all := map[string]any{}
	if err := toml.Unmarshal(bytes.TrimPrefix(src, bom), &all); err != nil {
		if place, ok := errors.AsType[*toml.DecodeError](err); ok {
			line, _ := place.Position()
			return nil, fmt.Errorf("line %d is not valid TOML (%w); correct it first", line, err)
		}
		return nil, fmt.Errorf("the file is not valid TOML (%w); correct it first", err)
	}
	return all, nil
}

func (f tomlFile) set(src []byte, root, name string, entry []member, exists bool) ([]byte, error) {
	if exists {
		src, _ = f.remove(src, root, name) // never fails
	}
	newline := "\n"
	if bytes.Contains(src, []byte("\r\n")) {
		newline = "\r\n"
	}
	var b strings.Builder
	b.WriteString(strings.TrimRight(string(src), "\r\n\t "))
	if b.Len() > 0 {
		b.WriteString(newline + newline)
	}
	writeTable(&b, root+"."+tomlKey(name), entry, newline)
	return []byte(b.String()), nil
}

// writeTable writes a table, and then the tables in it.
func writeTable(b *strings.Builder, path string, members []member, newline string) {
	b.WriteString("[" + path + "]" + newline)
	for _, m := range members {
		switch v := m.value.(type) {
		case string:
			b.WriteString(tomlKey(m.key) + " = " + quote(v) + newline)
		case []string:
			all := make([]string, len(v))
			for i, s := range v {
				all[i] = quote(s)
			}
			b.WriteString(tomlKey(m.key) + " = [" + strings.Join(all, ", ") + "]" + newline)
		case bool:
			b.WriteString(fmt.Sprint(tomlKey(m.key), " = ", v, newline))
		}
	}
	for _, m := range members {
		if table, ok := m.value.([]member); ok {
			b.WriteString(newline)
			writeTable(b, path+"."+tomlKey(m.key), table, newline)
		}
	}
}

var bareKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

func tomlKey(key string) string {
	if bareKey.MatchString(key) {
		return key
	}
	return quote(key)
}

// remove removes the lines of the table and of the tables in it. Blank lines and comments before
// the next table stay.
func (tomlFile) remove(src []byte, root, name string) ([]byte, error) {
	either := func(key string) string {
		return `(?:` + regexp.QuoteMeta(key) + `|'` + regexp.QuoteMeta(key) + `'|` + regexp.QuoteMeta(quote(key)) + `)`
	}
	header := regexp.MustCompile(`^\s*\[\s*` + either(root) + `\s*\.\s*` + either(name) + `\s*(?:\.[^\]]*)?\]`)
	var out, held []string // held are blank lines and comments in the table
	inside := false
	for _, line := range strings.SplitAfter(string(src), "\n") {
		text := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(text, "["):
			inside = header.MatchString(line)
			if !inside {
				out = append(out, held...)
			}
			held = nil
		case inside && (text == "" || text[0] == '#'):
			held = append(held, line)
			continue
		case inside:
			held = nil
		}
		if !inside {
			out = append(out, line)
		}
	}
	return []byte(strings.Join(append(out, held...), "")), nil
}

package hosts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// jsonc edits JSON that may have comments and trailing commas.
type jsonc struct{}

// A document is a file of JSON with comments.
type document struct {
	src    []byte
	json   []byte // src with spaces for comments and trailing commas: offsets are the same
	commas []int  // offsets of trailing commas
}

// bom is the byte order mark, with which some editors begin a file.
var bom = []byte("\xef\xbb\xbf")

// parse reads a file. An empty file is an empty object.
func parse(src []byte) (*document, error) {
	d := &document{src: src, json: bytes.Clone(src)}
	if bytes.HasPrefix(d.json, bom) {
		copy(d.json, "   ")
	}
	if err := d.blank(); err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(d.json)) == 0 {
		if len(bytes.TrimSpace(bytes.TrimPrefix(src, bom))) > 0 {
			return nil, errors.New("the file has only comments")
		}
		d.src, d.json = []byte("{}\n"), []byte("{}\n")
	}
	if !json.Valid(d.json) || !jsonx.Distinct(bytes.TrimSpace(d.json)) || jsonx.Kind(bytes.TrimSpace(d.json)) != '{' {
		return nil, errors.New("the file is not a JSON object with comments; correct it first")
	}
	return d, nil
}

// blank replaces comments, and commas before a closing bracket, by spaces.
func (d *document) blank() error {
	b := d.json
	last := -1 // the offset of a comma without a value after it yet
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			last = -1
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		case bytes.HasPrefix(b[i:], []byte("//")):
			for ; i < len(b) && b[i] != '\n'; i++ {
				b[i] = ' '
			}
		case bytes.HasPrefix(b[i:], []byte("/*")):
			end := bytes.Index(b[i+2:], []byte("*/"))
			if end < 0 {
				return errors.New("a comment does not end")
			}
			for end += i + 4; i < end; i++ {
				if b[i] != '\n' && b[i] != '\r' {
					b[i] = ' '
				}
			}
			i--
		case c == ',':
			last = i
		case (c == '}' || c == ']') && last >= 0:
			b[last] = ' '
			d.commas = append(d.commas, last)
			last = -1
		case c != ' ' && c != '\t' && c != '\n' && c != '\r':
			last = -1
		}
	}
	return nil
}

// A span is a member of an object: the offsets of its key and its value, and the end of its value.
type span struct {
	name            string
	key, value, end int
}

// object returns the members of the object whose brace is at the offset, and the offset of its
// closing brace.
func (d *document) object(open int) (members []span, closing int) {
	b := d.json
	for i := jsonx.SkipSpace(b, open+1); ; {
		if b[i] == '}' {
			return members, i
		}
		if b[i] == ',' {
			i = jsonx.SkipSpace(b, i+1)
		}
		m := span{key: i}
		i = jsonx.Skip(b, i)
		m.name = jsonx.String(b[m.key:i])
		m.value = jsonx.SkipSpace(b, jsonx.SkipSpace(b, i)+1) // after the colon
		m.end = jsonx.Skip(b, m.value)
		members = append(members, m)
		i = jsonx.SkipSpace(b, m.end)
	}
}

func find(members []span, name string) int {
	return slices.IndexFunc(members, func(m span) bool { return m.name == name })
}

// servers returns the offset of the object, or null, at the key root, or -1.
func (d *document) servers(root string) int {
	members, _ := d.object(jsonx.SkipSpace(d.json, 0))
	i := find(members, root)
	if i < 0 {
		return -1
	}
	return members[i].value
}

func (jsonc) decode(src []byte) (map[string]any, error) {
	d, err := parse(src)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(d.json))
	dec.UseNumber()
	var all map[string]any
	return all, dec.Decode(&all)
}

func (jsonc) set(src []byte, root, name string, entry []member, _ bool) ([]byte, error) {
	d, err := parse(src)
	if err != nil {
		return nil, err
	}
	open := d.servers(root)
	if open < 0 {
		return d.insert(jsonx.SkipSpace(d.json, 0), member{root, []member{{name, entry}}}), nil
	}
	if d.json[open] == 'n' { // null
		return d.edited(cut{open, open + len("null"), d.render([]member{{name, entry}}, d.indent(open))}), nil
	}
	members, _ := d.object(open)
	i := find(members, name)
	if i < 0 {
		return d.insert(open, member{name, entry}), nil
	}
	old := members[i]
	return d.edited(cut{old.value, old.end, d.render(entry, d.indent(old.key))}), nil
}

func (jsonc) remove(src []byte, root, name string) ([]byte, error) {
	d, err := parse(src)
	if err != nil {
		return nil, err
	}
	members, closing := d.object(d.servers(root))
	i := find(members, name)
	m := members[i]
	var commas []cut
	switch next := jsonx.SkipSpace(d.json, m.end); {
	case d.json[next] == ',':
		commas = append(commas, cut{next, next + 1, ""})
	case d.trailing(m.end, closing) >= 0:
		comma := d.trailing(m.end, closing)
		commas = append(commas, cut{comma, comma + 1, ""})
	case i > 0:
		comma := jsonx.SkipSpace(d.json, members[i-1].end)
		commas = append(commas, cut{comma, comma + 1, ""})
	}
	start, end := m.key, m.end
	// A member with lines of its own takes them with it.
	before := len(bytes.TrimRight(d.src[:start], " \t"))
	after := end
	if len(commas) == 1 && commas[0].from >= end && len(bytes.TrimSpace(d.src[end:commas[0].from])) == 0 {
		after, commas = commas[0].to, nil
	}
	rest := after + len(d.src[after:]) - len(bytes.TrimLeft(d.src[after:], " \t\r"))
	if before > 0 && d.src[before-1] == '\n' && rest < len(d.src) && d.src[rest] == '\n' {
		start, after = before, rest+1
	}
	return d.edited(append(commas, cut{start, after, ""})...), nil
}

// trailing returns the offset of the trailing comma between two offsets, or -1.
func (d *document) trailing(from, to int) int {
	for _, comma := range d.commas {
		if from <= comma && comma < to {
			return comma
		}
	}
	return -1
}

// A cut replaces a part of a file.
type cut struct {
	from, to int
	text     string
}

func (d *document) edited(cuts ...cut) []byte {
	slices.SortFunc(cuts, func(a, b cut) int { return a.from - b.from })
	var out []byte
	at := 0
	for _, c := range cuts {
		out = append(append(out, d.src[at:c.from]...), c.text...)
		at = c.to
	}
	return append(out, d.src[at:]...)
}

// insert adds a member at the end of the object whose brace is at the offset, after its comments.
func (d *document) insert(open int, m member) []byte {
	members, closing := d.object(open)
	var cuts []cut
	if n := len(members); n > 0 && d.trailing(members[n-1].end, closing) < 0 {
		cuts = append(cuts, cut{members[n-1].end, members[n-1].end, ","})
	}
	at := len(bytes.TrimRight(d.src[:closing], " \t\r\n"))
	outer := d.indent(open)
	inner := outer + d.unit()
	if len(members) > 0 {
		inner = d.indent(members[0].key)
	}
	text := quote(m.key) + ": " + d.render(m.value, inner)
	if oneLine := !bytes.ContainsRune(d.src[open:closing], '\n'); oneLine && len(members) > 0 {
		return d.edited(append(cuts, cut{at, at, " " + text})...)
	}
	return d.edited(append(cuts, cut{at, closing, d.newline() + inner + text + d.newline() + outer})...)
}

// indent returns the white space at the beginning of the line of an offset.
func (d *document) indent(at int) string {
	line := d.src[bytes.LastIndexByte(d.src[:at], '\n')+1 : at]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// unit returns the white space of one level.
func (d *document) unit() string {
	if members, _ := d.object(jsonx.SkipSpace(d.json, 0)); len(members) > 0 {
		if unit := d.indent(members[0].key); unit != "" {
			return unit
		}
	}
	return "  "
}

func (d *document) newline() string {
	if bytes.Contains(d.src, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

// render writes a value as JSON, with objects on several lines.
func (d *document) render(value any, indent string) string {
	switch v := value.(type) {
	case string:
		return quote(v)
	case []string:
		all := make([]string, len(v))
		for i, s := range v {
			all[i] = quote(s)
		}
		return "[" + strings.Join(all, ", ") + "]"
	case []member:
		inner := indent + d.unit()
		var lines []string
		for _, m := range v {
			lines = append(lines, inner+quote(m.key)+": "+d.render(m.value, inner))
		}
		return "{" + d.newline() + strings.Join(lines, ","+d.newline()) + d.newline() + indent + "}"
	}
	return fmt.Sprint(value) // a bool
}

package hosts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/tailscale/hujson"

	"github.com/mcpkit/mcpkit-go/internal/naming"
)

// bom is the byte order mark, with which some editors begin a file.
var bom = []byte("\xef\xbb\xbf")

// parse reads a file of JSON with comments and trailing commas. An empty file is an empty object.
func parse(src []byte) (*hujson.Value, error) {
	src = bytes.TrimPrefix(src, bom)
	if len(bytes.TrimSpace(src)) == 0 {
		src = []byte("{}")
	}
	v, err := hujson.Parse(append(bytes.TrimSuffix(src, []byte("\n")), '\n')) // a comment on the last line needs its end
	if err != nil {
		return nil, fmt.Errorf("%w; correct the file first", err)
	}
	plain := v.Clone()
	plain.Standardize()
	if _, isObject := v.Value.(*hujson.Object); !isObject || !jsontext.Value(plain.Pack()).IsValid() { // such as a name twice
		return nil, errors.New("the file is not a valid JSON object with comments; correct it first")
	}
	return &v, nil
}

// object returns the object at the key of an object, or nil.
func object(v hujson.ValueTrimmed, key string) *hujson.Object {
	all, _ := v.(*hujson.Object)
	if m := member(all, key); m != nil {
		found, _ := m.Value.(*hujson.Object)
		return found
	}
	return nil
}

// index returns the index of a member, or -1.
func index(o *hujson.Object, name string) int {
	return slices.IndexFunc(o.Members, func(m hujson.ObjectMember) bool { return m.Name.Value.(hujson.Literal).String() == name })
}

// member returns the value of a member, or nil.
func member(o *hujson.Object, name string) *hujson.Value {
	if o == nil || index(o, name) < 0 {
		return nil
	}
	return &o.Members[index(o, name)].Value
}

// Add returns the content of the file with the server. Comments, order and other entries stay. The
// content is nil if the file has the same entry already. Src is the present content, which may be
// empty.
func (h *Host) Add(file string, src []byte, s Server, force bool) ([]byte, error) {
	if h.file.entry == nil {
		return nil, fmt.Errorf("only the command of %s changes its configuration; leave out --file", h.Title)
	}
	if s.Command == nil && h.file.noURL != "" {
		return nil, fmt.Errorf("%s reads only programs from its file; %s", h.Title, h.file.noURL)
	}
	doc, err := parse(src)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	root := doc.Value.(*hujson.Object)
	list := member(root, h.file.root)
	servers := object(root, h.file.root)
	if list != nil && servers == nil && list.Value.Kind() != 'n' {
		return nil, fmt.Errorf("%s: the value of %q is not an object", file, h.file.root)
	}
	entry := h.file.entry(s)
	old := member(servers, s.Name)
	switch {
	case old != nil && same(*old, entry):
		return nil, nil
	case old != nil && !force:
		return nil, &ExistsError{file, s.Name}
	case old != nil:
		old.Value = literal(entry, 2)
	case servers != nil:
		appendMember(servers, s.Name, entry, 2)
	case list != nil: // null
		list.Value = literal(map[string]any{s.Name: entry}, 1)
	default:
		appendMember(root, h.file.root, map[string]any{s.Name: entry}, 1)
	}
	return doc.Pack(), nil
}

// Remove returns the content of the file without the server.
func (h *Host) Remove(file string, src []byte, name string) ([]byte, error) {
	doc, err := parse(src)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	servers := object(doc.Value, h.file.root)
	if member(servers, name) == nil {
		var names []string
		if servers != nil {
			for _, m := range servers.Members {
				names = append(names, m.Name.Value.(hujson.Literal).String())
			}
		}
		return nil, fmt.Errorf("%s: the server %q is not installed%s; it has %q", file, name, naming.Hint(name, names), names)
	}
	removeMember(servers, name)
	return doc.Pack(), nil
}

// same reports whether a value of a file is the entry.
func same(v hujson.Value, entry any) bool {
	v = v.Clone()
	v.Minimize()
	var a, b any
	return json.Unmarshal(v.Pack(), &a) == nil && json.Unmarshal(encode(entry, "", ""), &b) == nil && reflect.DeepEqual(a, b)
}

// literal returns a value as it is written at a depth.
func literal(v any, depth int) hujson.Literal {
	return hujson.Literal(encode(v, strings.Repeat(indent, depth), indent))
}

// indent is the white space of one level.
const indent = "  "

// appendMember adds a member at the end of an object whose members have the depth, after its comments.
func appendMember(o *hujson.Object, name string, v any, depth int) {
	before := bytes.TrimRight(o.AfterExtra, " \t\r\n")
	added := hujson.ObjectMember{
		Name:  hujson.Value{BeforeExtra: append(bytes.Clone(before), "\n"+strings.Repeat(indent, depth)...), Value: hujson.String(name)},
		Value: hujson.Value{BeforeExtra: hujson.Extra(" "), Value: literal(v, depth)},
	}
	if n := len(o.Members); n > 0 && o.Members[n-1].Value.AfterExtra != nil {
		added.Value.AfterExtra = hujson.Extra{} // a trailing comma, as before
	}
	o.Members = append(o.Members, added)
	o.AfterExtra = hujson.Extra("\n" + strings.Repeat(indent, depth-1))
}

// removeMember removes a member. The comments before it stay.
func removeMember(o *hujson.Object, name string) {
	i := index(o, name)
	comments := bytes.TrimRight(o.Members[i].Name.BeforeExtra, " \t\r\n")
	o.Members = slices.Delete(o.Members, i, i+1)
	next := &o.AfterExtra
	if i < len(o.Members) {
		next = &o.Members[i].Name.BeforeExtra
	}
	if len(comments) > 0 && !bytes.HasPrefix(bytes.TrimLeft(*next, " \t\r"), []byte("\n")) {
		comments = append(bytes.Clone(comments), '\n')
	}
	*next = append(bytes.Clone(comments), *next...)
}

package mcpkit

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// A ToolTag is a tag that an [Extension] defines, for the tools of services and builders:
//
//	var stars = mcpkit.NewToolTag("stars", `stars:"3"`, strconv.Atoi)
//
// Make one with [NewToolTag]. It may be used by any number of servers, and concurrently.
type ToolTag[T any] struct{ tag extendedKey }

// AnyToolTag is a [*ToolTag] of any type.
type AnyToolTag interface{ toolTag() *extendedKey }

func (t *ToolTag[T]) toolTag() *extendedKey {
	if t == nil {
		return nil
	}
	return &t.tag
}

// NewToolTag returns the tag with the key. parse turns the value into a T when a tool is registered.
// Its error says what is wrong with the value; example is a tag that can be written instead:
// `stars:"3"`.
func NewToolTag[T any](key, example string, parse func(value string) (T, error)) *ToolTag[T] {
	t := &ToolTag[T]{extendedKey{key, example, func(value string) (any, error) { return parse(value) }}}
	linkedTags.LoadOrStore(key, &t.tag)
	return t
}

// linkedTags are the tags of all extensions in the program: string -> *extendedKey.
var linkedTags sync.Map

// LinkedTags accepts the tags of all extensions that the program links, without adding the
// extensions: a check of services, such as mcpkit vet, does not know how they are added.
func LinkedTags() Option {
	return newOption(func(c *config) error { c.linkedTags = true; return nil })
}

// Of returns the value of the tag on a tool: the one that is registered, or the one that is called.
// ok is false if the tool does not have the tag, and for calls that are not of a tool of this
// server: the tools of mounted servers have the tags of their own server.
func (t *ToolTag[T]) Of(tool Tagged) (value T, ok bool) {
	for _, v := range tool.taggedValues() {
		if v.key == &t.tag {
			value, ok = v.value.(T)
			return value, ok
		}
	}
	return value, false
}

// Tagged is a value with tags of extensions: a [*ToolEntry] or a [*Call].
type Tagged interface{ taggedValues() []taggedValue }

func (c *Call) taggedValues() []taggedValue {
	if c.entry == nil {
		return nil
	}
	return c.entry.extended
}

// An extendedKey is the key of a ToolTag, without the type of its values.
type extendedKey struct {
	key, example string
	parse        func(string) (any, error)
}

// A taggedValue is the value of an extension's tag on a tool.
type taggedValue struct {
	key   *extendedKey
	value any
}

// set parses the value of the tag.
func (k *extendedKey) set(a *annotation, value string) error {
	parsed, err := k.parse(value)
	if err != nil {
		return fmt.Errorf("tag %s: %w; write for example %s", k.key, err, k.example)
	}
	a.extended = append(a.extended, taggedValue{k, parsed})
	return nil
}

// extendedKeys are the tags of a server's extensions.
type extendedKeys []*extendedKey

func (keys extendedKeys) find(key string) *extendedKey {
	for _, k := range keys {
		if k.key == key {
			return k
		}
	}
	return nil
}

func (keys extendedKeys) names() []string {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.key
	}
	return names
}

// An ownTag is a tag of an extension in this repository. docs/reference/tags.md is generated from
// the table.
type ownTag struct{ key, form, doc, option string }

var ownTags = []ownTag{
	{"task", `task:"optional,durable"`, "Calls of the tool become tasks: `optional` if the client supports tasks, `required` always. With `durable`, a method that was running when the process ended is run again.", "tasks.New"},
	{"app", `app:"ui://notes/board"`, "The page that hosts show with the tool's result. `visibility=app` hides the tool from models, and `visibility=model` from pages.", "apps.Pages"},
}

// addsExtension returns what to add to a server for the tag: the extension that has it. It is "" if
// no extension has the tag.
func addsExtension(key string) string {
	for _, t := range ownTags {
		if t.key == key {
			return t.option
		}
	}
	if _, ok := linkedTags.Load(key); ok {
		return "the extension"
	}
	return ""
}

// toolTags returns the tags of the server's extensions.
func (c *config) toolTags() (keys extendedKeys, err error) {
	var faults []error
	for _, e := range c.extensions {
		for _, t := range e.Tags {
			k := t.toolTag()
			var fault string
			switch {
			case k == nil:
				fault = "a tag is nil; make it with NewToolTag"
			case k.key == "" || strings.ContainsAny(k.key, " :\"`") || k.parse == nil:
				fault = fmt.Sprintf("%q is not a key of a tag", k.key)
			case slices.ContainsFunc(tagKeys, func(t tagKey) bool { return t.key == k.key }):
				fault = fmt.Sprintf("the tag %q means something else", k.key)
			case keys.find(k.key) != nil:
				fault = fmt.Sprintf("another extension has the tag %q", k.key)
			default:
				keys = append(keys, k)
				continue
			}
			faults = append(faults, fmt.Errorf("mcpkit: extension %q: %s", e.ID, fault))
		}
	}
	if c.linkedTags {
		linkedTags.Range(func(_, k any) bool {
			if k := k.(*extendedKey); keys.find(k.key) == nil {
				keys = append(keys, k)
			}
			return true
		})
	}
	return keys, errors.Join(faults...)
}

// A ToolEntry is a tool of a server while it is registered: what an [Extension] reads of it and adds
// to its entry in tools/list. It must not be used later.
type ToolEntry struct {
	tool   *tool
	since  protocol.Version
	faults []error
}

func (t *ToolEntry) taggedValues() []taggedValue { return t.tool.extended }

// Definition returns the definition of the tool, without what extensions add. The slices and maps
// in it must not be changed.
func (t *ToolEntry) Definition() protocol.Tool { return t.tool.def }

// Scopes returns what a caller needs to see and call the tool. It must not be changed.
func (t *ToolEntry) Scopes() []string { return t.tool.scopes }

// Hidden reports whether the tool is left out of lists.
func (t *ToolEntry) Hidden() bool { return t.tool.hidden }

// Site returns the place where the tool was registered, for errors: "Notes.Search (notes.go:12)".
func (t *ToolEntry) Site() string { return t.tool.site }

// SetMeta adds a member to the _meta of the tool's entry in tools/list, for the given versions. If
// none is given: for all versions that have the extension. The value is encoded now; if it does not
// encode, or the tool has the member already, the registration fails.
func (t *ToolEntry) SetMeta(key string, value any, versions ...protocol.Version) {
	_, taken := t.tool.def.Meta[key]
	t.add(addedMember{name: key, meta: true, versions: versions}, value, taken)
}

// SetMember adds a member to the tool's entry in tools/list, as SetMeta does for _meta: the member
// execution, for example.
func (t *ToolEntry) SetMember(name string, value any, versions ...protocol.Version) {
	t.add(addedMember{name: name, versions: versions}, value, hasMember(t.tool.def, name))
}

// hasMember reports whether the definition has a member, or may have it in some version.
func hasMember(def protocol.Tool, name string) bool {
	f := reflect.ValueOf(def)
	for i := range f.NumField() {
		if key, _, _ := strings.Cut(f.Type().Field(i).Tag.Get("json"), ","); key == name {
			return name != "execution" || def.Execution != nil
		}
	}
	return false
}

func (t *ToolEntry) add(m addedMember, value any, taken bool) {
	raw, err := jsonx.Marshal(value)
	switch {
	case err != nil:
		err = fmt.Errorf("member %q of the tool's entry does not encode: %w", m.name, err)
	case taken || slices.ContainsFunc(t.tool.members, func(known addedMember) bool { return known.name == m.name && known.meta == m.meta }):
		err = fmt.Errorf("the tool's entry has the member %q already", m.name)
	}
	if err != nil {
		t.faults = append(t.faults, err)
		return
	}
	m.value, m.since = raw, t.since
	t.tool.members = append(t.tool.members, m)
}

// extendTool lets the extensions of the server check the tool and add members to its entry.
func (s *Server) extendTool(t *tool) error {
	var faults []error
	for i := range s.config.extensions {
		e := &s.config.extensions[i]
		if e.Tool == nil {
			continue
		}
		entry := &ToolEntry{tool: t, since: e.Since}
		err := e.Tool(entry)
		faults = append(append(faults, entry.faults...), err)
	}
	return errors.Join(faults...)
}

// An addedMember is a member that an extension adds to the entry of a tool in tools/list.
type addedMember struct {
	name     string
	meta     bool // it is part of _meta
	value    json.RawMessage
	versions []protocol.Version // empty: all from since on
	since    protocol.Version
}

func (m *addedMember) in(v protocol.Version) bool {
	if len(m.versions) > 0 {
		return slices.Contains(m.versions, v)
	}
	return v >= m.since
}

// withMembers returns the definition with the members that extensions added for the version.
func withMembers(def protocol.Tool, members []addedMember, v protocol.Version) any {
	var meta protocol.Meta
	var rest []*addedMember
	for i := range members {
		m := &members[i]
		switch {
		case !m.in(v):
		case m.meta:
			if meta == nil {
				meta = protocol.Meta{}
			}
			meta[m.name] = m.value
		default:
			rest = append(rest, m)
		}
	}
	for key, value := range def.Meta {
		if meta != nil {
			meta[key] = value
		}
	}
	if meta != nil {
		def.Meta = meta
	}
	if rest == nil {
		return def
	}
	raw, err := jsonx.Marshal(def)
	if err != nil {
		return def // it fails again
	}
	for _, m := range rest {
		raw = append(jsonx.AppendString(append(raw[:len(raw)-1], ','), m.name), ':')
		raw = append(append(raw, m.value...), '}')
	}
	return json.RawMessage(raw)
}

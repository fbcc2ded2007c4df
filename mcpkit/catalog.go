package mcpkit

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/limits"
	"github.com/mcpkit/mcpkit-go/internal/naming"
	"github.com/mcpkit/mcpkit-go/internal/uritemplate"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/annotation"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/secret"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

// A catalog is all that a server offers at one time: what is registered on it, and what is mounted.
// It never changes, a change makes another one. So calls read it without a lock, and keep the one
// that they began with.
type catalog struct {
	lists      [5]list  // of tools, prompts, resources, templates and events
	templates  []*entry // in the order in which they are asked for a URI: of the server itself, then of each mounted one
	methods    map[string]*methodRow
	extensions []*Extension
	mounts     []*mount        // of other servers in this one
	parents    []*mount        // of this server in others
	leftOut    map[string]bool // why parts of mounted servers are not part of it
	config     *config         // of the server; never changes
}

// list returns the list of a kind.
func (c *catalog) list(k annotation.Kind) list { return c.lists[k.Place()] }

// An entry is a tool, prompt, resource, resource template or event. It never changes once it is part of a
// catalog.
type entry struct {
	key  string // tool, prompt or event name, URI, or URI template
	site string // where it was registered, for errors: "Notes.Search (notes.go:12)"
	*annotation.Annotation
	visible []visibility // who may know of the entry: all must permit

	definition *definition
	tool       *protocol.Tool         // for the newest version; nil for other kinds
	headers    []protocol.HeaderParam // of a tool
	template   *uritemplate.Template  // of a template
	canonical  string                 // of a resource that is no template: the canonical form of its URI
	shown      secret.Shown           // which arguments logs may show
	logs       bool                   // the method can send log messages

	run       Handler                                     // the method inside of what its tags demand
	around    Handler                                     // of Around, with broughtTo inside; nil: none
	complete  Handler                                     // completes arguments or variables; nil: nothing to complete
	subscribe func(ctx context.Context, uri string) error // begins to watch the resource; nil: nothing to do
	limits    entryLimits

	from  *mount   // that it comes from; nil for own entries
	inner *entry   // that of the mounted server
	plain *entry   // without what Describe changes
	set   *ItemSet // that it is part of; nil for none
}

// The entryLimits limit the calls of an entry.
type entryLimits struct {
	timeout time.Duration
	calls   *limits.Rounds[caller] // what the tag rate counts; nil without a limit
	load    *load
}

// own returns the entry in the server that registered it, without mounts.
func (e *entry) own() *entry {
	for e.from != nil {
		e = e.inner
	}
	return e
}

// A definition is what lists tell clients of an entry: a JSON object, which is encoded for each
// version when it is first needed.
type definition struct {
	ofTool  bool // protocol.ToolFor gives it the form for a version
	make    func(v protocol.Version) ([]byte, error)
	encoded [5]atomic.Pointer[[]byte] // by the place of the version in Supported
}

// defined returns a definition that is the same for all versions.
func defined(v any) *definition {
	return &definition{make: func(protocol.Version) ([]byte, error) {
		b, err := jsonx.Marshal(v)
		return b, prefixed("the definition does not encode: ", err)
	}}
}

// in returns the JSON for a version.
func (d *definition) in(v protocol.Version) ([]byte, error) {
	i := slices.Index(protocol.Supported, v)
	if b := d.encoded[i].Load(); b != nil {
		return *b, nil
	}
	b, err := d.make(v)
	if err != nil {
		return nil, err
	}
	if d.ofTool {
		b = protocol.ToolFor(v, b)
	}
	d.encoded[i].Store(&b)
	return b, nil
}

// latest returns the JSON for the newest version.
func (d *definition) latest() ([]byte, error) { return d.in(protocol.Supported[0]) }

// A list is the entries of one kind. It never changes.
type list struct {
	sorted     []*entry // by key
	scopes     []string // of all entries
	predicates []*predicate
	first      *limits.Map[pageKey, json.RawMessage] // the first pages; nil if the list is empty
}

const (
	maxPages     = 32   // first pages of a list that are kept
	maxSelection = 1024 // bytes of a selection, perhaps from a header, for which a page is kept
)

// A pageKey is what the first page of a list depends on.
type pageKey struct {
	version   protocol.Version
	about     *introduction
	selection string // of Call.selection
}

// personal reports whether not all callers see the same entries.
func (l list) personal() bool { return len(l.scopes)+len(l.predicates) > 0 }

// find returns the place of a key in the list, and whether there is an entry.
func (l list) find(key string) (at int, ok bool) {
	return slices.BinarySearchFunc(l.sorted, key, func(e *entry, key string) int { return strings.Compare(e.key, key) })
}

// named returns the entries that a name means: those with the key, or else the one with the alias.
func (l list) named(name string) []*entry {
	at, ok := l.find(name)
	if !ok {
		at = slices.IndexFunc(l.sorted, func(e *entry) bool { return slices.Contains(e.Aliases, name) })
		if at < 0 {
			return nil
		}
		return l.sorted[at : at+1]
	}
	end := at + 1
	for end < len(l.sorted) && l.sorted[end].key == name {
		end++
	}
	return l.sorted[at:end]
}

// isVariantOf reports whether e may have the same key as other: both are variants, and not both of them
// are visible to all callers.
func (e *entry) isVariantOf(other *entry) bool {
	return e.Variant != "" && other.Variant != "" && e.Variant != other.Variant && (e.isPersonal() || other.isPersonal())
}

// with returns a list that has entries, too, and calls taken for those whose key it has already.
func (l list) with(entries []*entry, taken func(old, e *entry)) list {
	if len(entries) == 0 {
		return l
	}
	l.sorted = append(make([]*entry, 0, len(l.sorted)+len(entries)), l.sorted...)
	l.scopes, l.predicates = slices.Clone(l.scopes), slices.Clip(l.predicates)
	l.first = limits.NewMap[pageKey, json.RawMessage](maxPages)
	for _, e := range entries {
		at, _ := l.find(e.key)
		for at < len(l.sorted) && l.sorted[at].key == e.key && e.isVariantOf(l.sorted[at]) {
			at++
		}
		if at < len(l.sorted) && l.sorted[at].key == e.key {
			taken(l.sorted[at], e)
			continue
		}
		l.sorted = slices.Insert(l.sorted, at, e)
		l.scopes = append(l.scopes, e.Scopes...)
		for _, v := range e.visible {
			if !slices.Contains(l.predicates, v.by) {
				l.predicates = append(l.predicates, v.by)
			}
		}
	}
	slices.Sort(l.scopes)
	l.scopes = slices.Compact(l.scopes)
	return l
}

// same reports whether clients see the same entries in both lists.
func (l list) same(other list) bool { return slices.EqualFunc(l.sorted, other.sorted, (*entry).same) }

func (e *entry) same(other *entry) bool {
	if e.definition == other.definition && e.key == other.key {
		return true
	}
	a, aErr := e.definition.latest()
	b, bErr := other.definition.latest()
	return aErr == nil && bErr == nil && bytes.Equal(a, b) && slices.Equal(e.Scopes, other.Scopes) && e.Hidden == other.Hidden
}

// add adds entries, and calls taken for those whose key is taken.
func (c *catalog) add(entries []*entry, taken func(old, e *entry)) {
	var byKind [len(c.lists)][]*entry
	for _, e := range entries {
		byKind[e.Kind.Place()] = append(byKind[e.Kind.Place()], e)
	}
	for i := range c.lists {
		c.lists[i] = c.lists[i].with(byKind[i], taken)
	}
}

// remove removes the entries for which gone returns true, and reports whether there were any.
func (c *catalog) remove(gone func(*entry) bool) (removed bool) {
	for i, l := range c.lists {
		if slices.ContainsFunc(l.sorted, gone) {
			c.lists[i], removed = list{}.with(slices.DeleteFunc(slices.Clone(l.sorted), gone), nil), true
		}
	}
	return removed
}

// entries returns all entries, those of each kind sorted by key.
func (c *catalog) entries() []*entry {
	var all []*entry
	for _, l := range c.lists {
		all = append(all, l.sorted...)
	}
	return all
}

// has reports whether the catalog has an entry for which f returns true.
func (c *catalog) has(f func(*entry) bool) bool {
	return slices.ContainsFunc(c.lists[:], func(l list) bool { return slices.ContainsFunc(l.sorted, f) })
}

// change applies f to a copy of what is registered on the server. Subscribed clients are notified of
// the lists that differ.
func (s *Server) change(f func(own *catalog) error) error {
	s.registering.Lock()
	own := *s.own
	if err := f(&own); err != nil {
		s.registering.Unlock()
		return err
	}
	s.own = &own
	s.publish()
	return nil
}

// publish makes the catalog anew, and those of the servers that this one is mounted in. The caller
// holds registering, which publish unlocks: no code of the program runs while it is held.
func (s *Server) publish() {
	old := s.catalog.Load()
	next := s.merge()
	s.catalog.Store(next)
	s.registering.Unlock()
	for _, why := range slices.Sorted(maps.Keys(next.leftOut)) {
		if !old.leftOut[why] {
			s.config.logger.Warn("mcpkit: a part of a mounted server is left out: " + why)
		}
	}
	for _, m := range next.parents {
		m.parent.registering.Lock()
		m.parent.publish()
	}
	for _, list := range next.changed(old) {
		s.tellReplicas(subject{topic: s.topics[list]})
		s.tell(subject{topic: s.topics[list]}, s.topics[list].clients())
	}
}

// changed returns which lists differ from those of old, by the places of their topics in Server.topics.
func (c *catalog) changed(old *catalog) (lists []int) {
	kindsOf := [resourceTopic][]annotation.Kind{
		{annotation.Tool}, {annotation.Prompt}, {annotation.Resource, annotation.Template}, {annotation.Event},
	}
	for i, kinds := range kindsOf {
		if slices.ContainsFunc(kinds, func(k annotation.Kind) bool { return !c.list(k).same(old.list(k)) }) {
			lists = append(lists, i)
		}
	}
	return lists
}

// enter adds entries, as Describe changes them, to own. If there are faults, it returns them together with
// those of the entries.
func (s *Server) enter(own *catalog, faults reflectx.Errors, plain []*entry) error {
	var entries []*entry
	for _, p := range plain {
		e, err := s.described(p)
		faults.Add(p.site, err)
		e.show(s.config.visible, e)
		_, err = e.definition.latest() // one that does not encode would break its list
		faults.Add(p.site, err)
		entries = append(entries, e)
	}
	own.add(entries, func(old, e *entry) {
		faults.Addf("", "mcpkit: %s %q is registered twice, by %s and %s; give one of them the tag name, or its service mcpkit.Prefix", e.Kind, e.key, old.site, e.site)
	})
	for _, e := range entries {
		for _, alias := range e.Aliases {
			faults.Add(e.site, naming.Check(alias))
			if old := own.list(e.Kind).named(alias); len(old) > 0 && old[0] != e {
				faults.Addf(e.site, "the alias %q is a name of %s", alias, old[0].site)
			}
		}
	}
	return faults.Err()
}

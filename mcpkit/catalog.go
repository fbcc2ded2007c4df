package mcpkit

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/limits"
	"github.com/mcpkit/mcpkit-go/internal/paramheader"
	"github.com/mcpkit/mcpkit-go/internal/uritemplate"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/secret"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

// A catalog is all that a server offers at one time: what is registered on it, and what is mounted.
// It never changes, a change makes another one. So calls read it without a lock, and keep the one
// that they began with.
type catalog struct {
	tools      list[*tool]
	prompts    list[*prompt]
	resources  list[*resource] // by URI
	templates  list[*resource] // by URI template
	speakers   []speaker
	methods    map[string]*methodRow
	extensions []*declaration
	topics     []offeredTopic
	leftOut    map[string]bool // why entries of mounted servers are not part of it
	logs       bool            // some method can send log messages
	completes  bool            // some prompt or template has completions
	offersAll  bool            // of OfferAll; never changes
}

// A speaker is a server that answers for URIs. Speakers are in order: what an earlier one has, a
// later one cannot answer, whether with a URI or with a template.
type speaker struct {
	resources map[string]*resource
	templates []*resource
}

// An entry is what tools, prompts and resources have in common. It never changes once it is part of
// a catalog.
type entry struct {
	key              string // tool or prompt name, URI, or URI template
	site             string // where it was registered, for errors: "Notes.Search (notes.go:12)"
	scopes           []string
	allow            []allowFunc // of the server that it is in
	restricted       bool        // by an allowFunc, also one of a mounted server
	tags             []string
	hidden           bool
	timeout          time.Duration
	timeoutByDefault bool // timeout is that of ToolTimeout
	rate             rateLimit
	calls            *limits.Rounds[caller]                      // what rate counts; nil without a limit
	overdue          *overdueCount                               // set by guard
	cache            CachePolicy                                 // of a tool
	run              Handler                                     // the method inside of what its tags demand
	completion       Handler                                     // answers completion/complete; nil: the completers do
	subscribe        func(ctx context.Context, uri string) error // begins to watch the resource; nil: nothing to do
	logs             bool
	secrets          *secret.Secrecy   // which arguments logs may show; nil: all
	wire             *wiring           // the encoded definition
	from             *mount            // that it comes from; nil for own entries
	inner            item              // the entry of the mounted server
	set              *ItemSet          // that the entry belongs to; nil for most
	extended         map[string]string // the tags of extensions; of a tool
}

func (e *entry) base() *entry       { return e }
func (e *entry) completes() bool    { return e.completion != nil }
func (p *prompt) completes() bool   { return p.completion != nil || len(p.complete) > 0 }
func (r *resource) completes() bool { return r.completion != nil || len(r.complete) > 0 }

// setWire sets how the definition is encoded. define returns what to encode for a version.
func (e *entry) setWire(define func(v protocol.Version) (any, error)) {
	e.wire = &wiring{define: define}
}

// A wiring encodes a definition for each version when it is first needed.
type wiring struct {
	define  func(v protocol.Version) (any, error)
	encoded [len(versions)]atomic.Pointer[[]byte]
}

// in returns the definition for versions[i].
func (w *wiring) in(i int) ([]byte, error) {
	if b := w.encoded[i].Load(); b != nil {
		return *b, nil
	}
	definition, err := w.define(versions[i])
	if err != nil {
		return nil, err
	}
	b, err := jsonx.Marshal(definition)
	if err != nil {
		return nil, fmt.Errorf("the definition does not encode: %w", err)
	}
	w.encoded[i].Store(&b)
	return b, nil
}

type item interface {
	base() *entry
	completes() bool // its arguments or variables
}

// A list is the entries of one kind. It never changes.
type list[T item] struct {
	byKey    map[string]T
	sorted   []T  // by key
	personal bool // not all callers see the same entries
}

// with returns a list that has items, too, and calls taken for those whose key it has already.
func (l list[T]) with(items []T, taken func(old, it T)) list[T] {
	if len(items) == 0 {
		return l
	}
	next := list[T]{maps.Clone(l.byKey), slices.Clip(l.sorted), l.personal}
	if next.byKey == nil {
		next.byKey = make(map[string]T, len(items))
	}
	for _, it := range items {
		e := it.base()
		if old, ok := next.byKey[e.key]; ok {
			taken(old, it)
			continue
		}
		next.byKey[e.key] = it
		next.sorted = append(next.sorted, it)
		next.personal = next.personal || len(e.scopes) > 0 || e.restricted
	}
	slices.SortFunc(next.sorted, func(a, b T) int { return strings.Compare(a.base().key, b.base().key) })
	return next
}

// add is like with for what is registered: a key that exists already is a fault.
func (l *list[T]) add(what string, items []T) error {
	var faults reflectx.Errors
	next := l.with(items, func(old, it T) {
		first, second := old.base(), it.base()
		msg := fmt.Sprintf("mcpkit: %s %q is registered twice, by %s and %s", what, first.key, first.site, second.site)
		faults = append(faults, &reflectx.Error{Msg: msg})
	})
	if faults != nil {
		return faults
	}
	*l = next
	return nil
}

// remove removes the entries for which gone returns true, and reports whether there were any.
func (l *list[T]) remove(gone func(*entry) bool) (removed bool) {
	kept := slices.DeleteFunc(slices.Clone(l.sorted), func(it T) bool { return gone(it.base()) })
	if len(kept) == len(l.sorted) {
		return false
	}
	*l = list[T]{}.with(kept, nil)
	return true
}

func (l list[T]) get(key string) (it T, ok bool) {
	it, ok = l.byKey[key]
	return it, ok
}

// key returns the registered key that equals name, the inside of a JSON string.
func (l list[T]) key(name []byte) (string, bool) {
	if it, ok := l.byKey[string(name)]; ok && bytes.IndexByte(name, '\\') < 0 {
		return it.base().key, true
	}
	return "", false
}

// same reports whether clients see the same entries in both lists.
func (l list[T]) same(other list[T]) bool {
	return slices.EqualFunc(l.sorted, other.sorted, func(a, b T) bool { return a.base().same(b.base()) })
}

func (e *entry) same(other *entry) bool {
	if e.wire == other.wire && e.key == other.key {
		return true
	}
	a, aErr := e.wire.in(len(versions) - 1)
	b, bErr := other.wire.in(len(versions) - 1)
	return aErr == nil && bErr == nil && bytes.Equal(a, b) && slices.Equal(e.scopes, other.scopes)
}

// named returns the condition for entries with one of these keys.
func named(keys []string) func(*entry) bool {
	return func(e *entry) bool { return slices.Contains(keys, e.key) }
}

type tool struct {
	entry
	def     protocol.Tool
	define  func(v protocol.Version) (protocol.Tool, error) // the definition in its own server; nil: def
	headers []paramheader.Param
	raw     json.RawMessage // the definition of another server; nil for own tools
}

type prompt struct {
	entry
	def      protocol.Prompt
	complete map[string]completer // by argument
	raw      json.RawMessage      // the definition of another server; nil for own prompts
}

// resource is a resource or a resource template.
type resource struct {
	entry
	def         protocol.Resource         // of a resource
	templateDef protocol.ResourceTemplate // of a template
	template    *uritemplate.Template     // nil for a resource
	mime        string
	ttl         time.Duration
	private     bool
	complete    map[string]completer // by variable
}

// A draft is the entries that one registration adds.
type draft []item

// appendItems appends entries of one kind.
func appendItems[T item](d draft, items []T) draft {
	for _, it := range items {
		d = append(d, it)
	}
	return d
}

// wrap puts middleware around all entries of the draft.
func (d draft) wrap(mw []Middleware) {
	for _, it := range d {
		e := it.base()
		e.run = wrap("Around: ", e.run, mw)
	}
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
	parents := slices.Clip(s.parents)
	s.registering.Unlock()
	for _, why := range slices.Sorted(maps.Keys(next.leftOut)) {
		if !old.leftOut[why] {
			s.config.logger.Warn("mcpkit: a part of a mounted server is left out: " + why)
		}
	}
	for _, m := range parents {
		m.parent.registering.Lock()
		m.parent.publish()
	}
	s.announce(next.changed(old))
}

// changed returns the notifications of the lists that differ from those of old.
func (c *catalog) changed(old *catalog) (lists []string) {
	if !c.tools.same(old.tools) {
		lists = append(lists, featureTools.listChanged)
	}
	if !c.prompts.same(old.prompts) {
		lists = append(lists, featurePrompts.listChanged)
	}
	if !c.resources.same(old.resources) || !c.templates.same(old.templates) {
		lists = append(lists, featureResources.listChanged)
	}
	return lists
}

func (s *Server) add(d draft) error { return s.addUnless(nil, d) }

// addUnless adds the draft to the server. If there are faults, it adds nothing and returns them
// together with those of the draft.
func (s *Server) addUnless(faults reflectx.Errors, d draft) error {
	faults = append(faults, s.check(d)...)
	return s.change(func(own *catalog) error { return joinFaults(faults, own.add(d)) })
}

// check checks entries that are to be registered, and lets the options of the server apply to them.
func (s *Server) check(d draft) reflectx.Errors {
	faults := s.checkScopes(d)
	for _, it := range d {
		e := it.base()
		e.allow = slices.Concat(e.allow, s.config.allow)
		e.restricted = len(e.allow) > 0
		// One that does not encode would break its list.
		if _, err := e.wire.in(len(versions) - 1); err != nil {
			faults = append(faults, &reflectx.Error{Site: e.site, Msg: err.Error()})
		}
	}
	return faults
}

func (c *catalog) add(d draft) error {
	var tools []*tool
	var prompts []*prompt
	var resources, templates []*resource
	for _, it := range d {
		switch it := it.(type) {
		case *tool:
			tools = append(tools, it)
		case *prompt:
			prompts = append(prompts, it)
		case *resource:
			if it.template == nil {
				resources = append(resources, it)
			} else {
				templates = append(templates, it)
			}
		}
	}
	return joinFaults(
		c.tools.add("tool", tools), c.prompts.add("prompt", prompts),
		c.resources.add("resource", resources), c.templates.add("resource template", templates))
}

// items returns all entries, those of each kind sorted by key.
func (c *catalog) items() draft {
	d := appendItems(appendItems(nil, c.tools.sorted), c.prompts.sorted)
	return appendItems(appendItems(d, c.resources.sorted), c.templates.sorted)
}

package mcpkit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/uritemplate"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

// A catalog is all that is registered at one time. It never changes: a change makes another one, so that calls read it
// without a lock and keep what they began with.
type catalog struct {
	tools     registry[*tool]
	prompts   registry[*prompt]
	resources registry[*resource] // by URI
	templates registry[*resource] // by URI template
	custom    map[string]*methodRow
	logs      bool // some method can send log messages
	completes bool // some prompt or template has completions
}

// An entry is what tools, prompts and resources have in common.
type entry struct {
	key     string // tool or prompt name, URI, or URI template
	site    string // who registered it, for errors: "Notes.Search (notes.go:12)"
	scopes  []string
	stepUp  bool // who lacks scopes may know of it
	tags    []string
	hidden  bool
	timeout time.Duration
	run     Handler // what the tags wrap around the method, and the method
	logs    bool
	secrets *secrecy                      // which arguments are not to be shown; nil: all may
	wires   [len(revisions)]func() []byte // the definition as JSON, per revision, made once
	from    *mount                        // what it was mounted with; nil for the server's own
	inner   item                          // what it is there
}

func (e *entry) base() *entry { return e }

// visible reports whether p may know of the entry. Who may not gets the same answers as if there were none.
func (e *entry) visible(p *oauth.Principal) bool {
	return len(e.scopes) == 0 || e.stepUp && p != nil || p.Has(e.scopes...)
}

// setWire makes the definition's JSON of each revision on first use: define returns what to encode.
func (e *entry) setWire(define func(v protocol.Version) any) {
	for i, v := range revisions {
		e.wires[i] = sync.OnceValue(func() []byte {
			b, err := jsonx.Marshal(define(v))
			if err != nil { // definitions are checked when registered
				panic(fmt.Sprintf("mcpkit: definition of %s: %v", e.site, err))
			}
			return b
		})
	}
}

type item interface{ base() *entry }

// A registry holds the entries of one kind, sorted by key.
type registry[T item] struct {
	byKey    map[string]T
	sorted   []T
	personal bool      // not everybody sees the same entries
	pages    *sync.Map // pageKey -> rawResult; made anew with each change
}

func (r registry[T]) get(key string) (T, bool) { v, ok := r.byKey[key]; return v, ok }

// key returns the key that name, as it stands in JSON, is for: no key has to be written with escapes.
func (r registry[T]) key(name []byte) (string, bool) {
	if it, ok := r.byKey[string(name)]; ok && bytes.IndexByte(name, '\\') < 0 {
		return it.base().key, true
	}
	return "", false
}

func (r registry[T]) len() int { return len(r.sorted) }

// with returns r and also items. The error names both places of each key that is there already.
func (r registry[T]) with(what string, items []T) (registry[T], error) {
	if len(items) == 0 {
		return r, nil
	}
	next := registry[T]{byKey: maps.Clone(r.byKey), sorted: slices.Clone(r.sorted), pages: new(sync.Map)}
	if next.byKey == nil {
		next.byKey = map[string]T{}
	}
	var faults reflectx.Errors
	for _, it := range items {
		e := it.base()
		if old, ok := next.byKey[e.key]; ok {
			faults = append(faults, &reflectx.Error{
				Msg: fmt.Sprintf("mcpkit: %s %q is registered twice, by %s and %s", what, e.key, old.base().site, e.site),
			})
			continue
		}
		next.byKey[e.key] = it
		next.sorted = append(next.sorted, it)
	}
	slices.SortFunc(next.sorted, func(a, b T) int { return strings.Compare(a.base().key, b.base().key) })
	if faults != nil {
		return r, faults
	}
	next.personal = needsScopes(next.sorted)
	return next, nil
}

func needsScopes[T item](entries []T) bool {
	return slices.ContainsFunc(entries, func(it T) bool { return len(it.base().scopes) > 0 })
}

// without returns r less the keys, and whether any was there.
func (r registry[T]) without(keys []string) (registry[T], bool) {
	next := registry[T]{byKey: maps.Clone(r.byKey), pages: new(sync.Map)}
	for _, key := range keys {
		delete(next.byKey, key)
	}
	if len(next.byKey) == len(r.byKey) {
		return r, false
	}
	next.sorted = slices.DeleteFunc(slices.Clone(r.sorted), func(it T) bool { return slices.Contains(keys, it.base().key) })
	next.personal = needsScopes(next.sorted)
	return next, true
}

type tool struct {
	entry
	def     protocol.Tool
	headers []headerParam
	raw     json.RawMessage // the definition as another server gave it; nil for those made here
}

type prompt struct {
	entry
	def      protocol.Prompt
	complete map[string]completer // by argument
	raw      json.RawMessage      // the definition as another server gave it; nil for those made here
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

// draft collects what one registration adds.
type draft struct {
	tools     []*tool
	prompts   []*prompt
	resources []*resource
	templates []*resource
}

// wrap puts middleware around everything in the draft.
func (d *draft) wrap(mw []Middleware) {
	wrap := func(e *entry) {
		for _, m := range slices.Backward(mw) {
			e.run = m(e.run)
		}
	}
	for _, t := range d.tools {
		wrap(&t.entry)
	}
	for _, p := range d.prompts {
		wrap(&p.entry)
	}
	for _, r := range slices.Concat(d.resources, d.templates) {
		wrap(&r.entry)
	}
}

// changing is held while catalogs change. It is one for all servers, since the change of one may be that of all that it is
// mounted in, in no order that they could be locked in. No user code runs meanwhile.
var changing sync.Mutex

// change replaces the catalog by what f makes of it, there and where s is mounted, and tells the peers of the lists that
// differ.
func (s *Server) change(f func(c *catalog) error) error {
	var p plan
	changing.Lock()
	err := p.apply(s, f)
	if err == nil {
		p.store()
	}
	changing.Unlock()
	if err == nil {
		p.announce()
	}
	return err
}

// A plan holds catalogs that are to be replaced together. The zero plan replaces none.
type plan struct{ steps []*step }

// A step is the change of one server.
type step struct {
	server    *Server
	old, next *catalog
}

// apply has f change the catalog of s, and what follows from that changed where s is mounted.
func (p *plan) apply(s *Server, f func(c *catalog) error) error {
	st := p.step(s)
	if err := f(st.next); err != nil {
		return err
	}
	st.next.derive()
	for _, m := range s.parents() {
		if err := p.apply(m.parent, func(c *catalog) error { return m.mirror(c, st.old, st.next) }); err != nil {
			return err
		}
	}
	return nil
}

func (p *plan) step(s *Server) *step {
	for _, st := range p.steps {
		if st.server == s {
			return st
		}
	}
	old := s.catalog.Load()
	next := *old
	st := &step{s, old, &next}
	p.steps = append(p.steps, st)
	return st
}

func (p *plan) store() {
	for _, st := range p.steps {
		st.server.catalog.Store(st.next)
	}
}

// announce is called without a lock.
func (p *plan) announce() {
	for _, st := range p.steps {
		st.server.announce(
			st.next.tools.pages != st.old.tools.pages,
			st.next.prompts.pages != st.old.prompts.pages,
			st.next.resources.pages != st.old.resources.pages || st.next.templates.pages != st.old.templates.pages,
		)
	}
}

func (s *Server) add(d *draft) error {
	if faults := s.checkScopes(d); faults != nil {
		return faults
	}
	return s.change(func(c *catalog) error { return c.add(d) })
}

func (c *catalog) add(d *draft) error {
	var faults reflectx.Errors
	keep := func(err error) {
		if err != nil {
			faults = append(faults, err.(reflectx.Errors)...)
		}
	}
	var err error
	c.tools, err = c.tools.with("tool", d.tools)
	keep(err)
	c.prompts, err = c.prompts.with("prompt", d.prompts)
	keep(err)
	c.resources, err = c.resources.with("resource", d.resources)
	keep(err)
	c.templates, err = c.templates.with("resource template", d.templates)
	keep(err)
	if faults != nil {
		return faults
	}
	return nil
}

// derive finds what follows from the entries.
func (c *catalog) derive() {
	c.logs, c.completes = false, false
	for _, t := range c.tools.sorted {
		c.logs = c.logs || t.logs
	}
	for _, p := range c.prompts.sorted {
		c.logs = c.logs || p.logs
		c.completes = c.completes || len(p.complete) > 0
	}
	for _, r := range slices.Concat(c.resources.sorted, c.templates.sorted) {
		c.logs = c.logs || r.logs
		c.completes = c.completes || len(r.complete) > 0
	}
}

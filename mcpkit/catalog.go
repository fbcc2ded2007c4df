package mcpkit

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/limits"
	"github.com/mcpkit/mcpkit-go/internal/paramheader"
	"github.com/mcpkit/mcpkit-go/internal/uritemplate"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/secret"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/reflectx"
)

// A catalog is all that is registered at one time. It never changes: a change makes a new one, so
// calls read it without a lock and keep the one that they began with.
type catalog struct {
	tools      registry[*tool]
	prompts    registry[*prompt]
	resources  registry[*resource] // by URI
	templates  registry[*resource] // by URI template
	methods    map[string]*methodRow
	extensions []*declaration
	topics     []offeredTopic
	logs       bool // some method can send log messages
	completes  bool // some prompt or template has completions
	offersAll  bool // of OfferAll; never changes
}

// An entry is what tools, prompts and resources have in common.
type entry struct {
	key              string // tool or prompt name, URI, or URI template
	site             string // where it was registered, for errors: "Notes.Search (notes.go:12)"
	scopes           []string
	stepUp           bool // callers that lack scopes may know of it
	tags             []string
	hidden           bool
	timeout          time.Duration
	timeoutByDefault bool // timeout is that of ToolTimeout
	rate             rateLimit
	calls            *limits.Rounds[caller] // what rate counts; nil without a limit
	overdue          *overdueCount          // set by guard
	keep             keepRule               // of a tool
	run              Handler                // the method inside of what its tags demand
	logs             bool
	secrets          *secret.Secrecy // which arguments logs may show; nil: all
	wire             *wiring         // the encoded definition
	from             gate            // of the server that it is mounted from; nil for own entries
	inner            item            // the entry of that server
	given            json.RawMessage // the definition of SetDefinitions; nil for other entries
	set              *ItemSet        // that the entry belongs to; nil for most
	extended         []taggedValue   // the tags of extensions; of a tool
}

func (e *entry) base() *entry { return e }

// visible reports whether p may know of the entry. For others it does not exist.
func (e *entry) visible(p *oauth.Principal) bool {
	return len(e.scopes) == 0 || e.stepUp && p != nil || p.Has(e.scopes...)
}

// setWire sets how the definition is encoded. define returns what to encode for a version.
func (e *entry) setWire(define func(v protocol.Version) any) { e.wire = &wiring{define: define} }

// A wiring encodes a definition for each version when it is first needed.
type wiring struct {
	define  func(v protocol.Version) any
	encoded [len(versions)]atomic.Pointer[[]byte]
}

// in returns the definition for versions[i].
func (w *wiring) in(i int) ([]byte, error) {
	if b := w.encoded[i].Load(); b != nil {
		return *b, nil
	}
	b, err := jsonx.Marshal(w.define(versions[i]))
	if err != nil {
		return nil, fmt.Errorf("the definition does not encode: %w", err)
	}
	w.encoded[i].Store(&b)
	return b, nil
}

type item interface{ base() *entry }

// A registry holds the entries of one kind. It never changes. Registries that only add to others
// share their memory, so that an addition costs what it adds. What calls read, by key and sorted,
// is made when the first call after a change needs it: a thousand additions in a row make it once.
type registry[T item] struct {
	added     []T            // in order of addition; later registries may have added more behind the end
	places    map[string]int // key to index in added; only for changes, see find
	personal  bool           // not all callers see the same entries
	logs      bool           // some method can send log messages
	completes bool           // some entry has completions
	view      *view[T]       // a new one for each change; nil if empty
}

// A view is the part of a registry that calls read.
type view[T item] struct {
	once   sync.Once
	byKey  map[string]T
	sorted []T
}

// read returns the view, or nil of an empty registry.
func (r registry[T]) read() *view[T] {
	if r.view != nil {
		r.view.once.Do(func() { r.view.make(r.added) })
	}
	return r.view
}

func (v *view[T]) make(added []T) {
	v.sorted = slices.SortedFunc(slices.Values(added), func(a, b T) int { return strings.Compare(a.base().key, b.base().key) })
	v.byKey = make(map[string]T, len(added))
	for _, it := range added {
		v.byKey[it.base().key] = it
	}
}

func (r registry[T]) get(key string) (it T, ok bool) {
	if v := r.read(); v != nil {
		it, ok = v.byKey[key]
	}
	return it, ok
}

// key returns the registered key that equals name, the inside of a JSON string.
func (r registry[T]) key(name []byte) (string, bool) {
	v := r.read()
	if v == nil {
		return "", false
	}
	if it, ok := v.byKey[string(name)]; ok && bytes.IndexByte(name, '\\') < 0 {
		return it.base().key, true
	}
	return "", false
}

// all returns the entries sorted by key.
func (r registry[T]) all() []T {
	if v := r.read(); v != nil {
		return v.sorted
	}
	return nil
}

func (r registry[T]) len() int { return len(r.added) }

// find is like get, for changes: it needs no view. places may have keys of changes that were
// refused, so the key is compared. The caller holds the family's lock.
func (r registry[T]) find(key string) (it T, ok bool) {
	if at, found := r.places[key]; found && at < len(r.added) && r.added[at].base().key == key {
		return r.added[at], true
	}
	return it, false
}

// add adds items to the registry, or returns an error with both places of each key that exists
// already. The caller holds the family's lock.
func (r *registry[T]) add(what string, items []T) error {
	if len(items) == 0 {
		return nil
	}
	next := *r
	next.view = new(view[T])
	if next.places == nil {
		next.places = make(map[string]int, len(items))
	}
	var faults reflectx.Errors
	for _, it := range items {
		e := it.base()
		if old, ok := next.find(e.key); ok {
			faults = append(faults, &reflectx.Error{
				Msg: fmt.Sprintf("mcpkit: %s %q is registered twice, by %s and %s", what, e.key, old.base().site, e.site),
			})
			continue
		}
		next.places[e.key] = len(next.added)
		next.added = append(next.added, it)
		next.note(it)
	}
	if faults != nil {
		return faults
	}
	*r = next
	return nil
}

// note updates what depends on the entries.
func (r *registry[T]) note(it T) {
	e := it.base()
	r.personal = r.personal || len(e.scopes) > 0
	r.logs = r.logs || e.logs
	switch it := any(it).(type) {
	case *prompt:
		r.completes = r.completes || len(it.complete) > 0
	case *resource:
		r.completes = r.completes || len(it.complete) > 0
	}
}

// remove removes the entries for which gone returns true, and reports whether there were any. The
// caller holds the family's lock.
func (r *registry[T]) remove(gone func(*entry) bool) (removed bool) {
	if !slices.ContainsFunc(r.added, func(it T) bool { return gone(it.base()) }) {
		return false
	}
	next := registry[T]{places: make(map[string]int, len(r.added)), view: new(view[T])}
	for _, it := range r.added {
		if e := it.base(); !gone(e) {
			next.places[e.key] = len(next.added)
			next.added = append(next.added, it)
			next.note(it)
		}
	}
	*r = next
	return true
}

// named returns the condition for entries with one of these keys.
func named(keys []string) func(*entry) bool {
	return func(e *entry) bool { return slices.Contains(keys, e.key) }
}

type tool struct {
	entry
	def     protocol.Tool
	members []addedMember // that extensions added to the definition
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

// change applies f to a copy of the catalog, and the change to the followers. Subscribed clients
// are notified of the lists that differ.
func (s *Server) change(f func(c *catalog) error) error {
	var p plan
	unlock := s.family.Lock()
	err := p.apply(s, f)
	if err == nil {
		p.store()
	}
	unlock()
	if err == nil {
		p.announce()
	}
	return err
}

// A plan holds catalogs that are replaced together. The zero value replaces none.
type plan struct{ steps []*step }

// A step is the change of one server.
type step struct {
	server    *Server
	old, next *catalog
}

// apply lets f change the catalog of s, and its followers their own.
func (p *plan) apply(s *Server, f func(c *catalog) error) error {
	st := p.step(s)
	if err := f(st.next); err != nil {
		return err
	}
	st.next.derive()
	for _, f := range s.followers.all() {
		if err := f.follow(p, st.old, st.next); err != nil {
			return err
		}
	}
	return nil
}

// A gate leads into a mounted server.
type gate interface {
	// enter answers the call with the mounted server and its row of the method. target is the
	// mounted server's entry; nil for methods without one.
	enter(ctx context.Context, call *Call, target item, row *methodRow) (Result, error)
}

// A follower shows the entries of a server elsewhere, and changes with it.
type follower interface {
	// follow adds the follower's part of a change to p, or refuses the change.
	follow(p *plan, old, next *catalog) error

	// updated tells that a resource has changed, and reports whether any client was notified.
	updated(uri string) bool
}

// A list is replaced under the family's lock, and read without one.
type list[T any] struct{ items atomic.Pointer[[]T] }

func (l *list[T]) all() []T {
	if items := l.items.Load(); items != nil {
		return *items
	}
	return nil
}

func (l *list[T]) add(item T) {
	items := append(slices.Clone(l.all()), item)
	l.items.Store(&items)
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

// announce is called without locks.
func (p *plan) announce() {
	for _, st := range p.steps {
		st.server.announce(
			st.next.tools.view != st.old.tools.view,
			st.next.prompts.view != st.old.prompts.view,
			st.next.resources.view != st.old.resources.view || st.next.templates.view != st.old.templates.view,
		)
	}
}

func (s *Server) add(d draft) error { return s.addUnless(nil, d) }

// addUnless adds the draft to the server. If there are faults, it adds nothing and returns them
// together with those of the draft.
func (s *Server) addUnless(faults reflectx.Errors, d draft) error {
	faults = append(faults, s.checkScopes(d)...)
	faults = append(faults, d.checkEncoding()...)
	return s.change(func(c *catalog) error { return joinFaults(faults, c.add(d)) })
}

// checkEncoding encodes each definition once, since one that does not encode would break its list.
func (d draft) checkEncoding() (faults reflectx.Errors) {
	for _, it := range d {
		e := it.base()
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
	d := appendItems(appendItems(nil, c.tools.all()), c.prompts.all())
	return appendItems(appendItems(d, c.resources.all()), c.templates.all())
}

// derive sets what depends on the entries.
func (c *catalog) derive() {
	c.logs = c.tools.logs || c.prompts.logs || c.resources.logs || c.templates.logs
	c.completes = c.prompts.completes || c.resources.completes || c.templates.completes
}
